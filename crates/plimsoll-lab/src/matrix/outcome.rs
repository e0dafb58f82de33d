//! The result of a matrix: its cells with their trials, and the best of each row.

use std::collections::HashMap;
use std::time::Duration;

use plimsoll_model::{Conditions, masked_arguments};

use super::bound::{Point, is_harness_bound};
use super::order::{Cell, cells};
use super::plan::{LoadPlan, MatrixPlan, SizePlan};
use super::trial::{Figures, Outcome, Trial};
use super::usage::Usage;
use crate::error_share::ErrorShare;
use crate::statistics::{Bootstrap, Interval, coverage_limit, median, range, ratio_of_medians};

/// Everything that a matrix found, as plain values.
#[derive(Debug, Clone)]
pub struct Matrix {
    /// The name of the matrix.
    pub name: String,
    /// Start of the random order.
    pub seed: u64,
    /// Trials of each cell.
    pub repeats: u32,
    /// Load before each window.
    pub warm_up: Duration,
    /// The measured window.
    pub window: Duration,
    /// The targets' names and commands.
    pub targets: Vec<(String, Vec<String>)>,
    /// The loads.
    pub loads: Vec<LoadPlan>,
    /// The sizes.
    pub sizes: Vec<SizePlan>,
    /// Every cell, by size, then load, then target.
    pub cells: Vec<CellResult>,
    /// Trials that were finished before this run began.
    pub kept: usize,
    /// Under which conditions this was measured.
    pub conditions: Conditions,
}

/// One cell.
#[derive(Debug, Clone, PartialEq)]
pub struct CellResult {
    /// Its place.
    pub cell: Cell,
    /// Connections of its load.
    pub connections: u32,
    /// Its trials, in order of their rounds.
    pub trials: Vec<Trial>,
    /// Why it was not run, if it was not.
    pub not_run: Option<String>,
    /// The median grew with the connections while the target was idle.
    pub harness_bound: bool,
}

/// A figure of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Figure {
    /// Processor time of the target per request, in microseconds.
    CpuUsPerRequest,
    /// Complete responses per second.
    RequestsPerSecond,
    /// Median latency in microseconds.
    P50Us,
    /// 99th percentile in microseconds.
    P99Us,
    /// 99.9th percentile in microseconds.
    P999Us,
    /// Processor time of the target over time, in percent of one core.
    CpuPercent,
    /// Largest resident memory of the target in bytes.
    PeakMemoryBytes,
    /// Most descriptors of the target at one time.
    PeakFds,
    /// Processor time of the generator per request, in microseconds.
    GeneratorCpuUsPerRequest,
    /// Processor time of all upstreams per request, in microseconds.
    UpstreamCpuUsPerRequest,
}

impl Figure {
    /// Every figure, in the order of the report.
    pub const ALL: [Self; 10] = [
        Self::CpuUsPerRequest,
        Self::RequestsPerSecond,
        Self::P50Us,
        Self::P99Us,
        Self::P999Us,
        Self::CpuPercent,
        Self::PeakMemoryBytes,
        Self::PeakFds,
        Self::GeneratorCpuUsPerRequest,
        Self::UpstreamCpuUsPerRequest,
    ];

    /// The figures that targets are compared by.
    pub const JUDGED: [Self; 4] = [
        Self::CpuUsPerRequest,
        Self::RequestsPerSecond,
        Self::P99Us,
        Self::PeakMemoryBytes,
    ];

