//! Arrivals as evenly spaced as the profile allows.

use std::time::Duration;

use crate::schedule::{RateProfile, Schedule, Share};

/// Every worker takes each n-th arrival of the one schedule they share.
#[derive(Debug, Clone)]
pub struct EvenArrivals {
    profile: RateProfile,
    position: u64,
    step: u64,
}

impl EvenArrivals {
    /// The `share` of arrivals along `profile`; over all shares the first is at the start.
    pub fn new(profile: RateProfile, share: Share) -> Self {
        Self {
            profile,
            position: share.index.into(),
            step: share.of.into(),
        }
    }
}

impl Schedule for EvenArrivals {
    fn next_arrival(&mut self) -> Option<Duration> {
        // From the count rather than accumulated, so that rounding does not drift.
        let arrival = self.profile.time_of(self.position as f64);
        self.position += self.step;
        arrival
    }
}
