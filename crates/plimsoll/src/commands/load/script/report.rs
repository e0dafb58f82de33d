//! Result files of a script's run (`--out DIR`).

use plimsoll_k6::Outcome;
use plimsoll_load::conditions::RunFacts;
use plimsoll_model::{Histogram, Pinning, masked_arguments};
use plimsoll_observe::{NamedTarget, Target};
use plimsoll_report::files::{self, ExtraTable};
use plimsoll_report::page::{short_number, short_time};
use serde_json::Value;

use crate::commands::load::is_co_located;
use crate::problem::{Failed, Problem};
use crate::result_folder::ResultFolder;

/// The conditions that are known before the run.
pub(super) fn facts(target: Option<&dyn Target>, observed: &[NamedTarget]) -> RunFacts {
    RunFacts {
        plimsoll: env!("CARGO_PKG_VERSION").to_owned(),
        command: masked_arguments(std::env::args()),
        pinning: Pinning::default(),
        co_located: is_co_located(target, observed),
    }
}

/// Writes the files; nothing where there was no run.
pub(super) fn write(folder: &ResultFolder, outcome: &Outcome) -> Result<(), Problem> {
    let (Some(recorded), Some(data)) = (&outcome.recorded, &outcome.data) else {
        return Ok(());
    };
    let mut tables = tables(data);
    tables.insert(2, iterations(data, &recorded.iterations_from_intended));
    let summary = plimsoll_report::to_json(data);
    let files = files::of_script(&recorded.summary, &tables, summary);
    folder.write(&files).map_err(Failed::into_first)
}

/// What the summary has: thresholds, checks, metrics.
pub(super) fn tables(data: &Value) -> Vec<ExtraTable> {
    vec![thresholds(data), checks(data), metrics(data)]
}

fn table(title: &str, head: &[&str], rows: Vec<Vec<String>>) -> ExtraTable {
    ExtraTable {
        title: title.to_owned(),
        head: head.iter().map(|it| (*it).to_owned()).collect(),
        rows,
    }
}

fn members(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

fn thresholds(data: &Value) -> ExtraTable {
    let mut rows = Vec::new();
    for (metric, entry) in members(&data["metrics"]) {
        for (source, verdict) in members(&entry["thresholds"]) {
            let verdict = match verdict["ok"].as_bool() {
                Some(true) => "met",
                _ => "breached",
            };
            rows.push(vec![metric.clone(), source.clone(), verdict.to_owned()]);
        }
    }
    table(
        "Thresholds of the script",
        &["metric", "condition", "verdict"],
        rows,
    )
}

fn checks(data: &Value) -> ExtraTable {
    let mut rows = Vec::new();
    checks_of(&data["root_group"], &mut rows);
    table("Checks", &["group", "check", "passed", "failed"], rows)
}

fn checks_of(group: &Value, rows: &mut Vec<Vec<String>>) {
    let list = |key: &str| group[key].as_array().into_iter().flatten();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let path = text(&group["path"]);
    for check in list("checks") {
        let number = |key: &str| number(&check[key]);
        let name = text(&check["name"]);
        rows.push(vec![path.clone(), name, number("passes"), number("fails")]);
    }
    for inner in list("groups") {
        checks_of(inner, rows);
    }
}

/// How long iterations took, from their actual and, where they have a schedule, from their intended start.
fn iterations(data: &Value, from_intended: &Histogram) -> ExtraTable {
    let mut rows = Vec::new();
    let values = &data["metrics"]["iteration_duration"]["values"];
    if values.is_object() {
        let stat = |name: &str| {
            let millis = values[name].as_f64();
            millis.map_or_else(String::new, |millis| short_time(millis * 1e3))
        };
        let mut row = vec!["from their start".to_owned()];
        row.extend(["avg", "med", "p(95)", "max"].map(stat));
        rows.push(row);
    }
    if !from_intended.is_empty() {
        let time = |time: Option<std::time::Duration>| {
            time.map_or_else(String::new, |time| short_time(time.as_secs_f64() * 1e6))
        };
        rows.push(vec![
            "from their intended start".to_owned(),
            time(from_intended.mean()),
            time(from_intended.quantile(0.5)),
            time(from_intended.quantile(0.95)),
            time(from_intended.max()),
        ]);
    }
    table(
        "Iterations",
        &["duration", "avg", "med", "p95", "max"],
        rows,
    )
}

/// Every metric of the summary with its figures.
fn metrics(data: &Value) -> ExtraTable {
    let mut rows = Vec::new();
    for (name, entry) in members(&data["metrics"]) {
        let is_time = entry["contains"] == "time";
        let figures = members(&entry["values"]).map(|(stat, value)| match value.as_f64() {
            Some(millis) if is_time && stat != "count" => {
                format!("{stat}={}", short_time(millis * 1e3))
            }
            _ => format!("{stat}={}", number(value)),
        });
        rows.push(vec![name.clone(), figures.collect::<Vec<_>>().join(", ")]);
    }
    table("Metrics of the script", &["metric", "figures"], rows)
}

fn number(value: &Value) -> String {
    value.as_f64().map_or_else(String::new, short_number)
}
