//! The beginnings of hours, days, months and years, by the names that WireMock gives them.

use std::time::SystemTime;

use jiff::civil::Time;
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp, Zoned};

/// The point that a time is moved to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Truncation {
    Minute,
    Hour,
    Day,
    Month,
    NextMonth,
    LastDayOfMonth,
    Year,
    NextYear,
    LastDayOfYear,
}

/// There is no truncation of a name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is none of: {names}", names = NAMES.map(|(name, _)| name).join(", "))]
pub(crate) struct TruncationError(String);

const NAMES: [(&str, Truncation); 9] = [
    ("first second of minute", Truncation::Minute),
    ("first minute of hour", Truncation::Hour),
    ("first hour of day", Truncation::Day),
    ("first day of month", Truncation::Month),
    ("first day of next month", Truncation::NextMonth),
    ("last day of month", Truncation::LastDayOfMonth),
    ("first day of year", Truncation::Year),
    ("first day of next year", Truncation::NextYear),
    ("last day of year", Truncation::LastDayOfYear),
];

impl Truncation {
    /// The one of a name such as `first day of month`; fails with the names that there are.
    pub(crate) fn named(name: &str) -> Result<Self, TruncationError> {
        let wanted = name.replace('_', " ").to_ascii_lowercase();
        let known = NAMES.iter().find(|(known, _)| *known == wanted);
        known
            .map(|(_, truncation)| *truncation)
            .ok_or_else(|| TruncationError(name.to_owned()))
    }

    /// Moves a time, in its own zone; absent beyond all dates.
    pub(crate) fn truncated(self, time: &Zoned) -> Option<Zoned> {
        let now = time.datetime();
        let (day, clock) = (now.date(), now.time());
        let midnight = Time::midnight();
        let (day, clock) = match self {
            Self::Minute => (day, Time::new(clock.hour(), clock.minute(), 0, 0).ok()?),
            Self::Hour => (day, Time::new(clock.hour(), 0, 0, 0).ok()?),
            Self::Day => (day, midnight),
            Self::Month => (day.first_of_month(), midnight),
            Self::NextMonth => {
                let next = day.first_of_month().checked_add(Span::new().months(1));
                (next.ok()?, midnight)
            }
            Self::LastDayOfMonth => (day.last_of_month(), midnight),
            Self::Year => (day.first_of_year(), midnight),
            Self::NextYear => {
                let next = day.first_of_year().checked_add(Span::new().years(1));
                (next.ok()?, midnight)
            }
            Self::LastDayOfYear => (day.last_of_year(), midnight),
        };
        day.to_datetime(clock)
            .to_zoned(time.time_zone().clone())
            .ok()
    }

    /// Moves a time of the system's clock, in UTC.
    pub(crate) fn of_system_time(self, time: SystemTime) -> Option<SystemTime> {
        let time = Timestamp::try_from(time).ok()?.to_zoned(TimeZone::UTC);
        Some(super::system_time(&self.truncated(&time)?))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{iso, parsed};
    use super::*;

    #[test]
    fn times_are_moved_to_beginnings() {
        let time = parsed("2026-12-31T23:05:09.5Z").unwrap();
        let expected = [
            "2026-12-31T23:05:00Z",
            "2026-12-31T23:00:00Z",
            "2026-12-31T00:00:00Z",
            "2026-12-01T00:00:00Z",
            "2027-01-01T00:00:00Z",
            "2026-12-31T00:00:00Z",
            "2026-01-01T00:00:00Z",
            "2027-01-01T00:00:00Z",
            "2026-12-31T00:00:00Z",
        ];
        for ((name, _), expected) in NAMES.iter().zip(expected) {
            let truncation = Truncation::named(&name.to_uppercase()).unwrap();
            assert_eq!(
                iso(&truncation.truncated(&time).unwrap()).unwrap(),
                expected,
                "{name}"
            );
        }
        assert!(Truncation::named("first day").is_err());
    }
}
