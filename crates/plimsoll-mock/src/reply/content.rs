//! Bytes, the same for every request or made for it.

use bytes::Bytes;
use http::StatusCode;
use http::header::HeaderValue;
use plimsoll_server::{Answer, Outcome, ResponseBody};

use super::{Reply, ReplyCall, Respond, with_media_type};
use crate::config::ready::{self, PreparedResponse};
use crate::fault::pace::{Pace, Paced};
use crate::fault::{Fault, WholeResponse};
use crate::template::content::Content;
use crate::worker::sharing::{Allowed, Sharing};

impl Respond for Content {
    #[inline]
    fn respond(&self, call: ReplyCall<'_, '_>) -> Answer {
        let whole = WholeResponse {
            status: call.reply.status(),
            fields: with_media_type(call.reply.fields(call.request), self.media_type()),
            content: self.for_request(call.request),
        };
        let (fault, pace) = (call.reply.fault, call.reply.pace);
        if call.delay.is_zero() {
            return Answer::Now(outcome(
                call.context.sharing(),
                &call.allowed,
                whole,
                fault,
                pace,
            ));
        }
        let (context, allowed) = (call.context.clone(), call.allowed.clone());
        call.then(async move { outcome(context.sharing(), &allowed, whole, fault, pace) })
    }

    fn constant(&self, reply: &Reply, sharing: &Sharing) -> Option<PreparedResponse> {
        let content = match self {
            Self::Empty => Bytes::new(),
            Self::Bytes(_, bytes) => bytes.clone(),
            Self::TextTemplate(..) => return None,
        };
        let fields = with_media_type(reply.fields.clone(), self.media_type());
        Some(PreparedResponse::new(
            sharing,
            reply.status(),
            fields,
            content,
        ))
    }

    fn summary(&self, status: StatusCode) -> String {
        let status = status.as_u16();
        match self {
            Self::Empty => format!("{status}, empty"),
            Self::Bytes(media_type, bytes) => {
                format!("{status}, {} bytes of {}", bytes.len(), shown(media_type))
            }
            Self::TextTemplate(media_type, _) => {
                format!("{status}, {} made for the request", shown(media_type))
            }
        }
    }
}

fn shown(media_type: &HeaderValue) -> &str {
    media_type.to_str().unwrap_or_default()
}

/// The outcome of a response whose bytes are known.
pub(super) fn outcome(
    sharing: &Sharing,
    allowed: &Allowed,
    whole: WholeResponse,
    fault: Option<Fault>,
    pace: Option<Pace>,
) -> Outcome {
    if let Some(fault) = fault {
        return fault.outcome(whole);
    }
    let response = ready::response(sharing, allowed, whole.status, &whole.fields);
    let body = match pace {
        None => ResponseBody::Bytes(whole.content),
        Some(pace) => ResponseBody::Stream(Box::pin(Paced::new(whole.content, pace))),
    };
    Outcome::Respond(response.with_body(body))
}
