//! A WebSocket, if the handshake is correct.

use std::sync::Arc;

use http::StatusCode;
use http::header::{HeaderName, HeaderValue};
use plimsoll_server::{Answer, LocalFuture, Outcome, Response};

use super::{ReplyCall, Respond};
use crate::streaming::websocket::{self, Conversation, Session};

impl Respond for Arc<Conversation> {
    fn respond(&self, call: ReplyCall<'_, '_>) -> Answer {
        let agreed = match websocket::agreed(call.request, &self.protocols) {
            Ok(fields) => fields,
            Err((status, fields, text)) => {
                let refusal = call.context.text(status, text, &call.allowed);
                return Answer::now(with_fields(refusal, fields));
            }
        };
        let session = Arc::<Session>::default();
        call.context.set_session(Arc::clone(&session));
        let mut fields = call.reply.fields(call.request);
        fields.extend(agreed);
        let response = with_fields(Response::new(StatusCode::SWITCHING_PROTOCOLS), fields);
        let (conversation, request) = (Arc::clone(self), call.request.keep());
        let talk = move |stream, _drain| {
            let talk = websocket::talk(stream, conversation, request, session);
            Box::pin(talk) as LocalFuture<()>
        };
        call.outcome_after(Outcome::Upgrade(response, Box::new(talk)))
    }

    fn summary(&self, _status: StatusCode) -> String {
        "a WebSocket".to_owned()
    }
}

fn with_fields(
    response: Response,
    fields: impl IntoIterator<Item = (HeaderName, HeaderValue)>,
) -> Response {
    fields
        .into_iter()
        .fold(response, |response, (name, value)| {
            response.with_field(name, value)
        })
}
