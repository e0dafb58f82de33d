//! The serving engine: listeners and the small actions that answer requests.
//!
//! So far it is the embedded origin of `plimsoll load`: one thread, HTTP/1.1 without TLS, one fixed
//! answer to every request. It has no routes, no configuration and no other protocol.

mod origin;

mod connection;

pub use crate::origin::{Origin, OriginError};
