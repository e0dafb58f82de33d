//! Counters of guards and ages of keys, for `/metrics`.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use plimsoll_model::{Clock as _, MetricsText};
use plimsoll_server::Figures;
use plimsoll_wire::SystemClock;

use super::KeySource;
use crate::guards::{GuardCounts, GuardOutcome};
use crate::metric_names::METRICS;

/// The guards of an engine by their kind and the name of the route; outlives reloads.
#[derive(Debug, Default)]
pub(crate) struct GuardFigures {
    counts: Mutex<BTreeMap<(&'static str, String), Arc<GuardCounts>>>,
    keys: Mutex<BTreeMap<String, Weak<KeySource>>>,
}

impl GuardFigures {
    /// The counters of a guard of a route.
    ///
    /// - `kind`: its key in the configuration.
    pub(crate) fn counts(&self, kind: &'static str, route: &str) -> Arc<GuardCounts> {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(counts.entry((kind, route.to_owned())).or_default())
    }

    /// Shows keys as long as they are in use.
    pub(crate) fn add_keys(&self, keys: &Arc<KeySource>) {
        let mut known = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|_, it| it.strong_count() > 0);
        known.insert(keys.name().to_owned(), Arc::downgrade(keys));
    }
}

impl Figures for GuardFigures {
    fn show(&self, _prefix: Option<&str>, text: &mut MetricsText) {
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        if !counts.is_empty() {
            let name = format!("{METRICS}_guard_total");
            text.family(&name, "counter", "What guards did with requests");
            for ((kind, route), counts) in counts.iter() {
                for outcome in GuardOutcome::ALL {
                    let labels = [
                        ("guard", *kind),
                        ("route", route),
                        ("outcome", outcome.name()),
                    ];
                    text.sample(&name, &labels, counts.total(outcome));
                }
            }
        }
        drop(counts);
        let keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        let keys: Vec<_> = keys.values().filter_map(Weak::upgrade).collect();
        show_keys(&keys, text);
    }
}

fn show_keys(sources: &[Arc<KeySource>], text: &mut MetricsText) {
    if sources.is_empty() {
        return;
    }
    let now = SystemClock.now();
    let statuses: Vec<_> = sources
        .iter()
        .map(|it| (it.name(), it.status(now)))
        .collect();
    let name = format!("{METRICS}_jwt_keys");
    text.family(&name, "gauge", "Public keys that verify tokens");
    for (source, status) in &statuses {
        text.sample(&name, &[("source", source)], status.keys as u64);
    }
    let name = format!("{METRICS}_jwt_keys_age_seconds");
    text.family(&name, "gauge", "Time since the keys were read last");
    for (source, status) in &statuses {
        if let Some(age) = status.age {
            text.sample(&name, &[("source", source)], age.as_secs());
        }
    }
    let name = format!("{METRICS}_jwt_key_reads_total");
    text.family(&name, "counter", "How often keys were read");
    for (source, status) in &statuses {
        for (outcome, count) in [("read", status.reads), ("failed", status.failures)] {
            text.sample(&name, &[("source", source), ("outcome", outcome)], count);
        }
    }
}
