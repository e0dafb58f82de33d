//! Texts read by patterns of Java.

use std::iter::Peekable;
use std::slice::Iter;

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::{Offset, TimeZone};
use jiff::{Timestamp, Zoned};

use super::{MONTHS, PatternPart, pieces};

/// Whether texts can be read by a pattern.
pub(crate) fn is_pattern(pattern: &str) -> bool {
    let is_known = |piece: &PatternPart| match piece {
        PatternPart::Text(_) => true,
        PatternPart::Field(letter, _) => "yuMLdHhmsSaEzVZXx".contains(*letter),
    };
    matches!(pattern, "epoch" | "unix") || pieces(pattern).iter().all(is_known)
}

/// A time in a text by a pattern of Java's `SimpleDateFormat`, or `epoch` (milliseconds) or `unix` (seconds); absent if the
/// text does not follow it. Without an offset it is UTC.
pub(crate) fn parsed_by(text: &str, pattern: &str) -> Option<Zoned> {
    let text = text.trim();
    let timestamp = match pattern {
        "epoch" => Timestamp::from_millisecond(text.parse().ok()?).ok()?,
        "unix" => Timestamp::from_second(text.parse().ok()?).ok()?,
        pattern => {
            let mut found = ParsedDate::default();
            let pieces = pieces(pattern);
            let mut pieces = pieces.iter().peekable();
            let mut rest = text;
            while let Some(piece) = pieces.next() {
                rest = match piece {
                    PatternPart::Text(literal) => rest.strip_prefix(literal.as_str())?,
                    PatternPart::Field(letter, count) => {
                        let digits = digits(*count, &mut pieces);
                        found.read_field(*letter, digits, rest)?
                    }
                };
            }
            if !rest.is_empty() {
                return None;
            }
            return found.zoned();
        }
    };
    Some(timestamp.to_zoned(TimeZone::UTC))
}

/// The most digits that a field may have: as many as letters if digits of another field follow.
fn digits(count: usize, behind: &mut Peekable<Iter<'_, PatternPart>>) -> usize {
    match behind.peek() {
        Some(PatternPart::Field(letter, width)) if is_number(*letter, *width) => count,
        _ => count.max(9),
    }
}

fn is_number(letter: char, count: usize) -> bool {
    "yudHhmsS".contains(letter) || "ML".contains(letter) && count < 3
}

/// The fields of a time.
struct ParsedDate {
    year: i16,
    month: i8,
    day: i8,
    hour: i8,
    minute: i8,
    second: i8,
    nanosecond: i32,
    is_afternoon: Option<bool>,
    offset: Option<i32>,
    zone: Option<TimeZone>,
}

impl Default for ParsedDate {
    fn default() -> Self {
        Self {
            year: 1970,
            month: 1,
            day: 1,
            hour: 0,
            minute: 0,
            second: 0,
            nanosecond: 0,
            is_afternoon: None,
            offset: None,
            zone: None,
        }
    }
}

