//! The gateway: an action of the serving engine that forwards requests to upstream servers.
//!
//! An upstream is a set of servers with a balancer, health and limits, configured as `[upstream.NAME]`; a route forwards
//! to it by `proxy`. The way of a request: `forward` takes it from the engine, `upstream` chooses a server by
//! [`balance`], the pool of `plimsoll_client::forward` gives a connection, and the response is streamed back as it comes.
//! Every worker has its own pools and balancers; the health of servers is shared by all workers and survives reloads.

pub mod balance;

mod admin;

mod cache;

mod config;

#[cfg(any(test, feature = "contract"))]
pub mod contract;

mod deadline;

mod figures;

mod forward;

mod import;

mod layer4;

mod sampler;

mod traces;

mod upstream;

/// Counts what tables of flows hold.
#[cfg(test)]
#[global_allocator]
static ALLOCATOR: plimsoll_testkit::CountingAllocator = plimsoll_testkit::CountingAllocator;

pub use crate::config::{CONNECT, LISTENS, PROXY, TRACES, UPSTREAMS};
pub use crate::import::{
    ImportError, ImportNote, Imported, Include, import_expressgateway, import_nginx,
    is_expressgateway,
};
