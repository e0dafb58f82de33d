//! docs/performance.md: the tables of the sources, each cell with ours beside theirs.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::Value;

use super::plan::{Cell, Plan, Table, Unit};
use crate::Failure;

/// What each run came to, by plan and name.
pub(super) type Found = BTreeMap<(String, String), Result<Value, String>>;

const IN_MEMORY: &str = "writing to memory does not fail";

/// The document.
///
/// - `machine`: `conditions` of a summary of load.
pub(super) fn render(
    plans: &[Plan],
    found: &Found,
    machine: &Value,
    full: bool,
) -> Result<String, Failure> {
    let mut text = String::from(
        "# Performance\n\nWhat the documents of earlier tools measure, measured again by `cargo xtask sources`: their figure, then \
         **ours**. Theirs are from their own machines, ours from the one below, so no two of a cell are a comparison; \
         [benchmarks](benchmarks.md) has those, each from one run with its peers.\n\n\
         A cell without a figure of ours says *not run here because* or *out because*; the reasons are below its table.\n\n",
    );
    set_up(&mut text, machine, full);
    signals(&mut text);
    for plan in plans {
        write!(text, "## {}\n\n", plan.title).expect(IN_MEMORY);
        for paragraph in &plan.about {
            write!(text, "{paragraph}\n\n").expect(IN_MEMORY);
        }
        for run in &plan.run {
            let more = if full { &run.full } else { &run.quick };
            let words: Vec<String> = run
                .command
                .iter()
                .chain(more)
                .map(|word| shown(word))
                .collect();
            let program = match run.kind {
                super::plan::Kind::Json | super::plan::Kind::Profile => "",
                super::plan::Kind::Criterion => "cargo bench --profile dist -p plimsoll-bench -- ",
            };
            writeln!(text, "- `{program}{}`", words.join(" ")).expect(IN_MEMORY);
        }
        text.push('\n');
        for table in &plan.table {
            table_of(&mut text, plan, table, found)?;
        }
    }
    text.push_str("## What is not characterised\n\n");
    for line in plans.iter().flat_map(|plan| &plan.not_characterised) {
        writeln!(text, "- {line}").expect(IN_MEMORY);
    }
    Ok(text)
}

/// A word of a command as a reader would type it.
fn shown(word: &str) -> String {
    let word = word
        .replace("{plimsoll}", "plimsoll")
        .replace("{dir}", "examples/sources")
        .replace("{out}", "result");
    crate::step::quoted(&word)
}

fn set_up(text: &mut String, machine: &Value, full: bool) {
    let fact = |name: &str| match &machine[name] {
        Value::String(fact) => fact.clone(),
        Value::Null => "unknown".to_owned(),
        other => other.to_string(),
    };
    let memory = machine["memory_bytes"].as_f64().unwrap_or(0.0) / 1e9;
    write!(
        text,
        "## Set-up\n\n{}, {} cores, {memory:.1} GB, {}; plimsoll {}. Generator and target share the machine; everything goes over the \
         loopback. Load before: {}. Durations: {}.\n\n",
        fact("cpu_model"),
        fact("cores"),
        fact("kernel"),
        fact("plimsoll"),
        machine["load_before"][0],
        if full {
            "those of the sources"
        } else {
            "shorter than those of the sources; `--full` takes theirs"
        }
    )
    .expect(IN_MEMORY);
}

fn signals(text: &mut String) {
    text.push_str(
        "## Three signals, in order of trust\n\n\
         1. **Processor time per request**: it hardly depends on who shares the machine.\n\
         2. **Latency below the knee**: of an open loop at a rate that the target carries with ease.\n\
         3. **Peak rate**: of this machine with all that runs on it, ± 20 to 30 % from run to run.\n\n",
    );
}

fn table_of(text: &mut String, plan: &Plan, table: &Table, found: &Found) -> Result<(), Failure> {
    write!(text, "### {}\n\n", table.title).expect(IN_MEMORY);
    writeln!(text, "| {} |", table.head.join(" | ")).expect(IN_MEMORY);
    writeln!(text, "|{}", "---|".repeat(table.head.len())).expect(IN_MEMORY);
    let mut reasons: Vec<String> = Vec::new();
    for row in &table.row {
        write!(text, "| {} |", row.label).expect(IN_MEMORY);
        for cell in &row.cell {
            let theirs = &cell.theirs;
            match ours(plan, cell, found)? {
                Ours::Measured(figure) => write!(text, " {theirs}; **{figure}** |"),
                Ours::Absent(why, reason) => {
                    let known = reasons.iter().position(|known| *known == reason);
                    let mark = mark(known.unwrap_or(reasons.len()));
                    if known.is_none() {
                        reasons.push(reason);
                    }
                    write!(text, " {theirs}; *{why}* ({mark}) |")
                }
            }
            .expect(IN_MEMORY);
        }
        text.push('\n');
    }
    text.push('\n');
    if !reasons.is_empty() {
        for (number, reason) in reasons.iter().enumerate() {
            let end = if number + 1 < reasons.len() { ";" } else { "." };
            writeln!(text, "({}) {reason}{end}", mark(number)).expect(IN_MEMORY);
        }
        text.push('\n');
    }
    Ok(())
}

