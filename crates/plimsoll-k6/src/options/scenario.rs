//! Scenarios, and the shortcuts for a single one.

use std::time::Duration;

use plimsoll_load::scenario::Executor;
use plimsoll_load::scenario::executor::{
    ConstantArrivalRate, ConstantVus, PerVuIterations, RampingArrivalRate, RampingVus,
    SharedIterations, Stage,
};
use serde_json::Value;

use super::{Overrides, Reader};
use crate::options::duration;

/// A scenario, checked.
#[derive(Debug, Clone)]
pub(crate) struct ScenarioOptions {
    pub(crate) name: String,
    /// Whether options for a single scenario stand for it.
    pub(crate) is_shortcut: bool,
    pub(crate) executor: Executor,
    pub(crate) start_time: Duration,
    pub(crate) graceful_stop: Duration,
    /// The exported function.
    pub(crate) exec: String,
    pub(crate) env: Vec<(String, String)>,
    pub(crate) tags: Vec<(String, String)>,
}

const GRACE: Duration = Duration::from_secs(30);
const MAX_DURATION: Duration = Duration::from_mins(10);

/// Shorter scenarios are rejected, as by k6.
const LEAST_DURATION: Duration = Duration::from_secs(1);

/// Virtual users of a scenario: each takes memory for a VM, far more than a machine has at this number.
const MOST_VUS: u64 = 1_000_000;

/// The scenarios of a run. Each of `duration`, `iterations`, `stages` and `scenarios` on the command line takes the
/// place of all four in the script.
///
/// What counts if several are given is k6's choice: the first of `iterations`, `duration`, stages, `vus` alone, and scenarios.
pub(crate) fn scenarios(reader: &mut Reader<'_>, overrides: &Overrides) -> Vec<ScenarioOptions> {
    let of_script = Shortcuts {
        vus: reader.optional_count("vus"),
        duration: reader.optional_duration("duration"),
        iterations: reader.optional_count("iterations"),
        stages: reader
            .read_key("stages")
            .map(|stages| match stages.as_array() {
                Some(list) if list.is_empty() => Vec::new(),
                _ => stages_of(reader, "stages", stages, Untimed::Ignored),
            }),
    };
    let of_script = (of_script, reader.read_key("scenarios"));
    let of_command = Shortcuts {
        vus: overrides.vus.map(u64::from).or(of_script.0.vus),
        duration: overrides.duration,
        iterations: overrides.iterations,
        stages: (!overrides.stages.is_empty()).then(|| {
            let stages = overrides.stages.iter();
            stages
                .map(|(duration, target)| Stage {
                    duration: *duration,
                    target: *target,
                })
                .collect()
        }),
    };
    let (shortcuts, scenarios) = if of_command.says_when() {
        (of_command, None)
    } else {
        let vus = of_command.vus;
        (Shortcuts { vus, ..of_script.0 }, of_script.1)
    };
    let Some(scenarios) = scenarios else {
        return vec![shortcuts.scenario(reader)];
    };
    if shortcuts.says_when() {
        reader.error(
            "scenarios",
            "cannot be combined with duration, iterations or stages",
        );
    }
    if let (Some(vus), None, false) = (shortcuts.vus, &shortcuts.stages, shortcuts.says_when()) {
        reader.warn(&format!(
            "options.vus: {vus} takes the place of options.scenarios, as in k6"
        ));
        return vec![shortcuts.scenario(reader)];
    }
    let Some(map) = scenarios.as_object() else {
        reader.error("scenarios", "must be an object");
        return Vec::new();
    };
    if map.is_empty() {
        reader.warn("options.scenarios is empty, so the script runs once, as in k6");
        return vec![shortcuts.scenario(reader)];
    }
    let mut all = Vec::new();
    for (name, value) in map {
        let path = format!("scenarios.{name}");
        let is_name = name
            .bytes()
            .all(|it| it.is_ascii_alphanumeric() || b"_-".contains(&it));
        if !is_name || name.is_empty() {
            reader.error(
                &path,
                "has a name with other characters than letters, digits, `_` and `-`",
            );
        }
        let Some(map) = value.as_object() else {
            reader.error(&path, "must be an object");
            continue;
        };
        let mut inner = Reader::within(map, format!("{path}."));
        let scenario = one(&mut inner, name);
        reader.absorb(&inner);
        all.extend(scenario);
    }
    all
}

/// Options that describe a single scenario.
#[derive(Debug, Default)]
struct Shortcuts {
    vus: Option<u64>,
    duration: Option<Duration>,
    iterations: Option<u64>,
    /// Without any, they only keep `vus` from counting alone.
    stages: Option<Vec<Stage>>,
}

impl Shortcuts {
    fn says_when(&self) -> bool {
        let has_stages = self.stages.as_ref().is_some_and(|it| !it.is_empty());
        self.duration.is_some() || self.iterations.is_some() || has_stages
    }

