//! Calls of gRPC: their deadlines, failures as statuses of gRPC, and the health service.
//!
//! Source: "gRPC over HTTP2" and "GRPC Health Checking Protocol", github.com/grpc/grpc/blob/master/doc.

use std::collections::VecDeque;
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use http::{HeaderMap, StatusCode};
use http_body::{Body, Frame};
use plimsoll_client::grpc;
use plimsoll_model::{Clock as _, GrpcStatus};
use plimsoll_server::{DrainSignal, Request, Response, ResponseBody, StreamError};
use plimsoll_wire::SystemClock;
use tokio::time::{Interval, Sleep};

use crate::upstream::Upstream;

const STATUS: HeaderName = HeaderName::from_static("grpc-status");
const MESSAGE: HeaderName = HeaderName::from_static("grpc-message");

/// A request that is a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Call {
    /// How long the client waits for the end of the response.
    pub(super) timeout: Option<Duration>,
}

/// The methods of the health service that are answered by the gateway.
const CHECK: &str = "/grpc.health.v1.Health/Check";
const WATCH: &str = "/grpc.health.v1.Health/Watch";

/// How often a watched health is looked at.
const LOOK: Duration = Duration::from_millis(250);

/// Codes of statuses.
const DEADLINE_EXCEEDED: u64 = 4;
const UNAVAILABLE: u64 = 14;

impl Call {
    /// That of a request; nothing if it is none.
    ///
    /// - `most`: the longest deadline, also of calls without one.
    pub(super) fn from_request(request: &Request<'_>, most: Option<Duration>) -> Option<Self> {
        if request.method != "POST" {
            return None;
        }
        let kind = request.header("content-type")?;
        let suffix = kind.strip_prefix(b"application/grpc")?;
        // Not `application/grpc-web`, whose trailers lie in the content.
        if !matches!(suffix.first(), None | Some(b'+' | b';')) {
            return None;
        }
        let wanted = request.header("grpc-timeout").and_then(timeout);
        let timeout = match (wanted, most) {
            (Some(wanted), Some(most)) => Some(wanted.min(most)),
            (wanted, most) => wanted.or(most),
        };
        Some(Self { timeout })
    }
}

/// The value of `grpc-timeout`: up to eight digits and a unit.
fn timeout(value: &[u8]) -> Option<Duration> {
    let (unit, digits) = value.split_last()?;
    let is_number = (1..=8).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit);
    let number: u64 = std::str::from_utf8(digits)
        .ok()
        .filter(|_| is_number)?
        .parse()
        .ok()?;
    Some(match unit {
        b'H' => Duration::from_secs(number * 3600),
        b'M' => Duration::from_secs(number * 60),
        b'S' => Duration::from_secs(number),
        b'm' => Duration::from_millis(number),
        b'u' => Duration::from_micros(number),
        b'n' => Duration::from_nanos(number),
        _ => return None,
    })
}

/// A failure of the gateway as a client of gRPC expects it: 200 with a status, and without content.
pub(super) fn failed(response: &Response) -> Response {
    let status = match response.status().as_u16() {
        413 => GrpcStatus::from_code(8),
        status => GrpcStatus::from_http(status),
    };
    let reason = response.status().canonical_reason().unwrap_or("error");
    with_status(
        status,
        &format!(
            "the gateway responded with {} {reason}",
            response.status().as_u16()
        ),
    )
}

/// The response to a call whose time is over.
pub(super) fn late() -> Response {
    with_status(GrpcStatus::from_code(DEADLINE_EXCEEDED), LATE)
}

const LATE: &str = "the deadline of the call has passed";

/// The end of a response that has begun, once the time of its call is over.
pub(super) fn late_trailers() -> HeaderMap {
    status_fields(GrpcStatus::from_code(DEADLINE_EXCEEDED), LATE)
}

