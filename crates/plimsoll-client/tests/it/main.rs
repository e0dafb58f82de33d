//! The client over real sockets of the loopback.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod checks;

mod shared_checks;

mod connecting;

mod exchanges;

mod forwarding;

mod names;

mod proxies;

mod tls;

#[global_allocator]
static ALLOCATOR: plimsoll_testkit::CountingAllocator = plimsoll_testkit::CountingAllocator;
