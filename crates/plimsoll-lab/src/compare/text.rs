//! A comparison as text for a terminal, as wide as the terminal.

use std::fmt::{self, Write};

use plimsoll_model::{grouped, rough_percentage, three_figures};
use plimsoll_report::text::Emphasis;

use super::gate::{Gate, GateVerdict};
use super::metric::{Metric, Verdict};
use super::outcome::{Comparison, MetricResult, OperandResult, PairResult};
use crate::statistics::Interval;
use crate::text_table::TextTable;
use crate::wording::{TextFormat, write_machine, write_wrapped};

/// The table of operands, the ratios and the conditions; ends with a line break.
pub fn to_text(comparison: &Comparison, format: TextFormat) -> String {
    let mut text = String::new();
    write_all(&mut text, comparison, format).expect("a string takes all that is written");
    text
}

fn write_all(out: &mut String, comparison: &Comparison, format: TextFormat) -> fmt::Result {
    let kind = if comparison.operands_are_servers {
        "servers"
    } else {
        "commands"
    };
    let made = format!(
        "{} {kind}, {} trials of {} s each, interleaved; one warm-up each was dropped",
        comparison.operands.len(),
        comparison.trials,
        comparison.seconds
    );
    write_wrapped(out, format, &made)?;
    for (index, operand) in comparison.operands.iter().enumerate() {
        let line = format!("  {}  {}", letter(index), operand.command.join(" "));
        write_wrapped(out, format, &line)?;
    }
    writeln!(out)?;
    write_operands(out, comparison, format)?;
    for pair in &comparison.pairs {
        writeln!(out)?;
        let (ours, peer) = (letter(0), letter(pair.peer));
        writeln!(
            out,
            "{ours} / {peer}: ratio [{:.0} % interval]",
            comparison.coverage() * 100.0
        )?;
        if pair.incomparable.is_some() {
            let remark = "NOT COMPARABLE: the sides failed different shares of their requests";
            let remark = format.style.apply(Emphasis::Error, remark);
            writeln!(out, "  {remark}")?;
        }
        write_ratios(out, comparison, pair, format)?;
    }
    if let Some(itself) = &comparison.self_test {
        let (ratio, seen) = (itself.estimate.ratio, itself.estimate.could_have_seen());
        let seen = rough_percentage(seen);
        writeln!(out)?;
        write_wrapped(
            out,
            format,
            &format!(
                "self-test: {ratio:.3} of itself, and a difference of {seen} would have been seen"
            ),
        )?;
    }
    if let Some(gate) = comparison.gate {
        writeln!(out)?;
        for pair in comparison.pairs.iter().filter(|pair| pair.gate.is_some()) {
            let (ours, peer) = (letter(0), letter(pair.peer));
            let verdict = gate_verdict(gate, pair);
            let mut text = String::new();
            write_wrapped(&mut text, format, &format!("{ours} / {peer}: {verdict}"))?;
            let emphasis = pair
                .gate
                .map_or(Emphasis::Warning, |it| it.judgement().emphasis());
            writeln!(out, "{}", format.style.apply(emphasis, text.trim_end()))?;
        }
    }
    write_conditions(out, comparison, format)
}

/// The verdict of the gate on a pair, and why, in one line.
pub fn gate_verdict(gate: Gate, pair: &PairResult) -> String {
    let metric = pair.verdict.metric;
    let compared = |ratio: f64| {
        let loss = metric.worse_by(ratio) - 1.0;
        let side = if loss < 0.0 { "better" } else { "worse" };
        format!("{} {side}", rough_percentage(loss.abs()))
    };
    let Interval { low, high } = pair.verdict.estimate.interval;
    let (best, worst) = if metric.more_is_better() {
        (high, low)
    } else {
        (low, high)
    };
    let allowed = rough_percentage(gate.allowed);
    match pair.gate {
        None => "not comparable".to_owned(),
        Some(GateVerdict::Held) => {
            format!("held, {} at most; {allowed} is allowed", compared(worst))
        }
        Some(GateVerdict::Slower) => {
            let ratio = compared(pair.verdict.estimate.ratio);
            format!("slower, {ratio}; {allowed} is allowed")
        }
        Some(GateVerdict::CannotTell { trials }) => {
            let range = format!("between {} and {}", compared(best), compared(worst));
            let needed = match trials {
                Some(trials) => format!(
                    "about {} trials of each would show {allowed} here",
                    grouped(trials)
                ),
                None => "more trials would not change that".to_owned(),
            };
            format!("cannot tell, {range}; {allowed} is allowed, and {needed}")
        }
    }
}

