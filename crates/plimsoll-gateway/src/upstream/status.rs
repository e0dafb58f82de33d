//! State of the servers of an upstream that all workers share: health and counts.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use plimsoll_model::{Failure, FailureKind, Phase};
use serde::Serialize;

use super::breaker::Breaker;
use super::durations::{DurationCounts, Durations, add};
use super::ejection::{Ejection, Record};
use super::history::{History, Recent, Sample};
use super::plan::{ServerPlan, UpstreamPlan};
use super::source_state::{SourceState, SourceStatus};

/// An upstream, shared by all workers; outlives reloads that do not change it.
#[derive(Debug)]
pub(crate) struct UpstreamStatus {
    pub(crate) name: String,
    start: Instant,
    server_list: Mutex<Arc<ServerList>>,
    /// That of the server list, for workers to see that it is another.
    version: AtomicU64,
    ids: AtomicUsize,
    /// By [`Event`].
    events: [AtomicU64; Event::ALL.len()],
    /// By [`Timeout`].
    timeouts: [AtomicU64; Timeout::ALL.len()],
    breaker: Option<Mutex<Breaker>>,
    /// Absent for servers that are in the configuration.
    source: Option<Mutex<SourceState>>,
}

/// The servers of an upstream at one time.
#[derive(Debug)]
pub(crate) struct ServerList {
    pub(super) version: u64,
    pub(super) servers: Vec<(ServerPlan, Arc<ServerState>)>,
}

/// Events of an upstream that are counted beside its servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    Retry,
    RefusedRetry,
    Hedge,
    /// A copied request was given up.
    DroppedCopy,
    /// Too many requests were in flight.
    Limited,
    /// The circuit breaker opened.
    Opened,
    /// A request found it open.
    Broken,
}

impl Event {
    pub(crate) const ALL: [Self; 7] = [
        Self::Retry,
        Self::RefusedRetry,
        Self::Hedge,
        Self::DroppedCopy,
        Self::Limited,
        Self::Opened,
        Self::Broken,
    ];

    /// The name of its metric, and what that says.
    pub(crate) const fn metric(self) -> (&'static str, &'static str) {
        match self {
            Self::Retry => ("retries_total", "Retries"),
            Self::RefusedRetry => ("retries_refused_total", "Retries that the budget refused"),
            Self::Hedge => (
                "hedges_total",
                "Second attempts while the first was still waited for",
            ),
            Self::DroppedCopy => ("copies_dropped_total", "Copied requests that were given up"),
            Self::Limited => ("limited_total", "Requests beyond the limit on concurrency"),
            Self::Opened => (
                "breaker_opened_total",
                "How often the circuit breaker opened",
            ),
            Self::Broken => (
                "breaker_refused_total",
                "Requests that an open circuit breaker refused",
            ),
        }
    }
}

/// The time limits of exchanges with an upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Timeout {
    /// `connect_timeout`.
    Connect,
    /// `response_timeout`.
    Response,
    /// `idle_timeout`.
    Idle,
    /// `timeout`.
    Total,
}

impl Timeout {
    pub(crate) const ALL: [Self; 4] = [Self::Connect, Self::Response, Self::Idle, Self::Total];

    /// The value of the label in metrics.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Response => "response",
            Self::Idle => "idle",
            Self::Total => "total",
        }
    }

    /// The limit that an attempt without a response has exceeded, if it was one.
    pub(crate) fn from_failure(failure: &Failure) -> Option<Self> {
        let is_connecting = matches!(failure.phase, Phase::Dns | Phase::Connect | Phase::Tls);
        (failure.kind == FailureKind::Timeout).then_some(if is_connecting {
            Self::Connect
        } else {
            Self::Response
        })
    }
}

/// State of one server that all workers share.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct ServerState {
    /// No other server of the upstream has or had it.
    id: usize,
    name: Arc<str>,
    start: Instant,
    weight: AtomicU32,
    /// The verdict of active checks; true without any.
    is_healthy: AtomicBool,
    /// Milliseconds since `start`: until when it is ejected, and since when it is available.
    ejected_until: AtomicU64,
    available_since: AtomicU64,
    /// It belongs to the upstream no more.
    is_removed: AtomicBool,
    record: Mutex<Record>,
    /// Those of each worker.
    counts: Mutex<Vec<Arc<Counts>>>,
    /// Empty unless the upstream is sampled.
    history: Mutex<History>,
}

