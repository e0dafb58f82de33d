//! A run that several processes make together: one coordinates, the others make the iterations of a segment each.
//!
//! `setup()`, `teardown()` and `handleSummary()` are called once, by the one that coordinates; thresholds are judged there, over
//! the samples of all.

use std::collections::HashMap;
use std::time::{Duration, Instant, SystemTime};

use plimsoll_load::PartReport;
use plimsoll_load::scenario::{
    ExchangeUnion, ExchangeUnionEnd, Executor, JudgedRun, LeftOut, MetricError, PartExchanges,
    RecordedRun, ScenarioCounts, ScenarioTick, SeriesFigures, Sink, Sinks, UserError,
};
use plimsoll_model::{AgentFigures, Clock as _};
use plimsoll_wire::SystemClock;

use super::exit_code::ExitCode;
use super::iterations::{Iterated, SIGNAL, with_model};
use super::stages::StageCalls;
use super::standings::PartStandings;
use super::ticks::Ticks;
use crate::metrics::checks::PartCheck;
use crate::metrics::counted;
use crate::user::RunState;

/// How the process that makes a part is started and followed.
pub struct ScriptPart<'a> {
    /// Called when the virtual users exist. It returns when the run starts, with the result of `setup()` as JSON if there is one;
    /// `None` if the run does not start.
    pub start: &'a dyn Fn() -> Option<Option<String>>,
    /// Called once a second, and once at the end.
    pub on_tick: &'a dyn Fn(&PartFigures),
    /// Whether ticks have the exchanges, for a record that the process that coordinates makes.
    pub records: bool,
}

/// What a part has measured.
#[derive(Debug, Clone, Default)]
pub struct PartFigures {
    /// Since the start of the run.
    pub at: Duration,
    /// No other follows.
    pub is_last: bool,
    /// Aggregates since the last ones.
    pub series: Vec<SeriesFigures>,
    /// Checks since the start of the run.
    pub checks: Vec<PartCheck>,
    /// Paths of groups since the start of the run.
    pub groups: Vec<String>,
    /// How far the scenarios are, by their names.
    pub scenarios: Vec<(String, ScenarioCounts)>,
    /// The exchanges since the last ones, if they are recorded.
    pub exchanges: Option<PartExchanges>,
    /// The busiest worker since the last ones: share of one core in percent.
    pub busiest_worker_percent: f64,
}

impl PartFigures {
    /// Those of `series`, with the checks so far.
    pub(super) fn of_series(shared: &RunState, series: Vec<SeriesFigures>) -> Self {
        let (groups, checks) = shared.checks.figures();
        Self {
            series,
            checks,
            groups,
            ..Self::default()
        }
    }
}

/// The result of `setup()`.
#[derive(Debug, Clone, Default)]
pub struct PreparedParts {
    /// Its result as JSON, if there is one.
    pub data: Option<String>,
    /// How long it took.
    pub took: Duration,
    /// Why it marked the run as failed, if it did.
    pub failed: Option<String>,
    /// What it has measured.
    pub figures: PartFigures,
}

/// How parts ended.
#[derive(Debug, Default)]
pub struct PartsEnd {
    /// Reports of the parts that ended.
    pub reports: Vec<PartReport>,
    /// All of them side by side.
    pub agents: Vec<AgentFigures>,
    /// Why the figures are not those of the whole run.
    pub lacks: Vec<String>,
    /// Cautions about single parts.
    pub cautions: Vec<String>,
}

/// Has other processes make the iterations.
pub trait ScriptParts {
    /// Starts the parts, merges what they measure into `union`, and returns when all have ended.
    fn run(&self, union: &mut ScriptUnion<'_, '_, '_>) -> Result<(), UserError>;
}

/// The parts of a run, merged.
pub struct ScriptUnion<'a, 'b, 'c> {
    pub(super) calls: &'a StageCalls<'b>,
    pub(super) ticks: Ticks<'a, 'c>,
    pub(super) total: Sinks,
    /// Since the last tick, for a view.
    pub(super) recent: Option<Sinks>,
    /// The outcome of `setup()`.
    pub(super) setup: Option<Result<(), ExitCode>>,
    /// Results of checks that were taken, by part, group and name.
    pub(super) checks: HashMap<(usize, String, String), (u64, u64)>,
    /// How far the parts are.
    pub(super) scenarios: Vec<Vec<(String, ScenarioCounts)>>,
    /// The record, if there is one.
    pub(super) exchanges: Option<ExchangeUnion<'a>>,
    pub(super) end: PartsEnd,
}

impl std::fmt::Debug for ScriptUnion<'_, '_, '_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ScriptUnion")
            .field("setup", &self.setup)
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for ScriptPart<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ScriptPart").finish_non_exhaustive()
    }
}

