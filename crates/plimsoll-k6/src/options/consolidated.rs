//! The options as `exec.test.options` has them: every key that k6 has, null where nothing is set.

use std::time::Duration;

use plimsoll_load::scenario::Executor;
use serde_json::{Map, Value, json};

use super::keys::test_keys;
use super::scenario::ScenarioOptions;
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
    let all = options.scenarios.iter().map(|scenario| {
        let made = if scenario.is_shortcut {
            complete_scenario(&shortcut(scenario, script, overrides))
        } else {
            complete_scenario(&script["scenarios"][&scenario.name])
        };
        (scenario.name.clone(), made)
    });
    Value::Object(all.collect())
}

/// A scenario with every key of its executor, null where nothing is set. What is none remains as it is.
pub(super) fn complete_scenario(given: &Value) -> Value {
    let own: &[&str] = match given["executor"].as_str() {
        Some("constant-vus") => &["vus", "duration"],
        Some("ramping-vus") => &["startVUs", "stages", "gracefulRampDown"],
        Some("constant-arrival-rate") => {
            &["rate", "timeUnit", "duration", "preAllocatedVUs", "maxVUs"]
        }
        Some("ramping-arrival-rate") => &[
            "startRate",
            "timeUnit",
            "stages",
            "preAllocatedVUs",
            "maxVUs",
        ],
        Some("shared-iterations" | "per-vu-iterations") => &["vus", "iterations", "maxDuration"],
        _ => return given.clone(),
    };
    let shared = [
        "executor",
        "startTime",
        "gracefulStop",
        "env",
        "exec",
        "tags",
    ];
    let keys = shared.iter().chain(own);
    let keys = keys.map(|key| ((*key).to_owned(), given[*key].clone()));
    let mut made: Map<_, _> = keys.collect();
    if let Some(options) = given.get("options").filter(|it| !it.is_null()) {
        made.insert("options".to_owned(), options.clone());
    }
    Value::Object(made)
}

/// The scenario that options for a single one stand for, as k6 writes it.
fn shortcut(scenario: &ScenarioOptions, script: &Value, overrides: &Overrides) -> Value {
    let or = |value: Option<Value>, key: &str| {
        value.unwrap_or_else(|| script.get(key).cloned().unwrap_or_default())
    };
    let vus = || or(overrides.vus.map(|vus| json!(vus)), "vus");
    let duration = || or(overrides.duration.map(written), "duration");
    let executor = scenario.executor.name();
    match &scenario.executor {
        Executor::ConstantVus(_) => {
            json!({ "executor": executor, "vus": vus(), "duration": duration() })
        }
        Executor::RampingVus(_) => {
            let stages = (!overrides.stages.is_empty()).then(|| {
                let stages = overrides.stages.iter();
                stages
                    .map(|(duration, target)| {
                        json!({ "duration": written(*duration), "target": target })
                    })
                    .collect()
            });
            json!({ "executor": executor, "startVUs": vus(), "stages": or(stages, "stages") })
        }
        Executor::SharedIterations(shared) => json!({
            "executor": executor,
            "vus": vus(),
            "iterations": shared.iterations,
            "maxDuration": duration(),
        }),
        _ => json!({ "executor": executor }),
    }
}

/// The iterations that virtual users share in the scenario that shortcuts stand for: `vus` alone stands for as many.
pub(crate) fn implied_iterations(options: &Options) -> Option<u64> {
    match options.scenarios.as_slice() {
        [scenario] if scenario.is_shortcut => match &scenario.executor {
            Executor::SharedIterations(shared) => Some(shared.iterations),
            _ => None,
        },
        _ => None,
    }
}

fn written(duration: Duration) -> Value {
    json!(format!("{}s", duration.as_secs_f64()))
}
