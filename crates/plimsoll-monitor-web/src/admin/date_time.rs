//! Dates and times as browsers' fields send them (`2026-03-01T22:00`), read in a zone.

use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone};
use plimsoll_monitor::time::Timestamp;

/// Why a typed time is none.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum DateTimeError {
    #[error("write a date and a time")]
    Missing,
    #[error("`{0}` is not a date and a time such as 2026-03-01T22:00")]
    Shape(String),
    #[error("there is no time zone `{0}`; write one such as Europe/Berlin, or UTC")]
    Zone(String),
    /// Clocks are put forward over it.
    #[error(
        "{time} does not exist in {zone}: clocks are put forward over it; choose an earlier or a later time"
    )]
    Gap {
        /// Hours and minutes.
        time: String,
        /// The zone.
        zone: String,
    },
}

impl DateTimeError {
    /// Whether the field of the zone is wrong, not that of the time.
    pub(super) const fn is_about_zone(&self) -> bool {
        matches!(self, Self::Zone(_))
    }
}

/// The moment at which the clocks of a zone show a date and time. When they show it twice, as they are put back, the first one.
///
/// - `zone`: a name of the IANA database; empty for UTC.
pub(super) fn moment(typed: &str, zone: &str) -> Result<Timestamp, DateTimeError> {
    let name = if zone.is_empty() { "UTC" } else { zone };
    let zone = TimeZone::get(name).map_err(|_| DateTimeError::Zone(name.to_owned()))?;
    if typed.is_empty() {
        return Err(DateTimeError::Missing);
    }
    // A date of RFC 3339 has a zone of its own, and a civil one must not.
    let shape = || DateTimeError::Shape(typed.to_owned());
    let is_local = typed.len() >= 16 && !typed.contains(['Z', 'z', '+', '[']);
    let at: DateTime = typed.parse().ok().filter(|_| is_local).ok_or_else(shape)?;
    let ambiguous = zone.to_ambiguous_zoned(at);
    if let AmbiguousOffset::Gap { .. } = ambiguous.offset() {
        return Err(DateTimeError::Gap {
            time: at.strftime("%H:%M").to_string(),
            zone: name.to_owned(),
        });
    }
    let zoned = ambiguous.earlier().map_err(|_| shape())?;
    Ok(Timestamp(zoned.timestamp().as_millisecond()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_read_in_its_zone() {
        for (typed, zone, expected) in [
            ("2026-03-01T22:00", "", "2026-03-01T22:00:00Z"),
            ("2026-03-01T22:00", "UTC", "2026-03-01T22:00:00Z"),
            ("2026-03-01T22:00", "Europe/Berlin", "2026-03-01T21:00:00Z"),
            ("2026-07-01T22:00", "Europe/Berlin", "2026-07-01T20:00:00Z"),
            (
                "2026-07-01T22:00:30",
                "America/New_York",
                "2026-07-02T02:00:30Z",
            ),
            // Browsers send a space in place of the T to some forms.
            ("2026-07-01 22:00", "Asia/Tokyo", "2026-07-01T13:00:00Z"),
        ] {
            let found = moment(typed, zone).map(|at| at.to_string());
            assert_eq!(found, Ok(expected.to_owned()), "{typed} in {zone}");
        }
    }

    #[test]
    fn a_time_that_clocks_skip_is_refused_and_one_they_show_twice_is_the_first() {
        // On 29 March 2026 the clocks of Berlin go from 02:00 to 03:00, and on 25 October from 03:00 to 02:00.
        let berlin = |typed| moment(typed, "Europe/Berlin").map(|at| at.to_string());
        assert_eq!(
            berlin("2026-03-29T01:59"),
            Ok("2026-03-29T00:59:00Z".to_owned())
        );
        for typed in ["2026-03-29T02:00", "2026-03-29T02:59"] {
            let error = berlin(typed).unwrap_err();
            assert!(matches!(error, DateTimeError::Gap { .. }), "{error}");
            assert!(
                error
                    .to_string()
                    .contains("does not exist in Europe/Berlin"),
                "{error}"
            );
        }
        assert_eq!(
            berlin("2026-03-29T03:00"),
            Ok("2026-03-29T01:00:00Z".to_owned())
        );
        assert_eq!(
            berlin("2026-10-25T02:30"),
            Ok("2026-10-25T00:30:00Z".to_owned())
        );
        assert_eq!(
            berlin("2026-10-25T03:00"),
            Ok("2026-10-25T02:00:00Z".to_owned())
        );
    }

    #[test]
    fn what_is_no_time_says_so() {
        for typed in [
            "soon",
            "2026-03-01",
            "2026-03-01T22:00Z",
            "2026-13-01T22:00",
            "22:00",
        ] {
            assert_eq!(
                moment(typed, "UTC"),
                Err(DateTimeError::Shape(typed.to_owned()))
            );
        }
        assert_eq!(moment("", "UTC"), Err(DateTimeError::Missing));
        let error = moment("2026-03-01T22:00", "Berlin").unwrap_err();
        assert!(error.is_about_zone(), "{error}");
    }
}