    /// The name used in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::CpuUsPerRequest => "cpu_us_per_request",
            Self::RequestsPerSecond => "rps",
            Self::P50Us => "p50_us",
            Self::P99Us => "p99_us",
            Self::P999Us => "p99_9_us",
            Self::CpuPercent => "cpu_percent",
            Self::PeakMemoryBytes => "peak_rss_bytes",
            Self::PeakFds => "peak_fds",
            Self::GeneratorCpuUsPerRequest => "generator_cpu_us_per_request",
            Self::UpstreamCpuUsPerRequest => "upstream_cpu_us_per_request",
        }
    }

    /// The figure of one trial.
    pub fn read(self, figures: &Figures) -> Option<f64> {
        let rate = figures.requests_per_second;
        let cost = |side: &Usage| side.cpu_us_per_request(rate);
        match self {
            Self::CpuUsPerRequest => figures.target.as_ref().and_then(cost),
            Self::RequestsPerSecond => Some(rate),
            Self::P50Us => figures.p50_us,
            Self::P99Us => figures.p99_us,
            Self::P999Us => figures.p99_9_us,
            Self::CpuPercent => figures.target.as_ref().map(Usage::cpu_percent),
            Self::PeakMemoryBytes => figures
                .target
                .as_ref()
                .map(|target| target.peak_memory_bytes as f64),
            Self::PeakFds => figures.target.as_ref().map(|target| target.peak_fds as f64),
            Self::GeneratorCpuUsPerRequest => figures.generator.as_ref().and_then(cost),
            Self::UpstreamCpuUsPerRequest if figures.upstreams.is_empty() => None,
            Self::UpstreamCpuUsPerRequest => figures.upstreams.iter().map(cost).sum(),
        }
    }

    const fn more_is_better(self) -> bool {
        matches!(self, Self::RequestsPerSecond)
    }
}

/// The target that is ahead in a row, by one figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Winner {
    /// By which figure.
    pub figure: Figure,
    /// The target with the best median.
    pub target: usize,
    /// The next one.
    pub second: usize,
    /// Whether the interval of their ratio excludes 1.
    pub is_clear: bool,
}

impl CellResult {
    /// The figures of the trials that were measured.
    pub fn measured(&self) -> impl Iterator<Item = &Figures> {
        self.trials.iter().filter_map(|trial| match &trial.outcome {
            Outcome::Measured(figures) => Some(&**figures),
            Outcome::Killed { .. } | Outcome::Failed { .. } => None,
        })
    }

    /// `measured`, `partly-measured`, `killed`, `failed` or `not-run`.
    pub fn state(&self) -> &'static str {
        let measured = self.measured().count();
        let is_killed = |trial: &Trial| matches!(trial.outcome, Outcome::Killed { .. });
        match (&self.not_run, measured) {
            (Some(_), _) => "not-run",
            (None, measured) if measured > 0 && measured == self.trials.len() => "measured",
            (None, 1..) => "partly-measured",
            (None, 0) if self.trials.iter().any(is_killed) => "killed",
            (None, 0) => "failed",
        }
    }

    /// Median of `figure` over the trials that have it.
    pub fn median(&self, figure: Figure) -> Option<f64> {
        median(&self.values(figure))
    }

    /// Smallest and largest value of `figure`.
    pub fn range(&self, figure: Figure) -> Option<Interval> {
        range(&self.values(figure))
    }

    /// Standard deviation of `figure` over its mean, from two trials on.
    pub fn variation(&self, figure: Figure) -> Option<f64> {
        let values = self.values(figure);
        let count = values.len() as f64;
        if count < 2.0 {
            return None;
        }
        let mean = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        (mean > 0.0).then(|| (squares / (count - 1.0)).sqrt() / mean)
    }

    fn error_share(&self) -> ErrorShare {
        let trials = self.trials.iter().filter_map(|trial| match &trial.outcome {
            Outcome::Measured(figures) => Some((figures.errors, figures.ok + figures.failed)),
            Outcome::Killed { .. } | Outcome::Failed { .. } => None,
        });
        ErrorShare::from_trials(trials)
    }

    /// Requests without an answer, and whatever else is an error, over all trials.
    pub fn errors(&self) -> u64 {
        self.measured().map(|figures| figures.errors).sum()
    }

    /// The limiting side in at least half of its measured trials.
    pub fn limits(&self) -> Vec<String> {
        let mut seen: Vec<(String, usize)> = Vec::new();
        for name in self.measured().flat_map(|figures| &figures.saturated) {
            match seen.iter_mut().find(|(known, _)| known == name) {
                Some((_, times)) => *times += 1,
                None => seen.push((name.clone(), 1)),
            }
        }
        let measured = self.measured().count();
        let mut limits: Vec<String> = seen
            .into_iter()
            .filter(|(_, times)| times * 2 >= measured)
            .map(|(name, _)| name)
            .collect();
        if self.harness_bound {
            limits.push("harness".to_owned());
        }
        limits
    }

    fn values(&self, figure: Figure) -> Vec<f64> {
        self.measured()
            .filter_map(|figures| figure.read(figures))
            .collect()
    }

    /// A closed load that shows whether the harness was measured.
    fn point(&self) -> Option<Point> {
        let idle = self
            .measured()
            .all(|figures| figures.target.as_ref().is_some_and(Usage::is_idle));
        Some(Point {
            connections: self.connections,
            p50_us: self.median(Figure::P50Us)?,
            target_is_idle: idle,
        })
    }
}

