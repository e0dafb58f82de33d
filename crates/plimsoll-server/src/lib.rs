//! The serving engine: listeners and the small actions that answer requests.
//!
//! So far it is the embedded origin of `plimsoll load`: one thread, HTTP/1.1 or HTTP/2 by prior
//! knowledge, without TLS, one fixed answer to every request. It has no routes and no configuration.

mod origin;

mod connection;

mod http2;

pub use crate::origin::{Origin, OriginError, Speaks};
