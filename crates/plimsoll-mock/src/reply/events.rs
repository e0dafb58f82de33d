//! A stream of server-sent events.

use http::StatusCode;
use http::header::HeaderValue;
use plimsoll_server::{Answer, Outcome, ResponseBody};
use plimsoll_wire::sse::MEDIA_TYPE;

use super::{ReplyCall, Respond, with_media_type};
use crate::config::ready;
use crate::streaming::events::EventScript;

impl Respond for EventScript {
    fn respond(&self, call: ReplyCall<'_, '_>) -> Answer {
        let stream = self.stream(call.request);
        let media_type = HeaderValue::from_static(MEDIA_TYPE);
        let fields = with_media_type(call.reply.fields(call.request), Some(&media_type));
        let status = call.reply.status();
        let response = ready::response(call.context.sharing(), &call.allowed, status, &fields);
        let response = response.with_body(ResponseBody::Stream(Box::pin(stream)));
        call.outcome_after(Outcome::Respond(response))
    }

    fn summary(&self, status: StatusCode) -> String {
        let repeats = if self.rounds.is_none() {
            ", again and again"
        } else {
            ""
        };
        let count = self.events.len();
        format!("{}, {count} events{repeats}", status.as_u16())
    }
}
