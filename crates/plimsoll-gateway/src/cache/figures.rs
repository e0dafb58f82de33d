//! Counters of the caches of routes, for `/metrics` and the admin port.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use plimsoll_model::MetricsText;
use plimsoll_server::Figures;

use super::{Store, StoreState};
use crate::metric_names::METRICS;

/// The caches of an engine and the names of their routes, by what makes those unique; outlives reloads.
#[derive(Debug, Default)]
pub(crate) struct CacheFigures(Mutex<BTreeMap<String, (String, Weak<Store>)>>);

impl CacheFigures {
    /// Shows the cache of a route as long as it is in use.
    ///
    /// - `name`: of the route, which others may have too; `identity` is its own.
    pub(crate) fn add_store(&self, name: &str, identity: &str, store: &Arc<Store>) {
        let mut stores = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        stores.retain(|_, (_, store)| store.strong_count() > 0);
        let shown = (name.to_owned(), Arc::downgrade(store));
        stores.insert(identity.to_owned(), shown);
    }

    /// The caches in use by the names of their routes.
    pub(crate) fn stores(&self) -> BTreeMap<String, Vec<Arc<Store>>> {
        let stores = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut named = BTreeMap::<String, Vec<_>>::new();
        for (name, store) in stores.values() {
            if let Some(store) = store.upgrade() {
                named.entry(name.clone()).or_default().push(store);
            }
        }
        named
    }
}

impl Figures for CacheFigures {
    fn show(&self, _prefix: Option<&str>, text: &mut MetricsText) {
        show_stores(&self.stores(), text);
    }
}

/// The caches of routes.
fn show_stores(stores: &BTreeMap<String, Vec<Arc<Store>>>, text: &mut MetricsText) {
    type Read = fn(&StoreState) -> u64;
    if stores.is_empty() {
        return;
    }
    let states: Vec<_> = stores
        .iter()
        .map(|(route, stores)| (route, StoreState::from_stores(stores)))
        .collect();
    let gauges: [(&str, &str, Read); 3] = [
        (
            "cache_entries",
            "URLs of which responses are stored",
            |it| it.entries as u64,
        ),
        (
            "cache_bytes",
            "Bytes that stored responses take in memory",
            |it| it.bytes as u64,
        ),
        (
            "cache_disk_bytes",
            "Bytes that stored responses take on disk",
            |it| it.disk_bytes,
        ),
    ];
    for (name, help, read) in gauges {
        let name = format!("{METRICS}_{name}");
        text.family(&name, "gauge", help);
        for (route, state) in &states {
            text.sample(&name, &[("route", route)], read(state));
        }
    }
    let name = format!("{METRICS}_cache_total");
    text.family(
        &name,
        "counter",
        "What the cache did with requests and responses",
    );
    for (route, state) in &states {
        for (event, count) in &state.events {
            text.sample(&name, &[("route", route), ("event", event)], *count);
        }
    }
}
