//! Figures of each of several requests.

use plimsoll_model::RequestFigures;
use serde::{Deserialize, Serialize};

use super::{TimesDocument, is_zero, rounded};

/// Figures of one request, or of all that have its name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RequestDocument {
    /// Its name, or its method and URL with the places of its template; secrets masked.
    pub name: String,
    /// Exchanges that were begun.
    pub count: u64,
    /// Those without a complete response.
    pub failed: u64,
    /// Those still under way when the grace period ended; zero where there were none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub aborted: u64,
    /// Responses with a status of 400 or above, one that `--fail-status` names, or one of gRPC that is not `OK`.
    pub error_statuses: u64,
    /// Responses that did not meet `--expect` and are not in `error_statuses`.
    pub unmet: u64,
    /// All four in relation to `count`.
    pub error_percent: f64,
    /// How long exchanges took: from the intended start in an open loop, else from the actual one. Absent in merged
    /// results, since percentiles cannot be added.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<TimesDocument>,
}

impl RequestDocument {
    pub(super) fn from_figures(figures: &RequestFigures) -> Self {
        Self {
            name: figures.name.clone(),
            count: figures.count(),
            failed: figures.failed,
            aborted: figures.aborted,
            error_statuses: figures.error_statuses,
            unmet: figures.unmet,
            error_percent: rounded(figures.error_share() * 100.0),
            latency: Some(TimesDocument::from_times(figures.latency.view())),
        }
    }

    /// Everything that went wrong.
    pub(crate) fn errors(&self) -> u64 {
        self.failed + self.aborted + self.error_statuses + self.unmet
    }

    /// Adds what another generator counted for the same request; the percentiles are given up.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.failed += other.failed;
        self.aborted += other.aborted;
        self.error_statuses += other.error_statuses;
        self.unmet += other.unmet;
        let errors = self.errors();
        self.error_percent = rounded(100.0 * errors as f64 / self.count.max(1) as f64);
        self.latency = None;
    }
}