impl ScriptUnion<'_, '_, '_> {
    /// Calls `setup()`; `None` if it failed.
    pub fn prepare(&mut self) -> Option<PreparedParts> {
        self.setup = self.calls.prepare();
        (self.setup == Some(Ok(()))).then(|| {
            let shared = &self.calls.shared;
            let series = self.calls.worker.sinks.borrow().figures();
            PreparedParts {
                data: shared.setup_data.get().map(ToString::to_string),
                took: shared.duration(SystemClock.now()),
                failed: shared.verdict().failed,
                figures: PartFigures::of_series(shared, series),
            }
        })
    }

    /// Takes over a run that another process has started; that one has called `setup()`.
    ///
    /// - `started`: when the iterations started.
    ///
    /// Fails for figures that do not belong to one metric.
    pub fn take_over(
        &mut self,
        prepared: &PreparedParts,
        started: SystemTime,
    ) -> Result<(), MetricError> {
        let start = before_now(started);
        let began = start.checked_sub(prepared.took).unwrap_or(start);
        self.calls.take_over(prepared.data.clone(), began);
        self.setup = Some(Ok(()));
        if let Some(message) = &prepared.failed {
            self.fail(message);
        }
        let mut sinks = self.calls.worker.sinks.borrow_mut();
        for series in &prepared.figures.series {
            sinks.add_figures(series)?;
        }
        let checks = &self.calls.shared.checks;
        for group in &prepared.figures.groups {
            checks.enter(group);
        }
        for check in &prepared.figures.checks {
            checks.add(&check.group, &check.name, check.passes, check.fails);
        }
        Ok(())
    }

    /// The iterations start.
    ///
    /// - `parts`: name and workers of each.
    /// - `started`: when they start, which may lie ahead.
    pub fn begin(&mut self, parts: &[(String, usize)], started: SystemTime) {
        self.ticks.parts = PartStandings::new(parts);
        self.calls.shared.progress.begin(before_now(started));
        if let Some(exchanges) = &mut self.exchanges {
            let observed = exchanges.start(
                parts.len(),
                parts.iter().map(|(_, workers)| workers).sum(),
                started,
            );
            observed.expect("servers are attached before, and there is no other target");
        }
    }

    /// Adds what a part has measured.
    ///
    /// - `part`: its position.
    ///
    /// Fails for figures that do not belong to one metric.
    pub fn merge_part(&mut self, part: usize, figures: &PartFigures) -> Result<(), MetricError> {
        self.ticks.parts.add(part, figures);
        for series in &figures.series {
            let mut taken = self.total.add_figures(series);
            if let Some(recent) = &mut self.recent {
                taken = taken.and_then(|()| recent.add_figures(series));
            }
            taken?;
        }
        let shared = &self.calls.shared;
        for group in &figures.groups {
            shared.checks.enter(group);
        }
        for check in &figures.checks {
            let key = (part, check.group.clone(), check.name.clone());
            let before = self.checks.insert(key, (check.passes, check.fails));
            let (passes, fails) = before.unwrap_or_default();
            let passes = check.passes.saturating_sub(passes);
            let fails = check.fails.saturating_sub(fails);
            shared.checks.add(&check.group, &check.name, passes, fails);
        }
        if self.scenarios.len() <= part {
            self.scenarios.resize(part + 1, Vec::new());
        }
        self.scenarios[part].clone_from(&figures.scenarios);
        for (position, scenario) in shared.options.scenarios.iter().enumerate() {
            let all = self.scenarios.iter().flatten();
            let of_parts = all.filter(|(name, _)| *name == scenario.name);
            let sum = of_parts.fold(ScenarioCounts::default(), |sum, (_, one)| sum.plus(one));
            shared.progress.set(position, sum);
        }
        if let (Some(union), Some(exchanges)) = (&mut self.exchanges, &figures.exchanges) {
            union.merge_part(part, exchanges);
        }
        Ok(())
    }

    /// No more comes of a part.
    pub fn give_up(&mut self, part: usize) {
        self.ticks.parts.give_up(part);
        if let Some(exchanges) = &mut self.exchanges {
            exchanges.give_up(part);
        }
    }

    /// Takes over how the parts ended.
    pub fn conclude(&mut self, end: PartsEnd) {
        self.end = end;
    }

    /// Does what is due once a second: judges thresholds and shows progress.
    ///
    /// - `is_last`: whether all parts have ended.
    pub fn tick(&mut self, is_last: bool) {
        let at = self.calls.shared.progress.elapsed(SystemClock.now());
        self.ticks.tick(&ScenarioTick {
            at,
            total: &self.total,
            recent: self.recent.as_ref(),
            points: &plimsoll_load::scenario::Points::default(),
            exchanges: None,
            busiest_worker_percent: 0.0,
            is_last,
        });
        let registry = &self.calls.shared.registry;
        self.recent = self.recent.take().map(|_| Sinks::new(registry.clone()));
    }

    /// Called often: ends the run if a signal has come.
    pub fn look(&mut self) {
        if let Some(exchanges) = &mut self.exchanges {
            exchanges.look();
        }
        let abort = &self.calls.shared.abort;
        if (self.calls.invocation.is_interrupted)() && !abort.is_aborted() {
            abort.abort(SIGNAL);
        }
    }

    /// Whether `setup()` has failed.
    pub fn has_failed(&self) -> bool {
        matches!(self.setup, Some(Err(_)))
    }

    /// Whether the run is to end: a signal, or a threshold that ends it.
    pub fn is_over(&self) -> bool {
        self.calls.shared.abort.is_aborted()
    }

    /// A part ends the run, for a reason that is its script's.
    pub fn abort(&self, message: &str) {
        let verdict = self.calls.shared.verdict.lock();
        let mut verdict = verdict.unwrap_or_else(std::sync::PoisonError::into_inner);
        verdict.aborted.get_or_insert_with(|| message.to_owned());
    }

    /// A part marks the run as failed.
    pub fn fail(&self, message: &str) {
        let verdict = self.calls.shared.verdict.lock();
        let mut verdict = verdict.unwrap_or_else(std::sync::PoisonError::into_inner);
        verdict.failed.get_or_insert_with(|| message.to_owned());
    }

    /// Whether a scenario has a schedule.
    pub fn is_open(&self) -> bool {
        is_open(&self.calls.shared)
    }

    /// What the metrics of all parts leave out.
    fn left_out(&self) -> LeftOut {
        let shared = &self.calls.shared;
        LeftOut {
            requests: shared.progress.aborted(),
            iterations: shared.progress.interrupted(),
            dropped: counted(&self.total, shared.built_in.dropped_iterations),
        }
    }

    /// What the generators of the parts may have moved, if there is no record.
    fn moved(&self, reports: &[&PartReport], window: Duration) -> Vec<String> {
        let shared = &self.calls.shared;
        let latency = shared.registry.metric(shared.built_in.http_req_duration);
        let executors = shared.claims.iter().map(|claims| claims.executor());
        let judged = JudgedRun {
            window,
            users: executors.map(|it| it.most_vus() as usize).sum(),
            is_open: self.is_open(),
            latency: match self.total.series(latency.series) {
                Some(Sink::Trend(trend)) => Some(trend),
                _ => None,
            },
        };
        judged.cautions_of_parts(reports)
    }

    pub(super) fn finish(mut self, outcome: Result<(), UserError>) -> Iterated {
        // Parts that cannot be started are no fault of the script.
        let none = outcome.is_err().then_some(Err(ExitCode::Other));
        let is_stopped = self.is_over();
        let mut left_out = self.left_out().cautions(is_stopped);
        let end = std::mem::take(&mut self.end);
        let reports: Vec<_> = end.reports.iter().collect();
        // What the coordinator waits for behind the end is no part of the run.
        let stopped = reports.iter().map(|report| report.stopped).max();
        let elapsed = self.calls.shared.progress.elapsed(SystemClock.now());
        let window = stopped.unwrap_or(elapsed);
        let exchanges = self.exchanges.take();
        let mut recorded = None;
        let mut cautions = Vec::new();
        if let Some(exchanges) = exchanges {
            let record = exchanges.finish(ExchangeUnionEnd {
                reports: &reports,
                window,
                is_interrupted: is_stopped,
                left_out,
            });
            recorded = record.map(|record| Box::new(with_parts(with_model(record), end)));
        } else {
            left_out.extend(self.moved(&reports, window));
            left_out.extend(end.cautions);
            cautions = left_out;
        }
        Iterated {
            cautions,
            total: self.total,
            error: outcome.err(),
            setup: self.setup.or(none),
            recorded,
            report: None,
        }
    }
}

/// A moment on the clock that durations are measured by; now if it lies ahead.
fn before_now(time: SystemTime) -> Instant {
    let now = SystemClock.now();
    let ago = SystemClock.wall().duration_since(time).unwrap_or_default();
    now.checked_sub(ago).unwrap_or(now)
}

/// Whether a scenario has a schedule.
pub(super) fn is_open(shared: &RunState) -> bool {
    let mut executors = shared.claims.iter().map(|claims| claims.executor());
    executors.any(Executor::is_open)
}

/// Adds the parts side by side, and what is to be known of each.
fn with_parts(mut recorded: RecordedRun, end: PartsEnd) -> RecordedRun {
    let summary = &mut recorded.summary;
    summary.agents = end.agents;
    let warnings = &mut summary.conditions.warnings;
    warnings.extend(end.cautions);
    warnings.splice(0..0, end.lacks);
    recorded
}
