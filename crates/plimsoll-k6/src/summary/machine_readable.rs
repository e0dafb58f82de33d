//! The data of `--new-machine-readable-summary`, in the format 1.0.0 of k6.
//!
//! It has the metrics that the text shows, so the summary mode decides about the details of requests. It has neither
//! groups nor thresholds.

use std::time::{Duration, SystemTime};

use serde_json::{Map, Value, json};

use super::text::{block_of, gather, is_shown};

/// The version of the format.
const FORMAT: &str = "1.0.0";

/// The k6 whose behaviour and formats this crate follows.
pub const K6_VERSION: &str = "2.2.0";

/// Figures of trends: their names here and in `summaryTrendStats`. The format has no others.
const TREND_FIGURES: [(&str, &str); 6] = [
    ("avg", "avg"),
    ("max", "max"),
    ("med", "med"),
    ("min", "min"),
    ("p90", "p(90)"),
    ("p95", "p(95)"),
];

/// Converts the argument of `handleSummary()`.
///
/// - `script`: its text.
/// - `is_full`: whether every metric of requests is part of it.
pub(crate) fn machine_readable(
    data: &Value,
    script: &str,
    took: Duration,
    generated_at: SystemTime,
    is_full: bool,
) -> Value {
    let metrics = data["metrics"].as_object().into_iter().flatten();
    let mut metrics: Vec<_> = metrics
        .filter(|(name, _)| is_shown(name, is_full))
        .collect();
    // As in the text, but for metrics of the script, which come last.
    metrics.sort_by_key(|(name, _)| (block_of(name).unwrap_or(usize::MAX), name.as_str()));
    let metrics: Vec<_> = metrics
        .iter()
        .map(|(name, metric)| entry(name, metric, &values(metric)))
        .collect();
    json!({
        "config": { "duration": took.as_secs_f64(), "execution": "local", "script": script },
        "metadata": {
            "generated_at": humantime::format_rfc3339_nanos(generated_at).to_string(),
            "k6_version": K6_VERSION,
        },
        "results": { "checks": checks(data), "metrics": metrics },
        "version": FORMAT,
    })
}

fn entry(name: &str, metric: &Value, values: &Value) -> Value {
    json!({
        "contains": metric["contains"],
        "name": name,
        "type": metric["type"],
        "values": values,
    })
}

fn values(metric: &Value) -> Value {
    let values = &metric["values"];
    let count = |key: &str| values[key].as_u64().unwrap_or_default();
    match metric["type"].as_str().unwrap_or_default() {
        "counter" => json!({ "count": values["count"] }),
        "gauge" => json!({ "max": values["max"], "min": values["min"], "value": values["value"] }),
        "rate" => json!({
            "matches": count("passes"),
            "rate": values["rate"],
            "total": count("passes") + count("fails"),
        }),
        _ => {
            let figures = TREND_FIGURES.iter();
            let figures = figures.map(|(name, stat)| ((*name).to_owned(), values[*stat].clone()));
            Value::Object(figures.collect::<Map<_, _>>())
        }
    }
}

/// Checks of all groups; the lists are empty unless the script has some.
fn checks(data: &Value) -> Value {
    let metric = &data["metrics"]["checks"];
    let count = |key: &str| metric["values"][key].as_u64().unwrap_or_default();
    let (passes, fails) = (count("passes"), count("fails"));
    let total = passes + fails;
    if metric.is_null() {
        return json!({ "metrics": [], "results": [] });
    }
    let share = |name: &str, part: u64| {
        let rate = if total == 0 {
            0.0
        } else {
            part as f64 / total as f64
        };
        entry(
            name,
            metric,
            &json!({ "matches": part, "rate": rate, "total": total }),
        )
    };
    let counted = json!({ "type": "counter", "contains": "default" });
    let mut results = Vec::new();
    gather(&data["root_group"], &mut results);
    let results: Vec<_> = results
        .into_iter()
        .map(|(name, passes, fails)| json!({ "fails": fails, "name": name, "passes": passes }))
        .collect();
    json!({
        "metrics": [
            entry("checks_total", &counted, &json!({ "count": total })),
            share("checks_failed", fails),
            share("checks_succeeded", passes),
        ],
        "results": results,
    })
}
