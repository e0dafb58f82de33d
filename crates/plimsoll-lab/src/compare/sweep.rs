//! The same comparison at several rates: what is achieved, at what cost and latency.

use std::fmt::{self, Write};

use plimsoll_load::Interrupt;
use serde::Serialize;

use super::metric::Metric;
use super::outcome::Comparison;
use super::plan::{CompareOptions, ComparePlan, PlanError};
use super::run::{CompareError, Event, compare};
use super::text::{figure, letter};
use crate::text_table::TextTable;
use crate::wording::{TextFormat, without_figures, write_machine, write_wrapped};

/// Name and major version of the document.
pub const SWEEP_SCHEMA: &str = "plimsoll.compare.rates/1";

/// Achieved less than this share of the target rate: the rate was not kept.
const KEPT: f64 = 0.98;

/// The comparisons at each rate, ascending.
#[derive(Debug, Clone)]
pub struct Sweep {
    /// Target rates and what came of them.
    pub comparisons: Vec<(u32, Comparison)>,
}

/// The medians of one operand at one rate.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SweepRow {
    /// Target rate, in requests per second.
    pub rate: u32,
    /// Index of the operand.
    pub operand: usize,
    /// Its short name.
    pub label: String,
    /// Complete responses per second.
    pub rps: Option<f64>,
    /// Mean latency in microseconds.
    pub mean_us: Option<f64>,
    /// 99th percentile of the latency in microseconds.
    pub p99_us: Option<f64>,
    /// Largest resident memory of the operand.
    pub peak_rss_bytes: Option<f64>,
    /// Processor time of the operand per request, in microseconds.
    pub cpu_us_per_request: Option<f64>,
    /// Whether the rate was kept.
    pub kept_rate: bool,
}

/// Compares at each of `rates`, in the order given; rates are sorted in the result.
///
/// - `options`: as for one comparison; `{rate}` in its commands is the rate.
pub fn sweep(
    options: &CompareOptions,
    rates: &[u32],
    interrupt: &Interrupt,
    observe: &mut dyn FnMut(u32, &Event<'_>),
) -> Result<Sweep, CompareError> {
    let plans = plans(options, rates).map_err(CompareError::Plan)?;
    let mut comparisons = Vec::new();
    for (rate, plan) in plans {
        let comparison = compare(&plan, interrupt, &mut |event| observe(rate, event))?;
        comparisons.push((rate, comparison));
    }
    comparisons.sort_by_key(|(rate, _)| *rate);
    Ok(Sweep { comparisons })
}

fn plans(options: &CompareOptions, rates: &[u32]) -> Result<Vec<(u32, ComparePlan)>, PlanError> {
    rates
        .iter()
        .map(|&rate| {
            let options = CompareOptions {
                rate: Some(rate),
                ..options.clone()
            };
            Ok((rate, ComparePlan::new(options)?))
        })
        .collect()
}

impl Sweep {
    /// One row for each rate and operand.
    pub fn rows(&self) -> Vec<SweepRow> {
        let rows = self.comparisons.iter().flat_map(|(rate, comparison)| {
            comparison
                .operands
                .iter()
                .enumerate()
                .map(|(index, operand)| {
                    let rps = operand.median(Metric::RequestsPerSecond);
                    SweepRow {
                        rate: *rate,
                        operand: index,
                        label: operand.label.clone(),
                        rps,
                        mean_us: operand.median(Metric::MeanUs),
                        p99_us: operand.median(Metric::P99Us),
                        peak_rss_bytes: operand.median(Metric::PeakRssBytes),
                        cpu_us_per_request: operand.median(Metric::CpuUsPerRequest),
                        kept_rate: rps.is_some_and(|rps| rps >= KEPT * f64::from(*rate)),
                    }
                })
        });
        rows.collect()
    }
}

#[derive(Serialize)]
struct Document {
    schema: &'static str,
    rows: Vec<SweepRow>,
    comparisons: Vec<serde_json::Value>,
}

/// The document: every row, and the whole comparison behind each rate of two and more operands.
pub fn sweep_to_json(sweep: &Sweep) -> String {
    let comparisons = sweep
        .comparisons
        .iter()
        .filter(|(_, comparison)| !comparison.pairs.is_empty())
        .map(|(_, comparison)| {
            serde_json::from_str(&super::json::to_json(comparison)).expect("it is our own document")
        })
        .collect();
    let document = Document {
        schema: SWEEP_SCHEMA,
        rows: sweep.rows(),
        comparisons,
    };
    plimsoll_report::to_json(&document)
}

/// A table with a row for each rate and operand; ends with a line break.
pub fn sweep_to_text(sweep: &Sweep, format: TextFormat) -> String {
    let mut text = String::new();
    write_all(&mut text, sweep, format).expect("a string takes all that is written");
    text
}

fn write_all(out: &mut String, sweep: &Sweep, format: TextFormat) -> fmt::Result {
    let Some((_, first)) = sweep.comparisons.first() else {
        return Ok(());
    };
    writeln!(
        out,
        "{} rates, {} trials of {} s each at every one; medians",
        sweep.comparisons.len(),
        first.trials,
        first.seconds
    )?;
    for (index, operand) in first.operands.iter().enumerate() {
        let line = format!("  {}  {}", letter(index), operand.command.join(" "));
        write_wrapped(out, format, &line)?;
    }
    writeln!(out)?;
    let headings = [
        "",
        "target/s",
        "ok/s",
        "mean",
        "p99",
        "peak RSS",
        "CPU µs/req",
        "",
    ];
    let row = |row: SweepRow| {
        let cell = |metric, value: Option<f64>| {
            value.map_or_else(|| "–".to_owned(), |value| figure(metric, value))
        };
        let kept = if row.kept_rate { "" } else { "not kept" };
        vec![
            format!("{} {}", letter(row.operand), row.label),
            plimsoll_model::grouped(row.rate),
            cell(Metric::RequestsPerSecond, row.rps),
            cell(Metric::MeanUs, row.mean_us),
            cell(Metric::P99Us, row.p99_us),
            cell(Metric::PeakRssBytes, row.peak_rss_bytes),
            cell(Metric::CpuUsPerRequest, row.cpu_us_per_request),
            kept.to_owned(),
        ]
    };
    let table = TextTable {
        headings: headings.map(str::to_owned).to_vec(),
        rows: sweep.rows().into_iter().map(row).collect(),
        has_names: true,
        dispensable: &[],
        emphasised: &[],
    };
    table.write(out, format)?;
    writeln!(out)?;
    write_machine(out, format, &first.conditions)?;
    for warning in warnings(sweep) {
        write_wrapped(out, format, &format!("warning: {warning}"))?;
    }
    Ok(())
}

/// Those of all comparisons, each once; few trials matter to ratios only.
pub(super) fn warnings(sweep: &Sweep) -> Vec<String> {
    let mut warnings: Vec<String> = Vec::new();
    for (_, comparison) in &sweep.comparisons {
        for warning in &comparison.conditions.warnings {
            // The same problem with another figure is reported once.
            let is_new = |known: &String| without_figures(known) != without_figures(warning);
            if warnings.iter().all(is_new) && !warning.contains("no interval covers") {
                warnings.push(warning.clone());
            }
        }
    }
    warnings
}
