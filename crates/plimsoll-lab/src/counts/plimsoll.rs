//! The JSON summary of `plimsoll load --json`.
//!
//! Read by its field names rather than through the encoder's types: a summary may come from another
//! version of plimsoll. Only the count is required.

use serde_json::Value;

use super::{CountError, Format, Tally};

pub(super) const FORMAT: Format = Format {
    name: "plimsoll load --json",
    recognises: |output| {
        output.trim_start().starts_with('{') && output.contains("\"plimsoll.load.summary/")
    },
    parse,
};

/// Major version of the schema that is understood.
const SCHEMA: &str = "plimsoll.load.summary/1";

fn parse(output: &str) -> Result<Tally, CountError> {
    let malformed = |missing| CountError::Malformed {
        format: FORMAT.name,
        missing,
    };
    let document: Value =
        serde_json::from_str(output.trim()).map_err(|_| malformed("valid JSON"))?;
    if document.get("schema").and_then(Value::as_str) != Some(SCHEMA) {
        return Err(malformed("`schema` of version 1"));
    }
    let count = |pointer| document.pointer(pointer).and_then(Value::as_u64);
    let number = |pointer| document.pointer(pointer).and_then(Value::as_f64);
    // A lower bound is no figure to compare.
    let from_started = document.pointer("/latency/from_started");
    let time = |name: &str| from_started.and_then(|times| known(times, name));
    Ok(Tally {
        source: FORMAT.name,
        ok: count("/counts/ok").ok_or_else(|| malformed("`counts.ok`"))?,
        // Those that were under way after the grace period got no response either.
        failed: count("/counts/failed").unwrap_or(0) + count("/counts/aborted").unwrap_or(0),
        error_statuses: count("/counts/error_statuses").unwrap_or(0),
        requests_per_second: number("/requests_per_second"),
        mean_us: time("mean_us"),
        p50_us: time("p50_us"),
        p90_us: time("p90_us"),
        p95_us: time("p95_us"),
        p99_us: time("p99_us"),
        p99_9_us: time("p99_9_us"),
    })
}

/// The time called `name`, in microseconds; `None` too if it is only a lower bound.
pub(crate) fn known(times: &Value, name: &str) -> Option<f64> {
    let censored = times.get("censored").and_then(Value::as_array);
    let is_bound = censored.is_some_and(|names| names.iter().any(|censored| censored == name));
    times.get(name)?.as_f64().filter(|_| !is_bound)
}
