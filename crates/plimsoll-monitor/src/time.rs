//! Dates as the monitor stores them: whole milliseconds since 1970.

pub mod calendar;

pub mod go_duration;

use std::fmt;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

/// Milliseconds since 1970-01-01T00:00:00Z, without leap seconds.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// The date of a system clock; dates beyond the range of `i64` become its ends.
    pub fn from_system(time: SystemTime) -> Self {
        let millis = |duration: Duration| i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
        match time.duration_since(SystemTime::UNIX_EPOCH) {
            Ok(after) => Self(millis(after)),
            Err(error) => Self(-millis(error.duration())),
        }
    }

    /// Parses RFC 3339, such as `2026-03-01T12:00:00Z`; `None` for anything else.
    pub fn parse(text: &str) -> Option<Self> {
        let instant: jiff::Timestamp = text.trim().parse().ok()?;
        Some(Self(instant.as_millisecond()))
    }

    /// The date `duration` later.
    #[must_use]
    pub fn plus(self, duration: Duration) -> Self {
        let millis = i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
        Self(self.0.saturating_add(millis))
    }

    /// The date `duration` earlier.
    #[must_use]
    pub fn minus(self, duration: Duration) -> Self {
        let millis = i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
        Self(self.0.saturating_sub(millis))
    }

    /// How long after `earlier` it is; zero if it is not.
    pub fn since(self, earlier: Self) -> Duration {
        let millis = self.0.saturating_sub(earlier.0);
        Duration::from_millis(u64::try_from(millis).unwrap_or(0))
    }

    /// The start of the bucket of `millis` milliseconds that it is in.
    #[must_use]
    pub fn floor(self, millis: i64) -> Self {
        Self(self.0.div_euclid(millis) * millis)
    }

    /// As jiff has it; dates beyond its range become the epoch.
    pub fn to_jiff(self) -> jiff::Timestamp {
        jiff::Timestamp::from_millisecond(self.0).unwrap_or(jiff::Timestamp::UNIX_EPOCH)
    }
}

/// RFC 3339 in UTC.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.to_jiff(), f)
    }
}

/// The present by both clocks: timers follow the one that never steps, records carry the date.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moment {
    /// Since any fixed instant of this process, on a clock that never goes back.
    pub elapsed: Duration,
    /// The date, which may step.
    pub wall: Timestamp,
}

impl Moment {
    /// The moment `duration` later, if no clock steps.
    #[must_use]
    pub fn plus(self, duration: Duration) -> Self {
        Self {
            elapsed: self.elapsed + duration,
            wall: self.wall.plus(duration),
        }
    }

    /// A moment of the process that wrote `as_of`, on the clock of this one, which reads it at `now`. It is as long ago as it
    /// was then and the time since; a step of the date before `as_of` plays no part.
    #[must_use]
    pub fn carried_over(self, as_of: Self, now: Self) -> Self {
        let passed = as_of.elapsed + now.wall.since(as_of.wall);
        Self {
            elapsed: (now.elapsed + self.elapsed).saturating_sub(passed),
            wall: self.wall,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_as_long_ago_for_the_next_process() {
        let moment = |elapsed: u64, wall: i64| Moment {
            elapsed: Duration::from_secs(elapsed),
            wall: Timestamp(wall * 1_000),
        };
        // Written at 50, by a clock whose date was set by 900 since the moments; read 30 s later.
        let (as_of, now) = (moment(50, 1_000), moment(500, 1_030));
        let carried = |elapsed, wall| moment(elapsed, wall).carried_over(as_of, now);
        assert_eq!(carried(40, 90), moment(460, 90));
        assert_eq!(carried(55, 105), moment(475, 105), "one that is to come");
    }

    #[test]
    fn dates_are_written_and_parsed() {
        let date = Timestamp(1_772_366_400_123);
        assert_eq!(date.to_string(), "2026-03-01T12:00:00.123Z");
        assert_eq!(Timestamp::parse("2026-03-01T12:00:00.123Z"), Some(date));
        assert_eq!(
            Timestamp::parse("2026-03-01T14:00:00.123+02:00"),
            Some(date)
        );
        assert_eq!(Timestamp::parse("yesterday"), None);
    }

    #[test]
    fn buckets_begin_before_the_epoch_too() {
        assert_eq!(Timestamp(61_000).floor(60_000), Timestamp(60_000));
        assert_eq!(Timestamp(-1).floor(60_000), Timestamp(-60_000));
    }
}
