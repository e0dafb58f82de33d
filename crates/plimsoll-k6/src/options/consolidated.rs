//! The options as `exec.test.options` has them: every key that k6 has, null where nothing is set.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::keys::test_keys;
use super::{Options, Overrides};

/// - `script`: the exported options.
pub(super) fn consolidated(options: &Options, script: &Value, overrides: &Overrides) -> Value {
    let mut all = Map::new();
    for key in test_keys() {
        let value = match key {
            "scenarios" => scenarios(options, script, overrides),
            "dns" => script
                .get(key)
                .cloned()
                .unwrap_or_else(|| json!({ "ttl": null, "select": null, "policy": null })),
            "summaryTrendStats" => json!(options.trend_stats),
            "systemTags" => {
                let mut tags = options.system_tags.clone();
                tags.sort();
                json!(tags)
            }
            "tags" if !options.tags.is_empty() => Value::Object(
                options
                    .tags
                    .iter()
                    .map(|(name, value)| (name.clone(), json!(value)))
                    .collect(),
            ),
            "userAgent" if overrides.user_agent.is_some() => json!(overrides.user_agent),
            "thresholds" if overrides.no_thresholds => Value::Null,
            _ => script.get(key).cloned().unwrap_or_default(),
        };
        all.insert(key.to_owned(), value);
    }
    Value::Object(all)
}

/// Those of the script with all keys, or the one that shortcuts stand for.
fn scenarios(options: &Options, script: &Value, overrides: &Overrides) -> Value {
    let written = script.get("scenarios").and_then(Value::as_object);
    let mut all = Map::new();
    for scenario in &options.scenarios {
        let kind = scenario.executor.name();
        let given = match written.and_then(|written| written.get(&scenario.name)) {
            Some(Value::Object(given)) if given.get("executor") == Some(&json!(kind)) => {
                given.clone()
            }
            _ => shortcut(kind, script, overrides),
        };
        let mut made = Map::new();
        made.insert("executor".to_owned(), json!(kind));
        for key in ["startTime", "gracefulStop", "env", "exec", "tags"] {
            made.insert(key.to_owned(), given.get(key).cloned().unwrap_or_default());
        }
        let own: &[&str] = match kind {
            "constant-vus" => &["vus", "duration"],
            "ramping-vus" => &["startVUs", "stages", "gracefulRampDown"],
            "constant-arrival-rate" => {
                &["rate", "timeUnit", "duration", "preAllocatedVUs", "maxVUs"]
            }
            "ramping-arrival-rate" => &[
                "startRate",
                "timeUnit",
                "stages",
                "preAllocatedVUs",
                "maxVUs",
            ],
            _ => &["vus", "iterations", "maxDuration"],
        };
        for key in own {
            made.insert(
                (*key).to_owned(),
                given.get(*key).cloned().unwrap_or_default(),
            );
        }
        all.insert(scenario.name.clone(), Value::Object(made));
    }
    Value::Object(all)
}

fn shortcut(kind: &str, script: &Value, overrides: &Overrides) -> Map<String, Value> {
    let or = |value: Option<Value>, key: &str| {
        value.unwrap_or_else(|| script.get(key).cloned().unwrap_or_default())
    };
    let vus = or(overrides.vus.map(|vus| json!(vus)), "vus");
    let duration = or(overrides.duration.map(written), "duration");
    let stages = (!overrides.stages.is_empty()).then(|| {
        let stages = overrides.stages.iter();
        stages
            .map(|(duration, target)| json!({ "duration": written(*duration), "target": target }))
            .collect()
    });
    let iterations = or(
        overrides.iterations.map(|number| json!(number)),
        "iterations",
    );
    let fields = match kind {
        "constant-vus" => vec![("vus", vus), ("duration", duration)],
        "ramping-vus" => vec![("startVUs", vus), ("stages", or(stages, "stages"))],
        _ => vec![
            ("vus", vus),
            ("iterations", iterations),
            ("maxDuration", duration),
        ],
    };
    fields
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value))
        .collect()
}

fn written(duration: Duration) -> Value {
    json!(format!("{}s", duration.as_secs_f64()))
}
