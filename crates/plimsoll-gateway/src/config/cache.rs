//! `cache` of a route's `proxy`.

use std::sync::Arc;

use plimsoll_server::Moment;
use plimsoll_server::config::{Mounted, PathUse, Table, Value, template};
use ring::digest::{SHA256, digest};

use crate::cache::{
    CacheFigures, CachePlan, DiskPlan, Exceptions, LifetimeStatus, Lifetimes, Staleness, Store,
};

/// Bytes of all responses of a route.
const SIZE: u64 = 64 * 1024 * 1024;

/// Bytes of all responses of a route on disk.
const DISK_SIZE: u64 = 1024 * 1024 * 1024;

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
    let lifetimes = table.take_value("default_lifetime").map(lifetimes);
    let key = table.take_value("key");
    let key = key.and_then(|value| template(&value, mounted.maps, Moment::Request));
    let [skip, bypass, no_store] =
        ["skip", "bypass", "no_store"].map(|key| exceptions(table.take_value(key), mounted));
    let disk = table.table("disk");
    let disk = disk.and_then(|table| disk_plan(table, mounted, identity));
    table.finish();
    let bytes = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let store = mounted
        .states
        .state(identity, || Store::new(bytes(size), disk.clone()));
    let figures = mounted.counters.figures::<CacheFigures>();
    figures.add_store(mounted.name, mounted.identity, &store);
    CachePlan {
        store: Arc::clone(&store),
        most_content: bytes(most_content),
        staleness: Staleness {
            while_revalidate: while_revalidate.unwrap_or_default(),
            if_error: if_error.unwrap_or_default(),
        },
        lifetimes: Arc::new(lifetimes.unwrap_or_default()),
        key: key.map(Arc::new),
        skip,
        bypass,
        no_store,
    }
}

/// Texts of which one that is neither empty nor `0` excepts a request.
fn exceptions(value: Option<Value<'_>>, mounted: &Mounted<'_>) -> Exceptions {
    let texts = value.map(Value::elements).unwrap_or_default();
    let texts = texts.iter().filter_map(|value| {
        let text = template(value, mounted.maps, Moment::Request)?;
        if text.as_text().is_some() {
            return value.wrong("has no place, so it would hold for all requests or for none");
        }
        Some(text)
    });
    Exceptions(texts.collect())
}

/// The folder and the size of what is kept on disk.
fn disk_plan(mut table: Table<'_>, mounted: &Mounted<'_>, identity: &str) -> Option<DiskPlan> {
    let folder = table.take_value("dir");
    if folder.is_none() {
        table.missing("dir", "such as dir = \"/var/cache/plimsoll\"");
    }
    let folder = folder.and_then(|value| mounted.paths.path(&value, PathUse::WriteFolder));
    let limit = table.bytes("size").unwrap_or(DISK_SIZE);
    table.finish();
    // One folder may be that of several routes.
    let route = digest(&SHA256, mounted.identity.as_bytes());
    let route = route
        .as_ref()
        .first_chunk()
        .copied()
        .map(u64::from_be_bytes);
    let route = format!("{:016x}", route.unwrap_or_default());
    Some(DiskPlan {
        folder: folder?.join(route),
        limit,
        identity: identity.to_owned(),
        notices: mounted.notices.clone(),
    })
}

/// One duration, or one for each status: `{ 200 = "10m", 4xx = "1m" }`.
fn lifetimes(value: Value<'_>) -> Lifetimes {
    if !value.is_table() {
        let lifetime = value.duration();
        let only = lifetime.map(|lifetime| (LifetimeStatus::Guessable, lifetime));
        return Lifetimes(only.into_iter().collect());
    }
    let statuses = value.table().into_iter().flat_map(|mut table| table.rest());
    let lifetimes = statuses.filter_map(|(name, value)| {
        let status = name.parse().map_err(|error| format!("`{name}` {error}"));
        let status = value.check(status);
        Some((status?, value.duration()?))
    });
    Lifetimes(lifetimes.collect())
}
