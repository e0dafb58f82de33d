//! Gateways over real sockets.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod balancing;

mod client;

mod configuration;

mod forwarding;

mod life;

mod pairs;

mod server;

mod websocket;
