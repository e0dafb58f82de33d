//! Calls of gRPC: messages in the content of HTTP/2, and a status behind it.
//!
//! A request is encoded once, its messages one behind the other in its body, so that a call is an
//! exchange like any other; a response is judged by a [`GrpcReading`] as it comes. Messages are bytes
//! here: their origin and their meaning are the caller's.
//!
//! Source: "gRPC over HTTP2", doc/PROTOCOL-HTTP2.md of grpc.

mod framing;

mod reading;

mod status_message;

mod call;

pub use self::call::{GrpcReply, call};
pub use self::framing::{FramingError, MessageCounter, frame, messages, take_message};
pub use self::reading::{GrpcAnswer, GrpcFault, GrpcReading};
pub use self::status_message::{read_status_message, status_message};

#[cfg(test)]
mod tests;
