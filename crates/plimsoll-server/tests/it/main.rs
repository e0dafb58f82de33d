//! The engine over real sockets.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod http1;

mod http2;

mod life;

mod server;
