//! Reads the response of a check.

use http::HeaderMap;
use plimsoll_model::{CheckedCall, Failure, FailureKind, Phase};
use plimsoll_wire::h1::{ResponseHead, ResponseSink};
use plimsoll_wire::h2;
use plimsoll_wire::h2::hpack::Fields;
use std::error::Error;

use crate::check::{GrpcCheck, Observer};
use crate::grpc::{GrpcFault, GrpcReading, messages};
use crate::{Http3Parts, ResponseParts};

/// Shows a response of any protocol to the observer.
pub(super) struct Observing<'a> {
    pub(super) observer: &'a mut Observer,
    pub(super) grpc: Option<&'a mut GrpcReading>,
}

impl ResponseParts for Observing<'_> {
    fn wants_fields(&self) -> bool {
        self.grpc.is_some() || self.observer.needs_fields()
    }

    fn head(&mut self, head: &h2::ResponseHead<'_>) {
        self.observer.http2_head(head);
        if let Some(grpc) = &mut self.grpc {
            grpc.head(head);
        }
    }

    fn content(&mut self, piece: &[u8]) {
        self.observer.content(piece);
        if let Some(grpc) = &mut self.grpc {
            grpc.content(piece);
        }
    }

    fn trailers(&mut self, fields: &Fields) {
        if let Some(grpc) = &mut self.grpc {
            grpc.trailers(fields);
        }
    }
}

impl Http3Parts for Observing<'_> {
    fn head(&mut self, _status: u16, fields: &HeaderMap) {
        self.observer.http3_head(fields);
    }

    fn content(&mut self, piece: &[u8]) {
        self.observer.content(piece);
    }
}

impl ResponseSink for Observing<'_> {
    fn head(&mut self, head: &ResponseHead<'_>) {
        ResponseSink::head(self.observer, head);
    }

    fn content(&mut self, piece: &[u8]) {
        self.observer.content(piece);
    }
}

/// Reads the messages and the status of a gRPC response.
pub(super) fn read_answer(
    grpc: &GrpcCheck,
    reading: &GrpcReading,
    observer: &Observer,
) -> Result<CheckedCall, Failure> {
    let answer = reading
        .finish(!grpc.is_server_streaming)
        .map_err(|fault| fault.failure())?;
    if observer.size() > observer.body().len() as u64 {
        let cause = format!("the answer has more than {} bytes", Observer::BODY_BYTES);
        return Err(Failure::new(Phase::Receive, FailureKind::TooLarge).because(cause));
    }
    let undecoded = |error: Box<dyn Error + Send + Sync>| {
        Failure::new(Phase::Receive, FailureKind::Decode).because(error.to_string())
    };
    // Something else than gRPC may stand behind a status of HTTP that is none of success.
    let messages = match answer.messages {
        0 => Vec::new(),
        _ => messages(observer.body()).map_err(|error| GrpcFault::Framing(error).failure())?,
    };
    let json = messages.iter().map(|message| (grpc.to_json)(message));
    let json = json.collect::<Result<Vec<_>, _>>().map_err(undecoded)?;
    Ok(CheckedCall {
        status: answer.status,
        message: answer.message(),
        messages: json.len() as u64,
        json: match json.as_slice() {
            [one] if !grpc.is_server_streaming => one.clone(),
            [] if !grpc.is_server_streaming => String::new(),
            all => format!("[{}]", all.join(",")),
        },
    })
}
