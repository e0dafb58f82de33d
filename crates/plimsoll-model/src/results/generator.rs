//! What the generator itself spent, and how it was held up.

use std::time::Duration;

use crate::Cost;

/// The generator's own state, by which a run can be trusted or not.
#[derive(Debug, Clone, PartialEq)]
pub struct Generator {
    /// Processor time over the measured window.
    pub cost: Cost,
    /// Largest resident memory seen, in bytes, where the platform reports it.
    pub peak_memory_bytes: Option<u64>,
    /// Busiest worker: share of one core in percent.
    pub busiest_worker_percent: f64,
    /// Lateness of timers: 99th percentile.
    pub lag_p99: Duration,
    /// Maximum lateness of timers.
    pub lag_max: Duration,
    /// How a worker stood still, of the worker for which that took longest.
    pub stalls: Stalls,
    /// Time in the measured window for which a worker was ready to run and no core ran it, of the worker
    /// for which that was longest; `None` where the kernel does not count it.
    pub run_delay: Option<Duration>,
    /// Time in the measured window for which a limit on processor time stopped the generator's control
    /// group; `None` where there is no such count.
    pub throttled: Option<Duration>,
    /// Set when the figures describe the generator rather than the target.
    pub saturated: Option<Saturation>,
}

/// Times at which a worker did not get to look up from its work when it had meant to: because it was not
/// run, because it was stopped, or because it was busy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stalls {
    /// How many.
    pub count: u64,
    /// The longest.
    pub longest: Duration,
    /// All together.
    pub total: Duration,
}

impl Stalls {
    /// Timers are late by less than this on any machine.
    pub const SHORTEST: Duration = Duration::from_millis(1);

    /// Counts a timer that fired this late, if that is a stall.
    pub fn record(&mut self, late: Duration) {
        if late >= Self::SHORTEST {
            self.count += 1;
            self.longest = self.longest.max(late);
            self.total += late;
        }
    }
}

/// Why the generator was the limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Saturation {
    /// A worker used its whole core.
    Cpu {
        /// Share of one core in percent.
        percent: f64,
    },
    /// Starts were late although a connection was free.
    Lag {
        /// 99th percentile of the lateness.
        p99: Duration,
    },
}

impl Saturation {
    /// A worker that uses this share of its core, in percent, has no room left to be on time.
    pub const BUSY_PERCENT: f64 = 95.0;

    /// The name used in JSON.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Cpu { .. } => "cpu",
            Self::Lag { .. } => "lag",
        }
    }
}
