//! Samples by scenario and group, for the summary in full.

use std::collections::BTreeMap;
use std::time::Duration;

use plimsoll_load::scenario::{Metric, MetricId, Point, Points, Registry, Sink};
use serde_json::{Map, Value, json};

use super::values_of;
use crate::metrics::BuiltIn;
use crate::metrics::checks::SEPARATOR;
use crate::options::Options;

/// Parts that are kept; samples of more groups are left out. People write some tens.
const MOST_PARTS: usize = 10_000;

/// Samples of each group within each scenario, in the order in which they first occurred.
#[derive(Debug)]
pub(crate) struct Breakdown {
    registry: Registry,
    /// The metrics of checks, and of the time of groups, which is shown nowhere.
    checks: MetricId,
    group_duration: MetricId,
    scenarios: Vec<Part>,
    parts: usize,
}

/// The samples of a scenario, with those of its groups; or of a group, without those of groups in it.
#[derive(Debug, Default)]
struct Part {
    name: String,
    /// By the number of the metric.
    sinks: BTreeMap<u32, Sink>,
    /// Names with passed and failed ones.
    checks: Vec<(String, u64, u64)>,
    groups: Vec<Part>,
}

impl Part {
    fn add(&mut self, metric: &Metric, point: &Point, check: Option<&str>) {
        let sink = self.sinks.entry(point.metric.number());
        let sink = sink.or_insert_with(|| Sink::for_metric(metric));
        sink.add(point.value, point.at);
        let Some(name) = check else { return };
        let position = self.checks.iter().position(|(other, ..)| other == name);
        let position = position.unwrap_or_else(|| {
            self.checks.push((name.to_owned(), 0, 0));
            self.checks.len() - 1
        });
        let (_, passes, fails) = &mut self.checks[position];
        if point.value == 0.0 {
            *fails += 1;
        } else {
            *passes += 1;
        }
    }
}

impl Breakdown {
    /// - `built_in`: of the registry.
    pub(crate) fn new(registry: &Registry, built_in: &BuiltIn) -> Self {
        Self {
            registry: registry.clone(),
            checks: built_in.checks,
            group_duration: built_in.group_duration,
            scenarios: Vec::new(),
            parts: 0,
        }
    }

    pub(crate) fn add(&mut self, points: &Points) {
        for point in &points.all {
            let tag = |name: &str| {
                let mut tags = point.tags.iter().rev();
                let found = tags.find(|(other, _)| other == name);
                found.map_or("", |(_, value)| value.as_str())
            };
            let Some(metric) = self.registry.get(point.metric) else {
                continue;
            };
            let check = (point.metric == self.checks).then(|| tag("check"));
            let mut made = 0;
            let scenario = part(&mut self.scenarios, tag("scenario"), &mut made);
            if point.metric != self.group_duration {
                scenario.add(&metric, point, check);
            }
            if self.parts < MOST_PARTS {
                let mut group = scenario;
                let names = tag("group").split(SEPARATOR).skip(1);
                let mut is_within = false;
                for name in names {
                    group = part(&mut group.groups, name, &mut made);
                    is_within = true;
                }
                if is_within && point.metric != self.group_duration {
                    group.add(&metric, point, check);
                }
            }
            self.parts += made;
        }
    }

    /// The parts that are shown, in the shape of the data of a summary: groups of the only scenario, or all scenarios with their
    /// groups.
    pub(super) fn data(&self, options: &Options, took: Duration) -> Value {
        let list = |parts: &[Part]| -> Vec<Value> {
            let parts = parts.iter().filter(|part| !part.name.is_empty());
            parts.map(|part| self.part(part, options, took)).collect()
        };
        let is_alone = matches!(options.scenarios.as_slice(), [only] if only.name == "default");
        if is_alone {
            let groups = self.scenarios.iter().flat_map(|it| list(&it.groups));
            return json!({ "groups": groups.collect::<Vec<_>>(), "scenarios": [] });
        }
        json!({ "groups": [], "scenarios": list(&self.scenarios) })
    }

    fn part(&self, part: &Part, options: &Options, took: Duration) -> Value {
        let metrics = part.sinks.iter().filter_map(|(id, sink)| {
            let metric = self.registry.get(MetricId::of_number(*id))?;
            let entry = json!({
                "type": metric.kind.name(),
                "contains": metric.contains.name(),
                "values": values_of(options, took, sink),
            });
            Some((metric.name.to_string(), entry))
        });
        let checks = part
            .checks
            .iter()
            .map(|(name, passes, fails)| json!({ "name": name, "passes": passes, "fails": fails }));
        let groups = part.groups.iter();
        let groups = groups.map(|group| self.part(group, options, took));
        json!({
            "name": part.name,
            "metrics": metrics.collect::<Map<String, Value>>(),
            "checks": checks.collect::<Vec<_>>(),
            "groups": groups.collect::<Vec<_>>(),
        })
    }
}

/// The part of that name, which is made if there is none.
fn part<'p>(parts: &'p mut Vec<Part>, name: &str, made: &mut usize) -> &'p mut Part {
    let position = parts.iter().position(|part| part.name == name);
    let position = position.unwrap_or_else(|| {
        *made += 1;
        parts.push(Part {
            name: name.to_owned(),
            ..Part::default()
        });
        parts.len() - 1
    });
    &mut parts[position]
}
