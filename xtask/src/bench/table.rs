//! A benchmark's results as Markdown.

use std::fmt::Write;

use serde_json::Value;

use super::plan::{Case, Limit, Plan};
use crate::Failure;
use crate::step::quoted;

/// A case and the document that `plimsoll compare` made of it.
pub(super) type Measured<'a> = (&'a Case, Value);

/// A limit of the plan and what was measured.
#[derive(Debug)]
pub(super) struct Limited<'a> {
    pub(super) limit: &'a Limit,
    /// A ratio if the limit has a peer, else our median.
    pub(super) value: f64,
    pub(super) met: bool,
}

/// Holds the results against the plan's limits.
pub(super) fn limited<'a>(
    plan: &'a Plan,
    results: &[Measured<'_>],
) -> Result<Vec<Limited<'a>>, Failure> {
    let mut limited = Vec::new();
    for limit in &plan.limits {
        let Some((case, document)) = results.iter().find(|(case, _)| case.name == limit.case)
        else {
            continue;
        };
        let value = match &limit.peer {
            Some(peer) => ratio(plan, case, document, peer, &limit.metric),
            None => median(document, 0, &limit.metric),
        };
        let value = value.ok_or_else(|| {
            format!(
                "no {} was measured for the limit of case {}",
                limit.metric, limit.case
            )
        })?;
        let met = limit.at_most.is_none_or(|bound| value <= bound)
            && limit.at_least.is_none_or(|bound| value >= bound);
        limited.push(Limited { limit, value, met });
    }
    Ok(limited)
}

