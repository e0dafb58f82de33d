//! Dates as the monitor stores them: whole milliseconds since 1970.

use std::fmt;
use std::time::{Duration, SystemTime};

/// Milliseconds since 1970-01-01T00:00:00Z, without leap seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// The date of a system clock; dates beyond the range of `i64` become its ends.
    pub fn of(time: SystemTime) -> Self {
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
    pub(crate) fn to_jiff(self) -> jiff::Timestamp {
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
}

#[cfg(test)]
mod tests {
    use super::*;

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
