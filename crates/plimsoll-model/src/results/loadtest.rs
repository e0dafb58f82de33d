//! Results of the `loadtest` harness: many workers that check repeatedly.

use std::time::Duration;

use crate::{
    AgentFigures, Counts, Exchange, FailureCount, FailureKind, Histogram, Phase, Protocol, Verdict,
};

/// Everything that one run of `plimsoll loadtest` found.
#[derive(Debug, Clone)]
pub struct LoadtestSummary {
    /// The configuration, and how it was laid out.
    pub shape: LoadtestShape,
    /// From the first start to the last end.
    pub elapsed: Duration,
    /// Outcomes of the checks.
    pub found: LoadtestFound,
    /// One entry a second.
    pub ticks: Vec<LoadtestTick>,
    /// Resident memory of all processes in bytes: the sum of the most that each has ever held; absent
    /// where the platform does not report it.
    pub peak_memory_bytes: Option<u64>,
    /// Whether the user ended it early.
    pub interrupted: bool,
    /// The agents of a fleet that made it, by their names; empty where this machine made it.
    pub agents: Vec<AgentFigures>,
    /// Doubts about the figures, in plain sentences; those about figures that are missing come first.
    pub cautions: Vec<String>,
}

impl LoadtestSummary {
    /// Complete responses per second of the whole time.
    pub fn requests_per_second(&self) -> f64 {
        if self.elapsed.is_zero() {
            0.0
        } else {
            self.found.counts.ok as f64 / self.elapsed.as_secs_f64()
        }
    }
}

/// The harness's configuration, and how it was laid out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadtestShape {
    /// The protocol of the checks.
    pub protocol: Protocol,
    /// Use of connections.
    pub connections: LoadtestConnections,
    /// Workers: each makes one check after the other.
    pub workers: usize,
    /// Listeners of the origins, each at an address of its own.
    pub listeners: usize,
    /// Processes that check, the first one included if it does so itself.
    pub client_processes: usize,
    /// Processes that answer, the first one included if it does so itself.
    pub origin_processes: usize,
    /// All processes, the first one included.
    pub processes: usize,
    /// Time for which workers start new checks.
    pub duration: Duration,
    /// Over which time they begin, one after the other.
    pub ramp: Duration,
    /// Timeout of one check.
    pub timeout: Duration,
    /// Whether it ran in a network namespace of its own.
    pub own_network: bool,
}

/// Use of connections by the harness.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoadtestConnections {
    /// Each worker keeps one.
    Kept,
    /// Each check opens one.
    Fresh,
    /// Many workers share one.
    Shared,
}

impl LoadtestConnections {
    /// The name used in text and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Kept => "kept",
            Self::Fresh => "fresh",
            Self::Shared => "shared",
        }
    }
}

/// Outcomes of a number of checks, in memory that does not grow with it.
#[derive(Debug, Clone, Default)]
pub struct LoadtestFound {
    /// Counts of checks by outcome; `started` is `ok + failed + aborted`.
    pub counts: Counts,
    /// Failures by kind and phase.
    pub failures: Vec<FailureCount>,
    /// Durations of complete responses and timeouts, from the start of the check.
    pub latency: Histogram,
    /// Connections opened.
    pub connections_opened: u64,
}

impl LoadtestFound {
    /// Counts one check that came to an end.
    pub fn record(&mut self, exchange: &Exchange, verdict: Verdict) {
        if exchange.phases.get(Phase::Connect).is_some() {
            self.connections_opened += 1;
        }
        match &exchange.outcome {
            Ok(_) => {
                self.counts.ok += 1;
                self.counts.unmet += u64::from(verdict == Verdict::Unmet);
                self.latency.record(exchange.latency_from_started());
            }
            Err(failure) => {
                self.counts.failed += 1;
                // A timeout has a latency: at least this long. Other failures have none.
                if failure.kind == FailureKind::Timeout {
                    self.latency.record(exchange.latency_from_started());
                }
                self.add_failures(&FailureCount {
                    phase: failure.phase,
                    kind: failure.kind,
                    count: 1,
                    example: failure.clone(),
                });
            }
        }
    }

    /// Adds all of `other`.
    pub fn merge(&mut self, other: &Self) {
        self.counts.merge(&other.counts);
        for failure in &other.failures {
            self.add_failures(failure);
        }
        self.latency.merge(&other.latency);
        self.connections_opened += other.connections_opened;
    }

    fn add_failures(&mut self, more: &FailureCount) {
        let same = |count: &&mut FailureCount| count.kind == more.kind && count.phase == more.phase;
        match self.failures.iter_mut().find(same) {
            Some(count) => count.count += more.count,
            None => self.failures.push(more.clone()),
        }
    }
}

/// The state of a run of the harness at one moment; counts are those since its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LoadtestTick {
    /// Time since the start.
    pub at: Duration,
    /// Complete responses.
    pub ok: u64,
    /// Failures, and responses that are not as they should be.
    pub errors: u64,
    /// Checks under way.
    pub in_flight: u64,
    /// Resident memory, summed over all processes, in bytes; absent where the platform does not report it.
    pub memory_bytes: Option<u64>,
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::{Failure, Phases};

    #[expect(clippy::disallowed_methods, reason = "any moment will do")]
    fn exchange(outcome: Result<u16, Failure>, opened: bool) -> Exchange {
        let started = Instant::now();
        let mut phases = Phases::default();
        if opened {
            phases.set(Phase::Connect, Duration::from_millis(1));
        }
        Exchange {
            intended: started,
            started,
            done: started + Duration::from_millis(5),
            phases,
            bytes_sent: 0,
            bytes_received: 0,
            peer: None,
            protocol: Protocol::Http2,
            outcome,
        }
    }

    #[test]
    fn checks_are_counted_by_what_came_of_them() {
        let mut found = LoadtestFound::default();
        let timeout = || Failure::new(Phase::Wait, FailureKind::Timeout);
        found.record(&exchange(Ok(200), true), Verdict::Met);
        found.record(&exchange(Ok(503), false), Verdict::Unmet);
        found.record(&exchange(Err(timeout()), false), Verdict::Failed);
        let refused = Failure::new(Phase::Connect, FailureKind::Refused);
        found.record(&exchange(Err(refused), false), Verdict::Failed);
        let mut twice = found.clone();
        twice.merge(&found);
        assert_eq!((twice.counts.ok, twice.counts.unmet), (4, 2));
        assert_eq!(twice.counts.failed, 4);
        assert_eq!(twice.latency.len(), 6);
        assert_eq!(twice.connections_opened, 2);
        let failures: Vec<_> = twice.failures.iter().map(|count| count.count).collect();
        assert_eq!(failures, [2, 2]);
    }
}