/// The section of docs/benchmarks.md, without its marks.
///
/// - `paths`: texts and what is written for each of them, applied in this order.
pub(super) fn render(
    plan: &Plan,
    results: &[Measured<'_>],
    limits: &[Limited<'_>],
    versions: &[(String, String)],
    paths: &[(String, &str)],
) -> Result<String, Failure> {
    let mut text = String::new();
    write_all(&mut text, plan, results, limits, versions).map_err(|error| error.to_string())?;
    for (path, shown) in paths {
        text = text.replace(path, shown);
    }
    Ok(text)
}

fn write_all(
    out: &mut String,
    plan: &Plan,
    results: &[Measured<'_>],
    limits: &[Limited<'_>],
    versions: &[(String, String)],
) -> std::fmt::Result {
    writeln!(out, "## {}\n\n{}\n", plan.title, plan.about.trim())?;
    for (case, document) in results {
        write_case(out, plan, case, document)?;
    }
    if !limits.is_empty() {
        write_limits(out, limits)?;
    }
    write_conditions(out, plan, results, versions)
}

fn write_case(out: &mut String, plan: &Plan, case: &Case, document: &Value) -> std::fmt::Result {
    let ours = &plan.operands[0].name;
    writeln!(out, "### {}\n", case.name)?;
    writeln!(
        out,
        "| | CPU µs/request | req/s | p50 µs | p99 µs | peak RSS MB | CPU: {ours} / it [{} %] |",
        document["interval_level"].as_f64().unwrap_or(0.0) * 100.0
    )?;
    writeln!(out, "|---|---|---|---|---|---|---|")?;
    for (index, (operand, _)) in case.operands(plan).into_iter().enumerate() {
        let cell = |metric: &str, scale: f64, decimals: usize| {
            median(document, index, metric).map_or_else(
                || "–".to_owned(),
                |value| format!("{:.decimals$}", value / scale),
            )
        };
        writeln!(
            out,
            "| {} | {} | {} | {} | {} | {} | {} |",
            operand,
            cell("cpu_us_per_request", 1.0, 2),
            cell("rps", 1.0, 0),
            cell("p50_us", 1.0, 0),
            cell("p99_us", 1.0, 0),
            cell("peak_rss_bytes", 1e6, 1),
            ratio_cell(document, index)
        )?;
    }
    writeln!(out)
}

fn ratio_cell(document: &Value, peer: usize) -> String {
    let Some(row) = metric_row(document, peer, "cpu_us_per_request") else {
        return String::new();
    };
    let number = |value: &Value| value.as_f64().unwrap_or(f64::NAN);
    format!(
        "{:.2} [{:.2}–{:.2}]",
        number(&row["ratio"]),
        number(&row["interval"]["low"]),
        number(&row["interval"]["high"])
    )
}

fn write_limits(out: &mut String, limits: &[Limited<'_>]) -> std::fmt::Result {
    writeln!(out, "| limit | measured | |\n|---|---|---|")?;
    for Limited { limit, value, met } in limits {
        let (words, bound) = match (limit.at_most, limit.at_least) {
            (Some(bound), _) => ("at most", bound),
            (None, bound) => ("at least", bound.unwrap_or(f64::NAN)),
        };
        let figure = |value: f64| match (&limit.peer, limit.metric.as_str()) {
            (None, "peak_rss_bytes") => format!("{:.1} MB", value / 1e6),
            (None, _) => format!("{value:.2}"),
            (Some(peer), _) => format!("{value:.2} × {peer}"),
        };
        writeln!(
            out,
            "| {}: {} {words} {} | {} | {} |",
            limit.case,
            limit.metric,
            figure(bound),
            figure(*value),
            if *met { "met" } else { "**not met**" }
        )?;
    }
    writeln!(out)
}

fn write_conditions(
    out: &mut String,
    plan: &Plan,
    results: &[Measured<'_>],
    versions: &[(String, String)],
) -> std::fmt::Result {
    let Some((_, first)) = results.first() else {
        return Ok(());
    };
    let conditions = &first["conditions"];
    let text = |value: &Value| value.as_str().unwrap_or("unknown").to_owned();
    let congestion = conditions["congestion_control"]
        .as_str()
        .map_or(String::new(), |name| format!("; congestion control {name}"));
    writeln!(out, "Conditions:\n")?;
    writeln!(
        out,
        "- {}, {}, {} cores, {}; operands on core {}, {} on core {}, all over loopback{congestion}",
        date(conditions["started_unix_us"].as_u64().unwrap_or(0)),
        text(&conditions["cpu_model"]),
        conditions["cores"],
        text(&conditions["kernel"]),
        plan.pin,
        plan.server.name,
        plan.server.pin,
    )?;
    writeln!(
        out,
        "- {} trials of {} s each, interleaved (A B, B A, …), one warm-up each dropped; medians",
        first["trials"], first["seconds"]
    )?;
    for (name, version) in versions {
        writeln!(out, "- {name}: {version}")?;
    }
    for operand in &plan.operands {
        writeln!(out, "- {}: `{}`", operand.name, shortened(&operand.command))?;
    }
    for (case, _) in results {
        for (operand, command) in &case.commands {
            writeln!(out, "- {operand}, {}: `{}`", case.name, shortened(command))?;
        }
    }
    writeln!(
        out,
        "- {}: `{}`",
        plan.server.name,
        shortened(&plan.server.command)
    )?;
    let warnings_of = |document: &Value| -> Vec<String> {
        let warnings = document["conditions"]["warnings"].as_array();
        warnings.into_iter().flatten().map(text).collect()
    };
    let everywhere: Vec<String> = warnings_of(first)
        .into_iter()
        .filter(|warning| {
            let mut others = results.iter();
            others.all(|(_, document)| warnings_of(document).contains(warning))
        })
        .collect();
    for warning in &everywhere {
        writeln!(out, "- {warning}")?;
    }
    for (case, document) in results {
        for warning in warnings_of(document) {
            if !everywhere.contains(&warning) {
                writeln!(out, "- {}: {warning}", case.name)?;
            }
        }
    }
    let command = conditions["command"].as_array().into_iter().flatten();
    let words: Vec<String> = command.map(|word| quoted(&text(word))).collect();
    writeln!(out, "\n```\n{}\n```", words.join(" "))
}

/// The placeholders of the task mean nothing to a reader.
fn shortened(command: &str) -> String {
    command
        .replace("{release}/examples/", "")
        .replace("{release}/", "")
}

fn median(document: &Value, operand: usize, metric: &str) -> Option<f64> {
    document["operands"][operand]["medians"][metric].as_f64()
}

fn ratio(plan: &Plan, case: &Case, document: &Value, peer: &str, metric: &str) -> Option<f64> {
    let peer = case
        .operands(plan)
        .iter()
        .position(|(operand, _)| *operand == peer)?;
    metric_row(document, peer, metric)?["ratio"].as_f64()
}

/// The row of `metric` in the pair of the first operand and `peer`.
fn metric_row<'a>(document: &'a Value, peer: usize, metric: &str) -> Option<&'a Value> {
    let pairs = document["pairs"].as_array()?;
    let pair = pairs
        .iter()
        .find(|pair| pair["peer"].as_u64() == Some(peer as u64))?;
    let rows = pair["metrics"].as_array()?;
    rows.iter().find(|row| row["metric"] == metric)
}

/// Year-month-day in UTC.
///
/// Source: H. Hinnant, "chrono-Compatible Low-Level Date Algorithms", `civil_from_days`.
fn date(unix_us: u64) -> String {
    let days = unix_us / 1_000_000 / 86_400 + 719_468;
    let era = days / 146_097;
    let day_of_era = days % 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn dates() {
        for (seconds, expected) in [
            (0, "1970-01-01"),
            (951_782_400, "2000-02-29"),
            (1_735_689_599, "2024-12-31"),
            (1_795_200_000, "2026-11-20"),
        ] {
            assert_eq!(date(seconds * 1_000_000), expected);
        }
    }

    fn document(cpu: f64) -> Value {
        json!({
            "interval_level": 0.99, "trials": 5, "seconds": 3,
            "operands": [
                {"medians": {"cpu_us_per_request": cpu, "rps": 1000.0, "peak_rss_bytes": 9e6}},
                {"medians": {"cpu_us_per_request": 5.0, "rps": 900.0}},
            ],
            "pairs": [{"peer": 1, "metrics": [
                {"metric": "cpu_us_per_request", "ratio": cpu / 5.0,
                 "interval": {"low": 0.7, "high": 0.95}}
            ]}],
            "conditions": {"started_unix_us": 0, "cpu_model": "a CPU", "cores": 2,
                "kernel": "Linux 6", "congestion_control": "cubic", "warnings": ["noisy"],
                "command": ["/x/release/plimsoll", "compare", "/x/release/plimsoll load"]},
        })
    }

    fn plan() -> Plan {
        toml::from_str(
            r#"
            title = "Title"
            about = "About."
            trials = 5
            seconds = 3
            pin = "1"
            url = "http://127.0.0.1:{port}/"
            build = []
            [server]
            name = "nginx"
            program = "nginx"
            command = "nginx -p {dir}"
            version = []
            pin = "0"
            ready = "http://127.0.0.1:{port}/"
            [[operand]]
            name = "ours"
            program = "{release}/plimsoll"
            command = "{release}/plimsoll load"
            [[operand]]
            name = "wrk"
            program = "wrk"
            command = "wrk {url}"
            [[case]]
            name = "64 connections"
            connections = 64
            [[case]]
            name = "1 connection"
            connections = 1
            [[limit]]
            case = "64 connections"
            metric = "cpu_us_per_request"
            peer = "wrk"
            at_most = 0.9
            [[limit]]
            case = "64 connections"
            metric = "peak_rss_bytes"
            at_most = 20e6
            "#,
        )
        .unwrap()
    }

    #[test]
    fn limits_are_met_or_not() {
        let plan = plan();
        for (cpu, met) in [(4.0, true), (4.6, false)] {
            let results = [(&plan.cases[0], document(cpu))];
            let limited = limited(&plan, &results).map_err(|error| error.0).unwrap();
            assert_eq!(
                limited.iter().map(|limit| limit.met).collect::<Vec<_>>(),
                [met, true]
            );
        }
    }

    #[test]
    fn the_section_has_figures_limits_and_conditions() {
        let plan = plan();
        let mut stolen = document(4.0);
        stolen["conditions"]["warnings"] = json!(["stolen", "noisy"]);
        let results = [(&plan.cases[0], document(4.0)), (&plan.cases[1], stolen)];
        let limited = limited(&plan, &results).map_err(|error| error.0).unwrap();
        let versions = [("wrk".to_owned(), "wrk 4.1.0".to_owned())];
        let paths = [("/x/release/".to_owned(), "")];
        let text = render(&plan, &results, &limited, &versions, &paths)
            .map_err(|error| error.0)
            .unwrap();
        for expected in [
            "| ours | 4.00 | 1000 | – | – | 9.0 |  |",
            "| wrk | 5.00 | 900 | – | – | – | 0.80 [0.70–0.95] |",
            "| 64 connections: cpu_us_per_request at most 0.90 × wrk | 0.80 × wrk | met |",
            "| 64 connections: peak_rss_bytes at most 20.0 MB | 9.0 MB | met |",
            "- 1970-01-01, a CPU, 2 cores, Linux 6; operands on core 1, nginx on core 0, \
             all over loopback; congestion control cubic\n",
            "- wrk: wrk 4.1.0",
            "- ours: `plimsoll load`",
            "\n- noisy\n",
            "- 1 connection: stolen",
            "plimsoll compare 'plimsoll load'",
        ] {
            assert!(text.contains(expected), "no `{expected}` in\n{text}");
        }
        // What holds for every case is printed once.
        assert_eq!(text.matches("noisy").count(), 1, "{text}");
    }
}
