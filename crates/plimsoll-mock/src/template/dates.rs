//! Dates: patterns of Java (and of date-fns, which has the same letters), offsets, time zones.

mod read;

mod truncation;

use std::fmt::Write as _;
use std::time::SystemTime;

use jiff::civil::Weekday;
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp, Zoned};
use plimsoll_model::Clock as _;
use plimsoll_wire::SystemClock;

pub(crate) use self::read::{is_pattern, parsed_by};
pub(crate) use self::truncation::{Truncation, TruncationError};

/// Why there is no date, or no text of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum DateError {
    #[error("there is no time zone `{0}`")]
    NoZone(String),
    #[error("`{0}` is no offset such as `3 days`")]
    NoOffset(String),
    #[error("`{0}` leads beyond all dates")]
    BeyondDates(String),
    #[error("`{0}` is no date such as 2026-01-31T12:00:00Z")]
    NoDate(String),
    #[error("`{letter}` of the date format `{pattern}` is not known here")]
    UnknownLetter {
        letter: char,
        /// The whole format.
        pattern: String,
    },
}

/// Now, in UTC.
pub(crate) fn now() -> Zoned {
    let wall = SystemClock.wall();
    let now = Timestamp::try_from(wall).unwrap_or(Timestamp::UNIX_EPOCH);
    now.to_zoned(TimeZone::UTC)
}

/// A time in another zone, such as `Europe/Berlin`, `UTC` or `GMT+1`.
pub(crate) fn in_zone(time: &Zoned, name: &str) -> Result<Zoned, DateError> {
    Ok(time.with_time_zone(zone(name)?))
}

fn zone(name: &str) -> Result<TimeZone, DateError> {
    match name {
        "Z" | "GMT" | "UTC" => Ok(TimeZone::UTC),
        name => TimeZone::get(name).map_err(|_| DateError::NoZone(name.to_owned())),
    }
}

/// A time moved by an offset such as `3 days` or `-24 seconds`.
pub(crate) fn moved(time: &Zoned, offset: &str) -> Result<Zoned, DateError> {
    let wrong = || DateError::NoOffset(offset.to_owned());
    let mut words = offset.split_whitespace();
    let count: i64 = words
        .next()
        .and_then(|it| it.trim_start_matches('+').parse().ok())
        .ok_or_else(wrong)?;
    let span = span(count, words.next().ok_or_else(wrong)?).ok_or_else(wrong)?;
    time.checked_add(span)
        .map_err(|_| DateError::BeyondDates(offset.to_owned()))
}

/// So many of a unit, such as `days`.
pub(crate) fn span(count: i64, unit: &str) -> Option<Span> {
    let unit = unit.trim_end_matches('s').to_ascii_lowercase();
    let span = Span::new();
    match unit.as_str() {
        "year" => span.try_years(count),
        "month" => span.try_months(count),
        "week" => span.try_weeks(count),
        "day" => span.try_days(count),
        "hour" => span.try_hours(count),
        "minute" => span.try_minutes(count),
        "second" => span.try_seconds(count),
        _ => return None,
    }
    .ok()
}

/// As JavaScript writes a date in a text (ECMAScript 2025, section 21.4.4.41), in UTC.
pub(crate) const OF_JAVASCRIPT: &str =
    "EEE MMM dd yyyy HH:mm:ss 'GMT+0000 (Coordinated Universal Time)'";

/// A date in a text, as JavaScript writes it, by RFC 3339, by RFC 9557, or a day alone.
pub(crate) fn parsed(text: &str) -> Result<Zoned, DateError> {
    let wrong = || DateError::NoDate(text.to_owned());
    if let Ok(time) = text.parse::<Timestamp>() {
        return Ok(time.to_zoned(TimeZone::UTC));
    }
    if let Some(before) = text.strip_suffix(" GMT+0000 (Coordinated Universal Time)") {
        let time = jiff::civil::DateTime::strptime("%a %b %d %Y %H:%M:%S", before);
        let time = time.map_err(|_| wrong())?;
        return time.to_zoned(TimeZone::UTC).map_err(|_| wrong());
    }
    let civil = text.parse::<jiff::civil::DateTime>().or_else(|_| {
        text.parse::<jiff::civil::Date>()
            .map(|day| day.at(0, 0, 0, 0))
    });
    let civil = civil.map_err(|_| wrong())?;
    civil.to_zoned(TimeZone::UTC).map_err(|_| wrong())
}

/// As WireMock writes dates without a format: `2026-01-31T12:00:00Z`.
pub(crate) fn iso(time: &Zoned) -> Result<String, DateError> {
    formatted(time, "yyyy-MM-dd'T'HH:mm:ssXXX")
}

/// A time by a pattern of Java's `SimpleDateFormat`, or `epoch` (milliseconds) or `unix` (seconds).
pub(crate) fn formatted(time: &Zoned, pattern: &str) -> Result<String, DateError> {
    match pattern {
        "epoch" => return Ok(time.timestamp().as_millisecond().to_string()),
        "unix" => return Ok(time.timestamp().as_second().to_string()),
        _ => {}
    }
    let mut text = String::new();
    for piece in pieces(pattern) {
        match piece {
            PatternPart::Text(literal) => text.push_str(&literal),
            PatternPart::Field(letter, count) => {
                push(&mut text, time, letter, count).ok_or_else(|| DateError::UnknownLetter {
                    letter,
                    pattern: pattern.to_owned(),
                })?;
            }
        }
    }
    Ok(text)
}

/// A part of a pattern.
enum PatternPart {
    Text(String),
    /// A letter and how often it stands there.
    Field(char, usize),
}

