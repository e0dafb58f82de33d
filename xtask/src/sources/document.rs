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
                super::plan::Kind::Criterion => "cargo bench -p plimsoll-bench -- ",
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
        Err(reason) => {
            let first = reason.lines().next().unwrap_or_default();
            Ok(Ours::Absent(NOT_RUN, first.to_owned()))
        }
        Ok(document) => {
            if let Some(reason) = not_run(document, at) {
                return Ok(Ours::Absent(NOT_RUN, reason));
            }
            let value = document
                .pointer(at)
                .and_then(Value::as_f64)
                .ok_or_else(|| format!("{}: {run} has no figure at {at}", plan.name))?;
            Ok(Ours::Measured(figure(value, cell)))
        }
    }
}

/// What a lab says of the cell that `at` leads into, if it did not run it.
fn not_run(document: &Value, at: &str) -> Option<String> {
    let cell: Vec<_> = at.splitn(4, '/').take(3).collect();
    let cell = document.pointer(&cell.join("/"))?;
    Some(cell.get("not_run_because")?.as_str()?.to_owned())
}

fn figure(value: f64, cell: &Cell) -> String {
    let per = cell.per.unwrap_or(1.0);
    match cell.unit {
        Unit::Count => grouped(value),
        Unit::Rate => format!("{}/s", grouped(value)),
        Unit::PerSecondOfRound => format!("{}/s", grouped(per * 1e9 / value)),
        Unit::Nanoseconds => time(value / per / 1e3),
        Unit::Microseconds => time(value / per),
        Unit::Cost => format!("{:.1} µs", value / per),
        Unit::Bytes => format!("{:.1} MB", value / 1e6),
        Unit::MegabytesPerSecond => format!("{:.0} MB/s", value / per),
        Unit::Share => format!("{:.0} %", value * 100.0),
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
