//! A soak as text for a terminal, as wide as the terminal.

use std::fmt::{self, Write};
use std::time::Duration;

use plimsoll_model::{ByteSize, DurationText, counted, grouped, three_figures};
use plimsoll_report::text::Emphasis;

use super::outcome::{JudgedSeries, ScenarioResult, Soak};
use super::series::Kind;
use super::verdict::Verdict;
use crate::text_table::TextTable;
use crate::wording::{TextFormat, write_machine, write_wrapped};

/// A line for each scenario, what is not bounded, the conditions; ends with a line break.
pub fn to_text(soak: &Soak, format: TextFormat) -> String {
    let mut text = String::new();
    write_all(&mut text, soak, format).expect("a string takes all that is written");
    text
}

fn write_all(out: &mut String, soak: &Soak, format: TextFormat) -> fmt::Result {
    writeln!(
        out,
        "{}: {} of {}, sampled every {}, scale {}",
        soak.name,
        counted(soak.scenarios.len() as u64, "scenario"),
        time(soak.duration_secs),
        time(soak.sample_secs),
        soak.scale
    )?;
    writeln!(out)?;
    write_table(out, soak, format)?;
    for scenario in &soak.scenarios {
        write_scenario(out, scenario, format)?;
    }
    writeln!(out)?;
    write_machine(out, format, &soak.conditions)?;
    for warning in &soak.conditions.warnings {
        write_wrapped(out, format, &format!("warning: {warning}"))?;
    }
    let verdict = soak.verdict();
    let emphasis = verdict.judgement().emphasis();
    writeln!(out, "\n{}", format.style.apply(emphasis, verdict.name()))
}

/// A row for each scenario.
fn write_table(out: &mut String, soak: &Soak, format: TextFormat) -> fmt::Result {
    const HEADINGS: [&str; 6] = [
        "scenario",
        "verdict",
        "by thirds",
        "responses",
        "failed",
        "deciding series",
    ];
    const VERDICT: usize = 1;
    let rows = soak.scenarios.iter().map(|scenario| {
        let responses: u64 = scenario.loads.iter().map(|load| load.ok).sum();
        let failed: u64 = scenario.loads.iter().map(|load| load.failed).sum();
        let deciding = scenario.deciding().map_or("", |it| it.name.as_str());
        vec![
            scenario.name.clone(),
            scenario.verdict().name().to_owned(),
            by_thirds(scenario).name().to_owned(),
            grouped(responses as f64),
            grouped(failed as f64),
            deciding.to_owned(),
        ]
    });
    let emphasised: Vec<_> = soak
        .scenarios
        .iter()
        .enumerate()
        .map(|(row, scenario)| (row, VERDICT, scenario.verdict().judgement().emphasis()))
        .collect();
    TextTable {
        headings: HEADINGS.map(str::to_owned).to_vec(),
        rows: rows.collect(),
        has_names: true,
        dispensable: &[2, 3],
        emphasised: &emphasised,
    }
    .write(out, format)
}

/// The worst verdict by the rule of thirds.
pub(super) fn by_thirds(scenario: &ScenarioResult) -> Verdict {
    let worst = scenario.series.iter().map(|it| it.by_thirds).max();
    worst.unwrap_or(Verdict::Inconclusive)
}

/// The interesting part of a scenario: why it ended, memory and descriptors, and every series that is not bounded.
fn write_scenario(out: &mut String, scenario: &ScenarioResult, format: TextFormat) -> fmt::Result {
    writeln!(out, "\n{}", scenario.name)?;
    if let Some(failure) = &scenario.failure {
        write_wrapped(out, format, &format!("  {failure}"))?;
    }
    for load in &scenario.loads {
        if load.failed_runs > 0 {
            writeln!(
                out,
                "  load {}: {} of {} failed",
                load.name,
                load.failed_runs,
                counted(load.runs, "run")
            )?;
        }
    }
    let is_shown = |series: &&JudgedSeries| {
        let of_processes = ["anonymous_bytes", "descriptors"];
        series.assessment.verdict != Verdict::Bounded
            || of_processes.contains(&series.name.as_str())
    };
    for series in scenario.series.iter().filter(is_shown) {
        let it = &series.assessment;
        let line = format!(
            "  {}: {}, {} ({}): {} to {}, between {} and {}, {}/h{}",
            series.name,
            it.verdict.name(),
            it.shape.name(),
            it.note,
            value(series.kind, it.first),
            value(series.kind, it.last),
            value(series.kind, it.least),
            value(series.kind, it.most),
            signed(series.kind, it.per_hour[0]),
            per_response(scenario, series).map_or_else(String::new, |it| format!(", {it}")),
        );
        let mut wrapped = String::new();
        write_wrapped(&mut wrapped, format, &line)?;
        let emphasis = match it.verdict {
            Verdict::Bounded => Emphasis::Plain,
            verdict => verdict.judgement().emphasis(),
        };
        writeln!(out, "{}", format.style.apply(emphasis, wrapped.trim_end()))?;
        if let Some(step) = next_step(series) {
            write_wrapped(out, format, &format!("    next: {step}"))?;
        }
    }
    Ok(())
}

/// By how much a series that drifts grows with each response, over the whole scenario.
pub(super) fn per_response(scenario: &ScenarioResult, series: &JudgedSeries) -> Option<String> {
    let responses: u64 = scenario.loads.iter().map(|load| load.ok).sum();
    let grows = series.assessment.verdict == Verdict::Drift && series.kind != Kind::Counter;
    (grows && responses > 0).then(|| {
        let hours = scenario.lasted_secs / 3600.0;
        let growth = series.assessment.per_hour[0] * hours / responses as f64;
        let growth = match series.kind {
            Kind::Memory => value(series.kind, growth),
            _ => three_figures(growth),
        };
        format!("{growth} per response")
    })
}

/// How to find what a series that drifts is made of.
pub(super) fn next_step(series: &JudgedSeries) -> Option<&'static str> {
    if series.assessment.verdict != Verdict::Drift {
        return None;
    }
    match series.name.as_str() {
        "descriptors" => {
            Some("`ls -l /proc/PID/fd` shows during the soak what the descriptors are")
        }
        _ if series.kind == Kind::Memory => Some(
            "a heap profile of its runtime shows what is kept (Go /debug/pprof/heap, Java `jcmd PID GC.class_histogram`, Node \
             --heapsnapshot-signal=SIGUSR2, Python tracemalloc, C and Rust heaptrack)",
        ),
        _ => None,
    }
}

/// A value in the unit of its kind.
pub(super) fn value(kind: Kind, value: f64) -> String {
    match kind {
        Kind::Memory => {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "saturates, and sizes are not negative"
            )]
            let bytes = value as u64;
            ByteSize(bytes).to_string()
        }
        Kind::Gauge | Kind::Zero => plimsoll_report::page::short_number(value),
        Kind::Counter => format!("{}/s", plimsoll_report::page::short_number(value)),
    }
}

/// The same with its sign.
pub(super) fn signed(kind: Kind, change: f64) -> String {
    let sign = if change < 0.0 { "-" } else { "+" };
    format!("{sign}{}", value(kind, change.abs()))
}

/// `4h`, `15s`.
pub(super) fn time(secs: f64) -> String {
    let duration = Duration::try_from_secs_f64(secs).unwrap_or_default();
    DurationText(duration).to_string()
}
