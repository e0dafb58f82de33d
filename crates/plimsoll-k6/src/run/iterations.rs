//! The iterations of a run: their virtual users, `setup()` before the first of them, and what is done meanwhile.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_load::PartReport;
use plimsoll_load::conditions::RunFacts;
use plimsoll_load::scenario::{
    ExchangeUnion, Executor, RecordedRun, RecordingPlan, Scenario, ScenarioHooks, ScenarioRun,
    ScenarioTick, Sinks, UserError, Workloads, run_scenarios,
};
use plimsoll_model::{Clock as _, ExchangeKind, LoadModel, LoadShape, Protocol, Rate};
use plimsoll_wire::SystemClock;

use super::consumers::Consumers;
use super::parts::{PartFigures, PartsEnd, ScriptUnion, is_open};
use super::preparation::Preparation;
use super::standings::PartStandings;
use super::ticks::{JUDGING, Ticks};
use super::users::Users;
use crate::options::Options;
use crate::run::exit_code::ExitCode;
use crate::user::RunState;

/// The interval between samples of processes, as by `plimsoll load URL`.
const SAMPLE: Duration = Duration::from_millis(100);

/// Why a run is aborted.
pub(super) const SIGNAL: &str = "signal";
pub(super) const THRESHOLDS: &str = "thresholds";

/// What the iterations came to.
pub(super) struct Iterated {
    /// The samples.
    pub(super) total: Sinks,
    /// Why virtual users could not be made.
    pub(super) error: Option<UserError>,
    /// The outcome of `setup()`; `None` if the run ended before it.
    pub(super) setup: Option<Result<(), ExitCode>>,
    pub(super) recorded: Option<Box<RecordedRun>>,
    /// What readers of the metrics should know, if there is no record.
    pub(super) cautions: Vec<String>,
    /// What this process has to say beside its samples, if it made iterations.
    pub(super) report: Option<Box<PartReport>>,
}

impl Iterated {
    /// Without iterations.
    fn failed(shared: &RunState, error: UserError, setup: Option<Result<(), ExitCode>>) -> Self {
        Self {
            total: Sinks::new(shared.registry.clone()),
            error: Some(error),
            setup,
            recorded: None,
            cautions: Vec::new(),
            report: None,
        }
    }
}

impl Preparation<'_> {
    /// Makes the virtual users, calls `setup()` and runs all iterations.
    pub(super) fn iterations(&mut self, consumers: &mut Consumers<'_>) -> Iterated {
        let calls = &self.calls;
        let shared = Arc::clone(&calls.shared);
        let options = &shared.options;
        let scenarios = options.scenarios.iter().zip(&shared.claims);
        let scenarios: Vec<_> = scenarios
            .map(|(scenario, claims)| Scenario {
                name: scenario.name.clone(),
                claims: Arc::clone(claims),
                start_time: scenario.start_time,
                graceful_stop: scenario.graceful_stop,
            })
            .collect();
        let users = shared
            .claims
            .iter()
            .map(|claims| claims.executor().most_vus() as usize);
        let users: usize = users.sum();
        let workers = calls.invocation.workers.min(users).max(1);
        let run = ScenarioRun {
            scenarios,
            workers,
            registry: shared.registry.clone(),
            progress: Arc::clone(&shared.progress),
            abort: Arc::clone(&shared.abort),
            keeps_points: !consumers.is_empty(),
            keeps_recent: calls.invocation.on_progress.is_some() || calls.invocation.part.is_some(),
            latency: Some(shared.built_in.http_req_duration),
        };
        let workloads: Arc<dyn Workloads> = Arc::new(Users {
            program: calls.invocation.script.program.clone(),
            shared: Arc::clone(&shared),
            plans: self.plans.clone(),
        });
        let mut ticks = Ticks {
            shared: &shared,
            sinks: Rc::clone(&calls.worker.sinks),
            thresholds: &mut self.thresholds,
            dropped: vec![0; options.scenarios.len()],
            judge_at: JUDGING,
            consumers,
            on_progress: calls.invocation.on_progress,
            control: calls.invocation.control.as_ref(),
            is_part: calls.invocation.part.is_some(),
            parts: PartStandings::default(),
        };
        let recording = calls.invocation.recording.as_ref();
        let recording = recording.map(|recording| RecordingPlan {
            load: load_shape(options, users, workers),
            target: recording.target,
            observed: recording.observed,
            facts: recording.facts.clone(),
            sample_every: SAMPLE,
            hands_over: false,
        });
        if let Some(parts) = calls.invocation.parts {
            let is_open = is_open(&shared);
            let exchanges = recording.map(|plan| ExchangeUnion::open(plan, is_open));
            let exchanges = match exchanges.transpose() {
                Ok(exchanges) => exchanges,
                Err(error) => return Iterated::failed(&shared, error.into(), None),
            };
            let has_view = calls.invocation.on_progress.is_some();
            let mut union = ScriptUnion {
                calls,
                ticks,
                total: Sinks::new(shared.registry.clone()),
                recent: has_view.then(|| Sinks::new(shared.registry.clone())),
                setup: None,
                checks: HashMap::new(),
                scenarios: Vec::new(),
                exchanges,
                end: PartsEnd::default(),
            };
            let outcome = parts.run(&mut union);
            return union.finish(outcome);
        }
        let is_interrupted = calls.invocation.is_interrupted;
        let abort = Arc::clone(&shared.abort);
        let mut look = || {
            if is_interrupted() && !abort.is_aborted() {
                abort.abort(SIGNAL);
            }
        };
        let mut setup = None;
        let hooks = ScenarioHooks {
            before_start: &mut || {
                setup = match &calls.invocation.part {
                    None => calls.prepare(),
                    Some(part) => (part.start)().map(|data| {
                        calls.take_over(data, SystemClock.now());
                        Ok(())
                    }),
                };
                setup == Some(Ok(()))
            },
            on_tick: &mut |tick| {
                ticks.tick(tick);
                if let Some(part) = &calls.invocation.part {
                    let own = calls.worker.sinks.borrow_mut().take_samples();
                    (part.on_tick)(&part_figures(&shared, tick, &own));
                }
            },
            look: &mut look,
        };
        let part = calls.invocation.part.as_ref();
        let handing_over = part.filter(|part| part.records).map(|_| RecordingPlan {
            load: load_shape(options, users, workers),
            target: None,
            observed: &[],
            facts: RunFacts::default(),
            sample_every: SAMPLE,
            hands_over: true,
        });
        let recording = recording.or(handing_over);
        match run_scenarios(&run, &workloads, hooks, recording) {
            Ok(figures) => Iterated {
                total: figures.sinks,
                error: None,
                setup,
                recorded: figures.recorded.map(|made| Box::new(with_model(made))),
                cautions: figures.cautions,
                report: Some(Box::new(figures.report)),
            },
            Err(error) => Iterated::failed(&shared, error.into(), setup),
        }
    }
}

