//! Arrivals of users who do not know of one another.

use std::time::Duration;

use crate::schedule::{RateProfile, Schedule, Share};

/// A Poisson process along a profile, from a seed.
///
/// Each share is a process of its own at its part of the rate; together they are one at the whole
/// rate (superposition). Varying rates stretch time: an arrival at position x of a process of rate
/// one comes when x arrivals are due by the profile.
///
/// Source: Lewis and Shedler, "Simulation of nonhomogeneous Poisson processes by thinning" (1979),
/// section 1 (time-scale transformation).
#[derive(Debug, Clone)]
pub struct PoissonArrivals {
    profile: RateProfile,
    position: f64,
    mean_gap: f64,
    random: fastrand::Rng,
}

impl PoissonArrivals {
    /// The `share` of arrivals along `profile`; the same seed gives the same arrivals.
    pub fn new(profile: RateProfile, share: Share, seed: u64) -> Self {
        Self {
            profile,
            position: 0.0,
            mean_gap: f64::from(share.of),
            random: fastrand::Rng::with_seed(seed ^ (u64::from(share.index) << 32)),
        }
    }
}

impl Schedule for PoissonArrivals {
    fn next_arrival(&mut self) -> Option<Duration> {
        // 1 − u is in (0, 1], whose logarithm is finite.
        let gap = -(1.0 - self.random.f64()).ln() * self.mean_gap;
        self.position += gap;
        self.profile.time_of(self.position)
    }
}
