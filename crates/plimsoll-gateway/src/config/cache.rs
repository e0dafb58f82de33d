//! `cache` of a route's `proxy`.

use std::sync::Arc;

use plimsoll_server::config::{Mounted, Table};

use crate::cache::{CachePlan, Staleness, Store};
use crate::figures::GatewayFigures;

/// Bytes of all responses of a route.
const SIZE: u64 = 64 * 1024 * 1024;

/// Bytes of content of one response.
const MOST_CONTENT: u64 = 1024 * 1024;

/// The cache of a route; its store is the one that was there before, if the settings say the same.
///
/// - `identity`: everything in the configuration that responses depend on.
pub(super) fn compile(mut table: Table<'_>, mounted: &Mounted<'_>, identity: &str) -> CachePlan {
    let size = table.bytes("size").unwrap_or(SIZE);
    let most_content = table.bytes("max_object").unwrap_or(MOST_CONTENT);
    let while_revalidate = table.duration("stale_while_revalidate");
    let if_error = table.duration("stale_if_error");
    table.finish();
    let bytes = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let store = mounted.states.state(identity, || Store::new(bytes(size)));
    let figures = mounted.counters.figures::<GatewayFigures>();
    figures.add_store(mounted.identity, &store);
    CachePlan {
        store: Arc::clone(&store),
        most_content: bytes(most_content),
        staleness: Staleness {
            while_revalidate: while_revalidate.unwrap_or_default(),
            if_error: if_error.unwrap_or_default(),
        },
    }
}
