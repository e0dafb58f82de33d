//! The clocks of the engine, and what happens to them: the machine sleeps, the process stands still, the date is set.

use std::cell::Cell;
use std::time::{Duration, Instant};

use plimsoll_model::Clock;
use plimsoll_wire::SystemClock;

use crate::time::Timestamp;

/// The clocks that the engine reads.
pub(crate) trait EngineClock: Clock {
    /// Time since some moment that also passes while the machine is suspended (`CLOCK_BOOTTIME`).
    fn boot(&self) -> Duration;
}

impl EngineClock for SystemClock {
    fn boot(&self) -> Duration {
        Self::boot(*self)
    }
}

/// A process that did not run for so long has seen nothing.
const STALL: Duration = Duration::from_secs(5);

/// A date that is off by more was set; by less, the clock is being adjusted.
const STEP: Duration = Duration::from_secs(1);

/// Something that happened between two looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Break {
    /// Nothing ran between two dates.
    Absent {
        /// Since when.
        from: Timestamp,
        /// Until when.
        to: Timestamp,
    },
    /// The date was set forward: the dates in between never were.
    SetForward {
        /// The date before.
        from: Timestamp,
        /// The date after.
        to: Timestamp,
    },
    /// The date was set back.
    SetBack {
        /// The date before.
        from: Timestamp,
        /// The date after.
        to: Timestamp,
    },
}

/// Compares the clocks of one look with those of the next.
#[derive(Debug)]
pub(crate) struct ClockWatch(Cell<(Duration, Timestamp)>);

impl ClockWatch {
    pub(crate) fn new(clock: &dyn EngineClock) -> Self {
        Self(Cell::new(read(clock)))
    }

    /// What happened since the last look. It must come every second.
    pub(crate) fn look(&self, clock: &dyn EngineClock) -> Option<Break> {
        let (boot, wall) = read(clock);
        let (last_boot, last_wall) = self.0.replace((boot, wall));
        let passed = boot.saturating_sub(last_boot);
        let expected = last_wall.plus(passed);
        if expected.since(wall) > STEP {
            // Whatever passed before the date was set cannot be shown on it.
            return Some(Break::SetBack {
                from: expected,
                to: wall,
            });
        }
        if passed > STALL {
            return Some(Break::Absent {
                from: last_wall,
                to: wall,
            });
        }
        (wall.since(expected) > STEP).then_some(Break::SetForward {
            from: expected,
            to: wall,
        })
    }
}

fn read(clock: &dyn EngineClock) -> (Duration, Timestamp) {
    (clock.boot(), Timestamp::from_system(clock.wall()))
}

/// The start of the monotonic clock of moments: so long ago that what another process remembers lies behind it.
pub(crate) fn origin(now: Instant) -> Instant {
    const BEFORE: Duration = Duration::from_hours(400 * 24);

    now.checked_sub(BEFORE).unwrap_or(now)
}

#[cfg(test)]
pub(crate) mod tests {
    use std::rc::Rc;
    use std::time::SystemTime;

    use plimsoll_testkit::VirtualClock;

    use super::*;

    /// Clocks that move as a test moves them.
    #[derive(Debug, Clone, Default)]
    pub(crate) struct Clocks {
        steady: VirtualClock,
        /// Time asleep, and milliseconds by which the date is off.
        off: Rc<Cell<(Duration, i64)>>,
    }

    impl Clocks {
        pub(crate) fn advance(&self, by: Duration) {
            self.steady.advance(by);
        }

        pub(crate) fn sleep(&self, by: Duration) {
            let (asleep, set) = self.off.get();
            self.off.set((asleep + by, set));
        }

        pub(crate) fn set(&self, millis: i64) {
            let (asleep, set) = self.off.get();
            self.off.set((asleep, set + millis));
        }
    }

    /// The date at which it begins.
    const START: Duration = Duration::from_secs(1_000_000_000);

    impl Clock for Clocks {
        fn now(&self) -> Instant {
            self.steady.now()
        }

        fn wall(&self) -> SystemTime {
            let (asleep, set) = self.off.get();
            let wall = self.steady.wall() + START + asleep;
            let by = Duration::from_millis(set.unsigned_abs());
            if set < 0 { wall - by } else { wall + by }
        }
    }

    impl EngineClock for Clocks {
        fn boot(&self) -> Duration {
            self.steady.passed() + self.off.get().0
        }
    }

    #[test]
    fn sleep_and_set_dates_are_told_apart() {
        let clocks = Clocks::default();
        let watch = ClockWatch::new(&clocks);
        let start = Timestamp::from_system(clocks.wall());
        let at = |seconds: i64| Timestamp(start.0 + seconds * 1_000);
        clocks.advance(Duration::from_secs(1));
        clocks.set(300);
        assert_eq!(watch.look(&clocks), None, "an adjustment is no step");
        clocks.set(-300);
        assert_eq!(watch.look(&clocks), None);
        clocks.advance(Duration::from_secs(1));
        clocks.sleep(Duration::from_mins(1));
        let slept = Break::Absent {
            from: at(1),
            to: at(62),
        };
        assert_eq!(watch.look(&clocks), Some(slept));
        clocks.advance(Duration::from_secs(1));
        clocks.set(3_600_000);
        let set = Break::SetForward {
            from: at(63),
            to: at(3_663),
        };
        assert_eq!(watch.look(&clocks), Some(set));
        clocks.advance(Duration::from_secs(1));
        clocks.set(-3_600_000);
        let set = Break::SetBack {
            from: at(3_664),
            to: at(64),
        };
        assert_eq!(watch.look(&clocks), Some(set));
        assert_eq!(watch.look(&clocks), None);
    }
}
