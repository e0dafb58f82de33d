//! What the gateway counts, for `/metrics` and the admin port.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Instant;

use plimsoll_model::Clock as _;
use plimsoll_server::{Figures, MetricsText};
use plimsoll_wire::SystemClock;

use crate::cache::Store;
use crate::layer4::Layer4Figures;
use crate::traces::SpanCounts;
use crate::upstream::{BOUNDS, Event, ServerStatus, UpstreamPlan, UpstreamStatus};

/// The upstreams of an engine by their configuration; outlives reloads.
#[derive(Debug, Default)]
pub(crate) struct GatewayFigures {
    upstreams: Mutex<BTreeMap<String, Weak<UpstreamStatus>>>,
    /// Caches by their routes.
    stores: Mutex<BTreeMap<String, Weak<Store>>>,
    spans: Arc<SpanCounts>,
    layer4: Layer4Figures,
}

impl GatewayFigures {
    /// What all workers know of an upstream; the same for every worker, and after a reload that does not change it.
    pub(crate) fn upstream(&self, plan: &UpstreamPlan, now: Instant) -> Arc<UpstreamStatus> {
        let mut upstreams = self
            .upstreams
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let known = upstreams.get(plan.identity()).and_then(Weak::upgrade);
        if let Some(known) = known {
            return known;
        }
        upstreams.retain(|_, status| status.strong_count() > 0);
        let status = Arc::new(UpstreamStatus::new(plan, now));
        upstreams.insert(plan.identity().to_owned(), Arc::downgrade(&status));
        status
    }

    /// Connections and flows that are not HTTP.
    pub(crate) const fn layer4(&self) -> &Layer4Figures {
        &self.layer4
    }

    /// What became of spans.
    pub(crate) const fn spans(&self) -> &Arc<SpanCounts> {
        &self.spans
    }

    /// Shows the cache of a route as long as it is in use.
    pub(crate) fn add_store(&self, route: &str, store: &Arc<Store>) {
        let mut stores = self.stores.lock().unwrap_or_else(PoisonError::into_inner);
        stores.retain(|_, store| store.strong_count() > 0);
        stores.insert(route.to_owned(), Arc::downgrade(store));
    }

    /// Every cache in use, by its route.
    fn stores(&self) -> Vec<(String, Arc<Store>)> {
        let stores = self.stores.lock().unwrap_or_else(PoisonError::into_inner);
        let stores = stores.iter();
        stores
            .filter_map(|(route, store)| Some((route.clone(), store.upgrade()?)))
            .collect()
    }

    /// Every upstream in use, by name.
    pub(crate) fn all(&self) -> Vec<Arc<UpstreamStatus>> {
        let upstreams = self
            .upstreams
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        upstreams.values().filter_map(Weak::upgrade).collect()
    }
}

/// Prefix of the names.
const PREFIX: &str = "plimsoll_gateway";

impl Figures for GatewayFigures {
    fn show(&self, _prefix: Option<&str>, text: &mut MetricsText) {
        show_stores(&self.stores(), text);
        show_spans(&self.spans, text);
        self.layer4.show(text);
        let now = SystemClock.now();
        let upstreams: Vec<_> = self
            .all()
            .into_iter()
            .map(|status| (status.name.clone(), status.servers(now), status))
            .collect();
        if upstreams.is_empty() {
            return;
        }
        let servers: Vec<(&str, &ServerStatus)> = upstreams
            .iter()
            .flat_map(|(name, servers, _)| servers.iter().map(|server| (name.as_str(), server)))
            .collect();
        let mut gauge = |name: &str, help: &str, read: &dyn Fn(&ServerStatus) -> u64| {
            let name = format!("{PREFIX}_{name}");
            text.family(&name, "gauge", help);
            for (upstream, server) in &servers {
                let labels = [("upstream", *upstream), ("server", &server.server)];
                text.sample(&name, &labels, read(server));
            }
        };
        gauge("server_up", "Whether the server gets requests", &|it| {
            u64::from(it.state == "healthy")
        });
        gauge("requests_active", "Requests in flight", &|it| it.active);
        gauge("connections", "Open connections", &|it| it.connections);
        let name = format!("{PREFIX}_responses_total");
        text.family(&name, "counter", "Responses of the server by status class");
        for (upstream, server) in &servers {
            for (class, count) in ["1xx", "2xx", "3xx", "4xx", "5xx"]
                .iter()
                .zip(server.responses)
            {
                let labels = [
                    ("upstream", *upstream),
                    ("server", &server.server),
                    ("class", class),
                ];
                text.sample(&name, &labels, count);
            }
        }
        let name = format!("{PREFIX}_failures_total");
        text.family(&name, "counter", "Attempts without a response");
        for (upstream, server) in &servers {
            let labels = [("upstream", *upstream), ("server", &server.server)];
            text.sample(&name, &labels, server.failures);
        }
        let name = format!("{PREFIX}_response_seconds");
        text.family(&name, "histogram", "Time to the head of the response");
        for (upstream, server) in &servers {
            let mut sum = 0;
            for (number, count) in server.latencies.iter().enumerate() {
                sum += count;
                let bound = BOUNDS.get(number);
                let bound = bound.map_or("+Inf".to_owned(), |it| (*it as f64 / 1e6).to_string());
                let labels = [
                    ("upstream", *upstream),
                    ("server", &server.server),
                    ("le", &bound),
                ];
                text.sample(&format!("{name}_bucket"), &labels, sum);
            }
            let labels = [("upstream", *upstream), ("server", &server.server)];
            let seconds = server.latency_us_sum as f64 / 1e6;
            text.sample(&format!("{name}_sum"), &labels, seconds);
            text.sample(&format!("{name}_count"), &labels, sum);
        }
        for event in Event::ALL {
            let (name, help) = event.metric();
            let name = format!("{PREFIX}_{name}");
            text.family(&name, "counter", help);
            for (upstream, _, status) in &upstreams {
                let labels = [("upstream", upstream.as_str())];
                text.sample(&name, &labels, status.counted(event));
            }
        }
    }
}

/// The caches of routes.
fn show_stores(stores: &[(String, Arc<Store>)], text: &mut MetricsText) {
    type Read = fn(&Store) -> usize;
    if stores.is_empty() {
        return;
    }
    let gauges: [(&str, &str, Read); 2] = [
        ("cache_entries", "URLs that something is kept of", |it| {
            it.size().0
        }),
        ("cache_bytes", "Bytes that stored responses take", |it| {
            it.size().1
        }),
    ];
    for (name, help, read) in gauges {
        let name = format!("{PREFIX}_{name}");
        text.family(&name, "gauge", help);
        for (route, store) in stores {
            text.sample(&name, &[("route", route)], read(store) as u64);
        }
    }
    let name = format!("{PREFIX}_cache_total");
    text.family(
        &name,
        "counter",
        "What the cache did with requests and responses",
    );
    for (route, store) in stores {
        for (event, count) in store.counted() {
            text.sample(&name, &[("route", route), ("event", event)], count);
        }
    }
}

fn show_spans(spans: &SpanCounts, text: &mut MetricsText) {
    let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let (sent, dropped) = (load(&spans.sent), load(&spans.dropped));
    if sent + dropped == 0 {
        return;
    }
    let name = format!("{PREFIX}_spans_total");
    text.family(&name, "counter", "Spans by what became of them");
    for (outcome, count) in [("sent", sent), ("dropped", dropped)] {
        text.sample(&name, &[("outcome", outcome)], count);
    }
}
