//! The events of a connection.

use crate::h2::hpack::Fields;
use crate::h2::{ErrorCode, StreamError, Traffic};

/// The head of a final response.
#[derive(Debug)]
pub struct ResponseHead<'a> {
    /// The status, 200–999.
    pub status: u16,
    /// The value of `content-length`.
    pub content_length: Option<u64>,
    /// The header fields in the order they came; empty unless [`Events::wants_fields`].
    pub fields: &'a Fields,
}

/// Takes what happens to the exchanges of a connection.
///
/// Each exchange has at most one head, then its content, then one of `complete` and `failed`; its
/// token is free after that. Exchanges of one connection are interleaved.
pub trait Events {
    /// Whether header fields are to be decoded for `head` and `trailers`.
    ///
    /// Without that, the values of fields that cannot change the outcome are passed over, and an
    /// invalid one among them goes unnoticed.
    fn wants_fields(&self) -> bool {
        false
    }

    /// An interim head (1xx), its `:status` among the fields; empty unless [`Events::wants_fields`].
    fn interim(&mut self, _token: u32, _status: u16, _fields: &Fields) {}

    /// The final head.
    fn head(&mut self, token: u32, head: &ResponseHead<'_>);

    /// A piece of the content, never empty.
    fn content(&mut self, token: u32, piece: &[u8]);

    /// Header fields after the content; empty unless [`Events::wants_fields`].
    fn trailers(&mut self, _token: u32, _fields: &Fields) {}

    /// The bytes of the exchange's frames; called right before `complete` or `failed`.
    fn traffic(&mut self, _token: u32, _traffic: Traffic) {}

    /// A [streamed](crate::h2::Connection::open_streamed) request may be able to send more than before: its own
    /// window grew, or, without a token, that of the connection.
    fn window_opened(&mut self, _token: Option<u32>) {}

    /// The response came to its end.
    fn complete(&mut self, token: u32);

    /// The exchange ended without a complete response.
    fn failed(&mut self, token: u32, error: &StreamError);

    /// The peer takes no new requests (RFC 9113, section 6.8); exchanges that it did not look at fail
    /// right after this, the others go on.
    ///
    /// - `last_stream`: the last stream that the peer may act on.
    fn going_away(&mut self, _last_stream: u32, _code: ErrorCode) {}
}
