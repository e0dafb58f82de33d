//! Decodes the response to a call as it arrives.

use http::HeaderMap;
use plimsoll_model::{Failure, FailureKind, GrpcStatus, Phase};
use plimsoll_wire::h2::ResponseHead;
use plimsoll_wire::h2::hpack::Fields;

use super::framing::{FramingError, MessageCounter};
use super::status_message::read_status_message;

/// Of what the server says to a status, what is kept.
const MOST_OF_MESSAGE: usize = 1024;

/// Of a content type that is not gRPC's, what is kept.
const MOST_OF_TYPE: usize = 100;

/// Reads one response after the other; keeps its memory from one to the next.
#[derive(Debug, Default)]
pub struct GrpcReading {
    http_status: u16,
    is_grpc: bool,
    /// The content type, if it is not that of gRPC.
    content_type: Vec<u8>,
    status: Option<GrpcStatus>,
    /// Percent-encoded.
    message: Vec<u8>,
    messages: MessageCounter,
}

/// The response to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GrpcAnswer<'a> {
    /// The status in the response's trailers or header.
    pub status: GrpcStatus,
    /// Messages in the response.
    pub messages: u64,
    /// The message beside the status, percent-encoded; empty if there is none.
    message: &'a [u8],
}

impl GrpcAnswer<'_> {
    /// The message beside the status, if there is one.
    pub fn message(&self) -> Option<String> {
        if self.message.is_empty() {
            return None;
        }
        Some(read_status_message(self.message))
    }
}

/// Why a complete response of HTTP is no answer to a call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GrpcFault {
    /// Something else than gRPC answered.
    #[error("the content type is {0}, not application/grpc")]
    ContentType(String),
    /// Neither the trailers nor the head have a status.
    #[error("the response ended without grpc-status")]
    NoStatus,
    /// The content is not messages.
    #[error(transparent)]
    Framing(FramingError),
    /// A method with one response message got a status OK without one.
    #[error("the status is OK, with {0} messages instead of one")]
    Messages(u64),
}

impl GrpcFault {
    /// The failure that it is for an exchange.
    pub fn failure(&self) -> Failure {
        let kind = match self {
            Self::Framing(FramingError::Compressed) => FailureKind::Decode,
            _ => FailureKind::Protocol,
        };
        Failure::new(Phase::Receive, kind).because(self.to_string())
    }
}

impl GrpcReading {
    /// The head of the next response; its fields must have been decoded.
    pub fn head(&mut self, head: &ResponseHead<'_>) {
        self.begin(head.status, &|name| head.fields.field(name));
    }

    /// The same over HTTP/3.
    pub fn head_of_http3(&mut self, status: u16, fields: &HeaderMap) {
        self.begin(status, &|name| field(fields, name));
    }

    fn begin<'f>(&mut self, status: u16, fields: &dyn Fn(&str) -> Option<&'f [u8]>) {
        let content_type = fields("content-type").unwrap_or_default();
        self.http_status = status;
        self.is_grpc = is_grpc(content_type);
        self.content_type.clear();
        if !self.is_grpc {
            let shown = content_type.iter().take(MOST_OF_TYPE);
            self.content_type.extend(shown);
        }
        self.status = None;
        self.message.clear();
        self.messages = MessageCounter::default();
        // A response that is nothing but its status has it here.
        self.take_status(fields);
    }

    /// A piece of its content.
    #[inline]
    pub fn content(&mut self, piece: &[u8]) {
        if self.is_grpc {
            self.messages.push(piece);
        }
    }

    /// Its trailers; their fields must have been decoded.
    pub fn trailers(&mut self, fields: &Fields) {
        self.take_status(&|name| fields.field(name));
    }

    /// The same over HTTP/3.
    pub fn trailers_of_http3(&mut self, fields: &HeaderMap) {
        self.take_status(&|name| field(fields, name));
    }

    /// The outcome of the complete response.
    ///
    /// - `one`: whether the method answers with exactly one message if it succeeds.
    pub fn finish(&self, one: bool) -> Result<GrpcAnswer<'_>, GrpcFault> {
        let answer = |status, messages| GrpcAnswer {
            status,
            messages,
            message: &self.message,
        };
        if !self.is_grpc && self.http_status == 200 {
            let shown = match self.content_type.as_slice() {
                b"" => "missing".to_owned(),
                content_type => String::from_utf8_lossy(content_type).into_owned(),
            };
            return Err(GrpcFault::ContentType(shown));
        }
        let Some(status) = self.status else {
            if self.http_status == 200 {
                return Err(GrpcFault::NoStatus);
            }
            return Ok(answer(GrpcStatus::from_http(self.http_status), 0));
        };
        if !status.is_ok() {
            // It may well have been in the middle of a message when things went wrong.
            return Ok(answer(status, self.messages.complete()));
        }
        match self.messages.finish().map_err(GrpcFault::Framing)? {
            messages if one && messages != 1 => Err(GrpcFault::Messages(messages)),
            messages => Ok(answer(status, messages)),
        }
    }

    fn take_status<'f>(&mut self, fields: &dyn Fn(&str) -> Option<&'f [u8]>) {
        let Some(status) = fields("grpc-status") else {
            return;
        };
        let code = std::str::from_utf8(status)
            .ok()
            .and_then(|text| text.trim().parse::<u64>().ok());
        // A value that is not a number stands for an unknown status.
        self.status = Some(GrpcStatus::from_code(code.unwrap_or(u64::MAX)));
        let message = fields("grpc-message").unwrap_or_default();
        self.message.clear();
        self.message
            .extend_from_slice(&message[..message.len().min(MOST_OF_MESSAGE)]);
    }
}

fn field<'f>(fields: &'f HeaderMap, name: &str) -> Option<&'f [u8]> {
    fields.get(name).map(http::HeaderValue::as_bytes)
}

/// `application/grpc`, perhaps with a format behind `+` or parameters; not `application/grpc-web`.
fn is_grpc(content_type: &[u8]) -> bool {
    const NAME: &[u8] = b"application/grpc";

    let Some((name, rest)) = content_type.split_at_checked(NAME.len()) else {
        return false;
    };
    name.eq_ignore_ascii_case(NAME) && matches!(rest.first(), None | Some(b'+' | b';' | b' '))
}
