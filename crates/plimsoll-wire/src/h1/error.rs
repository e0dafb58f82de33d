//! Errors in received messages.

use plimsoll_model::{Failure, FailureKind, Phase};

/// Why a message could not be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The head is not HTTP/1.
    #[error("malformed head: {0}")]
    Head(httparse::Error),
    /// The head is longer than the limit.
    #[error("head exceeds {limit} bytes")]
    HeadTooLarge {
        /// The limit in bytes.
        limit: usize,
    },
    /// There are more header fields than the limit.
    #[error("more than {limit} header fields")]
    TooManyHeaders {
        /// The limit in fields.
        limit: usize,
    },
    /// The status is outside 100–999.
    #[error("status {0} is not a status")]
    Status(u16),
    /// A `content-length` that is not a number, several that disagree, or one beside `transfer-encoding`
    /// (RFC 9112, section 6.3).
    #[error("invalid or conflicting content-length")]
    ContentLength,
    /// A `transfer-encoding` in HTTP/1.0, or other than `chunked` alone (RFC 9112, section 6.1).
    #[error("invalid or unsupported transfer-encoding")]
    TransferEncoding,
    /// A request of HTTP/1.1 without a `Host`, or any with several (RFC 9112, section 3.2).
    #[error("missing or repeated host")]
    Host,
    /// The chunked framing is broken (RFC 9112, section 7.1).
    #[error("malformed chunk")]
    Chunk,
    /// Chunk extensions or trailers exceed their limit.
    #[error("chunk extensions or trailers exceed {limit} bytes")]
    ChunkOverhead {
        /// The limit in bytes.
        limit: usize,
    },
    /// The body is longer than the limit.
    #[error("body exceeds {limit} bytes")]
    BodyTooLarge {
        /// The limit in bytes.
        limit: u64,
    },
    /// The peer switched protocols without a request for it.
    #[error("unexpected 101 switching protocols")]
    Upgrade,
    /// More interim responses than the limit.
    #[error("more than {limit} interim responses")]
    TooManyInterim {
        /// The limit in responses.
        limit: usize,
    },
    /// The connection ended before the first byte of the message.
    #[error("connection closed before a response")]
    ClosedBeforeHead,
    /// The connection ended inside the head.
    #[error("connection closed inside the head")]
    ClosedInHead,
    /// The connection ended inside the body.
    #[error("connection closed inside the body")]
    ClosedInBody,
}

impl DecodeError {
    /// The kind of failure that this error means.
    pub const fn kind(&self) -> FailureKind {
        match self {
            Self::HeadTooLarge { .. } | Self::TooManyHeaders { .. } | Self::BodyTooLarge { .. } => {
                FailureKind::TooLarge
            }
            Self::ClosedBeforeHead | Self::ClosedInHead | Self::ClosedInBody => FailureKind::Closed,
            Self::Head(_)
            | Self::Status(_)
            | Self::ContentLength
            | Self::TransferEncoding
            | Self::Host
            | Self::Chunk
            | Self::ChunkOverhead { .. }
            | Self::Upgrade
            | Self::TooManyInterim { .. } => FailureKind::Protocol,
        }
    }

    /// The failure of an exchange that this error ended during `phase`.
    pub fn failure(&self, phase: Phase) -> Failure {
        Failure::new(phase, self.kind()).because(self.to_string())
    }
}
