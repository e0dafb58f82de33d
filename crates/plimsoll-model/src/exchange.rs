//! One request and what came of it.

pub(crate) mod phase;

pub(crate) mod failure;

pub(crate) mod grpc;

use std::fmt;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use crate::{Failure, Phases};

/// One request and what came of it.
#[derive(Debug, Clone)]
pub struct Exchange {
    /// When the schedule meant it to start; equal to `started` in a closed loop.
    pub intended: Instant,
    /// When it was taken up: a connection was free, or began to be opened for it.
    pub started: Instant,
    /// When the response was complete, or the exchange failed.
    pub done: Instant,
    /// The phases it completed.
    pub phases: Phases,
    /// Bytes handed to the transport, head included; TLS framing is not counted.
    pub bytes_sent: u64,
    /// Bytes taken from the transport, head included; TLS framing is not counted.
    pub bytes_received: u64,
    /// The other end, where it has an IP address.
    pub peer: Option<SocketAddr>,
    /// The protocol the exchange ran over.
    pub protocol: Protocol,
    /// The status of the complete response, or why there is none.
    pub outcome: Result<u16, Failure>,
}

impl Exchange {
    /// Time from the intended start to the end: what a user who arrived on schedule waited.
    pub fn latency_from_intended(&self) -> Duration {
        self.done.saturating_duration_since(self.intended)
    }

    /// Time from the actual start to the end: what this attempt took.
    pub fn latency_from_started(&self) -> Duration {
        self.done.saturating_duration_since(self.started)
    }
}

/// A version of HTTP on the wire, or what is spoken in its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Protocol {
    /// HTTP/1.0 or HTTP/1.1 (RFC 9112).
    Http1,
    /// HTTP/2 (RFC 9113).
    Http2,
    /// HTTP/3 (RFC 9114).
    Http3,
    /// Messages of WebSocket (RFC 6455), on connections of HTTP/1.1.
    WebSocket,
}

impl Protocol {
    /// The name used in text and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Http1 => "HTTP/1.1",
            Self::Http2 => "HTTP/2",
            Self::Http3 => "HTTP/3",
            Self::WebSocket => "WebSocket",
        }
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
