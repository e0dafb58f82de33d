//! Arrivals at the times of a log.

use std::sync::Arc;
use std::time::Duration;

use crate::schedule::{Schedule, Share};

/// Every worker takes each n-th entry of the log.
#[derive(Debug, Clone)]
pub struct RecordedArrivals {
    /// Offsets from the start of the run, in ascending order.
    times: Arc<[Duration]>,
    position: usize,
    step: usize,
}

impl RecordedArrivals {
    /// The `share` of arrivals at `times`, which ascend.
    pub fn new(times: Arc<[Duration]>, share: Share) -> Self {
        Self {
            times,
            position: share.index as usize,
            step: share.of as usize,
        }
    }
}

impl Schedule for RecordedArrivals {
    fn next_arrival(&mut self) -> Option<Duration> {
        let arrival = self.times.get(self.position).copied();
        self.position = self.position.saturating_add(self.step);
        arrival
    }
}
