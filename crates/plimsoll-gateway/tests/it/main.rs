//! Gateways over real sockets.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod admin_page;

mod allocations;

mod authorizing;

mod balancing;

mod buffering;

mod cache;
mod cache_disk;

mod catalogues;

mod client;

mod client_certificates;

mod configuration;

mod connect;

mod discovery;

mod forwarding;

mod fastcgi;

mod forwarded_fields;

mod grpc;

mod guards;

mod hostile;

mod hostile_http2;

mod hostile_http3;

mod hops;

mod jwt;

mod leading;
mod life;
mod limits;

mod log;

mod oidc;

mod pairs;

mod places;

mod protection;

mod quic;

mod relayed_quic;

mod rules;

mod server;

mod server_name;

mod tcp;

mod sources;

mod timeouts;

mod traces;

mod trailers;

mod udp;

mod uwsgi;

mod websocket;

/// Counts what a forwarded request allocates.
#[global_allocator]
static ALLOCATOR: plimsoll_testkit::CountingAllocator = plimsoll_testkit::CountingAllocator;
