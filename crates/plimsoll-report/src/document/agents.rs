//! The agents of a run that several machines made.

use std::time::Duration;

use plimsoll_model::AgentFigures;
use serde::{Deserialize, Serialize};

use super::{TimesDocument, microseconds, rounded};

/// What one agent of a fleet contributed to a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FleetAgentDocument {
    /// Its name.
    pub name: String,
    /// Workers of its part.
    pub workers: usize,
    /// Exchanges that it has begun.
    pub started: u64,
    /// Those that it completed.
    pub ok: u64,
    /// Everything that went wrong, dropped and missed arrivals included.
    pub errors: u64,
    /// Responses that it completed within the window, per second of the window of the run.
    pub requests_per_second: f64,
    /// How long exchanges took: from the intended start in an open loop, else from the actual one.
    pub latency: TimesDocument,
    /// How long after the agreed start its workers were started; `null` if it did not come to its end.
    pub late_us: Option<f64>,
    /// Its busiest worker: share of one core in percent; `null` if it did not come to its end.
    pub busiest_worker_percent: Option<f64>,
    /// Whether it was the limit of its part, and not the target.
    pub was_limit: bool,
    /// Doubts about it and its machine.
    pub cautions: Vec<String>,
    /// Why its figures are not all that it counted, or its part is not whole; `null` if they are.
    pub problem: Option<String>,
}

impl FleetAgentDocument {
    /// - `window`: of the run.
    pub(super) fn from_figures(agent: &AgentFigures, window: Duration) -> Self {
        let seconds = window.as_secs_f64();
        let rate = if seconds > 0.0 {
            agent.counts.completed_in_window as f64 / seconds
        } else {
            0.0
        };
        Self {
            name: agent.name.clone(),
            workers: agent.workers,
            started: agent.counts.started,
            ok: agent.counts.ok,
            errors: agent.counts.errors(),
            requests_per_second: rounded(rate),
            latency: TimesDocument::from_times(agent.latency.view()),
            late_us: agent.late.map(microseconds),
            busiest_worker_percent: agent.busiest_worker_percent.map(rounded),
            was_limit: agent.was_limit,
            cautions: agent.cautions.clone(),
            problem: agent.problem.clone(),
        }
    }

    /// In one word what is to be known of it; empty if it did its part.
    pub(crate) fn state(&self) -> &'static str {
        match (&self.problem, self.was_limit) {
            (Some(_), _) => "incomplete",
            (None, true) => "limit",
            (None, false) => "",
        }
    }
}