impl Matrix {
    /// Sorts `trials` to their cells.
    ///
    /// - `refused`: cells that the machine cannot hold, with the reason.
    /// - `kept`: how many trials an earlier run has left.
    pub(super) fn new(
        plan: &MatrixPlan,
        trials: Vec<Trial>,
        refused: &HashMap<Cell, String>,
        kept: usize,
        conditions: Conditions,
    ) -> Self {
        let mut found: Vec<CellResult> = cells(plan)
            .into_iter()
            .map(|cell| CellResult {
                cell,
                connections: plan.sizes[cell.size]
                    .connections
                    .unwrap_or(plan.loads[cell.load].connections),
                trials: Vec::new(),
                not_run: refused.get(&cell).cloned(),
                harness_bound: false,
            })
            .collect();
        for trial in trials {
            let home = found.iter_mut().find(|result| {
                let cell = result.cell;
                plan.targets[cell.target].name == trial.target
                    && plan.loads[cell.load].name == trial.load
                    && plan.sizes[cell.size].name == trial.size
            });
            if let Some(home) = home {
                home.trials.push(trial);
            }
        }
        for result in &mut found {
            result.trials.sort_by_key(|trial| trial.round);
        }
        let mut matrix = Self {
            name: plan.name.clone(),
            seed: plan.seed,
            repeats: plan.repeats,
            warm_up: plan.warm_up,
            window: plan.window,
            targets: plan
                .targets
                .iter()
                .map(|target| {
                    (
                        target.name.clone(),
                        masked_arguments(target.process.words.clone()),
                    )
                })
                .collect(),
            loads: plan.loads.clone(),
            sizes: plan.sizes.clone(),
            cells: found,
            kept,
            conditions,
        };
        matrix.mark_harness_bound();
        matrix.warn();
        matrix
    }

    /// Of each target within each size, over the closed loads that differ in connections only.
    fn mark_harness_bound(&mut self) {
        for size in 0..self.sizes.len() {
            for target in 0..self.targets.len() {
                for load in 0..self.loads.len() {
                    let like = &self.loads[load];
                    let alike = |result: &&mut CellResult| {
                        let other = &self.loads[result.cell.load];
                        result.cell.size == size
                            && result.cell.target == target
                            && other.rate.is_none()
                            && like.rate.is_none()
                            && other.loader == like.loader
                    };
                    let mut group: Vec<&mut CellResult> =
                        self.cells.iter_mut().filter(alike).collect();
                    let points: Vec<Point> =
                        group.iter().filter_map(|result| result.point()).collect();
                    if is_harness_bound(&points) {
                        for result in &mut group {
                            result.harness_bound = result.measured().count() > 0;
                        }
                    }
                }
            }
        }
    }