fn with_status(status: GrpcStatus, message: &str) -> Response {
    let mut response = Response::new(StatusCode::OK)
        .with_field(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    for (name, value) in status_fields(status, message) {
        if let Some(name) = name {
            response = response.with_field(name, value);
        }
    }
    response
}

fn status_fields(status: GrpcStatus, message: &str) -> HeaderMap {
    let mut fields = HeaderMap::new();
    fields.insert(STATUS, HeaderValue::from(u64::from(status.code())));
    fields.insert(MESSAGE, grpc::status_message(message.as_bytes()));
    fields
}

/// The response of the health service, if a call is for it: whether any server is available.
pub(super) fn health(
    request: &Request<'_>,
    upstream: &Rc<Upstream>,
    call: &Call,
    drain: &DrainSignal,
) -> Option<Response> {
    let body: ResponseBody = match request.path {
        CHECK => {
            let is_serving = upstream.is_available(SystemClock.now());
            let mut trailers = HeaderMap::new();
            trailers.insert(STATUS, HeaderValue::from_static("0"));
            let frames = [
                Frame::data(health_message(is_serving)),
                Frame::trailers(trailers),
            ];
            ResponseBody::Stream(Box::pin(Frames(frames.into())))
        }
        WATCH => ResponseBody::Stream(Box::pin(Watching {
            upstream: Rc::downgrade(upstream),
            looks: tokio::time::interval(LOOK),
            sent: None,
            ends: call
                .timeout
                .map(|timeout| Box::pin(tokio::time::sleep(timeout))),
            drain: drain.clone(),
            is_over: false,
        })),
        _ => return None,
    };
    Some(
        Response::new(StatusCode::OK)
            .with_field(CONTENT_TYPE, HeaderValue::from_static("application/grpc"))
            .with_body(body),
    )
}

/// A framed `HealthCheckResponse`.
fn health_message(is_serving: bool) -> Bytes {
    // Field 1: SERVING or NOT_SERVING.
    let message = [0x08, if is_serving { 1 } else { 2 }];
    Bytes::from(grpc::frame(&[message]).unwrap_or_default())
}

/// The health of an upstream at once, and again whenever it changes.
struct Watching {
    upstream: Weak<Upstream>,
    looks: Interval,
    sent: Option<bool>,
    /// The deadline of the call.
    ends: Option<Pin<Box<Sleep>>>,
    drain: DrainSignal,
    is_over: bool,
}

impl Body for Watching {
    type Data = Bytes;
    type Error = StreamError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, StreamError>>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        if let Some(ends) = &mut self.ends
            && ends.as_mut().poll(context).is_ready()
        {
            self.is_over = true;
            return Poll::Ready(Some(Ok(Frame::trailers(late_trailers()))));
        }
        loop {
            ready!(self.looks.poll_tick(context));
            let upstream = self.upstream.upgrade();
            let Some(upstream) = upstream.filter(|_| self.drain.since().is_none()) else {
                // It drains or is configured differently: the client calls again.
                self.is_over = true;
                let status = GrpcStatus::from_code(UNAVAILABLE);
                let trailers = status_fields(status, "the gateway was configured anew");
                return Poll::Ready(Some(Ok(Frame::trailers(trailers))));
            };
            let is_serving = upstream.is_available(SystemClock.now());
            if self.sent != Some(is_serving) {
                self.sent = Some(is_serving);
                let message = health_message(is_serving);
                return Poll::Ready(Some(Ok(Frame::data(message))));
            }
        }
    }
}

/// Content and trailers that are there already.
struct Frames(VecDeque<Frame<Bytes>>);

impl Body for Frames {
    type Data = Bytes;
    type Error = StreamError;

    fn poll_frame(
        self: Pin<&mut Self>,
        _context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, StreamError>>> {
        Poll::Ready(self.get_mut().0.pop_front().map(Ok))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_are_digits_and_a_unit() {
        for (text, expected) in [
            ("1H", Some(Duration::from_hours(1))),
            ("2M", Some(Duration::from_mins(2))),
            ("3S", Some(Duration::from_secs(3))),
            ("4m", Some(Duration::from_millis(4))),
            ("5u", Some(Duration::from_micros(5))),
            ("99999999n", Some(Duration::from_nanos(99_999_999))),
            ("", None),
            ("S", None),
            ("1", None),
            ("1s", None),
            ("-1S", None),
            ("123456789S", None),
            ("1.5S", None),
        ] {
            assert_eq!(timeout(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn messages_are_percent_encoded() {
        let fields = status_fields(GrpcStatus::OK, "50% ü");
        assert_eq!(&fields["grpc-message"], "50%25 %C3%BC");
    }
}
