//! The response of a real server, with the fields of the rule in place of the server's.

use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use http::header::{ACCESS_CONTROL_ALLOW_ORIGIN, HeaderName, HeaderValue};
use plimsoll_server::{Answer, Outcome, Response, ResponseBody};

use super::{ReplyCall, ReplyContext, Respond};
use crate::proxy::record::exchange::ExchangeHead;
use crate::proxy::record::proxied::ProxiedExchanges;
use crate::proxy::record::tap::Tapped;
use crate::proxy::{self, Outgoing, Passed, Upstream};
use crate::request::KeptRequest;
use crate::worker::sharing::Allowed;

impl Respond for Arc<Upstream> {
    fn respond(&self, call: ReplyCall<'_, '_>) -> Answer {
        let own = call.reply.fields(call.request);
        let outgoing = match Outgoing::new(call.request, self) {
            Ok(outgoing) => outgoing,
            Err((status, text)) => {
                let refused = call.context.text(status, text, &call.allowed);
                return Answer::now(proxy::not_sent(refused));
            }
        };
        let pool = call.context.pool(self);
        let (context, allowed) = (Rc::clone(call.context), call.allowed.clone());
        let kept = call.context.proxied().map(|proxied| {
            let mut request = call.request.keep();
            request.body = Bytes::copy_from_slice(call.request.body);
            (proxied, request, self.origin())
        });
        call.then(async move {
            Outcome::Respond(match proxy::pass_on(pool, outgoing).await {
                Ok(passed) => response(passed, kept, &own, &context, &allowed),
                Err((status, text)) => context.text(status, text, &allowed),
            })
        })
    }

    fn summary(&self, _status: StatusCode) -> String {
        format!("what {self} answers")
    }
}

/// Where an exchange is kept, its request, and the origin of the server.
type Keeping = (Arc<ProxiedExchanges>, KeptRequest, String);

/// The content of a response, which is kept with its request once it has passed, if exchanges are.
fn content(passed: Passed, kept: Option<Keeping>) -> ResponseBody {
    let Some((proxied, request, origin)) = kept else {
        return ResponseBody::Stream(Box::pin(passed.content));
    };
    let head = ExchangeHead::new(request, &passed, origin);
    let tapped = Tapped::new(passed.content, move |content| proxied.note(head, content));
    ResponseBody::Stream(Box::pin(tapped))
}

fn response(
    passed: Passed,
    kept: Option<Keeping>,
    own: &[(HeaderName, HeaderValue)],
    context: &ReplyContext,
    allowed: &Allowed,
) -> Response {
    let is_own = |name: &HeaderName| own.iter().any(|(it, _)| it == name);
    let theirs = passed.fields.iter().filter(|(name, _)| !is_own(name));
    let mut fields: Vec<_> = own.iter().chain(theirs).cloned().collect();
    let is_shared = fields
        .iter()
        .any(|(name, _)| *name == ACCESS_CONTROL_ALLOW_ORIGIN);
    if !is_shared {
        fields.extend(context.sharing().fields(allowed));
    }
    let response = fields
        .into_iter()
        .fold(Response::new(passed.status), |response, (name, value)| {
            response.with_field(name, value)
        });
    response.with_body(content(passed, kept))
}