impl ParsedDate {
    /// Takes a field from the beginning of a text; the rest of it.
    fn read_field<'t>(&mut self, letter: char, digits: usize, text: &'t str) -> Option<&'t str> {
        let is_word = |it: char| it.is_alphabetic();
        let word =
            |text: &'t str| text.split_at(text.find(|it| !is_word(it)).unwrap_or(text.len()));
        let is_digit = |it: char| it.is_ascii_digit();
        let end = text.find(|it| !is_digit(it)).unwrap_or(text.len());
        let (number, rest) = text.split_at(end.min(digits));
        match letter {
            'y' | 'u' => {
                let year: i16 = number.parse().ok()?;
                self.year = if number.len() == 2 { 2000 + year } else { year };
            }
            'M' | 'L' if number.is_empty() => {
                let (name, rest) = word(text);
                let at = MONTHS.iter().position(|month| {
                    let short = month.get(..3).unwrap_or(month);
                    name.eq_ignore_ascii_case(month) || name.eq_ignore_ascii_case(short)
                });
                self.month = i8::try_from(at? + 1).ok()?;
                return Some(rest);
            }
            'M' | 'L' => self.month = number.parse().ok()?,
            'd' => self.day = number.parse().ok()?,
            'H' | 'h' => self.hour = number.parse().ok()?,
            'm' => self.minute = number.parse().ok()?,
            's' => self.second = number.parse().ok()?,
            'S' => {
                let padded = format!("{number:0<9}");
                self.nanosecond = padded.get(..9)?.parse().ok()?;
            }
            'a' => {
                let (name, rest) = word(text);
                self.is_afternoon = Some(match name.to_ascii_uppercase().as_str() {
                    "AM" => false,
                    "PM" => true,
                    _ => return None,
                });
                return Some(rest);
            }
            // The date says which day of the week it is.
            'E' => return Some(word(text).1),
            'z' | 'V' => {
                let end = text.find(char::is_whitespace).unwrap_or(text.len());
                let (name, rest) = text.split_at(end);
                self.zone = Some(super::zone(name).ok()?);
                return Some(rest);
            }
            'X' | 'x' | 'Z' => return self.offset(text),
            _ => return None,
        }
        Some(rest)
    }

    /// `Z`, `+01`, `+0100` or `+01:00`.
    fn offset<'t>(&mut self, text: &'t str) -> Option<&'t str> {
        if let Some(rest) = text.strip_prefix('Z') {
            self.offset = Some(0);
            return Some(rest);
        }
        let sign = match text.chars().next()? {
            '+' => 1,
            '-' => -1,
            _ => return None,
        };
        let hours: i32 = text.get(1..3)?.parse().ok()?;
        let rest = text.get(3..)?;
        let bare = rest.strip_prefix(':').unwrap_or(rest);
        let minutes = bare.get(..2).and_then(|digits| digits.parse::<i32>().ok());
        self.offset = Some(sign * (hours * 3_600 + minutes.unwrap_or(0) * 60));
        match minutes {
            Some(_) => bare.get(2..),
            None => Some(rest),
        }
    }

    fn zoned(self) -> Option<Zoned> {
        let hour = match self.is_afternoon {
            None => self.hour,
            Some(is_afternoon) => self.hour % 12 + if is_afternoon { 12 } else { 0 },
        };
        let date = Date::new(self.year, self.month, self.day).ok()?;
        let time = Time::new(hour, self.minute, self.second, self.nanosecond).ok()?;
        let zone = match (self.offset, self.zone) {
            (Some(seconds), _) => TimeZone::fixed(Offset::from_seconds(seconds).ok()?),
            (None, Some(zone)) => zone,
            (None, None) => TimeZone::UTC,
        };
        DateTime::from_parts(date, time).to_zoned(zone).ok()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn texts_are_read_by_patterns() {
        for (text, pattern, expected) in [
            ("31/01/2026", "dd/MM/yyyy", "2026-01-31T00:00:00Z"),
            ("20260131230509", "yyyyMMddHHmmss", "2026-01-31T23:05:09Z"),
            (
                "Sat, 31 Jan 26 11:05 PM",
                "EEE, d MMM yy hh:mm a",
                "2026-01-31T23:05:00Z",
            ),
            (
                "1 February 2026, 12 o'clock AM",
                "d MMMM yyyy, h 'o''clock' a",
                "2026-02-01T00:00:00Z",
            ),
            (
                "2026-01-31T23:05:09.5+02:00",
                "yyyy-MM-dd'T'HH:mm:ss.SSSXXX",
                "2026-01-31T21:05:09Z",
            ),
            (
                "2026-01-31 23:05 -0130",
                "yyyy-MM-dd HH:mm Z",
                "2026-02-01T00:35:00Z",
            ),
            (
                "2026-07-31 12:00 Europe/Berlin",
                "yyyy-MM-dd HH:mm z",
                "2026-07-31T10:00:00Z",
            ),
            ("1769900709123", "epoch", "2026-01-31T23:05:09Z"),
            ("1769900709", "unix", "2026-01-31T23:05:09Z"),
        ] {
            assert!(is_pattern(pattern), "{pattern}");
            let time = parsed_by(text, pattern).unwrap_or_else(|| panic!("{text} {pattern}"));
            let shown = time.timestamp().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
            assert_eq!(shown, expected, "{text} {pattern}");
        }
        for (text, pattern) in [
            ("2026-01-32", "yyyy-MM-dd"),
            ("2026-01-31x", "yyyy-MM-dd"),
            ("2026-01", "yyyy-MM-dd"),
            ("x", "unix"),
            ("25:00", "HH:mm"),
            ("Foo", "MMM"),
        ] {
            assert!(parsed_by(text, pattern).is_none(), "{text} {pattern}");
        }
        assert!(!is_pattern("yyyy-q"));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(seconds in 0_i64..4_000_000_000, pattern in prop_oneof![
            Just("yyyy-MM-dd'T'HH:mm:ssXXX"), Just("EEEE d MMMM yyyy hh:mm:ss a"), Just("yyyyMMddHHmmss"), Just("unix"), Just("dd.MM.yyyy H:m:s z"),
        ]) {
            let time = Timestamp::from_second(seconds).unwrap().to_zoned(TimeZone::UTC);
            let text = super::super::formatted(&time, pattern).unwrap();
            prop_assert_eq!(parsed_by(&text, pattern).map(|it| it.timestamp()), Some(time.timestamp()));
        }

        #[test]
        fn no_text_makes_it_panic(text in "[0-9A-Za-z+:é -]{0,12}", pattern in "[yMdHhmsSaEzXZ' :-]{0,12}") {
            drop(parsed_by(&text, &pattern));
        }
    }
}