/// Counts of one server on one worker, which alone writes them, so that workers share no cache line.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Counts {
    active: AtomicU32,
    connections: AtomicU32,
    failures: AtomicU64,
    /// Responses by the first digit of their status.
    responses: [AtomicU64; 6],
    durations: Durations,
}

impl Counts {
    pub(super) fn set_active(&self, active: u32) {
        self.active.store(active, Ordering::Relaxed);
    }

    pub(super) fn count_failure(&self) {
        add(&self.failures, 1);
    }

    pub(super) fn count_response(&self, status: u16, took: Duration) {
        add(&self.responses[usize::from(status / 100).min(5)], 1);
        self.durations.count(took);
    }

    pub(super) fn note_connections(&self, open: usize) {
        let open = u32::try_from(open).unwrap_or(u32::MAX);
        self.connections.store(open, Ordering::Relaxed);
    }
}

/// One server, for people and programs.
#[derive(Debug, Serialize)]
pub(crate) struct ServerStatus {
    pub(crate) server: String,
    pub(crate) weight: u32,
    /// `healthy`, `unhealthy`, `ejected` or `drained`.
    pub(crate) state: &'static str,
    pub(crate) active: u64,
    pub(crate) connections: u64,
    pub(crate) responses: [u64; 5],
    pub(crate) failures: u64,
    #[serde(skip)]
    pub(crate) durations: DurationCounts,
    pub(crate) latency_us_sum: u64,
}

impl UpstreamStatus {
    pub(crate) fn new(plan: &UpstreamPlan, now: Instant) -> Self {
        let status = Self {
            name: plan.name.clone(),
            start: now,
            server_list: Mutex::new(Arc::new(ServerList {
                version: 0,
                servers: Vec::new(),
            })),
            version: AtomicU64::new(0),
            ids: AtomicUsize::new(0),
            events: Default::default(),
            timeouts: Default::default(),
            breaker: plan
                .options
                .breaker
                .clone()
                .map(|it| Mutex::new(Breaker::new(it))),
            source: SourceState::new(&plan.options.discovery).map(Mutex::new),
        };
        status.set_servers(&plan.servers);
        status
    }

    /// The source has given a list. Returns how long it gave none before.
    pub(super) fn source_listed(&self, now: Instant) -> Option<Duration> {
        self.source.as_ref().and_then(|it| lock(it).listed(now))
    }

    /// The source gives no list. Returns whether that is news.
    pub(super) fn source_failed(&self, problem: &str, now: Instant) -> bool {
        let source = self.source.as_ref();
        source.is_some_and(|it| lock(it).failed(problem, now))
    }

    /// What lists the servers, unless they are in the configuration.
    pub(crate) fn source(&self, now: Instant) -> Option<SourceStatus> {
        self.source.as_ref().map(|it| lock(it).status(now))
    }

    /// The servers now.
    pub(super) fn server_list(&self) -> Arc<ServerList> {
        Arc::clone(&lock(&self.server_list))
    }

    /// Changes with the servers.
    #[inline]
    pub(super) fn version(&self) -> u64 {
        self.version.load(Ordering::Relaxed)
    }

    /// Has these servers from now on; those that stay keep their state, and a weight that was set at run time unless the
    /// configured one changes. Returns whether anything changed.
    pub(super) fn set_servers(&self, servers: &[ServerPlan]) -> bool {
        let mut server_list = lock(&self.server_list);
        let known = &server_list.servers;
        let is_same = known.len() == servers.len()
            && known
                .iter()
                .zip(servers)
                .all(|((plan, _), new)| plan == new);
        if is_same {
            return false;
        }
        let find = |new: &ServerPlan| {
            let name = new.name();
            known.iter().find(|(_, state)| *state.name == *name)
        };
        let kept = servers.iter().map(|new| {
            let Some((old, state)) = find(new) else {
                return (new.clone(), Arc::new(self.state(new)));
            };
            if old.weight != new.weight {
                state.weight.store(new.weight, Ordering::Relaxed);
            }
            (new.clone(), Arc::clone(state))
        });
        let kept: Vec<_> = kept.collect();
        for (_, state) in known {
            let stays = kept.iter().any(|(_, it)| Arc::ptr_eq(it, state));
            state.is_removed.store(!stays, Ordering::Relaxed);
        }
        let version = server_list.version + 1;
        *server_list = Arc::new(ServerList {
            version,
            servers: kept,
        });
        self.version.store(version, Ordering::Relaxed);
        true
    }