/// The columns of the table of operands; the ratios have a row for the mean too.
const COLUMNS: [Metric; 6] = [
    Metric::CpuUsPerRequest,
    Metric::RequestsPerSecond,
    Metric::P50Us,
    Metric::P99Us,
    Metric::PeakRssBytes,
    Metric::OtherEndCpuUsPerRequest,
];

/// The name of a metric in tables, with its unit where the figures have none.
fn heading(metric: Metric, comparison: &Comparison) -> &'static str {
    match metric {
        Metric::CpuUsPerRequest => "CPU µs/req",
        Metric::RequestsPerSecond => "req/s",
        Metric::MeanUs => "mean",
        Metric::P50Us => "p50",
        Metric::P99Us => "p99",
        Metric::PeakRssBytes => "peak RSS",
        Metric::OtherEndCpuUsPerRequest if comparison.operands_are_servers => "driver µs/req",
        Metric::OtherEndCpuUsPerRequest => "server µs/req",
    }
}

/// A row for each operand: medians, and beside each its trials.
fn write_operands(out: &mut String, comparison: &Comparison, format: TextFormat) -> fmt::Result {
    let operands = &comparison.operands;
    let shown: Vec<Metric> = COLUMNS
        .into_iter()
        .filter(|metric| operands.iter().any(|it| it.median(*metric).is_some()))
        .collect();
    let mut headings = vec![String::new()];
    for metric in &shown {
        headings.extend([
            heading(*metric, comparison).to_owned(),
            "[trials]".to_owned(),
        ]);
    }
    let rows = operands.iter().enumerate().map(|(index, operand)| {
        let mut row = vec![format!("{} {}", letter(index), operand.label)];
        for metric in &shown {
            row.extend(cells(operand, *metric));
        }
        row
    });
    // The trials of the other end are the first to go, those of the first column the last.
    let dispensable: Vec<usize> = (1..=shown.len()).rev().map(|column| column * 2).collect();
    let table = TextTable {
        headings,
        rows: rows.collect(),
        has_names: true,
        dispensable: &dispensable,
        emphasised: &[],
    };
    table.write(out, format)
}

/// The median, and the smallest and the largest trial.
fn cells(operand: &OperandResult, metric: Metric) -> [String; 2] {
    match (operand.median(metric), operand.range(metric)) {
        (Some(median), Some(range)) => [
            figure(metric, median),
            format!(
                "[{}–{}]",
                figure(metric, range.low),
                figure(metric, range.high)
            ),
        ],
        _ => ["–".to_owned(), String::new()],
    }
}

