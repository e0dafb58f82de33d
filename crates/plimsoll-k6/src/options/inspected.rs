//! Options as `k6 inspect` prints them and as archives have them.

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::consolidated::complete_scenario;
use super::duration;
use super::keys::inspected_keys;

/// Keys at any depth whose values are durations.
const DURATIONS: [&str; 12] = [
    "delayAbortEval",
    "duration",
    "setupTimeout",
    "teardownTimeout",
    "handleSummaryTimeout",
    "minIterationDuration",
    "startTime",
    "gracefulStop",
    "gracefulRampDown",
    "maxDuration",
    "timeUnit",
    "totalDuration",
];

/// Every key that k6 has, null where nothing is set, with durations in the notation of Go.
pub(crate) fn as_inspected(options: &Map<String, Value>) -> Value {
    let mut all = Map::new();
    for key in inspected_keys() {
        let value = options.get(key).cloned().unwrap_or_default();
        let value = match (key, value) {
            ("dns", Value::Null) => json!({ "ttl": null, "select": null, "policy": null }),
            ("thresholds", Value::Object(metrics)) => metrics
                .into_iter()
                .map(|(metric, list)| (metric, plain_thresholds(list)))
                .collect(),
            ("scenarios", Value::Object(scenarios)) => scenarios
                .into_iter()
                .map(|(name, one)| (name, normal("", complete_scenario(&one))))
                .collect(),
            (_, value) => normal(key, value),
        };
        all.insert(key.to_owned(), value);
        if key == "minIterationDuration"
            && let Some(cloud) = options.get("cloud").filter(|it| !it.is_null())
        {
            all.insert("cloud".to_owned(), cloud.clone());
        }
    }
    Value::Object(all)
}

/// Thresholds as texts, but for those that abort the run.
fn plain_thresholds(list: Value) -> Value {
    let Value::Array(list) = list else {
        return list;
    };
    let plain = list.into_iter().map(|one| {
        let aborts = one["abortOnFail"].as_bool().unwrap_or(false);
        match one.get("threshold") {
            Some(text) if !aborts => text.clone(),
            Some(text) => json!({
                "threshold": text,
                "abortOnFail": true,
                "delayAbortEval": normal("delayAbortEval", one["delayAbortEval"].clone()),
            }),
            None => one,
        }
    });
    plain.collect()
}

/// - `key`: of the value.
fn normal(key: &str, value: Value) -> Value {
    match value {
        Value::Object(members) if key != "tags" && key != "env" && key != "ext" => members
            .into_iter()
            .map(|(key, value)| {
                let value = normal(&key, value);
                (key, value)
            })
            .collect(),
        Value::Array(elements) => elements.into_iter().map(|it| normal("", it)).collect(),
        Value::String(_) | Value::Number(_) if DURATIONS.contains(&key) => {
            match duration::from_json(&value) {
                Ok(duration) => json!(go_duration(duration)),
                Err(_) => value,
            }
        }
        value => value,
    }
}

/// A duration as Go prints it: `1h0m30s`, `1.5s`, `250ms`, `0s`.
///
/// Source: documentation of `time.Duration.String` of Go.
pub fn go_duration(duration: Duration) -> String {
    let nanos = duration.as_nanos();
    let fraction = |nanos: u128, unit: u32, name: &str| {
        let size = 10_u128.pow(unit);
        let mut text = (nanos / size).to_string();
        let rest = nanos % size;
        if rest > 0 {
            let digits = format!("{rest:0width$}", width = unit as usize);
            write!(text, ".{}", digits.trim_end_matches('0')).expect("a string grows");
        }
        text + name
    };
    match nanos {
        0 => return "0s".to_owned(),
        1..1_000 => return format!("{nanos}ns"),
        1_000..1_000_000 => return fraction(nanos, 3, "µs"),
        1_000_000..1_000_000_000 => return fraction(nanos, 6, "ms"),
        _ => {}
    }
    let minutes = nanos / 60_000_000_000;
    let seconds = fraction(nanos % 60_000_000_000, 9, "s");
    match minutes {
        0 => seconds,
        1..60 => format!("{minutes}m{seconds}"),
        _ => format!("{}h{}m{seconds}", minutes / 60, minutes % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_printed_as_by_go() {
        for (nanos, expected) in [
            (0, "0s"),
            (999, "999ns"),
            (1_500, "1.5µs"),
            (250_000_000, "250ms"),
            (1_500_000_000, "1.5s"),
            (90_000_000_000, "1m30s"),
            (630_000_000_000, "10m30s"),
            (3_600_000_000_000, "1h0m0s"),
            (3_661_000_000_001, "1h1m1.000000001s"),
        ] {
            assert_eq!(go_duration(Duration::from_nanos(nanos)), expected);
        }
    }

    #[test]
    fn every_key_is_there_and_durations_have_one_notation() {
        let options = json!({
            "duration": "90s", "stages": [{ "duration": 1500, "target": 3 }],
            "thresholds": { "checks": ["rate>0", { "threshold": "rate>1", "abortOnFail": false }] },
            "scenarios": { "a": { "executor": "constant-vus", "duration": "10s", "tags": { "duration": "long" } } },
        });
        let shown = as_inspected(options.as_object().unwrap());
        assert_eq!(shown["duration"], "1m30s");
        assert_eq!(
            shown["stages"][0],
            json!({ "duration": "1.5s", "target": 3 })
        );
        let scenario = &shown["scenarios"]["a"];
        assert_eq!(scenario["tags"]["duration"], "long");
        let keys = [
            "executor",
            "startTime",
            "gracefulStop",
            "env",
            "exec",
            "tags",
            "vus",
            "duration",
        ];
        assert!(keys.iter().all(|key| scenario.get(key).is_some()));
        assert_eq!(scenario.as_object().unwrap().len(), keys.len());
        assert_eq!(shown["thresholds"]["checks"], json!(["rate>0", "rate>1"]));
        let keys: Vec<_> = shown.as_object().unwrap().keys().collect();
        assert_eq!(keys.len(), inspected_keys().count());
        assert!(shown["paused"].is_null());
    }
}