/// What a part has measured since the last tick.
fn part_figures(shared: &RunState, tick: &ScenarioTick<'_>, own: &Sinks) -> PartFigures {
    let mut series = tick.recent.map(Sinks::figures).unwrap_or_default();
    series.extend(own.figures());
    let names = shared.options.scenarios.iter();
    let names = names.map(|scenario| scenario.name.clone());
    PartFigures {
        at: tick.at,
        is_last: tick.is_last,
        scenarios: names.zip(shared.progress.counts()).collect(),
        exchanges: tick.exchanges.cloned(),
        busiest_worker_percent: tick.busiest_worker_percent,
        ..PartFigures::of_series(shared, series)
    }
}

/// The load as result files describe it.
fn load_shape(options: &Options, users: usize, workers: usize) -> LoadShape {
    let scenarios = options.scenarios.iter();
    // The others end with their iterations, long before their limit.
    let ends = scenarios.map(|scenario| match scenario.executor {
        Executor::SharedIterations(_) | Executor::PerVuIterations(_) => None,
        _ => Some(scenario.start_time + scenario.executor.end()),
    });
    let ends = ends.collect::<Option<Vec<_>>>();
    LoadShape {
        url: String::new(),
        urls: 0,
        method: String::new(),
        expectations: Vec::new(),
        fail_status: Some("not expected by the script".to_owned()),
        model: LoadModel::Closed,
        protocol: Protocol::Http1,
        connections: users,
        exchanges: ExchangeKind::Request,
        streams: 1,
        udp_payload: None,
        workers,
        duration: ends.and_then(|ends| ends.into_iter().max()),
        requests: None,
        warm_up: Duration::ZERO,
    }
}

/// Adds the arrival rate of requests if iterations have a schedule: the rate at which they began or were dropped. The
/// script decides how many an iteration makes; one that was dropped counts as one request.
pub(super) fn with_model(mut recorded: RecordedRun) -> RecordedRun {
    let summary = &mut recorded.summary;
    if summary.latency.from_intended.is_some() && !summary.window.is_zero() {
        let per_second = summary.counts.intended() as f64 / summary.window.as_secs_f64();
        if let Some(rate) = Rate::new(per_second) {
            summary.load.model = LoadModel::Open { rate };
        }
    }
    recorded
}

/// When the run started, on the clock of the wall.
pub(super) fn started(shared: &RunState) -> std::time::SystemTime {
    let passed = shared.progress.elapsed(SystemClock.now());
    let now = SystemClock.wall();
    now.checked_sub(passed).unwrap_or(now)
}
