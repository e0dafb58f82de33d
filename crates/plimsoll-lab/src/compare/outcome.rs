//! The result of a comparison.

use plimsoll_model::{Conditions, masked_arguments};

use super::comparable::incomparable;
use super::gate::{Gate, GateVerdict};
use super::metric::{Metric, Verdict};
use super::order::Turn;
use super::plan::ComparePlan;
use super::run::CompareError;
use super::trial::Trial;
use crate::statistics::{
    Bootstrap, Interval, RatioError, RatioEstimate, coverage_limit, median, range,
    ratio_of_medians, ratio_of_pairs,
};

/// Everything that a comparison found, as plain values.
#[derive(Debug, Clone)]
pub struct Comparison {
    /// The metric of the verdict.
    pub metric: Metric,
    /// The first operand against itself, if that was compared first.
    pub self_test: Option<MetricResult>,
    /// What was judged, if anything.
    pub gate: Option<Gate>,
    /// Measured trials of each operand.
    pub trials: u32,
    /// Configured length of a trial, in seconds.
    pub seconds: u32,
    /// Configured connections.
    pub connections: u32,
    /// Whether the operands are servers.
    pub operands_are_servers: bool,
    /// Level of the intervals, and settings of those whose trials are not paired.
    pub bootstrap: Bootstrap,
    /// The order in which the trials ran, warm-ups included.
    pub order: Vec<Turn>,
    /// The operands, the one under judgement first.
    pub operands: Vec<OperandResult>,
    /// The first operand against each of the others.
    pub pairs: Vec<PairResult>,
    /// Under which conditions this was measured.
    pub conditions: Conditions,
}

/// One operand's trials.
#[derive(Debug, Clone)]
pub struct OperandResult {
    /// Its short name.
    pub label: String,
    /// Its command, placeholders not replaced.
    pub command: Vec<String>,
    /// Its measured trials by round.
    pub trials: Vec<Trial>,
}

impl OperandResult {
    /// Median of `metric` over the trials that have it.
    pub fn median(&self, metric: Metric) -> Option<f64> {
        median(&self.values(metric))
    }

    /// Smallest and largest value of `metric`.
    pub fn range(&self, metric: Metric) -> Option<Interval> {
        range(&self.values(metric))
    }

    /// A cost that was not measured but assumed.
    pub(super) fn unseen_cpu(&self) -> Option<String> {
        let unseen = self.trials.iter().filter(|trial| trial.cpu_is_unseen());
        let unseen = unseen.count();
        (unseen > 0).then(|| {
            format!(
                "{}: the kernel's clock of 10 ms saw no CPU time in {unseen} of {} trials, and 5 ms stand for it there: \
                 its CPU per request is a guess; longer trials (--seconds) measure it",
                self.label,
                self.trials.len()
            )
        })
    }

    fn values(&self, metric: Metric) -> Vec<f64> {
        let values = self.trials.iter().filter_map(|trial| trial.value(metric));
        values.collect()
    }
}

/// The first operand against one other.
#[derive(Debug, Clone)]
pub struct PairResult {
    /// Index of the peer among the operands.
    pub peer: usize,
    /// The metric that the verdict is about.
    pub verdict: MetricResult,
    /// Every metric that both sides have, in the order of [`Metric::ALL`].
    pub metrics: Vec<MetricResult>,
    /// Why the two cannot be compared, if they cannot.
    pub incomparable: Option<String>,
    /// The verdict of the gate, if there is one and the two can be compared.
    pub gate: Option<GateVerdict>,
}

/// One metric of a pair.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MetricResult {
    /// Which one.
    pub metric: Metric,
    /// Our median.
    pub ours: f64,
    /// The peer's median.
    pub peer: f64,
    /// Ours / peer.
    pub estimate: RatioEstimate,
    /// The verdict of the interval.
    pub verdict: Verdict,
}

impl MetricResult {
    /// Whether the interval shows a difference.
    pub fn differs(&self) -> bool {
        matches!(self.verdict, Verdict::Faster | Verdict::Slower)
    }
}

impl Comparison {
    /// Sorts `trials` to their operands, drops the warm-ups and compares.
    ///
    /// - `rounds`: measured trials of each operand.
    /// - `self_test`: the first operand against itself.
    pub(super) fn from_trials(
        plan: &ComparePlan,
        trials: Vec<Trial>,
        rounds: u32,
        self_test: Option<MetricResult>,
        conditions: Conditions,
    ) -> Result<Self, CompareError> {
        let options = &plan.options;
        let order = trials.iter().map(|trial| trial.turn).collect();
        let operands = by_operand(plan, trials);
        let pairs = pairs(plan, &operands, rounds, self_test.as_ref())?;
        let mut comparison = Self {
            metric: options.metric,
            self_test,
            gate: options.gate,
            trials: rounds,
            seconds: options.seconds,
            connections: options.connections,
            operands_are_servers: plan.operands_are_servers(),
            bootstrap: options.bootstrap,
            order,
            operands,
            pairs,
            conditions,
        };
        comparison.conditions.warnings.extend(comparison.warnings());
        Ok(comparison)
    }

    /// The level of the intervals, as far as so few trials have one.
    pub fn coverage(&self) -> f64 {
        coverage_limit(self.trials as usize).min(self.bootstrap.level)
    }

