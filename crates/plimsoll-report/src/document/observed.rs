//! Servers that were observed by name.

use plimsoll_model::{Cost, ObservationGap, ObservedServer, ResourceSample, RunSummary};
use serde::{Deserialize, Serialize};

use super::{TargetDocument, microseconds, rounded};
use crate::series::course_of;

/// One server that was observed by name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ObservedDocument {
    /// The name that the user gave it.
    pub name: String,
    /// What was observed.
    pub target: String,
    /// Scheme, host and port of the agent; `null` for the machine of the generator.
    pub agent: Option<String>,
    /// Whether the whole measured window was observed; the cost is that of a part of it otherwise.
    pub whole: bool,
    /// Its cost; `null` if there are fewer than two samples.
    pub cost: Option<TargetDocument>,
    /// Periods in which its control group used up its quota of processor time; `null` where that is not counted.
    pub throttled_periods: Option<u64>,
    /// Time for which it was stopped in them, summed over cores.
    pub throttled_us: Option<f64>,
    /// Bytes received in its network namespace; `null` if it has none of its own.
    pub network_received_bytes: Option<u64>,
    /// Bytes sent in it.
    pub network_sent_bytes: Option<u64>,
    /// Stretches without samples.
    pub gaps: Vec<GapDocument>,
    /// Its figures in each of the run's ticks.
    #[serde(default)]
    pub ticks: Vec<ObservedTickDocument>,
    /// The time of day there minus that of the generator; `null` on the machine of the generator.
    pub clock_offset_us: Option<f64>,
    /// How far that, and the time of each sample, may be off.
    pub clock_error_us: Option<f64>,
}

/// A stretch without samples.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GapDocument {
    /// The last sample before it, since the start of the run.
    pub from_us: f64,
    /// The first sample after it, or the end.
    pub to_us: f64,
    /// Why there are none.
    pub reason: String,
}

/// A server in one second of a run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ObservedTickDocument {
    /// Share of one core that it used; `null` in a gap.
    pub cpu_percent: Option<f64>,
    /// Resident memory at its end; `null` in a gap.
    pub memory_bytes: Option<u64>,
}

impl ObservedTickDocument {
    fn from_samples(before: Option<&ResourceSample>, after: Option<&ResourceSample>) -> Self {
        let cost = before.zip(after);
        let cost = cost.map(|(before, after)| Cost::between(before, after));
        Self {
            cpu_percent: cost.and_then(|cost| cost.cpu_percent()).map(rounded),
            memory_bytes: after.map(|sample| sample.memory.total_bytes()),
        }
    }
}

impl ObservedDocument {
    /// - `run`: the one in which it was observed.
    pub(super) fn from_observed(server: &ObservedServer, run: &RunSummary) -> Self {
        let samples = server.cost.as_ref();
        let samples = samples.map_or(&[][..], |cost| &cost.samples);
        let course = course_of(&run.ticks, samples, &server.gaps);
        Self {
            name: server.name.clone(),
            target: server.target.clone(),
            agent: server.agent.clone(),
            whole: server.is_whole,
            cost: server
                .cost
                .as_ref()
                .map(|cost| TargetDocument::from_server_cost(cost, run)),
            throttled_periods: server.throttled.map(|it| it.periods),
            throttled_us: server.throttled.map(|it| microseconds(it.time)),
            network_received_bytes: server.network.map(|it| it.received),
            network_sent_bytes: server.network.map(|it| it.sent),
            gaps: server.gaps.iter().map(GapDocument::from_gap).collect(),
            ticks: course
                .map(|(_, before, after)| ObservedTickDocument::from_samples(before, after))
                .collect(),
            clock_offset_us: server.clock.map(|it| it.offset_ns as f64 / 1e3),
            clock_error_us: server.clock.map(|it| microseconds(it.error)),
        }
    }

    /// The length of all gaps in microseconds.
    pub fn unseen_us(&self) -> f64 {
        self.gaps.iter().map(|gap| gap.to_us - gap.from_us).sum()
    }
}

impl GapDocument {
    fn from_gap(gap: &ObservationGap) -> Self {
        Self {
            from_us: microseconds(gap.from),
            to_us: microseconds(gap.to),
            reason: gap.reason.clone(),
        }
    }
}
