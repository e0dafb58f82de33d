//! A server of an upstream, as one worker uses it.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use plimsoll_client::forward::Destination;

use super::status::Counts;
use crate::balance::hash;

/// One server.
pub(crate) struct Server {
    destination: Rc<Destination>,
    number: usize,
    active: Cell<u32>,
    latency: Cell<Latency>,
    cookie: String,
    /// Those of this worker.
    counts: Arc<[Counts]>,
}

impl Server {
    pub(super) fn new(destination: Rc<Destination>, counts: Arc<[Counts]>, number: usize) -> Self {
        let endpoint = destination.endpoint();
        let name = format!("{}://{}", endpoint.scheme(), endpoint.authority());
        Self {
            cookie: format!("{:016x}", hash(name.as_bytes())),
            destination,
            number,
            active: Cell::new(0),
            latency: Cell::new(Latency::default()),
            counts,
        }
    }

    /// Its place in the upstream.
    pub(crate) const fn number(&self) -> usize {
        self.number
    }

    /// Where requests go.
    pub(crate) const fn destination(&self) -> &Rc<Destination> {
        &self.destination
    }

    /// The value of the cookie that names it; it does not reveal the address.
    pub(crate) fn cookie(&self) -> &str {
        &self.cookie
    }

    pub(super) fn active(&self) -> u32 {
        self.active.get()
    }

    pub(super) fn latency(&self) -> f64 {
        self.latency.get().average
    }

    pub(super) fn sweep(&self) {
        self.destination.sweep();
        let open = self.destination.status().open;
        self.counts().note_connections(open);
    }

    fn counts(&self) -> &Counts {
        &self.counts[self.number]
    }

    fn set_active(&self, active: u32) {
        self.active.set(active);
        self.counts().set_active(active);
    }

    /// A request is sent to it, until the returned value is dropped.
    pub(crate) fn begin(self: Rc<Self>, now: Instant) -> ServerUse {
        self.set_active(self.active.get() + 1);
        ServerUse {
            server: self,
            begun: now,
        }
    }
}

/// A request in flight at a server.
pub(crate) struct ServerUse {
    server: Rc<Server>,
    begun: Instant,
}

impl ServerUse {
    pub(crate) fn server(&self) -> &Rc<Server> {
        &self.server
    }

    /// The head of the response is there.
    pub(crate) fn responded(&self, status: u16, now: Instant) {
        let server = &self.server;
        let took = now.saturating_duration_since(self.begun);
        let mut latency = server.latency.get();
        latency.observe(took, now);
        server.latency.set(latency);
        server.counts().count_response(status, took);
    }

    /// There was no response.
    pub(crate) fn failed(&self) {
        self.server.counts().count_failure();
    }
}

impl Drop for ServerUse {
    fn drop(&mut self) {
        let active = self.server.active.get();
        self.server.set_active(active.saturating_sub(1));
    }
}

/// A moving average that rises at once with a slow response and sinks slowly (Finagle's peak EWMA).
#[derive(Debug, Clone, Copy, Default)]
struct Latency {
    /// In seconds.
    average: f64,
    at: Option<Instant>,
}

/// How long an old latency counts.
const DECAY: Duration = Duration::from_secs(10);

impl Latency {
    fn observe(&mut self, took: Duration, now: Instant) {
        let took = took.as_secs_f64();
        let passed = self
            .at
            .map(|at| now.saturating_duration_since(at).as_secs_f64());
        self.at = Some(now);
        let Some(passed) = passed else {
            self.average = took;
            return;
        };
        if took > self.average {
            self.average = took;
        } else {
            let weight = (-passed / DECAY.as_secs_f64()).exp();
            self.average = self.average * weight + took * (1.0 - weight);
        }
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_model::Clock as _;

    use super::*;

    #[test]
    fn latency_rises_at_once_and_sinks_slowly() {
        let start = plimsoll_testkit::VirtualClock::new().now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut latency = Latency::default();
        latency.observe(Duration::from_millis(10), at(0));
        latency.observe(Duration::from_millis(100), at(1));
        assert!((latency.average - 0.1).abs() < 1e-9);
        latency.observe(Duration::from_millis(10), at(2));
        assert!(latency.average > 0.09, "{latency:?}");
        latency.observe(Duration::from_millis(10), at(60));
        assert!(latency.average < 0.012, "{latency:?}");
    }
}
