//! The agents of a run that several machines made.

use std::time::Duration;

use crate::{Bounded, Counts, Saturation, Times};

/// What one agent of a fleet contributed to a run.
#[derive(Debug, Clone, Default)]
pub struct AgentFigures {
    /// Its name.
    pub name: String,
    /// Workers of its part.
    pub workers: usize,
    /// What was merged of it.
    pub counts: Counts,
    /// Durations of its exchanges: from the intended start in an open loop, else from the actual one.
    pub latency: Times,
    /// How long after the agreed start its workers were started; `None` if it did not come to its end.
    pub late: Option<Duration>,
    /// Its busiest worker: share of one core in percent; `None` if it did not come to its end.
    pub busiest_worker_percent: Option<f64>,
    /// Whether it was the limit of its part, and not the target.
    pub was_limit: bool,
    /// Doubts about it and its machine, in plain sentences.
    pub cautions: Vec<String>,
    /// Why its figures are not all that it counted, or its part is not whole.
    pub problem: Option<String>,
}

impl AgentFigures {
    /// In one word what is to be known of it; empty if it did its part.
    pub fn state(&self) -> &'static str {
        match (&self.problem, self.was_limit) {
            (Some(_), _) => "incomplete",
            (None, true) => "limit",
            (None, false) => "",
        }
    }
}

/// An agent while a run goes on.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AgentStanding {
    /// Its name.
    pub name: String,
    /// Workers of its part.
    pub workers: usize,
    /// Responses a second in its last tick; `None` before the first one and in the grace period.
    pub per_second: Option<f64>,
    /// Everything that went wrong until now.
    pub errors: u64,
    /// Of its last tick: from the intended start in an open loop, else from the actual one.
    pub p99: Option<Bounded<Duration>>,
    /// By how much it started requests late in its last tick although connections were free: the 99th percentile.
    pub lag_p99: Option<Duration>,
    /// Its busiest worker in its last tick: share of one core in percent; `None` if that is not measured.
    pub busiest_worker_percent: Option<f64>,
    /// Whether nothing more comes of it.
    pub is_over: bool,
    /// Whether it is over before its last tick: its figures are incomplete.
    pub is_lost: bool,
}

impl AgentStanding {
    /// Whether a worker of it uses all of its core: it is the limit of its part, and not the target.
    pub fn is_limit(&self) -> bool {
        let busiest = self.busiest_worker_percent;
        busiest.is_some_and(|percent| percent >= Saturation::BUSY_PERCENT)
    }
}
