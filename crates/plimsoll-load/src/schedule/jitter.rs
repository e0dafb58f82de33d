//! Arrivals that are late by chance.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use crate::schedule::{Schedule, Share};

/// Shifts each arrival by a random time from zero to a bound, from a seed.
///
/// No arrival is shifted out of its stretch of the run (warm-up, measured window), so that each stretch
/// has as many as without the shifts.
///
/// Arrivals that overtake one another are put in order again, so as many are held as come within the
/// bound.
#[derive(Debug)]
pub struct JitteredArrivals {
    inner: Box<dyn Schedule>,
    most: Duration,
    /// The ends of the stretches, ascending.
    ends: Vec<Duration>,
    random: fastrand::Rng,
    /// The next arrival before its shift; `None` once there are no more.
    next: Option<Duration>,
    shifted: BinaryHeap<Reverse<Duration>>,
}

impl JitteredArrivals {
    /// The arrivals of `inner`, each later by up to `most`; the same seed gives the same arrivals.
    ///
    /// - `ends`: the ends of the stretches that arrivals stay within, ascending.
    pub fn new(
        mut inner: Box<dyn Schedule>,
        most: Duration,
        ends: Vec<Duration>,
        share: Share,
        seed: u64,
    ) -> Self {
        Self {
            next: inner.next_arrival(),
            inner,
            most,
            ends,
            // Not the numbers of a Poisson process with the same seed.
            random: fastrand::Rng::with_seed(!seed ^ (u64::from(share.index) << 32)),
            shifted: BinaryHeap::new(),
        }
    }
}

impl Schedule for JitteredArrivals {
    fn next_arrival(&mut self) -> Option<Duration> {
        // Whatever comes later is shifted to later still.
        while let Some(next) = self.next
            && self.shifted.peek().is_none_or(|first| next <= first.0)
        {
            let shifted = self.shifted_arrival(next);
            self.shifted.push(Reverse(shifted));
            self.next = self.inner.next_arrival();
        }
        self.shifted.pop().map(|arrival| arrival.0)
    }
}

impl JitteredArrivals {
    fn shifted_arrival(&mut self, arrival: Duration) -> Duration {
        let end = self.ends.iter().find(|end| **end > arrival);
        let room = end.map_or(self.most, |end| self.most.min(end.saturating_sub(arrival)));
        let shifted = arrival.saturating_add(room.mul_f64(self.random.f64()));
        // A product may be rounded up to the end, which is no part of the stretch.
        match end {
            Some(end) if shifted >= *end => arrival,
            _ => shifted,
        }
    }
}
