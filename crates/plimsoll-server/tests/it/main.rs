//! The engine over real sockets.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod allocations;

mod context;

mod departed;

mod files;

mod http1;

mod http2;

mod http3;

mod http3_rates;

mod layer4;

mod life;

mod log;

mod middleware;

mod mount;

mod proxied;

mod rates;

mod server;

mod sockets;

mod versions;

mod websocket;

#[global_allocator]
static ALLOCATOR: plimsoll_testkit::CountingAllocator = plimsoll_testkit::CountingAllocator;
