//! What a run needs at most: virtual users and time.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::options::Options;

/// What a run needs at most.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RunNeeds {
    /// In the order of their names.
    pub scenarios: Vec<ScenarioNeeds>,
    /// Virtual users that there may be at once.
    pub most_vus: u64,
    /// Until the last iteration is interrupted; `setup()` and `teardown()` are not part of it.
    pub duration: Duration,
}

/// What a scenario needs at most.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScenarioNeeds {
    /// Its name.
    pub name: String,
    /// Its executor.
    pub executor: &'static str,
    /// Virtual users that there may be at once.
    pub vus: u32,
    /// When it starts.
    pub start: Duration,
    /// The time during which iterations start.
    pub length: Duration,
    /// The time that iterations get behind it.
    pub graceful_stop: Duration,
}

impl RunNeeds {
    pub(crate) fn new(options: &Options) -> Self {
        let mut scenarios = Vec::new();
        // Changes of the number of virtual users; those of scenarios that end give room to those that start at the same moment.
        let mut changes: BTreeMap<Duration, i64> = BTreeMap::new();
        for scenario in &options.scenarios {
            let executor = scenario.executor.clone();
            let executor = match &options.segment {
                Some(segment) => executor.in_segment(segment),
                None => executor,
            };
            let mut before = 0;
            for (at, vus) in executor.reserved_vus(scenario.graceful_stop) {
                *changes.entry(scenario.start_time + at).or_default() += i64::from(vus) - before;
                before = i64::from(vus);
            }
            scenarios.push(ScenarioNeeds {
                name: scenario.name.clone(),
                executor: executor.name(),
                vus: executor.most_vus(),
                start: scenario.start_time,
                length: executor.end(),
                graceful_stop: scenario.graceful_stop,
            });
        }
        let duration = changes.keys().next_back().copied().unwrap_or_default();
        let mut now = 0;
        let most = changes.values().map(|change| {
            now += change;
            now
        });
        let most_vus = most.max().unwrap_or_default();
        Self {
            scenarios,
            most_vus: u64::try_from(most_vus).unwrap_or_default(),
            duration,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::options::Overrides;

    fn plan(options: &Value) -> RunNeeds {
        RunNeeds::new(&Options::compile(options, &Overrides::default()).unwrap())
    }

    #[test]
    fn scenarios_side_by_side_add_up_and_those_in_turn_do_not() {
        let scenario = |vus, start: &str| {
            json!({ "executor": "constant-vus", "vus": vus, "duration": "10s", "startTime": start,
                    "gracefulStop": "5s" })
        };
        let together = json!({ "scenarios": { "a": scenario(3, "0s"), "b": scenario(4, "14s") } });
        let together = plan(&together);
        assert_eq!(together.most_vus, 7);
        assert_eq!(together.duration, Duration::from_secs(29));
        let in_turn = json!({ "scenarios": { "a": scenario(3, "0s"), "b": scenario(4, "15s") } });
        assert_eq!(plan(&in_turn).most_vus, 4);
    }

    #[test]
    fn a_ramp_ends_when_its_last_virtual_user_is_released() {
        let ramp = |down: &str, stop: &str, last: u32| {
            let stages =
                json!([{ "duration": "10s", "target": 10 }, { "duration": "10s", "target": last }]);
            plan(
                &json!({ "scenarios": { "a": { "executor": "ramping-vus", "startVUs": 0, "stages": stages,
                "gracefulRampDown": down, "gracefulStop": stop } } }),
            )
        };
        let seconds = |plan: RunNeeds| (plan.most_vus, plan.duration.as_secs());
        assert_eq!(seconds(ramp("30s", "30s", 0)), (10, 50));
        assert_eq!(seconds(ramp("5s", "30s", 0)), (10, 25));
        assert_eq!(seconds(ramp("5s", "30s", 1)), (10, 50));
        assert_eq!(seconds(ramp("60s", "0s", 0)), (10, 20));
    }

    #[test]
    fn arrivals_count_all_virtual_users_that_may_be_made() {
        let options = json!({ "scenarios": { "a": { "executor": "constant-arrival-rate", "rate": 5,
            "duration": "10s", "preAllocatedVUs": 2, "maxVUs": 9 } } });
        assert_eq!(plan(&options).most_vus, 9);
        assert_eq!(plan(&Value::Null).duration, Duration::from_secs(630));
    }
}
