//! Outcomes of exchanges.

use plimsoll_model::{Bounded, Counts, FailureCount, JudgedThreshold};
use serde::{Deserialize, Serialize};

use super::{is_zero, microseconds, rounded};

/// Counts of exchanges by outcome; `started` is always `ok + failed + aborted`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CountsDocument {
    /// Exchanges begun in the window.
    pub started: u64,
    /// Those with a complete response, whatever its status.
    pub ok: u64,
    /// Those without one.
    pub failed: u64,
    /// Those still under way when the grace period ended.
    pub aborted: u64,
    /// Of `ok`: a status that `--fail-status` names, or one of gRPC that is not `OK`.
    pub failed_status: u64,
    /// Of `ok`: a status of 400 or above, whether or not it counts as an error.
    #[serde(default)]
    pub error_statuses: u64,
    /// Of `ok`: a response that did not meet `--expect`.
    pub unmet: u64,
    /// Arrivals that were given up because nothing was free.
    pub dropped: u64,
    /// Arrivals that were due but not begun when the run ended.
    pub missed: u64,
    /// Streams of events that broke after they had been opened; zero where there were none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub broken: u64,
    /// Failures, aborted exchanges, failed statuses, unmet expectations, drops and broken streams
    /// together.
    pub errors: u64,
    /// Safe requests that were sent again on a fresh connection, because the server had closed the
    /// reused one without announcing it; zero where that did not happen.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub reconnects: u64,
    /// Redirects that were followed within exchanges; zero unless `--location` was given.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub redirects: u64,
    /// Exchanges begun during the warm-up. Those that completed within the window are also in
    /// `completed_in_window`; otherwise they are in none of the others.
    pub warm_up: u64,
    /// Complete responses that arrived within the window, whenever their exchanges began: the number
    /// behind `requests_per_second` and the cost per request. `ok` also has those of the grace period.
    #[serde(default)]
    pub completed_in_window: u64,
}

impl CountsDocument {
    pub(super) fn from_counts(counts: &Counts, error_statuses: u64) -> Self {
        Self {
            started: counts.started,
            ok: counts.ok,
            failed: counts.failed,
            aborted: counts.aborted,
            failed_status: counts.failed_status,
            error_statuses,
            unmet: counts.unmet,
            dropped: counts.dropped,
            missed: counts.missed,
            broken: counts.broken,
            errors: counts.errors(),
            reconnects: counts.reconnects,
            redirects: counts.redirects,
            warm_up: counts.warm_up,
            completed_in_window: counts.completed_in_window,
        }
    }
}

/// Failures of one kind in one phase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailureDocument {
    /// The phase that was under way.
    pub phase: String,
    /// The kind of failure.
    pub kind: String,
    /// Number of exchanges.
    pub count: u64,
    /// The side of the first one: `ours`, `theirs`, `network`, `config`.
    pub side: String,
    /// Whether the first one could be sent again: `never`, `safe`, `if-reused`.
    pub retry: String,
    /// The message behind the first one.
    pub cause: Option<String>,
}

impl FailureDocument {
    pub(crate) fn from_failure(failure: &FailureCount) -> Self {
        Self {
            phase: failure.phase.name().to_owned(),
            kind: failure.kind.name().to_owned(),
            count: failure.count,
            side: failure.example.side.name().to_owned(),
            retry: failure.example.retry.name().to_owned(),
            cause: failure.example.cause.clone(),
        }
    }
}

/// A threshold with its outcome.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ThresholdDocument {
    /// The threshold, as it was written.
    pub threshold: String,
    /// `met`, `breached` or `no-data`.
    pub verdict: String,
    /// The value of the run, or of the worst stretch; `null` if there was nothing to compute it from.
    pub value: Option<f64>,
    /// Whether the value is only a lower bound, since exchanges were aborted or missed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub censored: bool,
    /// The limit.
    pub limit: f64,
    /// The unit of both: `us`, `count`, `per_second`, `ratio`, `bytes`, `bytes_per_second`,
    /// `percent`.
    pub unit: String,
    /// Margin to the limit, in percent of the limit; negative beyond it.
    pub margin_percent: Option<f64>,
    /// Of a threshold over a stretch: the end of the worst one, since the start of the run.
    pub at_us: Option<f64>,
    /// Whether its breach ended the run.
    pub ended_run: bool,
}

impl ThresholdDocument {
    /// The value, which knows whether it is only a lower bound.
    pub(crate) fn bounded(&self) -> Option<Bounded<f64>> {
        let value = self.value?;
        Some(if self.censored {
            Bounded::at_least(value)
        } else {
            Bounded::exact(value)
        })
    }

    pub(super) fn from_judged(judged: &JudgedThreshold) -> Self {
        Self {
            threshold: judged.threshold.text().to_owned(),
            verdict: judged.verdict().name().to_owned(),
            value: judged.value.map(Bounded::low),
            censored: judged.value.is_some_and(Bounded::is_censored),
            limit: judged.threshold.limit(),
            unit: judged.threshold.unit().name().to_owned(),
            margin_percent: judged.margin_percent().map(rounded),
            at_us: judged.at.map(microseconds),
            ended_run: judged.ended_run,
        }
    }
}
