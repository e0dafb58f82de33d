//! Tests of times: before, after or at another one, which may be relative to now.

use std::fmt;
use std::time::{Duration, SystemTime};

use plimsoll_model::Clock as _;
use plimsoll_wire::SystemClock;

use crate::template::dates::{self, Truncation, TruncationError};

/// A test of a time (RFC 3339, or as a pattern says).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimeTest {
    order: TimeOrder,
    text: String,
    reference: Reference,
    options: TimeOptions,
}

/// Parsing and adjustment of times before they are compared.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TimeOptions {
    /// The pattern (of Java) of times in requests.
    format: Option<String>,
    /// Moves times of requests.
    truncate: Option<(String, Truncation)>,
    /// Moves the time that they are compared with.
    truncate_value: Option<(String, Truncation)>,
}

/// Why times cannot be compared as a condition has it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TimeOptionsError {
    /// There is no such format.
    #[error("`{0}` is no date format that is known here")]
    Format(String),
    /// There is no such truncation.
    #[error(transparent)]
    Truncation(#[from] TruncationError),
}

impl TimeOptions {
    /// - `format`: a pattern of Java's `DateTimeFormatter`, `epoch` (milliseconds) or `unix` (seconds).
    /// - `truncate`: where times of requests are moved, such as `first day of month`; `truncate_value`: the same for the
    ///   time that they are compared with.
    ///
    /// Fails with what is not known.
    pub(crate) fn new(
        format: Option<&str>,
        truncate: Option<&str>,
        truncate_value: Option<&str>,
    ) -> Result<Self, TimeOptionsError> {
        let truncation = |name: Option<&str>| match name {
            Some(name) => Truncation::named(name).map(|it| Some((name.to_owned(), it))),
            None => Ok(None),
        };
        if let Some(unknown) = format.filter(|format| !dates::is_pattern(format)) {
            return Err(TimeOptionsError::Format(unknown.to_owned()));
        }
        Ok(Self {
            format: format.map(str::to_owned),
            truncate: truncation(truncate)?,
            truncate_value: truncation(truncate_value)?,
        })
    }

    fn parsed(&self, text: &str) -> Option<SystemTime> {
        let time = match &self.format {
            None => parsed(text)?,
            Some(format) => dates::system_time(&dates::parsed_by(text, format)?),
        };
        moved(time, self.truncate.as_ref())
    }
}

fn moved(time: SystemTime, truncation: Option<&(String, Truncation)>) -> Option<SystemTime> {
    match truncation {
        None => Some(time),
        Some((_, truncation)) => truncation.of_system_time(time),
    }
}

/// Comparison of times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeOrder {
    /// `before`
    Before,
    /// `after`
    After,
    /// `equal_time`
    Equal,
}

impl TimeOrder {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Before, Self::After, Self::Equal];

    /// As files call it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Before => "before",
            Self::After => "after",
            Self::Equal => "equal_time",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reference {
    At(SystemTime),
    /// So long ahead of now.
    Ahead(Duration),
    /// So long ago.
    Ago(Duration),
}

/// Why a text is no time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("is neither a time such as 2026-01-31T12:00:00Z nor one such as `now` or `now +3 days`")]
pub struct TimeError;

impl TimeTest {
    /// - `text`: a time, a date, `now`, or `now` with an offset in seconds, minutes, hours, days or weeks.
    pub fn new(order: TimeOrder, text: &str) -> Result<Self, TimeError> {
        Ok(Self {
            order,
            text: text.to_owned(),
            reference: reference(text.trim()).ok_or(TimeError)?,
            options: TimeOptions::default(),
        })
    }

    /// The same with options.
    #[must_use]
    pub fn with(self, options: TimeOptions) -> Self {
        Self { options, ..self }
    }

    /// Whether a text is a time in that order; one that is no time is not.
    pub fn is_met_by(&self, text: &str) -> bool {
        let now = SystemClock.wall();
        let wanted = match self.reference {
            Reference::At(time) => Some(time),
            Reference::Ahead(offset) => now.checked_add(offset),
            Reference::Ago(offset) => now.checked_sub(offset),
        };
        let wanted = wanted.and_then(|time| moved(time, self.options.truncate_value.as_ref()));
        let (Some(wanted), Some(found)) = (wanted, self.options.parsed(text.trim())) else {
            return false;
        };
        match self.order {
            TimeOrder::Before => found < wanted,
            TimeOrder::After => found > wanted,
            TimeOrder::Equal => found == wanted,
        }
    }
}

