//! Servers that were observed beside a run: where they are, what they cost, and how well they were seen.

use std::time::Duration;

use crate::{NetworkBytes, ServerCost, ServerFigures, Throttling};

/// A server that was observed by name during a run.
#[derive(Debug, Clone, PartialEq)]
pub struct ObservedServer {
    /// The name that the user gave it.
    pub name: String,
    /// What was observed: `unit postgresql`, `pid 4711`.
    pub target: String,
    /// The URL of the agent that sampled it, credentials masked; `None` for this machine.
    pub agent: Option<String>,
    /// Cost within the observed part of the window, all samples with it; `None` if there are fewer than two samples.
    pub cost: Option<ServerCost>,
    /// Whether samples bound the whole window. The cost is that of a part of it otherwise.
    pub is_whole: bool,
    /// Throttling within the observed part; `None` where the kernel does not count it.
    pub throttled: Option<Throttling>,
    /// Traffic within the observed part; `None` unless the target has a network namespace of its own.
    pub network: Option<NetworkBytes>,
    /// Stretches without samples, in order of time.
    pub gaps: Vec<ObservationGap>,
    /// By how much the agent's clock differs from that of this machine; `None` for this machine.
    pub clock: Option<ClockDifference>,
}

/// A stretch of a run without samples of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObservationGap {
    /// The last sample before it, since the start of the run.
    pub from: Duration,
    /// The first sample after it, or the end of the observation.
    pub to: Duration,
    /// Why there is none.
    pub reason: String,
}

impl ObservationGap {
    /// Its length.
    pub fn length(&self) -> Duration {
        self.to.saturating_sub(self.from)
    }
}

/// The difference between two clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockDifference {
    /// The time of day there minus that of here, in nanoseconds.
    pub offset_ns: i64,
    /// How far that, and the time of each sample, may be off: half of the smallest round trip.
    pub error: Duration,
}

impl ObservedServer {
    /// Figures of the whole window; `None` if a part of it was not observed.
    pub fn figures(&self) -> Option<ServerFigures> {
        let cost = self.cost.as_ref().filter(|_| self.is_whole)?;
        Some(cost.figures())
    }

    /// The length of all gaps.
    pub fn unseen(&self) -> Duration {
        self.gaps.iter().map(ObservationGap::length).sum()
    }
}
