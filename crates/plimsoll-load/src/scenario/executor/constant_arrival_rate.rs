//! `constant-arrival-rate`: evenly spaced starts.

use std::time::Duration;

use super::ramping_vus::nanos_to_duration;

/// Iterations start at a rate, on any virtual user that is free.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConstantArrivalRate {
    /// Iterations in each time unit.
    pub rate: u32,
    /// The time unit.
    pub time_unit: Duration,
    /// How long iterations start.
    pub duration: Duration,
    /// Virtual users at the start.
    pub pre_allocated_vus: u32,
    /// Virtual users that there may be.
    pub most_vus: u32,
}

impl ConstantArrivalRate {
    /// The start of the arrival of that number, from 0: the first one is at the start of the scenario.
    ///
    /// Computed from the number rather than accumulated, so rounding does not drift.
    pub fn arrival(&self, number: u64) -> Option<Duration> {
        if self.rate == 0 {
            return None;
        }
        let nanos = self.time_unit.as_nanos() * u128::from(number) / u128::from(self.rate);
        let at = nanos_to_duration(nanos);
        (at < self.duration).then_some(at)
    }
}
