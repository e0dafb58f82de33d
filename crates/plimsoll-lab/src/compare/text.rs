//! A comparison as text for a terminal, at most 90 columns wide.

use std::fmt::{self, Write};

use plimsoll_model::{grouped, three_figures};

use super::gate::{Gate, GateVerdict};
use super::metric::{Metric, Verdict};
use super::outcome::{Comparison, MetricResult, OperandResult, PairResult};
use crate::statistics::Interval;
use crate::wording::{WIDTH, write_machine, write_wrapped};

/// The table of operands, the ratios and the conditions; ends with a line break.
pub fn to_text(comparison: &Comparison) -> String {
    let mut text = String::new();
    write_all(&mut text, comparison).expect("a string takes all that is written");
    text
}

fn write_all(out: &mut String, comparison: &Comparison) -> fmt::Result {
    let kind = if comparison.operands_are_servers {
        "servers"
    } else {
        "commands"
    };
    writeln!(
        out,
        "{} {kind}, {} trials of {} s each, interleaved; one warm-up each was dropped",
        comparison.operands.len(),
        comparison.trials,
        comparison.seconds
    )?;
    for (index, operand) in comparison.operands.iter().enumerate() {
        let line = format!("  {}  {}", letter(index), operand.command.join(" "));
        writeln!(out, "{}", shortened(&line, WIDTH))?;
    }
    writeln!(out)?;
    write_operands(out, comparison)?;
    for pair in &comparison.pairs {
        writeln!(out)?;
        let (ours, peer) = (letter(0), letter(pair.peer));
        writeln!(
            out,
            "{ours} / {peer}: ratio of medians [{:.0} % interval]",
            comparison.coverage() * 100.0
        )?;
        if pair.incomparable.is_some() {
            writeln!(
                out,
                "  NOT COMPARABLE: the sides failed different shares of their requests"
            )?;
        }
        for metric in &pair.metrics {
            write_metric(out, metric, comparison.metric)?;
        }
    }
    if let Some(itself) = &comparison.self_test {
        let (ratio, seen) = (itself.estimate.ratio, itself.estimate.could_have_seen());
        let seen = percent(seen);
        writeln!(out)?;
        write_wrapped(
            out,
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
            write_wrapped(out, &format!("{ours} / {peer}: {verdict}"))?;
        }
    }
    write_conditions(out, comparison)
}

/// The verdict of the gate on a pair, and why, in one line.
pub fn gate_verdict(gate: Gate, pair: &PairResult) -> String {
    let metric = pair.verdict.metric;
    let compared = |ratio: f64| {
        let loss = metric.worse_by(ratio) - 1.0;
        let side = if loss < 0.0 { "better" } else { "worse" };
        format!("{} {side}", percent(loss.abs()))
    };
    let Interval { low, high } = pair.verdict.estimate.interval;
    let (best, worst) = if metric.more_is_better() {
        (high, low)
    } else {
        (low, high)
    };
    let allowed = percent(gate.allowed);
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

fn write_operands(out: &mut String, comparison: &Comparison) -> fmt::Result {
    let other_end = comparison
        .operands
        .iter()
        .any(|operand| operand.median(Metric::OtherEndCpuUsPerRequest).is_some());
    write!(
        out,
        "{:<14}{:>21}{:>11}{:>10}{:>10}{:>10}",
        "", "CPU µs/request", "req/s", "p50", "p99", "peak RSS"
    )?;
    if other_end {
        write!(out, "{:>13}", "other end µs")?;
    }
    writeln!(out)?;
    for (index, operand) in comparison.operands.iter().enumerate() {
        let name = shortened(&format!("{} {}", letter(index), operand.label), 13);
        write!(out, "{name:<14}{:>21}", cpu_cell(operand))?;
        for (metric, width) in [
            (Metric::RequestsPerSecond, 11),
            (Metric::P50Us, 10),
            (Metric::P99Us, 10),
            (Metric::PeakRssBytes, 10),
        ] {
            let cell = operand.median(metric).map(|value| figure(metric, value));
            write!(out, "{:>width$}", cell.unwrap_or_else(|| "–".to_owned()))?;
        }
        if other_end {
            let cell = operand.median(Metric::OtherEndCpuUsPerRequest);
            write!(
                out,
                "{:>13}",
                cell.map_or_else(|| "–".to_owned(), three_figures)
            )?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// Median with the smallest and the largest trial.
fn cpu_cell(operand: &OperandResult) -> String {
    let metric = Metric::CpuUsPerRequest;
    match (operand.median(metric), operand.range(metric)) {
        (Some(median), Some(range)) => format!(
            "{} [{}–{}]",
            three_figures(median),
            three_figures(range.low),
            three_figures(range.high)
        ),
        _ => "–".to_owned(),
    }
}

fn write_metric(out: &mut String, result: &MetricResult, judged: Metric) -> fmt::Result {
    let mark = if result.metric == judged { '>' } else { ' ' };
    let interval = result.estimate.interval;
    writeln!(
        out,
        "{mark} {:<30}{:>7.decimals$}  [{:.decimals$}–{:.decimals$}]  {}",
        result.metric.name(),
        result.estimate.ratio,
        interval.low,
        interval.high,
        verdict(result),
        decimals = decimals(interval),
    )
}

/// Decimals of a ratio that its interval supports: two where it is wider than a tenth, else three.
pub(super) fn decimals(interval: Interval) -> usize {
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
            percent(result.estimate.could_have_seen())
        ),
        (_, verdict) => verdict.to_string(),
    }
}

/// Whole from ten on, below that one decimal.
pub(super) fn percent(fraction: f64) -> String {
    let percent = fraction * 100.0;
    if percent < 9.95 {
        format!("{percent:.1} %")
    } else {
        format!("{percent:.0} %")
    }
}

fn write_conditions(out: &mut String, comparison: &Comparison) -> fmt::Result {
    let conditions = &comparison.conditions;
    writeln!(out)?;
    write_machine(out, conditions)?;
    for warning in &conditions.warnings {
        write_wrapped(out, &format!("warning: {warning}"))?;
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

fn shortened(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let kept: String = text.chars().take(width - 1).collect();
    format!("{kept}…")
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
        assert_eq!(shortened("abcdef", 4), "abc…");
    }
}