    fn scenario(self, reader: &mut Reader<'_>) -> ScenarioOptions {
        let vus = checked_vus(reader, "vus", self.vus.unwrap_or(1).max(1));
        let counts_alone = self.vus.is_some() && self.stages.is_none();
        let stages = self.stages.filter(|stages| !stages.is_empty());
        let executor = match (self.iterations, stages, self.duration) {
            (Some(_), Some(_), _) | (_, Some(_), Some(_)) => {
                reader.error("stages", "cannot be combined with duration or iterations");
                Executor::ConstantVus(ConstantVus {
                    vus,
                    duration: MAX_DURATION,
                })
            }
            (Some(iterations), None, duration) => {
                if iterations < u64::from(vus) {
                    reader.error("iterations", "must not be less than vus");
                }
                if duration.is_some_and(|it| it < LEAST_DURATION) {
                    reader.error("duration", "must be at least 1s");
                }
                Executor::SharedIterations(SharedIterations {
                    vus,
                    iterations,
                    max_duration: duration.unwrap_or(MAX_DURATION),
                })
            }
            (None, Some(stages), None) => {
                let start = self.vus.map_or(1, |_| vus);
                Executor::RampingVus(RampingVus::new(start, &stages, GRACE))
            }
            (None, None, Some(duration)) => {
                if duration < Duration::from_secs(1) {
                    reader.error("duration", "must be at least 1s");
                }
                Executor::ConstantVus(ConstantVus { vus, duration })
            }
            (None, None, None) if counts_alone => Executor::SharedIterations(SharedIterations {
                vus,
                iterations: u64::from(vus),
                max_duration: MAX_DURATION,
            }),
            (None, None, None) => Executor::PerVuIterations(PerVuIterations {
                vus: 1,
                iterations: 1,
                max_duration: MAX_DURATION,
            }),
        };
        ScenarioOptions {
            name: "default".to_owned(),
            is_shortcut: true,
            executor,
            start_time: Duration::ZERO,
            graceful_stop: GRACE,
            exec: "default".to_owned(),
            env: Vec::new(),
            tags: Vec::new(),
        }
    }
}

fn one(reader: &mut Reader<'_>, name: &str) -> Option<ScenarioOptions> {
    if let Some(options) = reader.read_key("options")
        && options.get("browser").is_some()
    {
        reader.error(
            "options.browser",
            "needs browser automation, which plimsoll does not support",
        );
    }
    let Some(kind) = reader.text("executor") else {
        reader.error("executor", "is missing");
        return None;
    };
    let scenario = ScenarioOptions {
        name: name.to_owned(),
        is_shortcut: false,
        start_time: reader.duration("startTime", Duration::ZERO),
        graceful_stop: reader.duration("gracefulStop", GRACE),
        exec: reader.text("exec").unwrap_or_else(|| "default".to_owned()),
        env: reader.texts("env"),
        tags: reader.texts("tags"),
        executor: executor(reader, &kind)?,
    };
    Some(scenario)
}

fn executor(reader: &mut Reader<'_>, kind: &str) -> Option<Executor> {
    Some(match kind {
        "shared-iterations" => {
            let vus = vus(reader, "vus", 1);
            let iterations = reader.optional_count("iterations").unwrap_or(1);
            if iterations < u64::from(vus) {
                reader.error("iterations", "must not be less than vus");
            }
            Executor::SharedIterations(SharedIterations {
                vus,
                iterations,
                max_duration: max_duration(reader),
            })
        }
        "per-vu-iterations" => Executor::PerVuIterations(PerVuIterations {
            vus: vus(reader, "vus", 1),
            iterations: reader.optional_count("iterations").unwrap_or(1),
            max_duration: max_duration(reader),
        }),
        "constant-vus" => Executor::ConstantVus(ConstantVus {
            vus: vus(reader, "vus", 1),
            duration: required_duration(reader),
        }),
        "ramping-vus" => {
            let start = reader.optional_count("startVUs").unwrap_or(1);
            let start = checked_vus(reader, "startVUs", start);
            let stages = required_stages(reader);
            let grace = reader.duration("gracefulRampDown", GRACE);
            let ramp = RampingVus::new(start, &stages, grace);
            if ramp.most_vus() == 0 {
                reader.error("stages", "have no virtual users at any time");
            }
            Executor::RampingVus(ramp)
        }
        "constant-arrival-rate" => {
            let rate = reader.optional_count("rate");
            if rate.is_none_or(|rate| rate == 0) {
                reader.error("rate", "must be given and at least 1");
            }
            let (pre_allocated_vus, most_vus) = allocated(reader);
            Executor::ConstantArrivalRate(ConstantArrivalRate {
                rate: rate.map_or(1, |rate| u32::try_from(rate).unwrap_or(u32::MAX)),
                time_unit: time_unit(reader),
                duration: required_duration(reader),
                pre_allocated_vus,
                most_vus,
            })
        }
        "ramping-arrival-rate" => {
            let start = reader.count("startRate", 0);
            let unit = time_unit(reader);
            let stages = required_stages(reader);
            let (pre_allocated, most) = allocated(reader);
            Executor::RampingArrivalRate(RampingArrivalRate::new(
                start,
                unit,
                &stages,
                pre_allocated,
                most,
            ))
        }
        "externally-controlled" => {
            reader.error("executor", "externally-controlled was removed in k6 v2.0");
            return None;
        }
        other => {
            let message = format!(
                "is `{other}`, which is not one of shared-iterations, per-vu-iterations, constant-vus, ramping-vus, constant-arrival-rate and ramping-arrival-rate"
            );
            reader.error("executor", &message);
            return None;
        }
    })
}