/// `a`, `b`, …: what a reason is called in its table.
fn mark(number: usize) -> char {
    let letter = u8::try_from(number).unwrap_or(u8::MAX).min(25);
    char::from(b'a' + letter)
}

/// What stands beside a figure of theirs.
enum Ours {
    Measured(String),
    /// Why there is nothing, and the reason.
    Absent(&'static str, String),
}

const NOT_RUN: &str = "not run here because";

const OUT: &str = "out because";

fn ours(plan: &Plan, cell: &Cell, found: &Found) -> Result<Ours, Failure> {
    if let Some(reason) = &cell.not_run {
        return Ok(Ours::Absent(NOT_RUN, reason.clone()));
    }
    if let Some(reason) = &cell.out {
        return Ok(Ours::Absent(OUT, reason.clone()));
    }
    let (Some(run), Some(at)) = (&cell.run, &cell.at) else {
        return Err(format!("{}: a cell without a figure", plan.name).into());
    };
    let result = found
        .get(&(plan.name.clone(), run.clone()))
        .ok_or_else(|| format!("{}: {run} was not run", plan.name))?;
    match result {
        Err(reason) => Ok(Ours::Absent(NOT_RUN, first_line(reason))),
        Ok(document) => {
            if let Some(absent) = absent(document, at) {
                return Ok(absent);
            }
            let text = match (find(document, at), &cell.beside) {
                (Some(value), None) => in_unit(value, cell),
                (Some(value), Some(beside)) => {
                    find(document, beside).and_then(|beside| gap(value, beside))
                }
                (None, _) => None,
            };
            match text {
                Some(text) => Ok(Ours::Measured(text)),
                // A cell that is there has what its tool reports.
                None if is_of_a_lab(document, at) => Ok(Ours::Absent(
                    NOT_RUN,
                    "the generator does not report it".to_owned(),
                )),
                None => Err(format!("{}: {run} has no figure at {at}", plan.name).into()),
            }
        }
    }
}

/// The value at a JSON pointer in which `[name=one,load=c8]` is the element of an array that has these values.
fn find<'a>(document: &'a Value, pointer: &str) -> Option<&'a Value> {
    let mut value = document;
    for part in pointer.strip_prefix('/')?.split('/') {
        let wanted = part
            .strip_prefix('[')
            .and_then(|part| part.strip_suffix(']'));
        value = match wanted {
            None => value.pointer(&format!("/{part}"))?,
            Some(wanted) => {
                let is_wanted = |element: &&Value| {
                    wanted.split(',').all(|condition| {
                        let pair = condition.split_once('=');
                        pair.is_some_and(|(key, text)| element[key].as_str() == Some(text))
                    })
                };
                value.as_array()?.iter().find(is_wanted)?
            }
        };
    }
    Some(value)
}

/// The cell of a lab, or the scenario of a soak, that `at` leads into.
fn part_of<'a>(document: &'a Value, at: &str) -> Option<&'a Value> {
    let part: Vec<_> = at.splitn(4, '/').take(3).collect();
    find(document, &part.join("/"))
}

fn is_of_a_lab(document: &Value, at: &str) -> bool {
    part_of(document, at).is_some_and(|cell| cell["state"].is_string())
}

