//! Errors of a connection, of one message on it, and of one stream.

use std::fmt;

use plimsoll_model::{Failure, FailureKind, Phase, Retry};

use crate::h2::hpack::HpackError;

/// An error code of HTTP/2, known or not (RFC 9113, section 7).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ErrorCode(pub u32);

impl ErrorCode {
    /// Not an error.
    pub const NO_ERROR: Self = Self(0x0);
    /// An unspecific violation of the protocol.
    pub const PROTOCOL_ERROR: Self = Self(0x1);
    /// Something went wrong in the endpoint itself.
    pub const INTERNAL_ERROR: Self = Self(0x2);
    /// A window was exceeded or overflowed.
    pub const FLOW_CONTROL_ERROR: Self = Self(0x3);
    /// SETTINGS were not acknowledged in time.
    pub const SETTINGS_TIMEOUT: Self = Self(0x4);
    /// A frame came on a stream that was half-closed.
    pub const STREAM_CLOSED: Self = Self(0x5);
    /// A frame has an invalid size.
    pub const FRAME_SIZE_ERROR: Self = Self(0x6);
    /// The stream was refused before anything was done with it.
    pub const REFUSED_STREAM: Self = Self(0x7);
    /// The stream is no longer needed.
    pub const CANCEL: Self = Self(0x8);
    /// The compression state cannot be maintained.
    pub const COMPRESSION_ERROR: Self = Self(0x9);
    /// The connection of a CONNECT request was reset.
    pub const CONNECT_ERROR: Self = Self(0xa);
    /// The peer makes too much work.
    pub const ENHANCE_YOUR_CALM: Self = Self(0xb);
    /// The transport is not secure enough.
    pub const INADEQUATE_SECURITY: Self = Self(0xc);
    /// The request has to be made over HTTP/1.1.
    pub const HTTP_1_1_REQUIRED: Self = Self(0xd);

    /// The name in RFC 9113, `None` for a code that it does not have.
    pub const fn name(self) -> Option<&'static str> {
        Some(match self {
            Self::NO_ERROR => "NO_ERROR",
            Self::PROTOCOL_ERROR => "PROTOCOL_ERROR",
            Self::INTERNAL_ERROR => "INTERNAL_ERROR",
            Self::FLOW_CONTROL_ERROR => "FLOW_CONTROL_ERROR",
            Self::SETTINGS_TIMEOUT => "SETTINGS_TIMEOUT",
            Self::STREAM_CLOSED => "STREAM_CLOSED",
            Self::FRAME_SIZE_ERROR => "FRAME_SIZE_ERROR",
            Self::REFUSED_STREAM => "REFUSED_STREAM",
            Self::CANCEL => "CANCEL",
            Self::COMPRESSION_ERROR => "COMPRESSION_ERROR",
            Self::CONNECT_ERROR => "CONNECT_ERROR",
            Self::ENHANCE_YOUR_CALM => "ENHANCE_YOUR_CALM",
            Self::INADEQUATE_SECURITY => "INADEQUATE_SECURITY",
            Self::HTTP_1_1_REQUIRED => "HTTP_1_1_REQUIRED",
            _ => return None,
        })
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.pad(name),
            None => write!(f, "error code {:#x}", self.0),
        }
    }
}

