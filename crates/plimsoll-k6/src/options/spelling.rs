//! Options as k6 reads them: keys in any case, whole numbers in quotes, lists of stages with holes.

use serde_json::{Map, Value};

use super::keys::all_keys;

/// Keys of scenarios of every executor.
const SCENARIO: [&str; 19] = [
    "executor",
    "startTime",
    "gracefulStop",
    "env",
    "exec",
    "tags",
    "options",
    "vus",
    "iterations",
    "maxDuration",
    "duration",
    "startVUs",
    "stages",
    "gracefulRampDown",
    "rate",
    "startRate",
    "timeUnit",
    "preAllocatedVUs",
    "maxVUs",
];

const STAGE: [&str; 2] = ["duration", "target"];

const THRESHOLD: [&str; 3] = ["threshold", "abortOnFail", "delayAbortEval"];

/// Keys whose values are whole numbers, which may be in quotes.
const NUMBERS: [&str; 12] = [
    "vus",
    "iterations",
    "startVUs",
    "rate",
    "startRate",
    "preAllocatedVUs",
    "maxVUs",
    "target",
    "batch",
    "batchPerHost",
    "maxRedirects",
    "rps",
];

/// The options with the keys and numbers of k6.
pub(super) fn as_read(options: &Map<String, Value>) -> Map<String, Value> {
    let mut read = object(options, &all_keys().collect::<Vec<_>>());
    stages(&mut read);
    if let Some(Value::Object(scenarios)) = read.get_mut("scenarios") {
        for scenario in scenarios.values_mut() {
            if let Value::Object(members) = scenario {
                let mut members = object(members, &SCENARIO);
                stages(&mut members);
                *scenario = Value::Object(members);
            }
        }
    }
    if let Some(Value::Object(metrics)) = read.get_mut("thresholds") {
        let lists = metrics.values_mut().filter_map(Value::as_array_mut);
        for threshold in lists.flatten() {
            if let Value::Object(members) = threshold {
                *threshold = Value::Object(object(members, &THRESHOLD));
            }
        }
    }
    read
}

/// Stages without holes.
fn stages(members: &mut Map<String, Value>) {
    let Some(Value::Array(stages)) = members.get_mut("stages") else {
        return;
    };
    stages.retain(|stage| !stage.is_null());
    for stage in stages {
        if let Value::Object(members) = stage {
            *stage = Value::Object(object(members, &STAGE));
        }
    }
}

/// An object with the spelling of its keys that is known. A key that is spelled so takes precedence.
fn object(members: &Map<String, Value>, known: &[&str]) -> Map<String, Value> {
    let members = members.iter().map(|(key, value)| {
        let spelled = known
            .iter()
            .find(|known| known.eq_ignore_ascii_case(key))
            .filter(|known| !members.contains_key(**known));
        let key = spelled.map_or(key.as_str(), |spelled| *spelled);
        (key.to_owned(), number(key, value))
    });
    members.collect()
}

fn number(key: &str, value: &Value) -> Value {
    match value {
        Value::String(text) if NUMBERS.contains(&key) => match text.parse::<i64>() {
            Ok(number) => number.into(),
            Err(_) if text.is_empty() => Value::Null,
            Err(_) => value.clone(),
        },
        _ => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn options_are_read_as_by_k6() {
        let written = json!({
            "VUs": "3", "Duration": "5s", "iterations": "", "vus ": 1, "batch": "many",
            "stages": [null, { "Target": "2", "duration": 5 }],
            "scenarios": { "a": { "Executor": "constant-vus", "maxVus": 4, "startRate": "1", "tags": { "VUS": "1" }, "stages": [{ "target": 1 }, null] }, "b": 1 },
            "thresholds": { "checks": ["rate>0", { "Threshold": "rate>1", "abortonfail": true }] },
            "tags": { "RATE": "1" },
        });
        let expected = json!({
            "vus": 3, "duration": "5s", "iterations": null, "vus ": 1, "batch": "many",
            "stages": [{ "target": 2, "duration": 5 }],
            "scenarios": { "a": { "executor": "constant-vus", "maxVUs": 4, "startRate": 1, "tags": { "VUS": "1" }, "stages": [{ "target": 1 }] }, "b": 1 },
            "thresholds": { "checks": ["rate>0", { "threshold": "rate>1", "abortOnFail": true }] },
            "tags": { "RATE": "1" },
        });
        let read = as_read(written.as_object().unwrap());
        assert_eq!(Value::Object(read), expected);
        let both = json!({ "VUS": 1, "vus": 2 });
        assert_eq!(as_read(both.as_object().unwrap())["vus"], 2);
    }
}