fn pieces(pattern: &str) -> Vec<PatternPart> {
    let mut pieces = Vec::new();
    let mut text = String::new();
    let mut letters = pattern.chars().peekable();
    while let Some(letter) = letters.next() {
        if letter == '\'' {
            // Two quotes are one.
            if letters.next_if_eq(&'\'').is_some() {
                text.push('\'');
                continue;
            }
            while let Some(inner) = letters.next() {
                if inner == '\'' && letters.next_if_eq(&'\'').is_none() {
                    break;
                }
                text.push(inner);
            }
            continue;
        }
        if !letter.is_ascii_alphabetic() {
            text.push(letter);
            continue;
        }
        if !text.is_empty() {
            pieces.push(PatternPart::Text(std::mem::take(&mut text)));
        }
        let mut count = 1;
        while letters.next_if_eq(&letter).is_some() {
            count += 1;
        }
        pieces.push(PatternPart::Field(letter, count));
    }
    if !text.is_empty() {
        pieces.push(PatternPart::Text(text));
    }
    pieces
}

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

fn push(text: &mut String, time: &Zoned, letter: char, count: usize) -> Option<()> {
    let number = |text: &mut String, number: i64| {
        write!(text, "{number:0count$}").expect("texts take everything");
    };
    let twelve = match time.hour() % 12 {
        0 => 12,
        hour => hour,
    };
    match letter {
        'y' | 'u' if count == 2 => {
            write!(text, "{:02}", time.year().rem_euclid(100)).expect("texts take everything");
        }
        'y' | 'u' => number(text, time.year().into()),
        'M' | 'L' if count >= 3 => {
            let month = usize::try_from(time.month() - 1).ok()?;
            let name = MONTHS.get(month)?;
            text.push_str(if count == 3 { name.get(..3)? } else { name });
        }
        'M' | 'L' => number(text, time.month().into()),
        'd' => number(text, time.day().into()),
        'D' => number(text, time.day_of_year().into()),
        'H' => number(text, time.hour().into()),
        'h' => number(text, twelve.into()),
        'm' => number(text, time.minute().into()),
        's' => number(text, time.second().into()),
        'S' => {
            let nanoseconds = format!("{:09}", time.subsec_nanosecond());
            text.push_str(nanoseconds.get(..count.min(9))?);
        }
        'a' => text.push_str(if time.hour() < 12 { "AM" } else { "PM" }),
        'E' => {
            let name = weekday(time.weekday());
            text.push_str(if count <= 3 { name.get(..3)? } else { name });
        }
        'z' | 'V' => match time.time_zone().iana_name() {
            Some("UTC") | None => text.push_str("UTC"),
            Some(name) => text.push_str(name),
        },
        'Z' => text.push_str(&offset(time, false)),
        'X' | 'x' if time.offset().seconds() == 0 && letter == 'X' => text.push('Z'),
        'X' | 'x' => {
            let offset = offset(time, count >= 3);
            text.push_str(if count == 1 {
                offset.get(..3)?
            } else {
                &offset
            });
        }
        _ => return None,
    }
    Some(())
}

fn offset(time: &Zoned, has_colon: bool) -> String {
    let seconds = time.offset().seconds();
    let sign = if seconds < 0 { '-' } else { '+' };
    let minutes = seconds.unsigned_abs() / 60;
    let colon = if has_colon { ":" } else { "" };
    format!("{sign}{:02}{colon}{:02}", minutes / 60, minutes % 60)
}

const fn weekday(day: Weekday) -> &'static str {
    match day {
        Weekday::Monday => "Monday",
        Weekday::Tuesday => "Tuesday",
        Weekday::Wednesday => "Wednesday",
        Weekday::Thursday => "Thursday",
        Weekday::Friday => "Friday",
        Weekday::Saturday => "Saturday",
        Weekday::Sunday => "Sunday",
    }
}

/// A time as the system's clock has it.
pub(crate) fn system_time(time: &Zoned) -> SystemTime {
    time.timestamp().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_moved_and_written_by_patterns() {
        let time = parsed("2026-01-31T23:05:09.123Z").unwrap();
        for (pattern, expected) in [
            ("yyyy-MM-dd HH:mm:ss.SSS", "2026-01-31 23:05:09.123"),
            ("EEE, d MMM yy", "Sat, 31 Jan 26"),
            (
                "EEEE d MMMM, h 'o''clock' a",
                "Saturday 31 January, 11 o'clock PM",
            ),
            ("yyyy-MM-dd'T'HH:mm:ssXXX", "2026-01-31T23:05:09Z"),
            ("epoch", "1769900709123"),
            ("unix", "1769900709"),
        ] {
            assert_eq!(formatted(&time, pattern).unwrap(), expected, "{pattern}");
        }
        assert!(formatted(&time, "yyyy-q").is_err());
        let berlin = in_zone(&time, "Europe/Berlin").unwrap();
        assert_eq!(
            formatted(&berlin, "HH:mm Z XXX z").unwrap(),
            "00:05 +0100 +01:00 Europe/Berlin"
        );
        assert_eq!(
            iso(&moved(&time, "1 months").unwrap()).unwrap(),
            "2026-02-28T23:05:09Z"
        );
        assert_eq!(
            iso(&moved(&time, "-3 days").unwrap()).unwrap(),
            "2026-01-28T23:05:09Z"
        );
        assert!(moved(&time, "soon").is_err() && in_zone(&time, "Nowhere").is_err());
        assert_eq!(
            iso(&parsed("2026-01-31").unwrap()).unwrap(),
            "2026-01-31T00:00:00Z"
        );
    }
}
