//! HTTP/2 on the wire as a client, without sockets: bytes in, events out (RFC 9113, RFC 7541).
//!
//! Made to put load on a server: a [`RequestHead`] is checked and compressed once into an
//! [`EncodedRequest`], a [`Connection`] carries as many of them at a time as both sides allow, and
//! nothing is allocated for a request once the connection has its size. What is to be sent gathers in
//! one buffer, so that many streams cost one system call; what came is handed to [`Events`] in place.
//!
//! Requests that are forwarded are [streamed](Connection::open_streamed) instead: their heads are compressed field by
//! field, the caller writes their bodies as the windows allow, and the peer gets credit for content only when the caller
//! has consumed it.
//!
//! Not here: push, priorities, and any notion of time; a caller that waits no longer calls [`Connection::cancel`].

mod request;

mod connection;

mod receive;

mod message;

mod content;

mod streamed;

mod control;

mod events;

mod settings;

mod stream;

mod flow;

mod output;

mod frame;

pub mod hpack;

mod error;

pub use crate::h2::connection::{Connection, StreamId};
pub use crate::h2::error::{ConnectionError, ErrorCode, MessageError, OpenError, StreamError};
pub use crate::h2::events::{Events, ResponseHead};
pub use crate::h2::request::{EncodedRequest, HeadError, RequestHead, Rewrite};
pub use crate::h2::settings::{Limits, Settings};
pub use crate::h2::stream::Traffic;
pub use crate::h2::streamed::{FieldWriter, StreamedRequest};

#[cfg(test)]
mod tests;
