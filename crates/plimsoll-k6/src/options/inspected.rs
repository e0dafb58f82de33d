//! Options as `k6 inspect` prints them and as archives have them.

use serde_json::{Map, Value, json};

use super::consolidated::complete_scenario;
use super::duration::{self, go_duration};
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

#[cfg(test)]
mod tests {
    use super::*;

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
