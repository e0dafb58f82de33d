//! One call whose messages are wanted, not only counted.

use std::time::Instant;

use plimsoll_model::{Clock, Failure, FailureKind, GrpcStatus, Phase};
use plimsoll_wire::h2::hpack::Fields;
use plimsoll_wire::h2::{EncodedRequest, ResponseHead};
use tokio::io::{AsyncRead, AsyncWrite};

use super::framing;
use super::reading::{GrpcFault, GrpcReading};
use crate::{Http2, ReadBuffer, ResponseParts};

/// The response to a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrpcReply {
    /// The status of the call, from its trailers or header.
    pub status: GrpcStatus,
    /// The message beside the status.
    pub message: Option<String>,
    /// Its messages.
    pub messages: Vec<Vec<u8>>,
}

/// Makes a call, with no other exchange under way on the connection.
///
/// - `limit`: bytes of content at most.
/// - `deadline`: when to give up.
pub async fn call<S: AsyncRead + AsyncWrite + Unpin, C: Clock>(
    http: &mut Http2<S>,
    request: &EncodedRequest,
    limit: usize,
    deadline: Instant,
    buffer: &ReadBuffer,
    clock: &C,
) -> Result<GrpcReply, Failure> {
    let mut taking = ResponseReading {
        reading: GrpcReading::default(),
        content: Vec::new(),
        limit,
        is_too_large: false,
    };
    let begun = clock.now();
    http.exchange(request, begun, deadline, buffer, &mut taking, clock)
        .await
        .map_err(|incomplete| incomplete.failure)?;
    if taking.is_too_large {
        let cause = format!("the answer has more than {limit} bytes");
        return Err(Failure::new(Phase::Receive, FailureKind::TooLarge).because(cause));
    }
    let fault = |fault: GrpcFault| fault.failure();
    let answer = taking.reading.finish(false).map_err(fault)?;
    let messages = if answer.status.is_ok() {
        let found = framing::messages(&taking.content);
        found.map_err(|error| GrpcFault::Framing(error).failure())?
    } else {
        Vec::new()
    };
    Ok(GrpcReply {
        status: answer.status,
        message: answer.message(),
        messages: messages.into_iter().map(<[u8]>::to_vec).collect(),
    })
}

struct ResponseReading {
    reading: GrpcReading,
    content: Vec<u8>,
    limit: usize,
    is_too_large: bool,
}

impl ResponseParts for ResponseReading {
    fn wants_fields(&self) -> bool {
        true
    }

    fn head(&mut self, head: &ResponseHead<'_>) {
        self.reading.head(head);
    }

    fn content(&mut self, piece: &[u8]) {
        self.reading.content(piece);
        if self.content.len() + piece.len() > self.limit {
            self.is_too_large = true;
        } else {
            self.content.extend_from_slice(piece);
        }
    }

    fn trailers(&mut self, fields: &Fields) {
        self.reading.trailers(fields);
    }
}
