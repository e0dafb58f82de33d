//! Several arrivals at once.

use std::num::NonZeroU32;
use std::time::Duration;

use crate::schedule::{Schedule, Share};

/// Every burst is shared among the workers; the mean rate is that of the profile.
#[derive(Debug)]
pub struct BurstArrivals {
    bursts: Box<dyn Schedule>,
    size: u64,
    /// Position of the next arrival among those of all workers.
    position: u64,
    step: u64,
    /// How many bursts were taken from the schedule, and when the last of them comes.
    taken: u64,
    at: Duration,
}

impl BurstArrivals {
    /// The `share` of arrivals that come `size` at once.
    ///
    /// - `bursts`: when bursts come, the same for every share; [`BurstArrivals::of_bursts`] is the
    ///   share of the profile's arrivals that begin one.
    pub fn new(bursts: Box<dyn Schedule>, size: NonZeroU32, share: Share) -> Self {
        Self {
            bursts,
            size: size.get().into(),
            position: share.index.into(),
            step: share.of.into(),
            taken: 0,
            at: Duration::ZERO,
        }
    }

    /// The share of all arrivals that begin a burst of `size`.
    pub fn of_bursts(size: NonZeroU32) -> Share {
        Share {
            index: 0,
            of: size.get(),
        }
    }
}

impl Schedule for BurstArrivals {
    fn next_arrival(&mut self) -> Option<Duration> {
        let burst = self.position / self.size;
        while self.taken <= burst {
            self.at = self.bursts.next_arrival()?;
            self.taken += 1;
        }
        self.position += self.step;
        Some(self.at)
    }
}
