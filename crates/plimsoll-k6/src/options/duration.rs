//! Durations as scripts write them: a text such as `1m30s`, or a number of milliseconds, which may be a text too.

use std::time::Duration;

use plimsoll_model::{UnitError, parse_duration, without_trailing_zeros};
use serde_json::Value;

/// A text such as `1m30s`; without a unit, it is a number of milliseconds, as everywhere in k6.
pub fn parse(text: &str) -> Result<Duration, UnitError> {
    let number = text.trim().parse().ok();
    match number.and_then(from_millis) {
        Some(duration) => Ok(duration),
        None => parse_duration(text),
    }
}

/// Why a value of a script is no duration.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(crate) enum DurationError {
    #[error(transparent)]
    Text(#[from] UnitError),
    #[error("{0} is not a number of milliseconds")]
    Number(serde_json::Number),
    #[error("{0} is not a duration: write a text such as \"1m30s\" or a number of milliseconds")]
    Kind(Value),
}

pub(crate) fn from_json(value: &Value) -> Result<Duration, DurationError> {
    match value {
        Value::String(text) => Ok(parse(text)?),
        Value::Number(number) => {
            let millis = number.as_f64().unwrap_or(-1.0);
            from_millis(millis).ok_or_else(|| DurationError::Number(number.clone()))
        }
        other => Err(DurationError::Kind(other.clone())),
    }
}

/// `None` for negative, too large and odd numbers.
pub(crate) fn from_millis(millis: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(millis / 1000.0).ok()
}

/// A duration as Go prints it: `1h0m30s`, `1.5s`, `250ms`, `0s`.
///
/// Source: documentation of `time.Duration.String` of Go.
pub fn go_duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let fraction = |whole: u64, nanos: u32, digits: usize| {
        without_trailing_zeros(&format!("{whole}.{nanos:0digits$}")).to_owned()
    };
    if seconds == 0 {
        let nanos = duration.subsec_nanos();
        return match nanos {
            0 => "0s".to_owned(),
            1..1_000 => format!("{nanos}ns"),
            1_000..1_000_000 => {
                format!("{}µs", fraction(u64::from(nanos / 1_000), nanos % 1_000, 3))
            }
            _ => format!(
                "{}ms",
                fraction(u64::from(nanos / 1_000_000), nanos % 1_000_000, 6)
            ),
        };
    }
    let rest = fraction(seconds % 60, duration.subsec_nanos(), 9);
    match (seconds / 3600, seconds / 60 % 60) {
        (0, 0) => format!("{rest}s"),
        (0, minutes) => format!("{minutes}m{rest}s"),
        (hours, minutes) => format!("{hours}h{minutes}m{rest}s"),
    }
}

/// In milliseconds.
pub(crate) fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_written_as_go_does() {
        for (nanos, text) in [
            (0, "0s"),
            (7, "7ns"),
            (999, "999ns"),
            (1_500, "1.5µs"),
            (250_000_000, "250ms"),
            (1_500_000_000, "1.5s"),
            (2_000_000_000, "2s"),
            (90_000_000_000, "1m30s"),
            (90_500_000_000, "1m30.5s"),
            (630_000_000_000, "10m30s"),
            (3_600_000_000_000, "1h0m0s"),
            (3_661_000_000_001, "1h1m1.000000001s"),
        ] {
            assert_eq!(go_duration(Duration::from_nanos(nanos)), text);
        }
    }

    #[test]
    fn numbers_without_a_unit_are_milliseconds() {
        for (text, millis) in [
            ("10", 10.0),
            ("1.5", 1.5),
            ("0", 0.0),
            ("10s", 10_000.0),
            ("1m30s", 90_000.0),
            ("1d1h", 90_000_000.0),
        ] {
            let parsed = parse(text).unwrap();
            assert!((self::millis(parsed) - millis).abs() < 1e-6, "{text}");
            let json = from_json(&Value::from(text));
            assert_eq!(json, Ok(parsed));
        }
        for text in ["", "-1", "ten", "1x"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
