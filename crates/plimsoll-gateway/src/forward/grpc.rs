//! Calls of gRPC: their deadlines, failures as statuses of gRPC, and the health service.
//!
//! Source: "gRPC over HTTP2" and "GRPC Health Checking Protocol", github.com/grpc/grpc/blob/master/doc.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use http::{HeaderMap, StatusCode};
use http_body::{Body, Frame};
use plimsoll_client::grpc;
use plimsoll_model::GrpcStatus;
use plimsoll_server::{Request, Response, ResponseBody, StreamError};

const STATUS: HeaderName = HeaderName::from_static("grpc-status");
const MESSAGE: HeaderName = HeaderName::from_static("grpc-message");

/// A request that is a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Call {
    /// How long the client waits for the end of the response.
    pub(super) timeout: Option<Duration>,
}

/// The method of the health service that is answered by the gateway.
const CHECK: &str = "/grpc.health.v1.Health/Check";

/// The code of `DEADLINE_EXCEEDED`.
const DEADLINE_EXCEEDED: u64 = 4;

impl Call {
    /// That of a request; nothing if it is none.
    pub(super) fn of(request: &Request<'_>) -> Option<Self> {
        if request.method != "POST" {
            return None;
        }
        let kind = request.header("content-type")?;
        let suffix = kind.strip_prefix(b"application/grpc")?;
        // Not `application/grpc-web`, whose trailers lie in the content.
        if !matches!(suffix.first(), None | Some(b'+' | b';')) {
            return None;
        }
        let timeout = request.header("grpc-timeout").and_then(timeout);
        Some(Self { timeout })
    }
}

/// Whether a call is for the health service.
pub(super) fn is_health_check(request: &Request<'_>) -> bool {
    request.path == CHECK
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
    // Percent-encoded but for printable ASCII other than `%`.
    let mut encoded = String::new();
    for byte in message.bytes() {
        match byte {
            b' '..=b'~' if byte != b'%' => encoded.push(char::from(byte)),
            _ => _ = write!(encoded, "%{byte:02X}"),
        }
    }
    if let Ok(encoded) = HeaderValue::from_str(&encoded) {
        fields.insert(MESSAGE, encoded);
    }
    fields
}

/// The response of the health service: whether any server is available.
pub(super) fn health(is_serving: bool) -> Response {
    // Field 1 of HealthCheckResponse: SERVING or NOT_SERVING.
    let message = [0x08, if is_serving { 1 } else { 2 }];
    let content = grpc::frame(&[message]).unwrap_or_default();
    let mut trailers = HeaderMap::new();
    trailers.insert(STATUS, HeaderValue::from_static("0"));
    let frames = [Frame::data(Bytes::from(content)), Frame::trailers(trailers)];
    Response::new(StatusCode::OK)
        .with_field(CONTENT_TYPE, HeaderValue::from_static("application/grpc"))
        .with_body(ResponseBody::Stream(Box::pin(Frames(frames.into()))))
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
