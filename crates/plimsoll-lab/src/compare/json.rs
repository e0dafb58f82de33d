//! A comparison as JSON: `schemas/compare.v1.json` describes it.

use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;

use super::gate::GateVerdict;
use super::metric::Metric;
use super::outcome::{Comparison, MetricResult, OperandResult, PairResult};
use super::trial::Trial;
use crate::statistics::{Interval, Pairing};

/// Name and major version of the document.
pub const SCHEMA: &str = "plimsoll.compare/1";

/// The document, indented, ending with a line break.
pub fn to_json(comparison: &Comparison) -> String {
    plimsoll_report::to_json(&Document::new(comparison))
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    metric: &'static str,
    verdict: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    gate: Option<GateRow>,
    #[serde(skip_serializing_if = "Option::is_none")]
    self_test: Option<Row>,
    ratio: f64,
    interval: Bounds,
    interval_level: f64,
    interval_coverage_at_most: f64,
    resamples: usize,
    seed: u64,
    trials: u32,
    seconds: u32,
    connections: u32,
    operands_are: &'static str,
    order: Vec<RankedOperand>,
    operands: Vec<Operand<'a>>,
    pairs: Vec<Pair>,
    conditions: Machine<'a>,
}

/// What `--fail-if-slower` comes to.
#[derive(Serialize)]
struct GateRow {
    allowed: f64,
    verdict: &'static str,
    /// Of each operand, after which there is a verdict.
    #[serde(skip_serializing_if = "Option::is_none")]
    trials_needed: Option<u32>,
}

#[derive(Serialize)]
struct Bounds {
    low: f64,
    high: f64,
}

#[derive(Serialize)]
struct RankedOperand {
    operand: usize,
    round: Option<u32>,
}

#[derive(Serialize)]
struct Operand<'a> {
    label: &'a str,
    command: &'a [String],
    medians: Figures,
    trials: Vec<TrialRow>,
}

/// One value per metric that there is.
#[derive(Serialize)]
struct Figures {
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu_us_per_request: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rps: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mean_us: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    p50_us: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    p99_us: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    peak_rss_bytes: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    other_end_cpu_us_per_request: Option<f64>,
}

#[derive(Serialize)]
struct TrialRow {
    round: Option<u32>,
    began_us: u128,
    length_us: u128,
    source: &'static str,
    ok: u64,
    failed: u64,
    error_statuses: u64,
    cpu_user_us: u128,
    cpu_system_us: u128,
    #[serde(flatten)]
    figures: Figures,
}

#[derive(Serialize)]
struct Pair {
    ours: usize,
    peer: usize,
    metric: &'static str,
    verdict: &'static str,
    ratio: f64,
    interval: Bounds,
    #[serde(skip_serializing_if = "Option::is_none")]
    not_comparable: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gate: Option<GateRow>,
    metrics: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    metric: &'static str,
    ours: f64,
    peer: f64,
    ratio: f64,
    interval: Bounds,
    paired: bool,
    could_have_seen: f64,
    verdict: &'static str,
}

#[derive(Serialize)]
struct Machine<'a> {
    plimsoll: &'a str,
    command: &'a [String],
    started_unix_us: u128,
    kernel: Option<&'a str>,
    cpu_model: Option<&'a str>,
    cores: usize,
    governor: Option<&'a str>,
    memory_bytes: Option<u64>,
    cpu_limit: Option<f64>,
    memory_limit_bytes: Option<u64>,
    local_ports: Option<u32>,
    congestion_control: Option<&'a str>,
    load_average_before: Option<[f64; 3]>,
    steal_percent: Option<f64>,
    generator_cores: &'a [usize],
    server_cores: &'a [usize],
    co_located: Option<bool>,
    warnings: &'a [String],
}

impl<'a> Document<'a> {
    fn new(comparison: &'a Comparison) -> Self {
        let first = &comparison.pairs[0].verdict;
        Self {
            schema: SCHEMA,
            metric: comparison.metric.name(),
            verdict: first.verdict.name(),
            gate: gate(comparison, &comparison.pairs[0]),
            self_test: comparison.self_test.as_ref().map(Row::from),
            ratio: first.estimate.ratio,
            interval: first.estimate.interval.into(),
            interval_level: comparison.bootstrap.level,
            interval_coverage_at_most: comparison.coverage(),
            resamples: comparison.bootstrap.resamples,
            seed: comparison.bootstrap.seed,
            trials: comparison.trials,
            seconds: comparison.seconds,
            connections: comparison.connections,
            operands_are: if comparison.operands_are_servers {
                "servers"
            } else {
                "commands"
            },
            order: comparison
                .order
                .iter()
                .map(|turn| RankedOperand {
                    operand: turn.operand,
                    round: turn.round,
                })
                .collect(),
            operands: comparison.operands.iter().map(Operand::from).collect(),
            pairs: comparison
                .pairs
                .iter()
                .map(|pair| Pair::new(comparison, pair))
                .collect(),
            conditions: Machine::from(&comparison.conditions),
        }
    }
}

