//! Mocks over real sockets.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod admin;

mod callbacks;

mod bad_input;

mod grpc;

mod imports;

mod middleware;

mod mock;

mod proxy;

mod record;

mod recordings;

mod reload;

mod replies;

mod script;

mod serving;

mod websocket;

mod wiremock;