/// Why a connection is of no more use (RFC 9113, section 5.4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ConnectionError {
    /// The answer to the preface is one of HTTP/1.
    #[error("the peer speaks HTTP/1, not HTTP/2, on this port")]
    SpeaksHttp1,
    /// The peer did not begin with SETTINGS (section 3.4).
    #[error("the peer's first frame is not SETTINGS")]
    Preface,
    /// A frame is longer than our `SETTINGS_MAX_FRAME_SIZE` (section 4.2).
    #[error("frame of {length} bytes exceeds {limit}")]
    FrameTooLarge {
        /// The length of its payload.
        length: u32,
        /// The limit in bytes.
        limit: u32,
    },
    /// A frame whose payload cannot have that length (section 4.2).
    #[error("{frame} frame with a payload of {length} bytes")]
    FrameSize {
        /// The frame's name.
        frame: &'static str,
        /// The length of its payload.
        length: usize,
    },
    /// A frame on a stream on which it may not come (section 5.1).
    #[error("{frame} frame on stream {stream}, where it cannot be")]
    Stream {
        /// The frame's name.
        frame: &'static str,
        /// The stream.
        stream: u32,
    },
    /// A frame on a stream that the peer had ended (section 5.1).
    #[error("{frame} frame on stream {stream} after its end")]
    StreamClosed {
        /// The frame's name.
        frame: &'static str,
        /// The stream.
        stream: u32,
    },
    /// A setting with a value that it cannot have (section 6.5.2).
    #[error("setting {id:#x} cannot be {value}")]
    Setting {
        /// The identifier of the setting.
        id: u16,
        /// Its value.
        value: u32,
    },
    /// The padding is as long as the payload or longer (section 6.1).
    #[error("padding exceeds its frame")]
    Padding,
    /// A header block cannot be decompressed (RFC 7541).
    #[error("header block: {0}")]
    Compression(HpackError),
    /// A header block is longer than the limit.
    #[error("header block exceeds {limit} bytes")]
    BlockTooLarge {
        /// The limit in bytes, compressed.
        limit: usize,
    },
    /// A header block is spread over too many frames.
    #[error("header block in more than {limit} CONTINUATION frames")]
    TooManyContinuations {
        /// The limit in frames.
        limit: usize,
    },
    /// Something other than CONTINUATION inside a header block, or CONTINUATION elsewhere (6.10).
    #[error("header block interrupted, or continued without a beginning")]
    Continuation,
    /// The peer pushes although push is off (section 6.6).
    #[error("PUSH_PROMISE although push is off")]
    Push,
    /// The peer sent more than the connection's window allows (section 6.9.1).
    #[error("content exceeds the window of the connection")]
    WindowExceeded,
    /// A window of ours would exceed 2^31-1 (section 6.9.1).
    #[error("window exceeds 2147483647 bytes")]
    WindowOverflow,
    /// `WINDOW_UPDATE` by nothing on the connection (section 6.9).
    #[error("window update of 0 bytes")]
    WindowIncrement,
    /// A second GOAWAY that names a later stream than the first (section 6.8).
    #[error("GOAWAY names a later stream than the one before")]
    GoAwayIncreased,
    /// More PING and SETTINGS frames to be answered than the limit.
    #[error("more than {limit} PING and SETTINGS frames wait for an answer")]
    Flood {
        /// The limit in frames.
        limit: usize,
    },
    /// The peer closed the connection, after GOAWAY with this code if there was one.
    #[error("connection closed{}", After(.0))]
    Closed(Option<ErrorCode>),
    /// The peer closed the connection inside a frame.
    #[error("connection closed inside a frame")]
    ClosedInFrame,
    /// The transport failed; the caller reports the I/O error.
    #[error("connection lost")]
    Lost,
}

struct After<'a>(&'a Option<ErrorCode>);

impl fmt::Display for After<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(code) => write!(f, " after GOAWAY with {code}"),
            None => Ok(()),
        }
    }
}

impl ConnectionError {
    /// The code for GOAWAY, `None` if there is no peer any more.
    pub const fn code(&self) -> Option<ErrorCode> {
        Some(match self {
            Self::Closed(_) | Self::ClosedInFrame | Self::Lost | Self::SpeaksHttp1 => return None,
            Self::FrameTooLarge { .. } | Self::FrameSize { .. } => ErrorCode::FRAME_SIZE_ERROR,
            Self::StreamClosed { .. } => ErrorCode::STREAM_CLOSED,
            Self::Compression(_) => ErrorCode::COMPRESSION_ERROR,
            Self::BlockTooLarge { .. } | Self::TooManyContinuations { .. } | Self::Flood { .. } => {
                ErrorCode::ENHANCE_YOUR_CALM
            }
            Self::WindowExceeded | Self::WindowOverflow => ErrorCode::FLOW_CONTROL_ERROR,
            Self::Setting { id, .. } if *id == crate::h2::settings::INITIAL_WINDOW_SIZE => {
                ErrorCode::FLOW_CONTROL_ERROR
            }
            Self::Preface
            | Self::Stream { .. }
            | Self::Setting { .. }
            | Self::Padding
            | Self::Continuation
            | Self::Push
            | Self::WindowIncrement
            | Self::GoAwayIncreased => ErrorCode::PROTOCOL_ERROR,
        })
    }

