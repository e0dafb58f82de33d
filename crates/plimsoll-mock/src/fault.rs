//! Answers that no client wants: what goes wrong between client and server.

pub mod delay;

pub mod pace;

pub(crate) mod patience;

use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use http::header::{HeaderName, HeaderValue};
use plimsoll_server::{Outcome, Stream};
use socket2::SockRef;
use tokio::io::{copy, sink};

use crate::fault::patience::{PATIENCE, shut_down, write_all};

/// The kinds of faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The connection is reset.
    Reset,
    /// The connection ends without an answer.
    Empty,
    /// Bytes that are no HTTP, then the end.
    Garbage,
    /// A head, then something that is no chunk, then the end.
    MalformedChunk,
    /// The head and half of the content, then the end.
    HalfBody,
    /// The head byte by byte, then the content.
    SlowHeaders,
}

impl Fault {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Reset,
        Self::Empty,
        Self::Garbage,
        Self::MalformedChunk,
        Self::HalfBody,
        Self::SlowHeaders,
    ];

    /// As files call it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Reset => "reset",
            Self::Empty => "empty",
            Self::Garbage => "garbage",
            Self::MalformedChunk => "malformed_chunk",
            Self::HalfBody => "half_body",
            Self::SlowHeaders => "slow_headers",
        }
    }

    /// The fault of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|fault| fault.name() == name)
    }

    /// Takes the connection over and does it; only over HTTP/1.
    pub(crate) fn outcome(self, reply: WholeResponse) -> Outcome {
        Outcome::Raw(Box::new(move |stream, _drain| {
            Box::pin(async move {
                // The client's reaction is the subject of the test, so errors are ignored.
                self.happen(stream, &reply).await.ok();
            })
        }))
    }

    async fn happen(self, mut stream: Stream, reply: &WholeResponse) -> std::io::Result<()> {
        match self {
            Self::Reset => {
                // Only TCP has resets; elsewhere the connection just ends.
                if let Some(socket) = stream.socket() {
                    SockRef::from(socket).set_linger(Some(Duration::ZERO))?;
                }
                return Ok(());
            }
            Self::Empty => {}
            Self::Garbage => {
                let mut rng = fastrand::Rng::new();
                let mut bytes = [0; 256];
                rng.fill(&mut bytes);
                // Never the beginning of an answer.
                bytes[0] = 0xff;
                write_all(&mut stream, &bytes, PATIENCE).await?;
            }
            Self::MalformedChunk => {
                write_all(
                    &mut stream,
                    &reply.head("transfer-encoding: chunked\r\n"),
                    PATIENCE,
                )
                .await?;
                write_all(
                    &mut stream,
                    b"5\r\nhello\r\nno length of a chunk\r\n",
                    PATIENCE,
                )
                .await?;
            }
            Self::HalfBody => {
                let length = format!("content-length: {}\r\n", reply.content.len().max(1));
                write_all(&mut stream, &reply.head(&length), PATIENCE).await?;
                write_all(
                    &mut stream,
                    &reply.content[..reply.content.len() / 2],
                    PATIENCE,
                )
                .await?;
            }
            Self::SlowHeaders => {
                let length = format!(
                    "content-length: {}\r\nconnection: close\r\n",
                    reply.content.len()
                );
                for byte in reply.head(&length) {
                    write_all(&mut stream, &[byte], PATIENCE).await?;
                    tokio::time::sleep(BETWEEN_BYTES).await;
                }
                write_all(&mut stream, &reply.content, PATIENCE).await?;
            }
        }
        shut_down(&mut stream, PATIENCE).await?;
        // A socket that is closed with something unread is reset, and what was written may be lost.
        let mut nowhere = sink();
        let rest = copy(&mut stream, &mut nowhere);
        tokio::time::timeout(LINGER, rest).await.ok();
        Ok(())
    }
}

/// Between two bytes of a slow head: a head of 200 bytes takes 4 s, long enough for impatient clients to give up.
const BETWEEN_BYTES: Duration = Duration::from_millis(20);

/// How long the client may take to close its side; a connection closed earlier could lose the end of the response to
/// a reset.
const LINGER: Duration = Duration::from_secs(2);

/// The response as it would have been without the fault.
#[derive(Debug, Clone)]
pub(crate) struct WholeResponse {
    pub(crate) status: StatusCode,
    pub(crate) fields: Vec<(HeaderName, HeaderValue)>,
    pub(crate) content: Bytes,
}

impl WholeResponse {
    fn head(&self, framing: &str) -> Vec<u8> {
        let reason = self.status.canonical_reason().unwrap_or_default();
        let mut head = format!("HTTP/1.1 {} {reason}\r\n", self.status.as_u16()).into_bytes();
        for (name, value) in &self.fields {
            head.extend_from_slice(name.as_str().as_bytes());
            head.extend_from_slice(b": ");
            head.extend_from_slice(value.as_bytes());
            head.extend_from_slice(b"\r\n");
        }
        head.extend_from_slice(framing.as_bytes());
        head.extend_from_slice(b"\r\n");
        head
    }
}