/// Why there is no figure, of a lab or a soak that says so.
fn absent(document: &Value, at: &str) -> Option<Ours> {
    let part = part_of(document, at)?;
    if let Some(reason) = part["not_run_because"]
        .as_str()
        .or(part["failure"].as_str())
    {
        return Some(Ours::Absent(NOT_RUN, first_line(reason)));
    }
    let outcome = part.pointer("/trials/0/outcome");
    match part["state"].as_str()? {
        "killed" => Some(Ours::Measured("killed for memory".to_owned())),
        "failed" => Some(Ours::Absent(
            NOT_RUN,
            first_line(outcome?["reason"].as_str()?),
        )),
        _ => None,
    }
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

/// How far `value` is from `beside`.
fn gap(value: &Value, beside: &Value) -> Option<String> {
    let (value, beside) = (value.as_f64()?, beside.as_f64()?);
    (beside > 0.0).then(|| format!("{:.0} %", (value / beside - 1.0).abs() * 100.0))
}

/// `value` in the unit of `cell`; `None` if it is not what the unit is of.
fn in_unit(value: &Value, cell: &Cell) -> Option<String> {
    if cell.unit != Unit::Names {
        return Some(figure(value.as_f64()?, cell));
    }
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Array(texts) => {
            let texts: Option<Vec<&str>> = texts.iter().map(Value::as_str).collect();
            let text = texts?.join(", ");
            Some(if text.is_empty() {
                "none".to_owned()
            } else {
                text
            })
        }
        _ => None,
    }
}

fn figure(value: f64, cell: &Cell) -> String {
    let per = cell.per.unwrap_or(1.0);
    match cell.unit {
        Unit::Count => grouped(value / per),
        Unit::Rate => format!("{}/s", grouped(value / per)),
        Unit::PerSecondOfRound => format!("{}/s", grouped(per * 1e9 / value)),
        Unit::Nanoseconds => time(value / per / 1e3),
        Unit::Microseconds => time(value / per),
        Unit::Cost => format!("{:.1} µs", value / per),
        Unit::Bytes => format!("{:.1} MB", value / 1e6),
        Unit::MegabytesPerSecond => format!("{:.0} MB/s", value / per),
        Unit::Share => format!("{:.0} %", value * 100.0),
        Unit::Percent => format!("{value:.0} %"),
        // Neither is a number in itself.
        Unit::Gap | Unit::Names => value.to_string(),
    }
}

/// Of microseconds.
fn time(micros: f64) -> String {
    match micros {
        micros if micros >= 1e6 => format!("{:.2} s", micros / 1e6),
        micros if micros >= 1e4 => format!("{:.1} ms", micros / 1e3),
        micros if micros >= 1e3 => format!("{:.2} ms", micros / 1e3),
        micros if micros >= 100.0 => format!("{micros:.0} µs"),
        micros if micros >= 1.0 => format!("{micros:.1} µs"),
        micros => format!("{:.0} ns", micros * 1e3),
    }
}