    /// The kind of failure that this error means.
    pub const fn kind(&self) -> FailureKind {
        match self {
            Self::Closed(_) | Self::ClosedInFrame => FailureKind::Closed,
            Self::Lost => FailureKind::Reset,
            Self::BlockTooLarge { .. } | Self::TooManyContinuations { .. } => FailureKind::TooLarge,
            _ => FailureKind::Protocol,
        }
    }

    /// The failure of an exchange that this error ended during `phase`.
    pub fn failure(&self, phase: Phase) -> Failure {
        Failure::new(phase, self.kind()).because(self.to_string())
    }
}

/// Why one message cannot be taken, while the connection goes on (RFC 9113, section 8.1.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    /// `:status` is missing, repeated, or not three digits of 100 or more (section 8.3.2).
    #[error("missing, repeated or invalid :status")]
    Status,
    /// A pseudo-header field that a response does not have, or one after a regular field (8.3).
    #[error("misplaced or unknown pseudo-header field")]
    PseudoField,
    /// A field name that is empty, or has a capital or another byte that it cannot have (8.2.1).
    #[error("invalid field name")]
    FieldName,
    /// A field value with a line break or NUL in it, or a blank at either end (section 8.2.1).
    #[error("invalid field value")]
    FieldValue,
    /// A field that belongs to a connection of HTTP/1 (section 8.2.2).
    #[error("connection-specific field")]
    ConnectionSpecific,
    /// A `content-length` that is not a number, or several that disagree.
    #[error("invalid or conflicting content-length")]
    ContentLength,
    /// The content is shorter or longer than announced (section 8.1.1).
    #[error("content does not have the length that content-length announced")]
    LengthMismatch,
    /// Content although the request or the status allows none.
    #[error("content where none may be")]
    UnexpectedContent,
    /// Content before the head.
    #[error("content before the head")]
    ContentBeforeHead,
    /// The stream ended without a final response.
    #[error("stream ended after an interim response")]
    InterimEnds,
    /// The peer switched protocols, which HTTP/2 cannot (section 8.6).
    #[error("unexpected 101 switching protocols")]
    Upgrade,
    /// More interim responses than the limit.
    #[error("more than {limit} interim responses")]
    TooManyInterim {
        /// The limit in responses.
        limit: usize,
    },
    /// A second head that does not end the stream, or has a pseudo-header field.
    #[error("malformed trailers")]
    Trailers,
    /// There are more header fields than the limit.
    #[error("more than {limit} header fields")]
    TooManyHeaders {
        /// The limit in fields.
        limit: usize,
    },
    /// The header fields are longer than the limit.
    #[error("header fields exceed {limit} bytes")]
    HeadersTooLarge {
        /// The limit in bytes, decompressed, with 32 for each field.
        limit: usize,
    },
    /// The body is longer than the limit.
    #[error("body exceeds {limit} bytes")]
    BodyTooLarge {
        /// The limit in bytes.
        limit: u64,
    },
    /// The peer sent more than the stream's window allows (section 6.9.1).
    #[error("content exceeds the window of the stream")]
    WindowExceeded,
    /// The stream's window for our content would exceed 2^31-1 (section 6.9.1).
    #[error("window exceeds 2147483647 bytes")]
    WindowOverflow,
    /// `WINDOW_UPDATE` by nothing (section 6.9).
    #[error("window update of 0 bytes")]
    WindowIncrement,
    /// A PRIORITY frame that is not 5 bytes long (section 6.3).
    #[error("PRIORITY frame of an invalid size")]
    PrioritySize,
}

