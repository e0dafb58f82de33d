//! What all workers know of the servers of an upstream: health and counts.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;

use super::ejection::{Ejection, Record};
use super::plan::UpstreamPlan;

/// The upper bounds of latency buckets, in microseconds.
pub(crate) const BOUNDS: [u64; 12] = [
    500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000,
    5_000_000,
];

/// An upstream, shared by all workers; outlives reloads that do not change it.
#[derive(Debug)]
pub(crate) struct UpstreamStatus {
    pub(crate) name: String,
    servers: Vec<Shared>,
    /// Those of each worker, one per server.
    counts: Mutex<Vec<Arc<[Counts]>>>,
    start: Instant,
    retries: AtomicU64,
    refused_retries: AtomicU64,
}

/// One server.
#[derive(Debug)]
#[repr(align(128))]
struct Shared {
    name: String,
    weight: AtomicU32,
    /// The verdict of active checks; true without any.
    is_healthy: AtomicBool,
    /// Milliseconds since `start`: until when it is ejected, and since when it is available.
    ejected_until: AtomicU64,
    available_since: AtomicU64,
    record: Mutex<Record>,
}

/// What one worker counts of one server; it alone writes them, so that workers share no cache line.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Counts {
    active: AtomicU32,
    connections: AtomicU32,
    failures: AtomicU64,
    /// Responses by the first digit of their status.
    responses: [AtomicU64; 6],
    latencies: [AtomicU64; BOUNDS.len() + 1],
    latency_us: AtomicU64,
}

/// One writer, so reading and writing back is enough, and cheaper than adding.
fn add(counter: &AtomicU64, number: u64) {
    counter.store(counter.load(Ordering::Relaxed) + number, Ordering::Relaxed);
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
        let took = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        add(
            &self.latencies[BOUNDS.partition_point(|bound| *bound < took)],
            1,
        );
        add(&self.latency_us, took);
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
    pub(crate) latencies: Vec<u64>,
    pub(crate) latency_us_sum: u64,
}

impl UpstreamStatus {
    pub(crate) fn new(plan: &UpstreamPlan, now: Instant) -> Self {
        let servers = plan.servers.iter().map(|server| Shared {
            name: server.name(),
            weight: AtomicU32::new(server.weight),
            is_healthy: AtomicBool::new(true),
            ejected_until: AtomicU64::new(0),
            available_since: AtomicU64::new(0),
            record: Mutex::default(),
        });
        Self {
            name: plan.name.clone(),
            servers: servers.collect(),
            counts: Mutex::default(),
            start: now,
            retries: AtomicU64::new(0),
            refused_retries: AtomicU64::new(0),
        }
    }

    fn millis(&self, now: Instant) -> u64 {
        let passed = now.saturating_duration_since(self.start);
        u64::try_from(passed.as_millis()).unwrap_or(u64::MAX)
    }

    /// The weight that was set at run time, or else in the configuration.
    pub(super) fn configured_weight(&self, server: usize) -> u32 {
        self.servers[server].weight.load(Ordering::Relaxed)
    }

    /// The effective weight: 0 while it is not available, less than its own while it starts slowly.
    pub(super) fn weight(&self, server: usize, now: Instant, slow_start: Duration) -> f64 {
        let shared = &self.servers[server];
        let weight = f64::from(shared.weight.load(Ordering::Relaxed));
        let ejected_until = shared.ejected_until.load(Ordering::Relaxed);
        if !shared.is_healthy.load(Ordering::Relaxed) {
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
        let since = shared
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

    /// The share of servers that are available, of those with a weight.
    pub(super) fn healthy_share(&self, now: Instant) -> f64 {
        let weighted = (0..self.servers.len()).filter(|it| self.configured_weight(*it) > 0);
        let (mut all, mut healthy) = (0_u32, 0_u32);
        for server in weighted {
            all += 1;
            healthy += u32::from(self.weight(server, now, Duration::ZERO) > 0.0);
        }
        f64::from(healthy) / f64::from(all.max(1))
    }

    /// The verdict of active checks.
    pub(super) fn set_healthy(&self, server: usize, is_healthy: bool, now: Instant) {
        let shared = &self.servers[server];
        let was_healthy = shared.is_healthy.swap(is_healthy, Ordering::Relaxed);
        if is_healthy && !was_healthy {
            let now = self.millis(now).max(1);
            shared.available_since.store(now, Ordering::Relaxed);
        }
    }

    /// Notes how an exchange ended.
    pub(super) fn observe(
        &self,
        server: usize,
        is_failure: bool,
        ejection: &Ejection,
        now: Instant,
    ) {
        let shared = &self.servers[server];
        let mut record = lock(&shared.record);
        if !is_failure {
            record.note(false, false, ejection);
            return;
        }
        let millis = self.millis(now);
        let ejected = self.servers.iter();
        let ejected = ejected.filter(|it| it.ejected_until.load(Ordering::Relaxed) > millis);
        let after = (ejected.count() + 1) as f64 / self.servers.len() as f64;
        if let Some(time) = record.note(true, after <= ejection.most, ejection) {
            let until = self.millis(now + time).max(1);
            shared.ejected_until.store(until, Ordering::Relaxed);
        }
    }

    /// Sets the weight of a server at run time; 0 drains it. False if there is no such server.
    pub(crate) fn set_weight(&self, server: &str, weight: u32) -> bool {
        let found = self.servers.iter().find(|it| it.name == server);
        if let Some(found) = found {
            found.weight.store(weight, Ordering::Relaxed);
        }
        found.is_some()
    }

    /// The counts of one more worker.
    pub(super) fn worker(&self) -> Arc<[Counts]> {
        let counts: Arc<[Counts]> = self.servers.iter().map(|_| Counts::default()).collect();
        lock(&self.counts).push(Arc::clone(&counts));
        counts
    }

    pub(super) fn count_retry(&self, is_granted: bool) {
        let counter = if is_granted {
            &self.retries
        } else {
            &self.refused_retries
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Retries made, and retries that the budget refused.
    pub(crate) fn retries(&self) -> (u64, u64) {
        (
            self.retries.load(Ordering::Relaxed),
            self.refused_retries.load(Ordering::Relaxed),
        )
    }

    /// Every server as it is now.
    pub(crate) fn servers(&self, now: Instant) -> Vec<ServerStatus> {
        let millis = self.millis(now);
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let workers = lock(&self.counts);
        let servers = self.servers.iter().enumerate().map(|(number, shared)| {
            let sum = |read: &dyn Fn(&Counts) -> u64| -> u64 {
                workers.iter().map(|counts| read(&counts[number])).sum()
            };
            let weight = shared.weight.load(Ordering::Relaxed);
            let state = if weight == 0 {
                "drained"
            } else if !shared.is_healthy.load(Ordering::Relaxed) {
                "unhealthy"
            } else if load(&shared.ejected_until) > millis {
                "ejected"
            } else {
                "healthy"
            };
            ServerStatus {
                server: shared.name.clone(),
                weight,
                state,
                active: sum(&|it| it.active.load(Ordering::Relaxed).into()),
                connections: sum(&|it| it.connections.load(Ordering::Relaxed).into()),
                responses: std::array::from_fn(|class| sum(&|it| load(&it.responses[class + 1]))),
                failures: sum(&|it| load(&it.failures)),
                latencies: (0..=BOUNDS.len())
                    .map(|bucket| sum(&|it| load(&it.latencies[bucket])))
                    .collect(),
                latency_us_sum: sum(&|it| load(&it.latency_us)),
            }
        });
        servers.collect()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
