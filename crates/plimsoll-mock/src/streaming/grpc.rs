//! Answers to calls of gRPC.
//!
//! Source: "gRPC over HTTP2", doc/PROTOCOL-HTTP2.md of grpc.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use http_body::{Body, Frame};
use plimsoll_client::grpc::{FramingError, frame, status_message};
use plimsoll_formats::grpc::{MessageError, Method};
use plimsoll_model::{GrpcStatus, with_causes};
use plimsoll_server::StreamError;

use crate::request::RequestView;
use crate::rules::condition::call::decoded;
use crate::template::content::Content;

/// The response to a call.
#[derive(Debug, Clone)]
pub struct GrpcReply {
    /// The called method.
    pub method: Arc<Method>,
    /// In JSON; one unless the method answers with a stream, or the status is not OK.
    pub messages: Vec<Content>,
    /// The status of the call.
    pub status: GrpcStatus,
    /// The description of the status; a text.
    pub message: Option<Content>,
    /// Fields behind it.
    pub trailers: Vec<(HeaderName, HeaderValue)>,
}

impl GrpcReply {
    /// The content of the response to a call, with what follows it.
    pub(crate) fn content(&self, request: &RequestView<'_>) -> CallContent {
        let call = decoded(&self.method, request);
        let call = call.as_ref().map_or_else(|| request.keep(), Clone::clone);
        let call = call.view();
        let encoded = self.messages.iter().map(|content| {
            let json = content.for_request(&call);
            Ok(self.method.answer(&json)?)
        });
        let encoded: Result<Vec<_>, AnswerError> = encoded.collect();
        let framed = encoded.and_then(|messages| Ok(frame(&messages)?));
        let (content, status, message) = match framed {
            Ok(framed) => {
                let message = self.message.as_ref();
                let message = message.map(|content| content.for_request(&call));
                (framed, self.status, message)
            }
            Err(error) => {
                let internal = GrpcStatus::from_code(13);
                (Vec::new(), internal, Some(Bytes::from(error.to_string())))
            }
        };
        let mut trailers = HeaderMap::new();
        trailers.insert("grpc-status", HeaderValue::from(u16::from(status.code())));
        if let Some(message) = message {
            trailers.insert("grpc-message", status_message(&message));
        }
        for (name, value) in &self.trailers {
            trailers.append(name.clone(), value.clone());
        }
        CallContent {
            content: Some(Bytes::from(content)).filter(|content| !content.is_empty()),
            trailers: Some(trailers),
        }
    }
}

/// Why an answer cannot be sent.
#[derive(Debug, thiserror::Error)]
enum AnswerError {
    #[error("the answer {}", with_causes(.0))]
    Message(#[from] MessageError),
    #[error(transparent)]
    Framing(#[from] FramingError),
}

/// Messages, and what follows them.
#[derive(Debug)]
pub(crate) struct CallContent {
    content: Option<Bytes>,
    trailers: Option<HeaderMap>,
}

impl Body for CallContent {
    type Data = Bytes;
    type Error = StreamError;

    fn poll_frame(
        self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, StreamError>>> {
        let this = self.get_mut();
        let content = this.content.take().map(Frame::data);
        let frame = content.or_else(|| this.trailers.take().map(Frame::trailers));
        Poll::Ready(frame.map(Ok))
    }
}
