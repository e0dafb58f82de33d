//! Errors in the frames of a WebSocket peer.

/// Why the bytes of a connection are not frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// A reserved bit is set that no extension has agreed on, or in a frame that must not have it (section 5.2).
    #[error("a reserved bit of a frame is set")]
    Reserved,
    /// An opcode that has no meaning (section 5.2).
    #[error("unknown opcode {0}")]
    Opcode(u8),
    /// A server masked its frame, or a client did not (section 5.1).
    #[error("{}", if *.is_masked { "a server must not mask its frames" } else { "a client must mask its frames" })]
    Mask {
        /// Whether the frame is masked.
        is_masked: bool,
    },
    /// A control frame in several parts (section 5.5).
    #[error("a control frame is fragmented")]
    FragmentedControl,
    /// A control frame of more than 125 bytes (section 5.5).
    #[error("a control frame is longer than 125 bytes")]
    LongControl,
    /// A length in more bytes than it needs, or above 2^63 (section 5.2).
    #[error("the length of a frame is not written in the shortest way")]
    Length,
    /// A continuation of nothing (section 5.4).
    #[error("a continuation without a message that it continues")]
    NothingToContinue,
    /// A new message in the middle of another (section 5.4).
    #[error("a message begins before the last one has ended")]
    Interleaved,
    /// A message beyond the limit.
    #[error("a message is longer than {limit} bytes")]
    TooLarge {
        /// The limit.
        limit: u64,
    },
    /// Text that is not UTF-8 (section 8.1).
    #[error("a text is not UTF-8")]
    Utf8,
    /// A compressed message that is not valid DEFLATE (RFC 7692, section 7.2.2).
    #[error("a compressed message is not valid DEFLATE")]
    Deflate,
    /// A compressed message that grows too much.
    #[error("a compressed message decompresses to more than {limit} times its length")]
    Ratio {
        /// The limit.
        limit: u64,
    },
    /// A close frame of one byte (section 5.5.1).
    #[error("half a close code")]
    CloseLength,
    /// A close code that must not be sent (section 7.4).
    #[error("close code {0}, which must not be sent")]
    CloseCode(u16),
}

impl FrameError {
    /// The close code for the peer (section 7.4.1).
    pub const fn close_code(&self) -> u16 {
        match self {
            Self::Utf8 | Self::Deflate => 1007,
            Self::TooLarge { .. } | Self::Ratio { .. } => 1009,
            _ => 1002,
        }
    }
}

/// Why a connection did not become a WebSocket (section 4.1).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HandshakeError {
    /// Another status than 101.
    #[error("the handshake was answered with status {0}")]
    Status(u16),
    /// The head is not HTTP/1.1, or beyond a limit.
    #[error("{0}")]
    Head(String),
    /// `Upgrade` does not say `websocket`.
    #[error("the answer to the handshake does not say `Upgrade: websocket`")]
    Upgrade,
    /// `Connection` does not say `Upgrade`.
    #[error("the answer to the handshake does not say `Connection: Upgrade`")]
    Connection,
    /// `Sec-WebSocket-Accept` is absent, or not made of the key that was sent.
    #[error("`Sec-WebSocket-Accept` does not belong to the key that was sent")]
    Accept,
    /// An extension that was not offered.
    #[error("the server uses an extension that was not offered: {0}")]
    Extension(String),
    /// Parameters of permessage-deflate that do not answer the offer (RFC 7692, section 7.1).
    #[error("the server accepts compression with parameters that were not offered: {0}")]
    Deflate(String),
}
