//! HTTP/1 on the wire, without sockets: bytes in, events out (RFC 9112).
//!
//! The client side is a [`RequestHead`] that is written once and sent many times, and a
//! [`ResponseDecoder`] that is fed whatever the socket had and copies only what a read cut in two.
//! The server side is a [`RequestDecoder`], which borrows from a buffer of its caller, and a
//! [`ResponseWriter`] that appends to one.

mod request;

mod response;

mod known_head;

mod server;

mod response_writer;

mod date;

mod framing;

mod chunked;

mod error;

pub(crate) use crate::h1::chunked::is_name;
pub use crate::h1::chunked::{ChunkedDecoder, has_control};
pub use crate::h1::date::DateLine;
pub use crate::h1::error::DecodeError;
pub use crate::h1::known_head::KnownHead;
pub use crate::h1::request::{HeadError, RequestHead, put_field};
pub use crate::h1::response::{
    Decoded, Limits, RequestFacts, ResponseDecoder, ResponseHead, ResponseSink,
};
pub use crate::h1::response_writer::{
    FieldError, ResponseWriter, chunk_head, last_chunk, own_reason, reason,
};
pub use crate::h1::server::{
    BodyLength, BodyStep, HeadStorage, ReceivedHead, RequestDecoder, RequestError, RequestLimits,
    Target, TargetForm, authority_of, fields_of, read_as_http_1_1,
};
pub use httparse::Header;
