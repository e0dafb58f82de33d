//! Arrivals that are late by chance.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use crate::schedule::{Schedule, Share};

/// Shifts each arrival by a random time from zero to a bound, from a seed.
///
/// Arrivals that overtake one another are put in order again, so as many are held as come within the
/// bound.
#[derive(Debug)]
pub struct JitteredArrivals {
    inner: Box<dyn Schedule>,
    most: Duration,
    random: fastrand::Rng,
    /// The next arrival before its shift; `None` once there are no more.
    next: Option<Duration>,
    shifted: BinaryHeap<Reverse<Duration>>,
}

impl JitteredArrivals {
    /// The arrivals of `inner`, each later by up to `most`; the same seed gives the same arrivals.
    pub fn new(mut inner: Box<dyn Schedule>, most: Duration, share: Share, seed: u64) -> Self {
        Self {
            next: inner.next_arrival(),
            inner,
            most,
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
            let shift = self.most.mul_f64(self.random.f64());
            self.shifted.push(Reverse(next.saturating_add(shift)));
            self.next = self.inner.next_arrival();
        }
        self.shifted.pop().map(|arrival| arrival.0)
    }
}
