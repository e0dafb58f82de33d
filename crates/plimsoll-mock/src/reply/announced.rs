//! No content, but an announced length: the response to HEAD of a resource that the mock does not have.

use bytes::Bytes;
use http::StatusCode;
use plimsoll_server::{Answer, Outcome, ResponseBody};

use super::{ReplyCall, Respond, with_media_type};
use crate::config::ready;
use crate::fault::WholeResponse;

/// A length in bytes, which responses to HEAD announce.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Announced(pub u64);

impl Respond for Announced {
    fn respond(&self, call: ReplyCall<'_, '_>) -> Answer {
        let status = call.reply.status();
        let fields = with_media_type(call.reply.fields(call.request), None);
        if let Some(fault) = call.reply.fault {
            let whole = WholeResponse {
                status,
                fields,
                content: Bytes::new(),
            };
            return call.then(async move { fault.outcome(whole) });
        }
        let response = ready::response(call.context.sharing(), &call.allowed, status, &fields);
        let body = ResponseBody::Announced(self.0);
        call.outcome_after(Outcome::Respond(response.with_body(body)))
    }

    fn summary(&self, status: StatusCode) -> String {
        format!("{}, empty, announces {} bytes", status.as_u16(), self.0)
    }
}
