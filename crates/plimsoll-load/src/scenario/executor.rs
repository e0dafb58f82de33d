//! When iterations start: the six executors of k6, as arithmetic.
//!
//! Times are counted from the start of the scenario. Nothing here waits or reads a clock.

mod constant_arrival_rate;

mod constant_vus;

mod per_vu_iterations;

mod ramping_arrival_rate;

mod ramping_vus;

mod shared_iterations;

use std::time::Duration;

pub use self::constant_arrival_rate::ConstantArrivalRate;
pub use self::constant_vus::ConstantVus;
pub use self::per_vu_iterations::PerVuIterations;
pub use self::ramping_arrival_rate::RampingArrivalRate;
pub use self::ramping_vus::{RampingVus, Stage};
pub use self::shared_iterations::SharedIterations;
use super::segment::Segment;

/// When the iterations of a scenario start.
#[derive(Debug, Clone, PartialEq)]
pub enum Executor {
    /// Virtual users share a number of iterations.
    SharedIterations(SharedIterations),
    /// Each virtual user makes a number of iterations.
    PerVuIterations(PerVuIterations),
    /// A number of virtual users iterate for a time.
    ConstantVus(ConstantVus),
    /// A number of virtual users that changes over time.
    RampingVus(RampingVus),
    /// Iterations start at a rate.
    ConstantArrivalRate(ConstantArrivalRate),
    /// Iterations start at a rate that changes over time.
    RampingArrivalRate(RampingArrivalRate),
}

impl Executor {
    /// The name that options give it.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::SharedIterations(_) => "shared-iterations",
            Self::PerVuIterations(_) => "per-vu-iterations",
            Self::ConstantVus(_) => "constant-vus",
            Self::RampingVus(_) => "ramping-vus",
            Self::ConstantArrivalRate(_) => "constant-arrival-rate",
            Self::RampingArrivalRate(_) => "ramping-arrival-rate",
        }
    }

    /// The part of it that a segment of the run makes. Arrivals keep their numbers in the whole run (`Claims::in_segment`).
    #[must_use]
    pub fn in_segment(self, segment: &Segment) -> Self {
        let vus = |vus: u32| segment.share_of_vus(vus);
        match self {
            Self::SharedIterations(executor) => Self::SharedIterations(SharedIterations {
                vus: vus(executor.vus),
                iterations: segment.share(executor.iterations),
                ..executor
            }),
            Self::PerVuIterations(executor) => Self::PerVuIterations(PerVuIterations {
                vus: vus(executor.vus),
                ..executor
            }),
            Self::ConstantVus(executor) => Self::ConstantVus(ConstantVus {
                vus: vus(executor.vus),
                ..executor
            }),
            Self::RampingVus(executor) => Self::RampingVus(executor.in_segment(segment)),
            Self::ConstantArrivalRate(executor) => Self::ConstantArrivalRate(ConstantArrivalRate {
                pre_allocated_vus: vus(executor.pre_allocated_vus),
                most_vus: vus(executor.most_vus),
                ..executor
            }),
            Self::RampingArrivalRate(mut executor) => {
                executor.pre_allocated_vus = vus(executor.pre_allocated_vus);
                executor.most_vus = vus(executor.most_vus);
                Self::RampingArrivalRate(executor)
            }
        }
    }

    /// Whether it starts any iteration: a segment of a small run may have none.
    pub fn has_work(&self) -> bool {
        match self {
            Self::SharedIterations(executor) => executor.vus > 0 && executor.iterations > 0,
            executor => executor.most_vus() > 0,
        }
    }

    /// Virtual users that are initialised before the start.
    pub fn initial_vus(&self) -> u32 {
        match self {
            Self::ConstantArrivalRate(executor) => executor.pre_allocated_vus,
            Self::RampingArrivalRate(executor) => executor.pre_allocated_vus,
            executor => executor.most_vus(),
        }
    }

    /// Virtual users that there may be at once.
    pub fn most_vus(&self) -> u32 {
        match self {
            Self::SharedIterations(executor) => executor.vus,
            Self::PerVuIterations(executor) => executor.vus,
            Self::ConstantVus(executor) => executor.vus,
            Self::RampingVus(executor) => executor.most_vus(),
            Self::ConstantArrivalRate(executor) => executor.most_vus,
            Self::RampingArrivalRate(executor) => executor.most_vus,
        }
    }

    /// How many virtual users there may be over time: each step has a moment and the number from then on, the last one 0.
    ///
    /// - `graceful_stop`: that iterations get behind the end.
    pub fn reserved_vus(&self, graceful_stop: Duration) -> Vec<(Duration, u32)> {
        match self {
            Self::RampingVus(executor) => executor.reserved(graceful_stop),
            _ => vec![
                (Duration::ZERO, self.most_vus()),
                (self.end() + graceful_stop, 0),
            ],
        }
    }

    /// The last moment at which an iteration may start.
    pub fn end(&self) -> Duration {
        match self {
            Self::SharedIterations(executor) => executor.max_duration,
            Self::PerVuIterations(executor) => executor.max_duration,
            Self::ConstantVus(executor) => executor.duration,
            Self::RampingVus(executor) => executor.end(),
            Self::ConstantArrivalRate(executor) => executor.duration,
            Self::RampingArrivalRate(executor) => executor.end(),
        }
    }

    /// Whether it starts iterations at given times, whatever became of earlier ones.
    pub const fn is_open(&self) -> bool {
        matches!(
            self,
            Self::ConstantArrivalRate(_) | Self::RampingArrivalRate(_)
        )
    }

    /// The start of the arrival of that number, from 0, of an open executor; `None` behind the last one.
    pub fn arrival(&self, number: u64) -> Option<Duration> {
        match self {
            Self::ConstantArrivalRate(executor) => executor.arrival(number),
            Self::RampingArrivalRate(executor) => executor.arrival(number),
            _ => None,
        }
    }

    /// When an iteration that virtual user `vu` runs at `now` is interrupted.
    ///
    /// - `vu`: within the scenario, from 0.
    /// - `graceful_stop`: that iterations get behind the end.
    pub fn deadline(&self, vu: u32, now: Duration, graceful_stop: Duration) -> Duration {
        let last = self.end() + graceful_stop;
        match self {
            Self::RampingVus(executor) => {
                executor.deadline(vu, now).map_or(last, |at| at.min(last))
            }
            _ => last,
        }
    }

    /// The completed share, from 0 to 1.
    ///
    /// - `started`: iterations so far.
    pub fn progress(&self, now: Duration, completed: u64) -> f64 {
        let by_count = |total: u64| completed as f64 / total.max(1) as f64;
        let end = self.end().as_secs_f64();
        let progress = match self {
            Self::SharedIterations(executor) => by_count(executor.iterations),
            Self::PerVuIterations(executor) => {
                by_count(u64::from(executor.vus) * executor.iterations)
            }
            _ if end > 0.0 => now.as_secs_f64() / end,
            _ => 1.0,
        };
        progress.clamp(0.0, 1.0)
    }
}

#[cfg(test)]
mod tests;