fn vus(reader: &mut Reader<'_>, key: &'static str, default: u64) -> u32 {
    let vus = reader.optional_count(key).unwrap_or(default);
    if vus == 0 {
        reader.error(key, "must be at least 1");
    }
    checked_vus(reader, key, vus)
}

fn checked_vus(reader: &mut Reader<'_>, key: &str, vus: u64) -> u32 {
    if vus > MOST_VUS {
        reader.error(key, &format!("is more than {MOST_VUS}"));
    }
    u32::try_from(vus.min(MOST_VUS)).unwrap_or(1)
}

fn allocated(reader: &mut Reader<'_>) -> (u32, u32) {
    let pre_allocated = reader.optional_count("preAllocatedVUs");
    if pre_allocated.is_none() {
        reader.error("preAllocatedVUs", "is missing");
    }
    let pre_allocated = checked_vus(reader, "preAllocatedVUs", pre_allocated.unwrap_or(1));
    let most = reader
        .optional_count("maxVUs")
        .unwrap_or(pre_allocated.into());
    let most = checked_vus(reader, "maxVUs", most);
    if most < pre_allocated {
        reader.error("maxVUs", "must not be less than preAllocatedVUs");
    }
    if most == 0 {
        reader.error("maxVUs", "must be at least 1");
    }
    (pre_allocated, most)
}

fn max_duration(reader: &mut Reader<'_>) -> Duration {
    let duration = reader.duration("maxDuration", MAX_DURATION);
    if duration < LEAST_DURATION {
        reader.error("maxDuration", "must be at least 1s");
    }
    duration
}

fn time_unit(reader: &mut Reader<'_>) -> Duration {
    let unit = reader.duration("timeUnit", Duration::from_secs(1));
    if unit.is_zero() {
        reader.error("timeUnit", "must not be 0");
        return Duration::from_secs(1);
    }
    unit
}

fn required_duration(reader: &mut Reader<'_>) -> Duration {
    match reader.optional_duration("duration") {
        Some(duration) if duration >= Duration::from_secs(1) => duration,
        Some(_) => {
            reader.error("duration", "must be at least 1s");
            Duration::from_secs(1)
        }
        None => {
            reader.error("duration", "is missing");
            Duration::from_secs(1)
        }
    }
}

fn required_stages(reader: &mut Reader<'_>) -> Vec<Stage> {
    let Some(value) = reader.read_key("stages") else {
        reader.error("stages", "is missing");
        return Vec::new();
    };
    stages_of(reader, "stages", value, Untimed::Refused)
}

/// What becomes of stages without a duration, such as holes in the list.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Untimed {
    /// In `options.stages`, as in k6.
    Ignored,
    /// In scenarios.
    Refused,
}

fn stages_of(reader: &mut Reader<'_>, key: &str, value: &Value, untimed: Untimed) -> Vec<Stage> {
    let Some(list) = value.as_array().filter(|list| !list.is_empty()) else {
        reader.error(key, "must be a list of { duration, target }");
        return Vec::new();
    };
    let is_untimed = |stage: &Value| {
        let duration = stage.get("duration").unwrap_or(&Value::Null);
        (stage.is_null() || stage.is_object()) && duration.is_null()
    };
    if untimed == Untimed::Ignored && list.iter().all(is_untimed) {
        reader.error(key, "must have a stage with a duration");
    }
    let mut stages = Vec::new();
    for (position, stage) in list.iter().enumerate() {
        if untimed == Untimed::Ignored && is_untimed(stage) {
            continue;
        }
        let length = stage.get("duration").map(duration::from_json);
        let target = stage.get("target").and_then(Value::as_f64);
        let target = target.filter(|it| (0.0..=1e9).contains(it) && it.fract() == 0.0);
        match (length, target) {
            (Some(Ok(duration)), Some(target)) => stages.push(Stage {
                duration,
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "it is whole and between 0 and 1e9"
                )]
                target: target as u32,
            }),
            (Some(Err(message)), _) => {
                reader.error(&format!("{key}[{position}].duration"), &message.to_string());
            }
            _ => reader.error(
                &format!("{key}[{position}]"),
                "must have a duration and a target that is a whole number",
            ),
        }
    }
    stages
}
