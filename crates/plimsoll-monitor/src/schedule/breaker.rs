//! A circuit breaker for a host: after several failures to connect in a row, its checks pause.

use std::time::{Duration, Instant};

/// When a breaker opens and closes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BreakerRule {
    /// Failures in a row that open it; at least 1.
    pub failures: u32,
    /// How long it stays open at most; not longer than the interval of the check whose failure opened it.
    pub open: Duration,
    /// Checks that may run while it is half open; at least 1.
    pub trials: u32,
    /// Successes in a row that close it again.
    pub successes: u32,
}

impl Default for BreakerRule {
    fn default() -> Self {
        Self {
            failures: 20,
            open: Duration::from_mins(1),
            trials: 3,
            successes: 2,
        }
    }
}

/// The breaker of one host.
#[derive(Debug, Clone, Copy, Default)]
pub struct Breaker {
    state: State,
    /// In a row, of the kind that the state counts.
    count: u32,
    trials: u32,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum State {
    #[default]
    Closed,
    Open {
        until: Instant,
    },
    HalfOpen,
}

impl Breaker {
    /// Whether a check may start; one that may is reported by [`done`](Self::done) later.
    pub fn admits(&mut self, rule: &BreakerRule, now: Instant) -> bool {
        match self.state {
            State::Closed => true,
            State::Open { until } if now < until => false,
            State::Open { .. } => {
                *self = Self {
                    state: State::HalfOpen,
                    count: 0,
                    trials: 1,
                };
                true
            }
            State::HalfOpen if self.trials < rule.trials => {
                self.trials += 1;
                true
            }
            State::HalfOpen => false,
        }
    }

    /// Takes the outcome of a check that was admitted.
    ///
    /// - `connected`: whether the host could be reached, whatever it answered.
    /// - `interval`: between two checks of the monitor. A breaker spares a host many checks, and must not make those
    ///   of one monitor rarer.
    pub fn done(&mut self, connected: bool, interval: Duration, rule: &BreakerRule, now: Instant) {
        let opened = Self {
            state: State::Open {
                until: now + rule.open.min(interval),
            },
            ..Self::default()
        };
        match (self.state, connected) {
            (State::Closed, true) => self.count = 0,
            (State::Closed, false) => {
                self.count += 1;
                if self.count >= rule.failures {
                    *self = opened;
                }
            }
            (State::HalfOpen, true) => {
                self.count += 1;
                self.trials = self.trials.saturating_sub(1);
                if self.count >= rule.successes {
                    *self = Self::default();
                }
            }
            (State::HalfOpen, false) => *self = opened,
            (State::Open { .. }, _) => {}
        }
    }

    /// Whether checks are held back.
    pub fn is_open(&self, now: Instant) -> bool {
        matches!(self.state, State::Open { until } if now < until)
    }

    /// Whether it is as new, so that it need not be kept.
    pub fn is_idle(&self) -> bool {
        self.state == State::Closed && self.count == 0
    }
}
