//! The result of a test of a form, before anything is saved.

use plimsoll_monitor::probe::reading::CheckResult;

use crate::admin::monitors::class_of;
use crate::admin::shell::latency;

/// The result of a test.
#[derive(Debug)]
pub(super) struct Tested {
    pub(super) class: &'static str,
    pub(super) status: &'static str,
    pub(super) took: String,
    pub(super) reason: Option<String>,
    /// Names, times and shares of the whole in percent.
    pub(super) phases: Vec<(String, String, u64)>,
    pub(super) conditions: Vec<(String, bool)>,
}

impl Tested {
    pub(super) fn from_result(result: &CheckResult) -> Self {
        let micros =
            |took: std::time::Duration| u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let whole = micros(result.took).max(1);
        let phases = result.phases.iter().map(|(phase, took)| {
            let took = micros(took);
            let share = (took.saturating_mul(100) / whole).min(100);
            (phase.to_string(), latency(took), share)
        });
        Self {
            class: class_of(result.status),
            status: result.status.name(),
            took: latency(micros(result.took)),
            reason: result.reason.clone(),
            phases: phases.collect(),
            conditions: result
                .conditions
                .iter()
                .map(|one| (one.condition.clone(), one.met))
                .collect(),
        }
    }
}