fn grouped(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: &str = r#"
title = "Harness"
about = ["One paragraph."]
not_characterised = ["Two machines."]
[[run]]
name = "h2"
command = ["{plimsoll}", "loadtest", "--json"]
quick = ["-z", "5s"]
full = ["-z", "300s"]
[[table]]
title = "Results"
head = ["configuration", "rate", "p99", "memory"]
[[table.row]]
label = "50,000 workers"
cell = [
    { theirs = "252,114/s", run = "h2", at = "/requests_per_second", unit = "rate" },
    { theirs = "393 ms", run = "h2", at = "/latency/p99_us", unit = "microseconds" },
    { theirs = "933 MiB", out = "it is of another system" },
]
[[table.row]]
label = "macOS"
cell = [
    { theirs = "1", not_run = "this is Linux" },
    { theirs = "2", run = "h2", at = "/started", unit = "count" },
    { theirs = "–", run = "h2", at = "/mean_ns", unit = "per-second-of-round", per = 100 },
]
"#;

    fn plan() -> Plan {
        let mut plan: Plan = toml::from_str(PLAN).unwrap_or_else(|error| panic!("{error}"));
        plan.name = "loadtest".to_owned();
        plan.check()
            .unwrap_or_else(|Failure(message)| panic!("{message}"));
        plan
    }

    fn document(result: Result<Value, String>) -> String {
        let found = Found::from([(("loadtest".to_owned(), "h2".to_owned()), result)]);
        let machine = serde_json::json!({"cpu_model": "X", "cores": 2, "kernel": "L", "plimsoll": "0.1",
            "memory_bytes": 8e9, "load_before": [0.1, 0.1, 0.1]});
        render(&[plan()], &found, &machine, false)
            .unwrap_or_else(|Failure(message)| panic!("{message}"))
    }

    #[test]
    fn each_cell_has_a_figure_or_a_reason() {
        let text = document(Ok(serde_json::json!({"requests_per_second": 38123.4,
            "latency": {"p99_us": 12345.0}, "started": 1_234_567, "mean_ns": 800_000.0})));
        for part in [
            "| 50,000 workers | 252,114/s; **38,123/s** | 393 ms; **12.3 ms** | 933 MiB; *out because* (a) |",
            "| macOS | 1; *not run here because* (b) | 2; **1,234,567** | –; **125,000/s** |",
            "\n(a) it is of another system;\n(b) this is Linux.\n",
            "- `plimsoll loadtest --json -z 5s`",
            "X, 2 cores, 8.0 GB, L; plimsoll 0.1.",
            "- Two machines.",
        ] {
            assert!(text.contains(part), "{part} in\n{text}");
        }
    }

    #[test]
    fn a_run_that_failed_is_reported_in_its_cells() {
        let text = document(Err("no namespace\nmore".to_owned()));
        assert!(
            text.contains(
                "| 252,114/s; *not run here because* (a) | 393 ms; *not run here because* (a) |"
            ),
            "{text}"
        );
        assert!(text.contains("\n(a) no namespace;\n"), "{text}");
    }

    /// The table of a lab: one cell that was measured, one that failed, one that was killed.
    fn lab(document: &Value) -> String {
        let mut plan: Plan = toml::from_str(
            r#"
title = "Gateway"
about = []
[[run]]
name = "h1"
command = ["{plimsoll}", "lab"]
[[table]]
title = "h1 to h1"
head = ["connections"]
run = "h1"
target = "h1 to h1"
figures = ["rps", "p99_9_us", "cpu_percent", "peak_fds", "limits"]
row = [
  { label = "1", load = "c1", theirs = ["4,139/s", "527 µs", "90 %", "13", "–"] },
  { label = "8", load = "c8", theirs = ["11,919/s", "2,910 µs", "163 %", "27", "–"] },
  { label = "32", load = "c32", theirs = ["–", "–", "–", "–", "–"] },
]
[[table]]
title = "A second client"
head = ["connections", "gap"]
row = [{ label = "1", cell = [{ theirs = "4 %", run = "h1", at = "/cells/[load=c1]/medians/rps", beside = "/cells/[load=c8]/rps", unit = "gap" }] }]
[[table]]
title = "Vendors"
head = ["system", "figure", "per core"]
out = "it is of another machine"
row = [{ label = "haproxy", theirs = ["2 M/s", "8 µs"] }]
"#,
        )
        .unwrap_or_else(|error| panic!("{error}"));
        plan.name = "gateway".to_owned();
        plan.spell_out()
            .and_then(|()| plan.check())
            .unwrap_or_else(|Failure(message)| panic!("{message}"));
        let found = Found::from([(
            ("gateway".to_owned(), "h1".to_owned()),
            Ok(document.clone()),
        )]);
        let machine = serde_json::json!({});
        render(&[plan], &found, &machine, false)
            .unwrap_or_else(|Failure(message)| panic!("{message}"))
    }

    #[test]
    fn the_rows_of_a_lab_are_found_by_name() {
        let cell = |load: &str, state: &str, medians: Value, outcome: Value| {
            serde_json::json!({"target": "h1 to h1", "load": load, "state": state, "rps": 5000.0,
                "limits": if state == "measured" { vec!["target"] } else { vec![] },
                "medians": medians, "trials": [{"outcome": outcome}]})
        };
        let text = lab(&serde_json::json!({"cells": [
            cell("c8", "failed", serde_json::json!({}), serde_json::json!({"reason": "no port\nmore"})),
            cell("c1", "measured", serde_json::json!({"rps": 6000.4, "cpu_percent": 95.2, "peak_fds": 1024.0}), Value::Null),
            cell("c32", "killed", serde_json::json!({}), Value::Null),
        ]}));
        for part in [
            "| connections | rate | p99.9 | CPU | descriptors | limit |",
            "| 1 | 4,139/s; **6,000/s** | 527 µs; *not run here because* (a) | 90 %; **95 %** | 13; **1,024** | –; **target** |",
            "| 8 | 11,919/s; *not run here because* (b) |",
            "| 32 | –; **killed for memory** |",
            "(a) the generator does not report it;\n(b) no port.",
            "| 1 | 4 %; **20 %** |",
            "| haproxy | 2 M/s; *out because* (a) | 8 µs; *out because* (a) |",
        ] {
            assert!(text.contains(part), "{part} in\n{text}");
        }
    }

    #[test]
    fn a_cell_without_source_is_refused() {
        let mut plan = plan();
        plan.table[0].row[0].cell[0].at = None;
        assert!(plan.check().is_err());
        let mut plan = self::plan();
        plan.table[0].row[0].cell.pop();
        assert!(plan.check().is_err());
    }
}
