//! Dates as VS Code's client writes them: `$datetime FORMAT`, `$localDatetime FORMAT` and `$timestamp`, each with an offset such
//! as `-1 d` behind it.
//!
//! Formats of one's own are those of Day.js: `YYYY-MM-DD[T]HH:mm`.

use std::fmt::{self, Write as _};
use std::time::SystemTime;

use jiff::tz::TimeZone;
use jiff::{Span, Timestamp, Zoned};

/// A date at the time of the request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Date {
    /// How it is written.
    pub format: DateFormat,
    /// Earlier or later than now.
    pub offset: Option<DateOffset>,
    /// In the zone of this machine; otherwise in UTC.
    pub is_local: bool,
}

/// How a date is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DateFormat {
    /// Seconds since 1970.
    Unix,
    /// RFC 3339 in UTC, with milliseconds.
    Iso8601,
    /// As in HTTP's field `Date`.
    Rfc1123,
    /// By a pattern.
    Pattern(Vec<DatePart>),
}

/// A part of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DatePart {
    /// Always the same.
    Text(String),
    /// A part of the date.
    Token(DateToken),
}

/// A part of a date, by its letters in a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DateToken(&'static str);

impl DateToken {
    /// Its letters.
    pub const fn letters(self) -> &'static str {
        self.0
    }
}

/// A time by which a date is moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DateOffset {
    /// How many units; negative ones are earlier.
    pub count: i32,
    /// `y`, `M`, `w`, `d`, `h`, `m`, `s` or `ms`.
    pub unit: &'static str,
}

/// Longer ones first: `YYYY` is no two `YY`.
const TOKENS: [&str; 26] = [
    "YYYY", "YY", "MMMM", "MMM", "MM", "M", "DD", "D", "dddd", "ddd", "d", "HH", "H", "hh", "h",
    "mm", "m", "SSS", "ss", "s", "A", "a", "ZZ", "Z", "X", "x",
];

const UNITS: [&str; 8] = ["ms", "y", "M", "w", "d", "h", "m", "s"];

impl Date {
    /// - `name`: of the generator.
    /// - `arguments`: what stands behind it.
    pub(super) fn parse(name: &str, arguments: &str) -> Option<Self> {
        let mut words = words(arguments)?.into_iter();
        let format = if name == "timestamp" {
            DateFormat::Unix
        } else {
            match words.next()?.as_str() {
                "iso8601" => DateFormat::Iso8601,
                "rfc1123" => DateFormat::Rfc1123,
                pattern => DateFormat::Pattern(parts(pattern)?),
            }
        };
        let offset = match (words.next(), words.next(), words.next()) {
            (None, ..) => None,
            (Some(count), Some(unit), None) => {
                let count = count.parse().ok()?;
                let unit = UNITS.into_iter().find(|known| *known == unit)?;
                let offset = DateOffset { count, unit };
                // More years than there are is a mistake.
                let epoch = Timestamp::UNIX_EPOCH.to_zoned(TimeZone::UTC);
                epoch.checked_add(offset.span()?).ok()?;
                Some(offset)
            }
            _ => return None,
        };
        Some(Self {
            format,
            offset,
            is_local: name == "localDatetime",
        })
    }

    /// The date as it is at `now`; a year that cannot be written is the last one that can.
    pub fn text(&self, now: SystemTime) -> String {
        let zone = if self.is_local {
            TimeZone::system()
        } else {
            TimeZone::UTC
        };
        let now = Timestamp::try_from(now).unwrap_or_default().to_zoned(zone);
        let date = match self.offset {
            Some(offset) => now.saturating_add(offset.span().unwrap_or_default()),
            None => now,
        };
        match &self.format {
            DateFormat::Unix => date.timestamp().as_second().to_string(),
            DateFormat::Iso8601 => date
                .with_time_zone(TimeZone::UTC)
                .strftime("%Y-%m-%dT%H:%M:%S%.3fZ")
                .to_string(),
            DateFormat::Rfc1123 => date
                .with_time_zone(TimeZone::UTC)
                .strftime("%a, %d %b %Y %H:%M:%S GMT")
                .to_string(),
            DateFormat::Pattern(parts) => parts.iter().map(|part| part.text(&date)).collect(),
        }
    }
}

impl DateOffset {
    /// `None` if a date cannot be moved that far.
    fn span(self) -> Option<Span> {
        let count = i64::from(self.count);
        let span = Span::new();
        let moved = match self.unit {
            "y" => span.try_years(count),
            "M" => span.try_months(count),
            "w" => span.try_weeks(count),
            "d" => span.try_days(count),
            "h" => span.try_hours(count),
            "m" => span.try_minutes(count),
            "s" => span.try_seconds(count),
            _ => span.try_milliseconds(count),
        };
        moved.ok()
    }
}

impl DatePart {
    fn text(&self, date: &Zoned) -> String {
        let token = match self {
            Self::Text(text) => return text.clone(),
            Self::Token(token) => token.letters(),
        };
        let by = |format: &str| date.strftime(format).to_string();
        match token {
            "YYYY" => by("%Y"),
            "YY" => by("%y"),
            "MMMM" => by("%B"),
            "MMM" => by("%b"),
            "MM" => by("%m"),
            "M" => date.month().to_string(),
            "DD" => by("%d"),
            "D" => date.day().to_string(),
            "dddd" => by("%A"),
            "ddd" => by("%a"),
            "d" => date.weekday().to_sunday_zero_offset().to_string(),
            "HH" => by("%H"),
            "H" => date.hour().to_string(),
            "hh" => by("%I"),
            "h" => by("%-I"),
            "mm" => by("%M"),
            "m" => date.minute().to_string(),
            "ss" => by("%S"),
            "s" => date.second().to_string(),
            "SSS" => format!("{:03}", date.millisecond()),
            "A" => by("%p"),
            "a" => by("%P"),
            "Z" => by("%:z"),
            "ZZ" => by("%z"),
            "X" => date.timestamp().as_second().to_string(),
            _ => date.timestamp().as_millisecond().to_string(),
        }
    }
}