fn write_ratios(
    out: &mut String,
    comparison: &Comparison,
    pair: &PairResult,
    format: TextFormat,
) -> fmt::Result {
    let rows: Vec<_> = pair
        .metrics
        .iter()
        .map(|result| {
            let mark = if result.metric == comparison.metric {
                '>'
            } else {
                ' '
            };
            (
                format!("{mark} {}", heading(result.metric, comparison)),
                ratio_and_interval(result),
                result,
            )
        })
        .collect();
    let widest = |width: fn(&(String, [String; 2], &MetricResult)) -> usize| {
        rows.iter().map(width).max().unwrap_or(0)
    };
    let name_width = widest(|row| row.0.chars().count());
    let ratio_width = widest(|row| row.1[0].chars().count());
    let interval_width = widest(|row| row.1[1].chars().count());
    for (name, [ratio, interval], result) in &rows {
        let figures =
            format!("{name:<name_width$}  {ratio:>ratio_width$}  {interval:<interval_width$}");
        let verdict = verdict(result);
        let both = figures.chars().count() + 2 + verdict.chars().count();
        let coloured = format
            .style
            .apply(result.verdict.judgement().emphasis(), &verdict);
        if both <= format.columns() {
            writeln!(out, "{figures}  {coloured}")?;
        } else {
            writeln!(out, "{}\n      {coloured}", figures.trim_end())?;
        }
    }
    Ok(())
}

/// The ratio, and its interval in brackets.
fn ratio_and_interval(result: &MetricResult) -> [String; 2] {
    let interval = result.estimate.interval;
    let decimals = decimals(interval);
    [
        format!("{:.decimals$}", result.estimate.ratio),
        format!("[{:.decimals$}–{:.decimals$}]", interval.low, interval.high),
    ]
}

/// `0.90 [0.77–0.97]`.
pub(super) fn ratio_text(result: &MetricResult) -> String {
    ratio_and_interval(result).join(" ")
}

/// Decimals of a ratio that its interval supports: two where it is wider than a tenth, else three.
fn decimals(interval: Interval) -> usize {
    if interval.high - interval.low > 0.1 {
        2
    } else {
        3
    }
}

/// The verdict in the words of its metric: memory is not fast.
pub(super) fn verdict(result: &MetricResult) -> String {
    match (result.metric, result.verdict) {
        (Metric::PeakRssBytes, Verdict::Faster) => "smaller".to_owned(),
        (Metric::PeakRssBytes, Verdict::Slower) => "larger".to_owned(),
        (_, Verdict::NoDifferenceSeen) => format!(
            "no difference seen; {} would",
            rough_percentage(result.estimate.could_have_seen())
        ),
        (_, verdict) => verdict.to_string(),
    }
}

fn write_conditions(out: &mut String, comparison: &Comparison, format: TextFormat) -> fmt::Result {
    let conditions = &comparison.conditions;
    writeln!(out)?;
    write_machine(out, format, conditions)?;
    for warning in &conditions.warnings {
        write_wrapped(out, format, &format!("warning: {warning}"))?;
    }
    Ok(())
}

/// `value` in the unit of `metric`, in at most nine characters for all but absurd values.
pub(super) fn figure(metric: Metric, value: f64) -> String {
    match metric {
        Metric::RequestsPerSecond => grouped(value),
        Metric::MeanUs | Metric::P50Us | Metric::P99Us => {
            plimsoll_model::Unit::Microseconds.show(value)
        }
        Metric::PeakRssBytes => format!("{:.1} MB", value / 1e6),
        Metric::CpuUsPerRequest | Metric::OtherEndCpuUsPerRequest => three_figures(value),
    }
}

/// A, B, …, Z, then numbers.
pub(super) fn letter(index: usize) -> String {
    match u8::try_from(index) {
        Ok(index @ 0..26) => char::from(b'A' + index).to_string(),
        _ => (index + 1).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_short() {
        assert_eq!(figure(Metric::RequestsPerSecond, 131_022.4), "131,022");
        assert_eq!(figure(Metric::CpuUsPerRequest, 4.614), "4.61");
        assert_eq!(figure(Metric::P99Us, 12_345.0), "12.3 ms");
        assert_eq!(figure(Metric::P99Us, 4082.0), "4.08 ms");
        assert_eq!(figure(Metric::P50Us, 70.26), "70.3 µs");
        assert_eq!(figure(Metric::PeakRssBytes, 9_840_000.0), "9.8 MB");
        assert_eq!(letter(27), "28");
    }
}
