//! A server of an upstream, as one worker uses it.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use plimsoll_client::forward::Destination;

use super::status::{Counts, ServerState};
use crate::balance::hash;

/// One server.
pub(crate) struct Server {
    destination: Rc<Destination>,
    /// State that all workers share.
    state: Arc<ServerState>,
    active: Cell<u32>,
    /// Kept only for the balancer that chooses by it.
    latency: Option<Cell<Latency>>,
    cookie: String,
    is_local: bool,
    /// Those of this worker.
    counts: Arc<Counts>,
}

impl Server {
    /// - `is_local`: it is in the gateway's zone.
    /// - `is_timed`: the balancer chooses by latency.
    pub(super) fn new(
        destination: Rc<Destination>,
        state: Arc<ServerState>,
        is_local: bool,
        is_timed: bool,
    ) -> Self {
        Self {
            cookie: format!("{:016x}", hash(state.name().as_bytes())),
            destination,
            active: Cell::new(0),
            latency: is_timed.then(Cell::default),
            is_local,
            counts: state.worker(),
            state,
        }
    }

    /// No other server of the upstream has or had it.
    pub(crate) fn id(&self) -> usize {
        self.state.id()
    }

    /// Scheme, host and port, with the address if it is one of several.
    pub(crate) fn name(&self) -> &Arc<str> {
        self.state.name()
    }

    pub(super) fn state(&self) -> &ServerState {
        &self.state
    }

    /// Whether it is in the gateway's zone.
    pub(super) const fn is_local(&self) -> bool {
        self.is_local
    }

    /// Destination of its requests.
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

    /// Open connections of this worker.
    pub(super) fn connections(&self) -> u32 {
        u32::try_from(self.destination.status().open).unwrap_or(u32::MAX)
    }

    pub(super) fn latency(&self) -> f64 {
        self.latency.as_ref().map_or(0.0, |it| it.get().average)
    }

    pub(super) fn sweep(&self) {
        self.destination.sweep();
        let open = self.destination.status().open;
        self.counts.note_connections(open);
    }

    fn observe(&self, took: Duration, now: Instant) {
        if let Some(latency) = &self.latency {
            let mut average = latency.get();
            average.observe(took, now);
            latency.set(average);
        }
    }

    fn set_active(&self, active: u32) {
        self.active.set(active);
        self.counts.set_active(active);
    }

    /// A flow leads to it, until [`leave`](Self::leave).
    pub(crate) fn enter(&self) {
        self.set_active(self.active.get() + 1);
    }

    /// One of its flows has ended.
    pub(crate) fn leave(&self) {
        self.set_active(self.active.get().saturating_sub(1));
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
        server.observe(took, now);
        server.counts.count_response(status, took);
    }

    /// A connection to it is open; for those that are not HTTP.
    pub(crate) fn connected(&self, now: Instant) {
        let took = now.saturating_duration_since(self.begun);
        self.server.observe(took, now);
    }

    /// There was no response, or it broke off.
    pub(crate) fn failed(&self) {
        self.server.counts.count_failure();
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
