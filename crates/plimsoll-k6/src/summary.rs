//! The summary of a run: its data as scripts get it, its text, and the shape of `--summary-export`.

mod breakdown;

mod humanize;

mod legacy;

mod machine_readable;

mod text;

use std::time::Duration;

use plimsoll_load::scenario::{Metric, MetricKind, Sink, Sinks};
use serde_json::{Map, Value, json};

use crate::crypto::hex;
use crate::metrics::TrendStat;
use crate::metrics::checks::Group;
use crate::metrics::thresholds::{Thresholds, per_second};
use crate::options::{Options, TimeUnit};

pub(crate) use self::breakdown::Breakdown;
pub(crate) use self::humanize::humanize;
pub(crate) use self::legacy::{LegacyLook, legacy_text_of};
pub use self::machine_readable::K6_VERSION;
pub(crate) use self::machine_readable::machine_readable;
pub(crate) use self::text::{full_text_of, text_of};

/// The input of a summary.
pub(crate) struct Facts<'a> {
    pub(crate) options: &'a Options,
    pub(crate) checks: &'a Group,
    pub(crate) sinks: &'a Sinks,
    pub(crate) thresholds: &'a Thresholds,
    pub(crate) took: Duration,
    pub(crate) has_colors: bool,
    /// For standard output and standard error: true if it is a terminal.
    pub(crate) terminals: (bool, bool),
    /// JSON.
    pub(crate) setup_data: Option<&'a str>,
}

/// The argument of `handleSummary()`.
pub(crate) fn data(facts: &Facts<'_>) -> Value {
    let mut metrics = Map::new();
    for metric in facts.sinks.registry().metrics() {
        add(facts, &mut metrics, &metric);
    }
    let unit = match facts.options.time_unit {
        None => "",
        Some(TimeUnit::Seconds) => "s",
        Some(TimeUnit::Milliseconds) => "ms",
        Some(TimeUnit::Microseconds) => "us",
    };
    let mut made = json!({
        "root_group": group(facts.checks),
        "options": {
            "summaryTrendStats": facts.options.trend_stats,
            "summaryTimeUnit": unit,
            // On a terminal without colours, the user wants none.
            "noColor": facts.terminals.0 && !facts.has_colors,
        },
        "state": {
            "isStdOutTTY": facts.terminals.0,
            "isStdErrTTY": facts.terminals.1,
            "testRunDurationMs": crate::options::duration::millis(facts.took),
        },
        "metrics": metrics,
    });
    let setup = facts.setup_data.map(serde_json::from_str::<Value>);
    // Without a result of `setup()` there is no such key, which is `undefined` to a script.
    if let Some(Ok(setup)) = setup {
        made["setup_data"] = setup;
    }
    made
}

/// Adds a metric and its sub-metrics, as far as they have samples or thresholds.
fn add(facts: &Facts<'_>, metrics: &mut Map<String, Value>, metric: &Metric) {
    let has_judged_part = metric.sub_metrics.iter().any(|sub| {
        let mut judged = facts.thresholds.judged.iter();
        judged.any(|judged| *judged.metric == *sub.name)
    });
    let series = metric.sub_metrics.iter().map(|sub| (&sub.name, sub.series));
    for (name, series) in std::iter::once((&metric.name, metric.series)).chain(series) {
        let mut judged = facts.thresholds.judged.iter();
        let judged = judged.find(|judged| *judged.metric == **name);
        let sink = facts.sinks.series(series);
        // A metric whose sub-metric is judged is there too.
        let has_judged = judged.is_some() || (*name == metric.name && has_judged_part);
        if sink.is_none() && !has_judged {
            continue;
        }
        let values = match sink {
            Some(sink) => values(facts, sink),
            // A server that was not observed all the time did not spend 0.
            None if facts.thresholds.judges_server(&metric.name) => json!({}),
            None => values(facts, &Sink::for_metric(metric)),
        };
        let mut entry = json!({
            "type": metric.kind.name(),
            "contains": metric.contains.name(),
            "values": values,
        });
        if let Some(judged) = judged {
            let thresholds = judged.thresholds.iter();
            let thresholds: Map<_, _> = thresholds
                .map(|threshold| (threshold.source.clone(), json!({ "ok": threshold.is_met })))
                .collect();
            entry["thresholds"] = Value::Object(thresholds);
        }
        metrics.insert(name.to_string(), entry);
    }
}