    /// Warnings about the figures.
    fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        let trials = self.trials as usize;
        if coverage_limit(trials) < self.bootstrap.level {
            warnings.push(format!(
                "with {trials} trials no interval covers the true ratio more often than \
                 {:.1} % of the time",
                coverage_limit(trials) * 100.0
            ));
        }
        for pair in &self.pairs {
            warnings.extend(pair.incomparable.clone());
        }
        if self.self_test.as_ref().is_some_and(MetricResult::differs) {
            warnings.push(format!(
                "{} differs from itself here: what else the machine does changed between the trials, and such a difference \
                 between operands means nothing",
                self.operands[0].label
            ));
        }
        for operand in &self.operands {
            let failed: u64 = operand.trials.iter().map(|trial| trial.failed).sum();
            if failed > 0 {
                warnings.push(format!("{}: {failed} requests failed", operand.label));
            }
            warnings.extend(operand.unseen_cpu());
            if self.operands_are_servers {
                warnings.extend(self.saturated_driver(operand));
            }
        }
        warnings
    }

    /// A driver that used all of its cores was the limit, not the server.
    fn saturated_driver(&self, operand: &OperandResult) -> Option<String> {
        let cores = self.conditions.pinning.generator.len();
        if cores == 0 {
            return None;
        }
        let saturated = operand.trials.iter().filter(|trial| {
            trial.other_end_cpu.is_some_and(|cpu| {
                cpu.total().as_secs_f64() > 0.95 * cores as f64 * trial.length.as_secs_f64()
            })
        });
        let saturated = saturated.count();
        (saturated > 0).then(|| {
            format!(
                "{}: the driver used all of its cores in {saturated} of {} trials; rate and latency \
                 are the driver's",
                operand.label, self.trials
            )
        })
    }
}

/// Whether more trials may decide what these do not.
///
/// - `rounds`, `self_test`: as for [`Comparison::from_trials`].
pub(super) fn is_undecided(
    plan: &ComparePlan,
    trials: &[Trial],
    rounds: u32,
    self_test: Option<&MetricResult>,
) -> Result<bool, CompareError> {
    let operands = by_operand(plan, trials.to_vec());
    let pairs = pairs(plan, &operands, rounds, self_test)?;
    Ok(pairs
        .iter()
        .any(|pair| matches!(pair.gate, Some(GateVerdict::CannotTell { trials: Some(_) }))))
}

/// The measured trials of each operand.
fn by_operand(plan: &ComparePlan, trials: Vec<Trial>) -> Vec<OperandResult> {
    let operands = plan.options.operands.iter();
    let mut operands: Vec<OperandResult> = operands
        .map(|operand| OperandResult {
            label: operand.label.clone(),
            command: masked_arguments(operand.command.words().to_vec()),
            trials: Vec::new(),
        })
        .collect();
    let measured = trials
        .into_iter()
        .filter(|trial| trial.turn.round.is_some());
    for trial in measured {
        operands[trial.turn.operand].trials.push(trial);
    }
    operands
}

/// The first operand with each other one.
fn pairs(
    plan: &ComparePlan,
    operands: &[OperandResult],
    rounds: u32,
    self_test: Option<&MetricResult>,
) -> Result<Vec<PairResult>, CompareError> {
    let options = &plan.options;
    (1..operands.len())
        .map(|peer| {
            let pair = pair(operands, peer, options.metric, &options.bootstrap)?;
            Ok(judged(pair, options.gate, rounds, self_test))
        })
        .collect()
}

/// The pair with the verdict of `gate`. Where the machine calls an operand different from itself, no trials decide.
fn judged(
    mut pair: PairResult,
    gate: Option<Gate>,
    trials: u32,
    self_test: Option<&MetricResult>,
) -> PairResult {
    let is_noise = self_test.is_some_and(MetricResult::differs);
    pair.gate = gate.filter(|_| pair.incomparable.is_none()).map(|gate| {
        match gate.judge(&pair.verdict, trials) {
            _ if is_noise => GateVerdict::CannotTell { trials: None },
            verdict => verdict,
        }
    });
    pair
}

fn pair(
    operands: &[OperandResult],
    peer: usize,
    metric: Metric,
    bootstrap: &Bootstrap,
) -> Result<PairResult, CompareError> {
    let (ours, theirs) = (&operands[0], &operands[peer]);
    for operand in [ours, theirs] {
        if operand.values(metric).is_empty() {
            return Err(CompareError::NoFigure {
                label: operand.label.clone(),
                metric,
            });
        }
    }
    let incomparable = incomparable(ours, theirs, bootstrap.level);
    let judged = |mut result: MetricResult| {
        if incomparable.is_some() {
            result.verdict = Verdict::NotComparable;
        }
        result
    };
    let verdict = metric_result(ours, theirs, metric, bootstrap)
        .map(judged)
        .map_err(|cause| CompareError::NoRatio { metric, cause })?;
    let metrics = Metric::ALL
        .into_iter()
        .filter_map(|metric| metric_result(ours, theirs, metric, bootstrap).ok())
        .map(judged)
        .collect();
    Ok(PairResult {
        peer,
        verdict,
        metrics,
        incomparable,
        gate: None,
    })
}

fn metric_result(
    ours: &OperandResult,
    peer: &OperandResult,
    metric: Metric,
    bootstrap: &Bootstrap,
) -> Result<MetricResult, RatioError> {
    let (our_values, peer_values) = (ours.values(metric), peer.values(metric));
    // Trials stand in order of their rounds; a figure missing in one of them breaks the pairs.
    let complete = our_values.len() == ours.trials.len() && peer_values.len() == peer.trials.len();
    let estimate = if complete && our_values.len() == peer_values.len() {
        ratio_of_pairs(&our_values, &peer_values, bootstrap.level)
    } else {
        ratio_of_medians(&our_values, &peer_values, bootstrap)
    }?;
    Ok(MetricResult {
        metric,
        ours: median(&our_values).ok_or(RatioError::Empty)?,
        peer: median(&peer_values).ok_or(RatioError::Empty)?,
        estimate,
        verdict: metric.verdict(estimate.interval, our_values.len().min(peer_values.len())),
    })
}