    /// Warnings about the figures.
    fn warn(&mut self) {
        let mut warnings = Vec::new();
        let trials = self.repeats as usize;
        if self.targets.len() > 1 && coverage_limit(trials) < Bootstrap::default().level {
            warnings.push(if trials < 2 {
                "with a single trial no winner is clear".to_owned()
            } else {
                format!(
                    "with {trials} trials a winner is clear only where all of its trials are: no \
                     interval covers more often than {:.1} % of the time",
                    coverage_limit(trials) * 100.0
                )
            });
        }
        let generators = self.count(|cell| cell.limits().iter().any(|name| name == "generator"));
        if generators > 0 {
            warnings.push(format!(
                "in {generators} cells the generator was at its limit: their rate and latency are \
                 not the target's; the processor time per request still is"
            ));
        }
        let bound = self.count(|cell| cell.harness_bound);
        if bound > 0 {
            warnings.push(format!(
                "{bound} cells are bound by the harness: the target was idle while the latency grew \
                 with the connections"
            ));
        }
        for (index, (target, _)) in self.targets.iter().enumerate() {
            let cells = || self.cells.iter().filter(|cell| cell.cell.target == index);
            let errors: u64 = cells().map(CellResult::errors).sum();
            if errors > 0 {
                let left_out = cells().filter(|cell| !self.is_comparable(cell)).count();
                let left_out = match left_out {
                    0 => String::new(),
                    cells => format!(
                        "; in {cells} cells it served a smaller share than others, and is not compared \
                         with them"
                    ),
                };
                warnings.push(format!("{target}: {errors} requests were errors{left_out}"));
            }
        }
        if self.kept > 0 {
            warnings.push(format!(
                "{} trials were made by an earlier run of the same plan",
                self.kept
            ));
        }
        self.conditions.warnings.extend(warnings);
    }

    /// Cells that served a smaller share of their requests than others of their row, so that they are not compared with them.
    pub fn not_comparable(&self) -> usize {
        self.count(|cell| cell.errors() > 0 && !self.is_comparable(cell))
    }

    /// Whether a cell served as large a share of its requests as the best one of its row.
    fn is_comparable(&self, cell: &CellResult) -> bool {
        let share = cell.error_share();
        let row = self.row(cell.cell.size, cell.cell.load);
        let best = row.filter(|other| other.measured().count() > 0);
        let best = best.map(CellResult::error_share);
        let best = best.min_by(|one, other| one.value.total_cmp(&other.value));
        best.is_none_or(|best| !share.differs_from(best, Bootstrap::default().level))
    }

    fn count(&self, which: impl Fn(&CellResult) -> bool) -> usize {
        self.cells.iter().filter(|cell| which(cell)).count()
    }

    /// The cells of a row, one per target.
    pub fn row(&self, size: usize, load: usize) -> impl Iterator<Item = &CellResult> {
        let in_row =
            move |result: &&CellResult| result.cell.size == size && result.cell.load == load;
        self.cells.iter().filter(in_row)
    }

    /// The target that is ahead in a row by `figure`; `None` unless two targets have it, and of the rate of an open
    /// loop.
    ///
    /// Cells whose figures are not the target's take part in the cost per request and in memory only; those of
    /// targets that failed or rejected what another one served, in nothing.
    pub fn winner(&self, size: usize, load: usize, figure: Figure) -> Option<Winner> {
        // An open loop has the target rate.
        if figure == Figure::RequestsPerSecond && self.loads[load].rate.is_some() {
            return None;
        }
        let is_cost = matches!(figure, Figure::CpuUsPerRequest | Figure::PeakMemoryBytes);
        let mut row: Vec<(&CellResult, f64)> = self
            .row(size, load)
            .filter(|cell| is_cost || !cell.harness_bound)
            .filter(|cell| self.is_comparable(cell))
            .filter_map(|cell| Some((cell, cell.median(figure)?)))
            .collect();
        row.sort_by(|one, other| {
            let ascending = one.1.total_cmp(&other.1);
            if figure.more_is_better() {
                ascending.reverse()
            } else {
                ascending
            }
        });
        let [(best, _), (second, _), ..] = row.as_slice() else {
            return None;
        };
        let (ours, theirs) = (best.values(figure), second.values(figure));
        let bootstrap = Bootstrap {
            seed: self.seed,
            ..Bootstrap::default()
        };
        // A round's trials stand far apart in time: there is no pair to keep together.
        let ratio = ratio_of_medians(&ours, &theirs, &bootstrap);
        Some(Winner {
            figure,
            target: best.cell.target,
            second: second.cell.target,
            is_clear: ours.len() > 1
                && theirs.len() > 1
                && ratio.is_ok_and(|ratio| !ratio.interval.contains(1.0)),
        })
    }