/// The percentiles that thresholds were judged by, by metric and source: the summary has some of them only.
pub(crate) fn judged(thresholds: &Thresholds) -> Value {
    let metrics = thresholds.judged.iter().map(|judged| {
        let percentiles = judged
            .thresholds
            .iter()
            .filter(|it| it.source.trim().starts_with("p("));
        let values = percentiles.map(|it| (it.source.clone(), json!(it.value.unwrap_or_default())));
        (judged.metric.clone(), Value::Object(values.collect()))
    });
    Value::Object(metrics.collect())
}

/// The summary by groups and scenarios.
pub(crate) fn parts(facts: &Facts<'_>, breakdown: &Breakdown) -> Value {
    breakdown.data(facts.options, facts.took)
}

fn values(facts: &Facts<'_>, sink: &Sink) -> Value {
    values_of(facts.options, facts.took, sink)
}

fn values_of(options: &Options, took: Duration, sink: &Sink) -> Value {
    match sink {
        Sink::Counter(sum) => json!({ "count": whole(*sum), "rate": per_second(*sum, took) }),
        Sink::Gauge(gauge) => {
            json!({ "value": whole(gauge.value), "min": whole(gauge.min), "max": whole(gauge.max) })
        }
        Sink::Rate(rate) => json!({
            "rate": rate.rate(),
            "passes": rate.passes,
            "fails": rate.total - rate.passes,
        }),
        Sink::Trend(trend) => {
            let stats = options.trend_stats.iter();
            let values = stats.filter_map(|stat| {
                let value = TrendStat::parse(stat)?.value_in(trend);
                Some((stat.clone(), whole(value)))
            });
            Value::Object(values.collect())
        }
    }
}

/// Whole numbers without a fraction, as JavaScript writes them.
pub(crate) fn whole(number: f64) -> Value {
    if number.fract() == 0.0 && number.abs() < 9e15 {
        #[expect(clippy::cast_possible_truncation, reason = "it is whole and small")]
        return json!(number as i64);
    }
    json!(number)
}

fn group(group: &Group) -> Value {
    let groups: Vec<_> = group.groups.iter().map(self::group).collect();
    let checks: Vec<_> = group
        .checks
        .iter()
        .map(|check| {
            json!({
                "name": check.name,
                "path": check.path,
                "id": id(&check.path),
                "passes": check.passes(),
                "fails": check.fails(),
            })
        })
        .collect();
    json!({
        "name": group.name,
        "path": group.path,
        "id": id(&group.path),
        "groups": groups,
        "checks": checks,
    })
}

/// The MD5 of a path, as k6 names groups and checks.
pub(crate) fn id(path: &str) -> String {
    use md5::{Digest as _, Md5};
    let digest = Md5::digest(path.as_bytes());
    hex(&digest)
}

/// The shape of `--summary-export`: values beside the metric, groups and checks by name, thresholds true where they
/// failed.
pub(crate) fn export(data: &Value) -> Value {
    let mut metrics = Map::new();
    for (name, metric) in data["metrics"].as_object().into_iter().flatten() {
        let mut entry = Map::new();
        for (key, value) in metric["values"].as_object().into_iter().flatten() {
            let is_rate = metric["type"] == MetricKind::Rate.name();
            let key = if is_rate && key == "rate" {
                "value"
            } else {
                key
            };
            entry.insert(key.to_owned(), value.clone());
        }
        if let Some(thresholds) = metric["thresholds"].as_object() {
            let failed = thresholds.iter().map(|(source, judged)| {
                let is_met = judged["ok"].as_bool().unwrap_or(true);
                (source.clone(), Value::Bool(!is_met))
            });
            entry.insert("thresholds".to_owned(), Value::Object(failed.collect()));
        }
        metrics.insert(name.clone(), Value::Object(entry));
    }
    let mut made = json!({ "metrics": metrics, "root_group": by_name(&data["root_group"]) });
    if let Some(setup) = data.get("setup_data") {
        made["setup_data"] = setup.clone();
    }
    made
}

fn by_name(group: &Value) -> Value {
    let mut made = group.clone();
    for key in ["groups", "checks"] {
        let list = group[key].as_array().into_iter().flatten();
        let entries = list.map(|entry| {
            let name = entry["name"].as_str().unwrap_or_default().to_owned();
            let entry = if key == "groups" {
                by_name(entry)
            } else {
                entry.clone()
            };
            (name, entry)
        });
        made[key] = Value::Object(entries.collect());
    }
    made
}

#[cfg(test)]
mod tests;
