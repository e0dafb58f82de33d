//! Durations as scripts write them: a text such as `1m30s`, or a number of milliseconds.

use std::time::Duration;

use plimsoll_model::parse_duration;
use serde_json::Value;

/// Fails with a message for the author of the script.
pub(crate) fn from_json(value: &Value) -> Result<Duration, String> {
    match value {
        Value::String(text) => parse_duration(text).map_err(|error| error.to_string()),
        Value::Number(number) => {
            let millis = number.as_f64().unwrap_or(-1.0);
            from_millis(millis).ok_or_else(|| format!("{number} is not a number of milliseconds"))
        }
        other => Err(format!(
            "{other} is not a duration: write a text such as \"1m30s\" or a number of milliseconds"
        )),
    }
}

/// `None` for negative, too large and odd numbers.
pub(crate) fn from_millis(millis: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(millis / 1000.0).ok()
}

/// In milliseconds.
pub(crate) fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}