    /// The same matrix with one of its targets only.
    #[must_use]
    pub fn only(&self, target: usize) -> Self {
        let mut one = self.clone();
        one.name = format!("{}: {}", self.name, self.targets[target].0);
        one.targets = vec![self.targets[target].clone()];
        one.cells.retain(|result| result.cell.target == target);
        for result in &mut one.cells {
            result.cell.target = 0;
        }
        one
    }

    /// Trials that could not be made, with the reasons.
    pub fn failures(&self) -> impl Iterator<Item = (&Trial, &str)> {
        let trials = self.cells.iter().flat_map(|cell| &cell.trials);
        trials.filter_map(|trial| match &trial.outcome {
            Outcome::Failed { reason } => Some((trial, reason.as_str())),
            Outcome::Measured(_) | Outcome::Killed { .. } => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::UNIX_EPOCH;

    use plimsoll_load::conditions::{Before, RunFacts};

    use super::*;
    use crate::matrix::plan::compile;

    const PLAN: &str = r#"
name = "two"
seed = 7
repeats = 4
warm_up = "0s"
window = "1s"

[[target]]
name = "serving"
command = "serving {port}"
url = "http://127.0.0.1:{port}/"

[[target]]
name = "rejecting"
command = "rejecting {port}"
url = "http://127.0.0.1:{port}/"

[[load]]
name = "c8"
connections = 8
"#;

    /// Trials of a target that rejects a share of its requests.
    fn trials(target: &str, rate: f64, rejected: u64) -> impl Iterator<Item = Trial> {
        (0..4).map(move |round| {
            let figures = serde_json::json!({
                "source": "plimsoll", "ok": 10_000, "errors": rejected, "requests_per_second": rate,
                "mean_us": 1.0, "p50_us": 1.0, "p90_us": 1.0, "p95_us": 1.0, "p99_us": 1.0, "p99_9_us": 1.0,
                "target": null, "generator": null, "upstreams": [], "saturated": [],
            });
            Trial {
                target: target.to_owned(),
                load: "c8".to_owned(),
                size: String::new(),
                round,
                outcome: Outcome::Measured(serde_json::from_value(figures).unwrap()),
            }
        })
    }

    fn matrix(rejected: u64) -> Matrix {
        let plan = compile(PLAN, Path::new("."), "plimsoll").unwrap();
        let size = plan.sizes[0].name.clone();
        let trials = trials("serving", 1_000.0, 0).chain(trials("rejecting", 9_000.0, rejected));
        let trials = trials.map(|trial| Trial {
            size: size.clone(),
            ..trial
        });
        let conditions = Before::observe(UNIX_EPOCH).after(RunFacts::default());
        Matrix::new(&plan, trials.collect(), &HashMap::new(), 0, conditions)
    }

    #[test]
    fn a_target_that_rejects_what_another_one_serves_is_left_out_and_named() {
        let matrix = matrix(9_900);
        assert_eq!(matrix.winner(0, 0, Figure::RequestsPerSecond), None);
        let warnings = &matrix.conditions.warnings;
        let named = warnings
            .iter()
            .find(|warning| warning.starts_with("rejecting: 39600 requests were errors"));
        assert!(
            named.is_some_and(|text| text.contains("in 1 cells")),
            "{warnings:?}"
        );
    }

    #[test]
    fn a_target_without_errors_is_compared() {
        let winner = matrix(0).winner(0, 0, Figure::RequestsPerSecond).unwrap();
        assert_eq!((winner.target, winner.second), (1, 0));
    }
}
