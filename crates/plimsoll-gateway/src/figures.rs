//! Counters of the gateway, for `/metrics` and the admin port.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Instant;

use plimsoll_model::Clock as _;
use plimsoll_model::MetricsText;
use plimsoll_server::Figures;
use plimsoll_wire::SystemClock;

use crate::cache::{Store, StoreState};
use crate::forward::ForwardPlan;
use crate::layer4::Layer4Figures;
use crate::traces::SpanCounts;
use crate::upstream::{
    BOUNDS, DurationCounts, Durations, Event, History, Recent, Sample, ServerStatus, Timeout,
    UpstreamPlan, UpstreamStatus,
};

/// The upstreams of an engine by their configuration; outlives reloads.
#[derive(Debug, Default)]
pub(crate) struct GatewayFigures {
    upstreams: Mutex<BTreeMap<String, Weak<UpstreamStatus>>>,
    /// Caches and the names of their routes, by what makes those unique.
    stores: Mutex<BTreeMap<String, (String, Weak<Store>)>>,
    spans: Arc<SpanCounts>,
    layer4: Layer4Figures,
    /// There is an admin port, where rates can be read.
    is_watched: AtomicBool,
    routes: Mutex<BTreeMap<String, WatchedRoute>>,
}

/// A route with `proxy`, for the admin page.
#[derive(Debug)]
struct WatchedRoute {
    /// As long as a worker uses it.
    plan: Weak<ForwardPlan>,
    /// Its destination.
    targets: Vec<String>,
    history: History,
    /// Responses by class: 1xx to 5xx, and others.
    responses: [u64; 6],
    /// Those of each worker.
    durations: Vec<Arc<Durations>>,
    /// Those of workers of earlier configurations.
    ended: DurationCounts,
}

impl WatchedRoute {
    /// Durations of one more worker.
    fn worker(&mut self) -> Arc<Durations> {
        let Self {
            durations, ended, ..
        } = self;
        durations.retain(|of_worker| {
            let is_used = Arc::strong_count(of_worker) > 1;
            if !is_used {
                ended.add(&of_worker.counts());
            }
            is_used
        });
        let new = Arc::<Durations>::default();
        durations.push(Arc::clone(&new));
        new
    }

    fn durations(&self) -> DurationCounts {
        let mut sum = self.ended;
        for of_worker in &self.durations {
            sum.add(&of_worker.counts());
        }
        sum
    }
}

/// A route as it is now.
#[derive(Debug)]
pub(crate) struct RouteStatus {
    pub(crate) name: String,
    pub(crate) targets: Vec<String>,
    pub(crate) responses: [u64; 6],
    pub(crate) recent: Recent,
}

impl GatewayFigures {
    /// State of an upstream that all workers share; the same after a reload that does not change it.
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

    /// Counts of spans.
    pub(crate) const fn spans(&self) -> &Arc<SpanCounts> {
        &self.spans
    }

    /// Shows the cache of a route as long as it is in use.
    ///
    /// - `name`: of the route, which others may have too; `identity` is its own.
    pub(crate) fn add_store(&self, name: &str, identity: &str, store: &Arc<Store>) {
        let mut stores = self.stores.lock().unwrap_or_else(PoisonError::into_inner);
        stores.retain(|_, (_, store)| store.strong_count() > 0);
        let shown = (name.to_owned(), Arc::downgrade(store));
        stores.insert(identity.to_owned(), shown);
    }

    /// The caches in use by the names of their routes.
    pub(crate) fn stores(&self) -> BTreeMap<String, Vec<Arc<Store>>> {
        let stores = self.stores.lock().unwrap_or_else(PoisonError::into_inner);
        let mut named = BTreeMap::<String, Vec<_>>::new();
        for (name, store) in stores.values() {
            if let Some(store) = store.upgrade() {
                named.entry(name.clone()).or_default().push(store);
            }
        }
        named
    }

