//! The gateway: an action of the serving engine that forwards requests to upstream servers.
//!
//! An upstream is a set of servers with a balancer, health and limits, configured as `[upstream.NAME]`; a route forwards
//! to it by `proxy`. The way of a request: `forward` takes it from the engine, `upstream` chooses a server by
//! [`balance`], the pool of `plimsoll_client::forward` gives a connection, and the response is streamed back as it comes.
//! Every worker has its own pools and balancers; the health of servers is shared by all workers and survives reloads.
//!
//! # The way of a request
//!
//! 1. The route's action is `Forward` (`gateway/src/forward.rs`), behind `Cached` (`cache/layer.rs`) if the route
//!    has a cache: it chooses the upstream (`forward/split.rs`), injects faults, has the request authorized
//!    (`forward/authorize.rs`) and begins a copy (`forward/mirror.rs`) where the route has those. It keeps the head,
//!    and the content as an `Upload` that several attempts can share until something of it is read
//!    (`forward/body.rs`).
//! 2. `Upstream::choose` (`upstream.rs`) calls the balancer (`balance/`), which sees the servers with their weights:
//!    0 while a server is unhealthy, ejected or drained (`upstream/status.rs`, shared by all workers).
//! 3. The server's `Destination` gives a connection and the exchange begins, with the path of `forward/target.rs`
//!    and the fields of `forward/fields.rs`; then as below.
//! 4. Without a response, or with a status that is retried, the loop in `forward.rs` begins another attempt at
//!    another server if `RetryPolicy::applies`, attempts are left, nothing of the upload was read, and
//!    `Upstream::take_retry` finds one in the `RetryBudget` (`upstream/retry.rs`).
//! 5. The response goes back as `Download` (`forward/body.rs`), or as one piece if all of it is there already. An
//!    agreed WebSocket becomes a tunnel (`forward/tunnel.rs`).

pub mod balance;

mod admin;

mod cache;

mod config;

#[cfg(any(test, feature = "contract"))]
pub mod contract;

mod deadline;

mod metric_names;

mod forward;

mod guards;

mod import;

mod jwt;

mod layer4;

mod oidc;

mod sampler;

mod traces;

mod upstream;

/// Counts what tables of flows hold.
#[cfg(test)]
#[global_allocator]
static ALLOCATOR: plimsoll_testkit::CountingAllocator = plimsoll_testkit::CountingAllocator;

pub use crate::config::{CONNECT, GUARDS, LISTENS, PROXY, TRACES, UPSTREAMS};
pub use crate::import::{
    ImportError, ImportNote, Imported, Include, IncludeError, import_caddy, import_expressgateway,
    import_haproxy, import_kubernetes, import_nginx, import_traefik, is_caddyfile,
    is_expressgateway, is_haproxy, is_kubernetes, is_traefik,
};
