//! What becomes of the response of a server.

use std::rc::Rc;

use bytes::Bytes;
use http::StatusCode;
use http::header::{CACHE_CONTROL, HeaderValue, SET_COOKIE};
use plimsoll_model::Failure;
use plimsoll_server::{Outcome, Response, ResponseBody};

use super::attempt::Responding;
use super::body::{Download, DownloadLimits};
use super::read_ahead::ReadAhead;
use super::tunnel::{self, Handshake};
use super::{Forwarder, Forwarding, accel, failure, respond};
use crate::upstream::{Permit, ServerUse};

/// A response whose content has yet to come.
pub(super) struct Answering {
    response: Response,
    pub(super) download: Download,
    /// Bytes of the content, as the server has announced them.
    announced: Option<u64>,
    has_content: bool,
    /// The content is read ahead of the client, up to so many bytes.
    reads_ahead: Option<usize>,
}

impl Forwarding {
    /// What the head of a response is answered by: the response that its content belongs into, or an outcome without it.
    pub(super) fn answering(
        &mut self,
        forwarder: &Forwarder,
        responding: Responding,
        handshake: Option<Handshake>,
        permit: Option<Permit>,
    ) -> Result<Answering, Outcome> {
        let Responding {
            server,
            exchange,
            head,
            protocol,
            at: _,
            connect: _,
        } = responding;
        let status = head.status;
        if let Some(span) = &self.span {
            span.responded(status.as_u16());
        }
        if let Some(handshake) = handshake
            && handshake.is_agreed(&head, protocol)
        {
            let mut fields = head.fields.into_forwarded().into_map();
            handshake.complete(&mut fields);
            let response = Response::new(StatusCode::SWITCHING_PROTOCOLS).with_field_map(fields);
            let Some(upgraded) = exchange.upgrade() else {
                return Err(self.failed(failure::bad_gateway()));
            };
            let in_flight = (server, permit, self.span.take());
            let tunnel = tunnel::tunnel(upgraded, in_flight, handshake.plan());
            return Err(Outcome::Upgrade(response, tunnel));
        }
        if status == StatusCode::SWITCHING_PROTOCOLS {
            // The client did not request it.
            return Err(self.failed(failure::bad_gateway()));
        }
        let announced = head.fields.field("content-length").and_then(length);
        let limit = forwarder.plan.response_limit;
        if let (Some(limit), Some(announced)) = (limit, announced)
            && announced > limit
        {
            return Err(self.failed(failure::response_too_large()));
        }
        let has_content = self.request.method() != "HEAD"
            && status != StatusCode::NOT_MODIFIED
            && status != StatusCode::NO_CONTENT;
        let mut fields = head.fields.into_forwarded();
        if forwarder.plan.hands_over
            && let Some(hand_over) = accel::hand_over(&mut fields)
        {
            // A cache must not take it for the response.
            let no_store = HeaderValue::from_static("no-store");
            let response = Response::handing_over(hand_over);
            return Err(respond(response.with_field(CACHE_CONTROL, no_store)));
        }
        if let Some(page) = forwarder.plan.error_pages.intercepted(status, &fields) {
            return Err(respond(page));
        }
        // Calls of gRPC are conversations.
        let response_buffer = forwarder.plan.response_buffer.filter(|_| !self.is_call);
        let reads_ahead = response_buffer.filter(|_| !accel::refuses_buffering(&mut fields));
        let reads_ahead = reads_ahead.map(|most| usize::try_from(most).unwrap_or(usize::MAX));
        let mut response = Response::new(status).with_end_to_end_fields(fields);
        if !forwarder.plan.intercepts {
            response = response.relayed();
        }
        if let Some(reason) = head.reason {
            response = response.with_reason(reason);
        }
        if let Some(cookie) = self.sticky_cookie(&server) {
            response = response.with_field(SET_COOKIE, cookie);
        }
        if let Some(cookie) = self.split_cookie.take() {
            response = response.with_field(SET_COOKIE, cookie);
        }
        let in_flight = (server, permit, self.span.take());
        let total = self.total.take();
        let idle = forwarder.deadlines.idle.as_ref();
        let limits = DownloadLimits {
            total,
            idle: Rc::clone(idle.unwrap_or(&self.upstream.idle_deadlines)),
            bytes: limit,
        };
        let mut download = Download::new(exchange, in_flight, &self.upstream, limits);
        if self.is_call {
            download.is_call(self.call_ends);
        }
        Ok(Answering {
            response,
            download,
            announced,
            has_content,
            reads_ahead,
        })
    }

    /// The response with its content.
    ///
    /// - `ready`: the content, if all of it is there.
    pub(super) fn answer(
        &self,
        answering: Answering,
        ready: Result<Option<Bytes>, Failure>,
    ) -> Outcome {
        let body = match ready {
            // It leaves with the head in one write.
            Ok(Some(content)) if answering.has_content && !content.is_empty() => {
                ResponseBody::Bytes(content)
            }
            Ok(Some(_)) => {
                let announced = answering.announced;
                announced.map_or(ResponseBody::Empty, ResponseBody::Announced)
            }
            Ok(None) => match answering.reads_ahead {
                Some(most) => {
                    let ahead = ReadAhead::new(answering.download, most);
                    ResponseBody::Stream(Box::pin(ahead))
                }
                None => ResponseBody::Stream(Box::pin(answering.download)),
            },
            Err(failure) => return self.failed(failure::response(&failure)),
        };
        respond(answering.response.with_body(body))
    }

    /// The cookie that leads a new client to the same server again.
    fn sticky_cookie(&self, server: &ServerUse) -> Option<HeaderValue> {
        let name = self.upstream.plan.options.sticky.as_ref()?;
        let cookie = server.server().cookie();
        if self.sticky.as_deref() == Some(cookie) {
            return None;
        }
        let text = format!("{name}={cookie}; Path=/; HttpOnly; SameSite=Lax");
        HeaderValue::from_str(&text).ok()
    }
}

fn length(value: &[u8]) -> Option<u64> {
    std::str::from_utf8(value).ok()?.trim().parse().ok()
}