impl From<Interval> for Bounds {
    fn from(interval: Interval) -> Self {
        Self {
            low: interval.low,
            high: interval.high,
        }
    }
}

impl Figures {
    fn new(value: impl Fn(Metric) -> Option<f64>) -> Self {
        Self {
            cpu_us_per_request: value(Metric::CpuUsPerRequest),
            rps: value(Metric::RequestsPerSecond),
            mean_us: value(Metric::MeanUs),
            p50_us: value(Metric::P50Us),
            p99_us: value(Metric::P99Us),
            peak_rss_bytes: value(Metric::PeakRssBytes),
            other_end_cpu_us_per_request: value(Metric::OtherEndCpuUsPerRequest),
        }
    }
}

impl<'a> From<&'a OperandResult> for Operand<'a> {
    fn from(operand: &'a OperandResult) -> Self {
        Self {
            label: &operand.label,
            command: &operand.command,
            medians: Figures::new(|metric| operand.median(metric)),
            trials: operand.trials.iter().map(TrialRow::from).collect(),
        }
    }
}

impl From<&Trial> for TrialRow {
    fn from(trial: &Trial) -> Self {
        Self {
            round: trial.turn.round,
            began_us: trial.began.as_micros(),
            length_us: trial.length.as_micros(),
            source: trial.source,
            ok: trial.ok,
            failed: trial.failed,
            error_statuses: trial.error_statuses,
            cpu_user_us: trial.cpu.user.as_micros(),
            cpu_system_us: trial.cpu.system.as_micros(),
            figures: Figures::new(|metric| trial.value(metric)),
        }
    }
}

fn gate(comparison: &Comparison, pair: &PairResult) -> Option<GateRow> {
    let verdict = pair.gate?;
    let trials_needed = match verdict {
        GateVerdict::CannotTell { trials } => trials,
        GateVerdict::Held | GateVerdict::Slower => None,
    };
    Some(GateRow {
        allowed: comparison.gate?.allowed,
        verdict: verdict.name(),
        trials_needed,
    })
}

impl Pair {
    fn new(comparison: &Comparison, pair: &PairResult) -> Self {
        Self {
            ours: 0,
            peer: pair.peer,
            metric: pair.verdict.metric.name(),
            verdict: pair.verdict.verdict.name(),
            ratio: pair.verdict.estimate.ratio,
            interval: pair.verdict.estimate.interval.into(),
            not_comparable: pair.incomparable.clone(),
            gate: gate(comparison, pair),
            metrics: pair.metrics.iter().map(Row::from).collect(),
        }
    }
}

impl From<&MetricResult> for Row {
    fn from(result: &MetricResult) -> Self {
        Self {
            metric: result.metric.name(),
            ours: result.ours,
            peer: result.peer,
            ratio: result.estimate.ratio,
            interval: result.estimate.interval.into(),
            paired: result.estimate.pairing == Pairing::Blocks,
            could_have_seen: result.estimate.could_have_seen(),
            verdict: result.verdict.name(),
        }
    }
}

impl<'a> From<&'a plimsoll_model::Conditions> for Machine<'a> {
    fn from(conditions: &'a plimsoll_model::Conditions) -> Self {
        Self {
            plimsoll: &conditions.plimsoll,
            command: &conditions.command,
            started_unix_us: unix_us(conditions.started),
            kernel: conditions.kernel.as_deref(),
            cpu_model: conditions.cpu_model.as_deref(),
            cores: conditions.cores,
            governor: conditions.governor.as_deref(),
            memory_bytes: conditions.memory_bytes,
            cpu_limit: conditions.limits.cpus,
            memory_limit_bytes: conditions.limits.memory_bytes,
            local_ports: conditions.local_ports,
            congestion_control: conditions.congestion_control.as_deref(),
            load_average_before: conditions
                .load_before
                .map(|load| [load.one, load.five, load.fifteen]),
            steal_percent: conditions.steal_percent,
            generator_cores: &conditions.pinning.generator,
            server_cores: &conditions.pinning.target,
            co_located: conditions.co_located,
            warnings: &conditions.warnings,
        }
    }
}

fn unix_us(time: SystemTime) -> u128 {
    time.duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_micros())
}