impl MessageError {
    /// The code for `RST_STREAM`.
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::WindowExceeded | Self::WindowOverflow => ErrorCode::FLOW_CONTROL_ERROR,
            Self::PrioritySize => ErrorCode::FRAME_SIZE_ERROR,
            _ if matches!(self.kind(), FailureKind::TooLarge) => ErrorCode::CANCEL,
            _ => ErrorCode::PROTOCOL_ERROR,
        }
    }

    /// The kind of failure that this error means.
    pub const fn kind(&self) -> FailureKind {
        match self {
            Self::TooManyHeaders { .. }
            | Self::HeadersTooLarge { .. }
            | Self::BodyTooLarge { .. } => FailureKind::TooLarge,
            _ => FailureKind::Protocol,
        }
    }
}

/// Why an exchange ended without a complete response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum StreamError {
    /// The peer reset the stream.
    #[error("stream reset with {code}")]
    Reset {
        /// The peer's reason; `REFUSED_STREAM` promises that the request was not processed.
        code: ErrorCode,
    },
    /// The peer left the connection without having looked at this request (RFC 9113, section 6.8).
    #[error("not processed before GOAWAY with {code}")]
    GoneAway {
        /// The peer's reason for leaving.
        code: ErrorCode,
    },
    /// The response is malformed or too large; the stream was reset.
    #[error(transparent)]
    Message(#[from] MessageError),
    /// The connection ended.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
}

impl StreamError {
    /// Whether the peer may have acted on the request: if not, it can be sent again without risk.
    pub const fn may_be_processed(&self) -> bool {
        match self {
            Self::Reset { code } => code.0 != ErrorCode::REFUSED_STREAM.0,
            Self::GoneAway { .. } => false,
            Self::Message(_) | Self::Connection(_) => true,
        }
    }

    /// The kind of failure that this error means.
    pub const fn kind(&self) -> FailureKind {
        match self {
            Self::Reset { .. } => FailureKind::Reset,
            Self::GoneAway { .. } => FailureKind::Closed,
            Self::Message(error) => error.kind(),
            Self::Connection(error) => error.kind(),
        }
    }

    /// The failure of an exchange that this error ended during `phase`.
    pub fn failure(&self, phase: Phase) -> Failure {
        let failure = Failure::new(phase, self.kind()).because(self.to_string());
        match self {
            // A stream that is reset was seen by the peer, unlike a connection that it closed idle.
            Self::Reset { .. } if self.may_be_processed() => failure.retry(Retry::Never),
            Self::Reset { .. } | Self::GoneAway { .. } => failure.retry(Retry::Safe),
            Self::Message(_) | Self::Connection(_) => failure,
        }
    }
}

/// Why no exchange can be started on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// As many streams are open as either side allows; one may end.
    #[error("no stream is free")]
    Full,
    /// The connection takes no new stream any more: GOAWAY, an error, or the last stream number.
    #[error("the connection takes no new streams")]
    Retired,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_processed_is_safe_to_retry() {
        let retry = |error: StreamError| error.failure(Phase::Wait).retry;
        let reset = |code| StreamError::Reset { code };
        assert_eq!(retry(reset(ErrorCode::REFUSED_STREAM)), Retry::Safe);
        assert_eq!(retry(reset(ErrorCode::INTERNAL_ERROR)), Retry::Never);
        let gone = StreamError::GoneAway {
            code: ErrorCode::NO_ERROR,
        };
        assert_eq!(retry(gone), Retry::Safe);
        assert_eq!(retry(ConnectionError::Closed(None).into()), Retry::IfReused);
        assert_eq!(retry(MessageError::Status.into()), Retry::Never);
    }

    #[test]
    fn errors_say_what_was_wrong() {
        let failure = StreamError::Reset {
            code: ErrorCode(0x99),
        }
        .failure(Phase::Receive);
        assert_eq!(
            failure.to_string(),
            "reset during receive: stream reset with error code 0x99"
        );
        let closed = ConnectionError::Closed(Some(ErrorCode::ENHANCE_YOUR_CALM));
        assert_eq!(
            closed.failure(Phase::Wait).to_string(),
            "closed during wait: connection closed after GOAWAY with ENHANCE_YOUR_CALM"
        );
    }
}