/// Words between blanks, and texts in quotation marks; `None` if one is not closed.
fn words(text: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        if matches!(first, '"' | '\'') {
            let (word, behind) = rest.strip_prefix(first)?.split_once(first)?;
            words.push(word.to_owned());
            rest = behind.trim_start();
        } else {
            let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
            let (word, behind) = rest.split_at(end);
            if word.contains(['"', '\'']) {
                return None;
            }
            words.push(word.to_owned());
            rest = behind.trim_start();
        }
    }
    Some(words)
}

/// The parts of a pattern; `None` if it has none, or a bracket that is not closed.
fn parts(pattern: &str) -> Option<Vec<DatePart>> {
    let mut parts: Vec<DatePart> = Vec::new();
    let mut rest = pattern;
    while let Some(first) = rest.chars().next() {
        let text = if let Some(escaped) = rest.strip_prefix('[') {
            let (text, behind) = escaped.split_once(']')?;
            rest = behind;
            text.to_owned()
        } else if let Some(token) = TOKENS.into_iter().find(|token| rest.starts_with(token)) {
            rest = rest.strip_prefix(token)?;
            parts.push(DatePart::Token(DateToken(token)));
            continue;
        } else {
            rest = rest.strip_prefix(first)?;
            first.to_string()
        };
        if let Some(DatePart::Text(last)) = parts.last_mut() {
            last.push_str(&text);
        } else {
            parts.push(DatePart::Text(text));
        }
    }
    (!parts.is_empty()).then_some(parts)
}

/// As it is written, texts in brackets.
impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.format {
            DateFormat::Unix => f.write_str("$timestamp")?,
            format => {
                f.write_str(if self.is_local {
                    "$localDatetime "
                } else {
                    "$datetime "
                })?;
                match format {
                    DateFormat::Iso8601 => f.write_str("iso8601")?,
                    DateFormat::Rfc1123 => f.write_str("rfc1123")?,
                    DateFormat::Unix | DateFormat::Pattern(_) => {
                        let pattern = format.pattern();
                        let quote = if pattern.contains('"') { '\'' } else { '"' };
                        write!(f, "{quote}{pattern}{quote}")?;
                    }
                }
            }
        }
        if let Some(DateOffset { count, unit }) = self.offset {
            write!(f, " {count} {unit}")?;
        }
        Ok(())
    }
}

impl DateFormat {
    fn pattern(&self) -> String {
        let Self::Pattern(parts) = self else {
            return String::new();
        };
        let mut pattern = String::new();
        for part in parts {
            match part {
                DatePart::Token(token) => pattern.push_str(token.letters()),
                DatePart::Text(text) if text.chars().any(char::is_alphabetic) => {
                    // A string takes all that is written.
                    write!(pattern, "[{text}]").ok();
                }
                DatePart::Text(text) => pattern.push_str(text),
            }
        }
        pattern
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn text(name: &str, arguments: &str) -> Option<String> {
        // 31 January 2026, 13:05:09.042 UTC, a Saturday.
        let now = SystemTime::UNIX_EPOCH + Duration::from_millis(1_769_864_709_042);
        Some(Date::parse(name, arguments)?.text(now))
    }

    #[test]
    fn dates_are_written_as_editors_write_them() {
        for (arguments, expected) in [
            ("iso8601", "2026-01-31T13:05:09.042Z"),
            ("rfc1123", "Sat, 31 Jan 2026 13:05:09 GMT"),
            ("iso8601 -1 d", "2026-01-30T13:05:09.042Z"),
            // The last day of a shorter month.
            ("iso8601 1 M", "2026-02-28T13:05:09.042Z"),
            ("\"YYYY-MM-DD\" 2 w", "2026-02-14"),
            ("'DD.MM.YY H:m:s'", "31.01.26 13:5:9"),
            (
                "\"dddd, D MMMM YYYY [at] h A\"",
                "Saturday, 31 January 2026 at 1 PM",
            ),
            ("YYYYMMDDTHHmmssSSS", "20260131T130509042"),
            ("\"X x ZZ Z\" 1 y", "1801400709 1801400709042 +0000 +00:00"),
            ("\"ddd d hh:mm a M\"", "Sat 6 01:05 pm 1"),
        ] {
            assert_eq!(
                text("datetime", arguments).as_deref(),
                Some(expected),
                "{arguments}"
            );
        }
        assert_eq!(text("timestamp", "").as_deref(), Some("1769864709"));
        assert_eq!(text("timestamp", "-1 h").as_deref(), Some("1769861109"));
        assert!(text("localDatetime", "YYYY").is_some());
    }

    #[test]
    fn mistakes_are_no_dates() {
        for wrong in [
            "",
            "\"YYYY",
            "iso8601 1",
            "iso8601 1 x",
            "iso8601 d 1",
            "iso8601 1 d 2",
            "\"[YYYY\"",
            "iso8601 9999999999 d",
            "iso8601 20000 y",
        ] {
            assert_eq!(text("datetime", wrong), None, "{wrong}");
        }
    }
}
