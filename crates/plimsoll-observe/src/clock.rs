//! The clock of another machine, by the times of requests to it.
//!
//! A request that is sent at s and answered at r has read the other clock in between. If the clock showed c, it was c at
//! some time from s to r, so the middle of both is wrong by half of the round trip at most (NTP's estimate, RFC 5905,
//! section 8). The smallest round trip gives the best estimate; as clocks run apart, an old one loses against a newer one.

use std::time::{Duration, Instant};

/// By how much clocks may run apart: more than the crystals of computers do, in parts per million.
const DRIFT_PPM: u32 = 100;

/// A clock that shows time since an origin of its own, aligned with that of this machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ClockAlignment {
    best: Option<Estimate>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Estimate {
    /// Here.
    at: Instant,
    /// There, at the same time.
    shown: Duration,
    /// By how much these may be apart.
    error: Duration,
}

impl Estimate {
    /// Its error at another time.
    fn error_at(&self, now: Instant) -> Duration {
        let passed = now
            .saturating_duration_since(self.at)
            .max(self.at.saturating_duration_since(now));
        self.error + passed * DRIFT_PPM / 1_000_000
    }
}

impl ClockAlignment {
    /// Takes note of a request.
    ///
    /// - `sent`, `received`: the times here of the request and its response.
    /// - `shown`: the clock there in between.
    pub(crate) fn observe(&mut self, sent: Instant, received: Instant, shown: Duration) {
        let error = received.saturating_duration_since(sent) / 2;
        let estimate = Estimate {
            at: sent + error,
            shown,
            error,
        };
        let is_better = |best: &Estimate| error <= best.error_at(received);
        if self.best.as_ref().is_none_or(is_better) {
            self.best = Some(estimate);
        }
    }

    /// The time here at which the clock there shows `shown`; `None` before any request.
    pub(crate) fn here(&self, shown: Duration) -> Option<Instant> {
        let best = self.best?;
        if shown >= best.shown {
            best.at.checked_add(shown.saturating_sub(best.shown))
        } else {
            best.at.checked_sub(best.shown.saturating_sub(shown))
        }
    }

    /// By how much times may be wrong at `now`.
    pub(crate) fn error(&self, now: Instant) -> Option<Duration> {
        self.best.map(|best| best.error_at(now))
    }

    /// Forgets everything: the clock has started anew.
    pub(crate) fn reset(&mut self) {
        self.best = None;
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_model::Clock;
    use plimsoll_testkit::VirtualClock;
    use proptest::prelude::*;

    use super::*;

    fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn the_smallest_round_trip_is_believed() {
        let start = VirtualClock::new().now();
        let mut clock = ClockAlignment::default();
        assert_eq!((clock.here(millis(1)), clock.error(start)), (None, None));
        // The clock there shows one second more; the first way back took 80 ms longer.
        clock.observe(start, start + millis(100), millis(1_010));
        assert_eq!(clock.here(millis(1_050)), Some(start + millis(90)));
        clock.observe(start + millis(200), start + millis(210), millis(1_205));
        assert_eq!(clock.here(millis(1_205)), Some(start + millis(205)));
        assert_eq!(clock.error(start + millis(210)).unwrap().as_millis(), 5);
        // A slow answer changes nothing.
        clock.observe(start + millis(300), start + millis(400), millis(1_301));
        assert_eq!(clock.here(millis(1_205)), Some(start + millis(205)));
        assert_eq!(clock.here(millis(1_000)), Some(start));
    }

    #[test]
    fn an_old_estimate_gives_way() {
        let start = VirtualClock::new().now();
        let mut clock = ClockAlignment::default();
        clock.observe(start, start + millis(2), millis(501));
        // In an hour clocks may have run apart by 360 ms.
        let later = start + Duration::from_hours(1);
        assert_eq!(clock.error(later).unwrap().as_millis(), 360);
        let shown = Duration::from_hours(1) + millis(700);
        clock.observe(later, later + millis(20), shown);
        assert_eq!(clock.here(shown), Some(later + millis(10)));
        clock.reset();
        assert_eq!(clock.here(shown), None);
    }

    proptest! {
        /// However long both ways take, the true time lies within the error.
        #[test]
        fn the_error_holds(
            offset in 0_u64..10_000_000,
            trips in prop::collection::vec((1_u64..50_000, 0_u64..50_000, 0_u64..50_000), 1..40),
        ) {
            let start = VirtualClock::new().now();
            let micros = Duration::from_micros;
            let mut clock = ClockAlignment::default();
            let mut now = 0;
            for (pause, out, back) in trips {
                let sent = now + pause;
                now = sent + out + back;
                clock.observe(start + micros(sent), start + micros(now), micros(sent + out + offset));
                let found = clock.here(micros(now + offset)).unwrap();
                let truth = start + micros(now);
                let wrong = found.max(truth).saturating_duration_since(found.min(truth));
                prop_assert!(wrong <= clock.error(truth).unwrap());
            }
        }
    }
}
