//! The rate of requests: the option `rps`.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Lets requests of all virtual users start at most so often.
#[derive(Debug)]
pub(crate) struct RequestRate {
    /// Between two requests; zero for no limit.
    interval: Duration,
    since: Instant,
    /// When the next request may start: nanoseconds behind `since`.
    next: AtomicU64,
}

impl RequestRate {
    /// - `per_second`: 0 for no limit.
    pub(crate) fn new(per_second: u32, since: Instant) -> Self {
        let interval = match per_second {
            0 => Duration::ZERO,
            rate => Duration::from_secs(1) / rate,
        };
        Self {
            interval,
            since,
            next: AtomicU64::new(0),
        }
    }

    /// When a request that is to start now may; `None` for at once. Its turn is taken.
    pub(crate) fn turn(&self, now: Instant) -> Option<Instant> {
        if self.interval.is_zero() {
            return None;
        }
        let nanos = |duration: Duration| u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        let passed = nanos(now.saturating_duration_since(self.since));
        let interval = nanos(self.interval);
        let taken = self
            .next
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |next| {
                Some(next.max(passed).saturating_add(interval))
            });
        let turn = taken.unwrap_or(passed).max(passed);
        (turn > passed).then(|| self.since + Duration::from_nanos(turn))
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_model::Clock as _;
    use plimsoll_wire::SystemClock;

    use super::*;

    #[test]
    fn requests_take_turns_at_a_rate() {
        let start = SystemClock.now();
        let rate = RequestRate::new(10, start);
        let at = |millis: u64| start + Duration::from_millis(millis);
        assert_eq!(rate.turn(at(0)), None);
        assert_eq!(rate.turn(at(0)), Some(at(100)));
        assert_eq!(rate.turn(at(50)), Some(at(200)));
        // A pause is not made up for.
        assert_eq!(rate.turn(at(1000)), None);
        assert_eq!(rate.turn(at(1000)), Some(at(1100)));
        assert_eq!(RequestRate::new(0, start).turn(at(0)), None);
    }
}