    fn state(&self, plan: &ServerPlan) -> ServerState {
        ServerState {
            id: self.ids.fetch_add(1, Ordering::Relaxed),
            name: Arc::from(plan.name()),
            start: self.start,
            weight: AtomicU32::new(plan.weight),
            is_healthy: AtomicBool::new(true),
            ejected_until: AtomicU64::new(0),
            available_since: AtomicU64::new(0),
            is_removed: AtomicBool::new(false),
            record: Mutex::default(),
            counts: Mutex::default(),
            history: Mutex::default(),
        }
    }

    /// Sets the weight of a server at run time; 0 drains it. Returns the weight before, or nothing if there is no such server.
    pub(crate) fn set_weight(&self, server: &str, weight: u32) -> Option<u32> {
        let server_list = self.server_list();
        let found = server_list
            .servers
            .iter()
            .find(|(_, it)| &*it.name == server);
        found.map(|(_, found)| found.weight.swap(weight, Ordering::Relaxed))
    }

    pub(crate) fn count(&self, event: Event) {
        self.events[event as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn counted(&self, event: Event) -> u64 {
        self.events[event as usize].load(Ordering::Relaxed)
    }

    pub(super) fn count_timeout(&self, timeout: Timeout) {
        self.timeouts[timeout as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn timed_out(&self, timeout: Timeout) -> u64 {
        self.timeouts[timeout as usize].load(Ordering::Relaxed)
    }

    /// Whether the circuit breaker lets a request through.
    pub(super) fn permit(&self, now: Instant) -> bool {
        let is_permitted = self.breaker.as_ref().is_none_or(|it| lock(it).permit(now));
        if !is_permitted {
            self.count(Event::Broken);
        }
        is_permitted
    }

    /// Notes how a request ended for the circuit breaker.
    pub(super) fn note(&self, is_failure: bool, now: Instant) {
        if let Some(breaker) = &self.breaker
            && lock(breaker).note(is_failure, now)
        {
            self.count(Event::Opened);
        }
    }

    /// The state of the circuit breaker, if there is one.
    pub(crate) fn breaker(&self, now: Instant) -> Option<&'static str> {
        self.breaker.as_ref().map(|it| lock(it).name(now))
    }

    /// Keeps the counters of every server, for their rates.
    pub(crate) fn sample(&self, now: Instant) {
        for (_, state) in &self.server_list().servers {
            state.sample(now);
        }
    }

    /// Every server as it is now, with its weight in the configuration and its last seconds.
    pub(crate) fn watched_servers(&self, now: Instant) -> Vec<(ServerStatus, u32, Recent)> {
        let server_list = self.server_list();
        let servers = server_list.servers.iter();
        servers
            .map(|(plan, state)| {
                let recent = lock(&state.history).recent();
                (state.status(now), plan.weight, recent)
            })
            .collect()
    }

    /// Every server as it is now.
    pub(crate) fn servers(&self, now: Instant) -> Vec<ServerStatus> {
        let server_list = self.server_list();
        let servers = server_list.servers.iter();
        servers.map(|(_, state)| state.status(now)).collect()
    }
}

impl ServerState {
    /// No other server of the upstream has or had it.
    pub(super) const fn id(&self) -> usize {
        self.id
    }

    pub(super) const fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Whether it belongs to the upstream no more.
    pub(super) fn is_removed(&self) -> bool {
        self.is_removed.load(Ordering::Relaxed)
    }

    fn millis(&self, now: Instant) -> u64 {
        let passed = now.saturating_duration_since(self.start);
        u64::try_from(passed.as_millis()).unwrap_or(u64::MAX)
    }

    /// The weight that was set at run time, or else in the configuration.
    pub(super) fn configured_weight(&self) -> u32 {
        self.weight.load(Ordering::Relaxed)
    }

    /// The effective weight: 0 while it is not available, less than its own while it starts slowly.
    pub(super) fn weight(&self, now: Instant, slow_start: Duration) -> f64 {
        let weight = f64::from(self.weight.load(Ordering::Relaxed));
        let ejected_until = self.ejected_until.load(Ordering::Relaxed);
        if !self.is_healthy.load(Ordering::Relaxed) {
            return 0.0;
        }
        if ejected_until == 0 && slow_start.is_zero() {
            return weight;
        }
        let now = self.millis(now);
        if ejected_until > now {
            return 0.0;
        }
        if slow_start.is_zero() {
            return weight;
        }
        let since = self
            .available_since
            .load(Ordering::Relaxed)
            .max(ejected_until);
        if since == 0 {
            return weight;
        }
        let share = now.saturating_sub(since) as f64 / slow_start.as_millis().max(1) as f64;
        // A tenth from the beginning: without requests nothing warms up.
        weight * share.clamp(0.1, 1.0)
    }

    /// The verdict of active checks.
    pub(super) fn set_healthy(&self, is_healthy: bool, now: Instant) {
        let was_healthy = self.is_healthy.swap(is_healthy, Ordering::Relaxed);
        if is_healthy && !was_healthy {
            let now = self.millis(now).max(1);
            self.available_since.store(now, Ordering::Relaxed);
        }
    }

    /// Whether passive health leaves it out.
    pub(super) fn is_ejected(&self, now: Instant) -> bool {
        self.ejected_until.load(Ordering::Relaxed) > self.millis(now)
    }

    /// Notes how an exchange ended.
    ///
    /// - `ejected`: the share of servers that would be ejected if this one were too.
    pub(super) fn observe(
        &self,
        is_failure: bool,
        ejected: impl FnOnce() -> f64,
        ejection: &Ejection,
        now: Instant,
    ) {
        let mut record = lock(&self.record);
        if !is_failure {
            record.note(false, false, ejection);
            return;
        }
        if let Some(time) = record.note(true, ejected() <= ejection.most, ejection) {
            let until = self.millis(now + time).max(1);
            self.ejected_until.store(until, Ordering::Relaxed);
        }
    }

    /// A success that was noted was none after all: the response broke off.
    pub(super) fn take_back(&self) {
        lock(&self.record).take_back();
    }

    /// The counts of one more worker.
    pub(super) fn worker(&self) -> Arc<Counts> {
        let counts = Arc::<Counts>::default();
        lock(&self.counts).push(Arc::clone(&counts));
        counts
    }

    fn sample(&self, now: Instant) {
        let status = self.status(now);
        let responses: u64 = status.responses.iter().sum();
        lock(&self.history).push(Sample {
            at: now,
            requests: responses + status.failures,
            failed: status.responses[4] + status.failures,
            latencies: status.durations.buckets,
        });
    }

    fn status(&self, now: Instant) -> ServerStatus {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let workers = lock(&self.counts);
        let sum = |read: &dyn Fn(&Counts) -> u64| -> u64 {
            workers.iter().map(|counts| read(counts)).sum()
        };
        let mut durations = DurationCounts::default();
        for counts in workers.iter() {
            durations.add(&counts.durations.counts());
        }
        let weight = self.configured_weight();
        let state = if weight == 0 {
            "drained"
        } else if !self.is_healthy.load(Ordering::Relaxed) {
            "unhealthy"
        } else if self.is_ejected(now) {
            "ejected"
        } else {
            "healthy"
        };
        ServerStatus {
            server: self.name.to_string(),
            weight,
            state,
            active: sum(&|it| it.active.load(Ordering::Relaxed).into()),
            connections: sum(&|it| it.connections.load(Ordering::Relaxed).into()),
            responses: std::array::from_fn(|class| sum(&|it| load(&it.responses[class + 1]))),
            failures: sum(&|it| load(&it.failures)),
            latency_us_sum: durations.micros,
            durations,
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