impl fmt::Display for TimeTest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}", self.order.name(), self.text)?;
        let truncate = self.options.truncate.as_ref().map(|(name, _)| name);
        let truncate_value = self.options.truncate_value.as_ref().map(|(name, _)| name);
        for (key, value) in [
            ("format", self.options.format.as_ref()),
            ("truncate", truncate),
            ("truncate_value", truncate_value),
        ] {
            if let Some(value) = value {
                write!(f, ", {key} {value:?}")?;
            }
        }
        Ok(())
    }
}

fn reference(text: &str) -> Option<Reference> {
    let Some(offset) = text.strip_prefix("now") else {
        return parsed(text).map(Reference::At);
    };
    let offset = offset.trim();
    if offset.is_empty() {
        return Some(Reference::Ahead(Duration::ZERO));
    }
    let (is_ago, offset) = match offset.strip_prefix('-') {
        Some(offset) => (true, offset),
        None => (false, offset.strip_prefix('+').unwrap_or(offset)),
    };
    let (count, unit) = offset.trim().split_once(' ')?;
    let seconds = match unit.trim().trim_end_matches('s') {
        "second" => 1,
        "minute" => 60,
        "hour" => 3_600,
        "day" => 86_400,
        "week" => 604_800,
        _ => return None,
    };
    let seconds = count.parse::<u64>().ok()?.checked_mul(seconds)?;
    let offset = Duration::from_secs(seconds);
    Some(if is_ago {
        Reference::Ago(offset)
    } else {
        Reference::Ahead(offset)
    })
}

/// A time with its offset, or a time or date in UTC.
fn parsed(text: &str) -> Option<SystemTime> {
    if let Ok(time) = humantime::parse_rfc3339_weak(text) {
        return Some(time);
    }
    if text.len() == 10 {
        return humantime::parse_rfc3339(&format!("{text}T00:00:00Z")).ok();
    }
    // With an offset such as +02:00.
    let at = text.len().checked_sub(6)?;
    let (local, offset) = (text.get(..at)?, text.get(at..)?);
    let sign = offset.chars().next().filter(|it| "+-".contains(*it))?;
    let (hours, minutes) = offset.get(1..)?.split_once(':')?;
    let minutes = hours.parse::<u64>().ok()? * 60 + minutes.parse::<u64>().ok()?;
    let local = humantime::parse_rfc3339_weak(local).ok()?;
    let offset = Duration::from_secs(minutes * 60);
    if sign == '+' {
        local.checked_sub(offset)
    } else {
        local.checked_add(offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_compared() {
        for (order, wanted, found, expected) in [
            (
                TimeOrder::Before,
                "2026-01-31T12:00:00Z",
                "2026-01-31T11:59:59Z",
                true,
            ),
            (
                TimeOrder::Before,
                "2026-01-31T12:00:00Z",
                "2026-01-31T13:30:00+02:00",
                true,
            ),
            (TimeOrder::After, "2026-01-31", "2026-01-31T00:00:01", true),
            (TimeOrder::After, "2026-01-31", "soon", false),
            (
                TimeOrder::Equal,
                "2026-01-31T12:00:00Z",
                "2026-01-31T14:00:00+02:00",
                true,
            ),
            (TimeOrder::Before, "now", "2020-01-01", true),
            (TimeOrder::After, "now +3 days", "2020-01-01", false),
            (TimeOrder::After, "now -3 weeks", "2999-01-01", true),
        ] {
            let test = TimeTest::new(order, wanted).unwrap();
            assert_eq!(test.is_met_by(found), expected, "{test} {found}");
        }
        #[cfg(feature = "mock-import")]
        for (order, wanted, options, found, expected) in [
            (
                TimeOrder::Equal,
                "2026-01-31",
                (Some("dd/MM/yyyy"), None, None),
                "31/01/2026",
                true,
            ),
            (
                TimeOrder::Equal,
                "2026-01-31",
                (Some("dd/MM/yyyy"), None, None),
                "2026-01-31",
                false,
            ),
            (
                TimeOrder::Equal,
                "2026-01-01",
                (None, Some("first day of month"), None),
                "2026-01-20T10:00:00Z",
                true,
            ),
            (
                TimeOrder::After,
                "2026-01-20",
                (None, None, Some("last day of month")),
                "2026-01-25",
                false,
            ),
        ] {
            let options = TimeOptions::new(options.0, options.1, options.2).unwrap();
            let test = TimeTest::new(order, wanted).unwrap().with(options);
            assert_eq!(test.is_met_by(found), expected, "{test} {found}");
        }
        assert!(TimeOptions::new(Some("q"), None, None).is_err());
        assert!(TimeOptions::new(None, Some("now"), None).is_err());
        for wrong in ["", "soon", "now 3", "now +3 moons"] {
            assert!(TimeTest::new(TimeOrder::After, wrong).is_err(), "{wrong}");
        }
    }
}
