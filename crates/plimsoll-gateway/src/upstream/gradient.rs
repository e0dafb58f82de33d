//! A limit on requests in flight that follows latency. Pure.
//!
//! As long as responses take as long as usual, the limit grows; once they take longer, requests queue in the servers, and
//! the limit shrinks by the ratio.
//!
//! Source: the algorithm "Gradient2" of Netflix's concurrency-limits.

use std::time::{Duration, Instant};

/// Between which numbers a limit moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bounds {
    pub(crate) least: u32,
    pub(crate) most: u32,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            least: 4,
            most: 1000,
        }
    }
}

/// The limit of one worker for one upstream.
#[derive(Debug, Clone)]
pub(crate) struct Gradient {
    bounds: Bounds,
    limit: f64,
    /// The moving average of latency over a long time, in seconds.
    usual: Option<f64>,
    /// Latencies since the last change: their sum in seconds, and how many.
    recent: (f64, u32),
    /// The most requests in flight since the last change.
    peak: u32,
    changed: Option<Instant>,
}

/// Requests that may queue in the servers before the limit shrinks.
const QUEUED: f64 = 4.0;

/// How much longer than usual responses may take.
const TOLERANCE: f64 = 1.5;

/// How much of a new limit counts at once.
const SMOOTHING: f64 = 0.2;

/// The share by which a request without a response lowers the limit.
const BACKOFF: f64 = 0.9;

/// How often the limit changes at most, and after how many responses.
const INTERVAL: Duration = Duration::from_millis(100);
const SAMPLES: u32 = 10;

/// How slowly the usual latency follows: the weight of one change.
const WEIGHT: f64 = 1.0 / 60.0;

impl Gradient {
    pub(crate) fn new(bounds: Bounds) -> Self {
        Self {
            bounds,
            limit: f64::from(bounds.least.max(20).min(bounds.most)),
            usual: None,
            recent: (0.0, 0),
            peak: 0,
            changed: None,
        }
    }

    /// Requests that may be in flight.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the limit lies between its bounds, which are u32"
    )]
    pub(crate) fn limit(&self) -> u32 {
        self.limit as u32
    }

    /// A response came.
    ///
    /// - `in_flight`: requests at that time, this one among them.
    pub(crate) fn responded(&mut self, took: Duration, in_flight: u32, now: Instant) {
        self.recent.0 += took.as_secs_f64();
        self.recent.1 += 1;
        self.peak = self.peak.max(in_flight);
        let changed = *self.changed.get_or_insert(now);
        let is_due = now.saturating_duration_since(changed) >= INTERVAL && self.recent.1 >= SAMPLES;
        if is_due {
            self.change();
            self.changed = Some(now);
        }
    }

    /// A request had no response in time, or none at all.
    pub(crate) fn failed(&mut self) {
        self.set(self.limit * BACKOFF);
    }

    fn change(&mut self) {
        let recent = self.recent.0 / f64::from(self.recent.1.max(1));
        let usual = self
            .usual
            .map_or(recent, |usual| usual + (recent - usual) * WEIGHT);
        // Once the servers have recovered, a long average that remembers the bad time would allow too much.
        let usual = if usual > 2.0 * recent {
            usual * 0.95
        } else {
            usual
        };
        self.usual = Some(usual);
        let peak = f64::from(std::mem::take(&mut self.peak));
        self.recent = (0.0, 0);
        // Without enough requests nothing is known of a higher limit.
        if peak < self.limit / 2.0 {
            return;
        }
        let gradient = (TOLERANCE * usual / recent.max(1e-9)).clamp(0.5, 1.0);
        let wanted = self.limit * gradient + QUEUED;
        self.set(self.limit * (1.0 - SMOOTHING) + wanted * SMOOTHING);
    }

    fn set(&mut self, limit: f64) {
        let (least, most) = (self.bounds.least, self.bounds.most);
        self.limit = limit.clamp(f64::from(least), f64::from(most.max(least)));
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_model::Clock as _;

    use super::*;

    /// A server that processes `capacity` requests at a time, each in 10 ms; more of them wait.
    fn settle(gradient: &mut Gradient, capacity: f64, from: u64) -> u32 {
        let start = plimsoll_testkit::VirtualClock::new().now();
        for step in 0..2_000 {
            let in_flight = gradient.limit();
            let took = 0.01 * (f64::from(in_flight) / capacity).max(1.0);
            let now = start + Duration::from_millis((from + step) * 20);
            gradient.responded(Duration::from_secs_f64(took), in_flight, now);
        }
        gradient.limit()
    }

    #[test]
    fn the_limit_settles_somewhat_above_what_the_servers_can_do() {
        let mut gradient = Gradient::new(Bounds::default());
        // Until it knows them slower, the latency without a queue is the usual one.
        settle(&mut gradient, 1000.0, 0);
        let limit = settle(&mut gradient, 50.0, 2_000);
        assert!((40..400).contains(&limit), "{limit}");
    }

    #[test]
    fn the_limit_grows_only_where_it_is_used_and_stays_within_its_bounds() {
        let bounds = Bounds { least: 2, most: 40 };
        let start = plimsoll_testkit::VirtualClock::new().now();
        let mut gradient = Gradient::new(bounds);
        let before = gradient.limit();
        for step in 0..1_000 {
            let now = start + Duration::from_millis(step * 20);
            gradient.responded(Duration::from_millis(10), 1, now);
        }
        assert_eq!(gradient.limit(), before);
        assert_eq!(settle(&mut gradient, 1000.0, 1_000), 40);
        for _ in 0..100 {
            gradient.failed();
        }
        assert_eq!(gradient.limit(), 2);
    }
}