    /// Rates can be read from now on.
    pub(crate) fn watch(&self) {
        self.is_watched.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_watched(&self) -> bool {
        self.is_watched.load(Ordering::Relaxed)
    }

    /// Shows a route as long as its plan is in use; returns what one worker counts of it.
    ///
    /// - `targets`: where its requests go, for people.
    pub(crate) fn add_route(
        &self,
        name: &str,
        plan: &Arc<ForwardPlan>,
        targets: Vec<String>,
    ) -> Arc<Durations> {
        let mut routes = self.routes.lock().unwrap_or_else(PoisonError::into_inner);
        routes.retain(|_, route| route.plan.strong_count() > 0);
        let plan = Arc::downgrade(plan);
        let route = match routes.entry(name.to_owned()) {
            Entry::Occupied(known) => {
                let known = known.into_mut();
                (known.plan, known.targets) = (plan, targets);
                known
            }
            Entry::Vacant(free) => free.insert(WatchedRoute {
                plan,
                targets,
                history: History::default(),
                responses: [0; 6],
                durations: Vec::new(),
                ended: DurationCounts::default(),
            }),
        };
        route.worker()
    }

    /// Keeps what routes have responded, for their rates.
    pub(crate) fn sample_routes(&self, counted: &[(String, [u64; 6])], now: Instant) {
        let mut routes = self.routes.lock().unwrap_or_else(PoisonError::into_inner);
        for (name, responses) in counted {
            let Some(route) = routes.get_mut(name) else {
                continue;
            };
            route.responses = *responses;
            route.history.push(Sample {
                at: now,
                requests: responses.iter().sum(),
                failed: responses[4],
                latencies: [0; BOUNDS.len() + 1],
            });
        }
    }

    /// Every route in use with `proxy`, by name.
    pub(crate) fn routes(&self) -> Vec<RouteStatus> {
        let routes = self.routes.lock().unwrap_or_else(PoisonError::into_inner);
        let in_use = routes.iter().filter(|(_, it)| it.plan.strong_count() > 0);
        in_use
            .map(|(name, route)| RouteStatus {
                name: name.clone(),
                targets: route.targets.clone(),
                responses: route.responses,
                recent: route.history.recent(),
            })
            .collect()
    }

    /// How long responses of every route took, by its name.
    fn route_durations(&self) -> Vec<(String, DurationCounts)> {
        let routes = self.routes.lock().unwrap_or_else(PoisonError::into_inner);
        let in_use = routes.iter().filter(|(_, it)| it.plan.strong_count() > 0);
        in_use
            .map(|(name, route)| (name.clone(), route.durations()))
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
        show_routes(&self.route_durations(), text);
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
            let labels = [("upstream", *upstream), ("server", &server.server)];
            show_histogram(&name, &labels, &server.durations, text);
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
        let name = format!("{PREFIX}_timeouts_total");
        text.family(&name, "counter", "Exchanges that a time limit ended");
        for (upstream, _, status) in &upstreams {
            for timeout in Timeout::ALL {
                let labels = [("upstream", upstream.as_str()), ("limit", timeout.name())];
                text.sample(&name, &labels, status.timed_out(timeout));
            }
        }
    }
}

/// How long responses of routes took.
fn show_routes(routes: &[(String, DurationCounts)], text: &mut MetricsText) {
    if routes.is_empty() {
        return;
    }
    let name = format!("{PREFIX}_route_seconds");
    let help = "Time from a request to the head of its response, over all attempts";
    text.family(&name, "histogram", help);
    for (route, durations) in routes {
        show_histogram(&name, &[("route", route)], durations, text);
    }
}

/// The samples of one histogram, in seconds.
fn show_histogram(
    name: &str,
    labels: &[(&str, &str)],
    durations: &DurationCounts,
    text: &mut MetricsText,
) {
    let bounds = BOUNDS.iter().map(|micros| *micros as f64 / 1e6);
    let beyond = durations.buckets.iter().skip(BOUNDS.len()).sum();
    let buckets = bounds.zip(durations.buckets.iter().copied());
    text.histogram(name, labels, buckets, beyond, durations.micros as f64 / 1e6);
}

/// The caches of routes.
fn show_stores(stores: &BTreeMap<String, Vec<Arc<Store>>>, text: &mut MetricsText) {
    type Read = fn(&StoreState) -> u64;
    if stores.is_empty() {
        return;
    }
    let states: Vec<_> = stores
        .iter()
        .map(|(route, stores)| (route, StoreState::of(stores)))
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
        let name = format!("{PREFIX}_{name}");
        text.family(&name, "gauge", help);
        for (route, state) in &states {
            text.sample(&name, &[("route", route)], read(state));
        }
    }
    let name = format!("{PREFIX}_cache_total");
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
