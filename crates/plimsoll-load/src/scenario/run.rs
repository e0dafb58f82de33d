//! A run of scenarios: workers, their start, ticks, the end.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use plimsoll_model::{Clock as _, Histogram};
use plimsoll_observe::AttachError;
use plimsoll_wire::SystemClock;
use tokio::sync::{mpsc, watch};

use super::claims::Claims;
use super::exchanges::{RecordEnd, RecordedRun, Recorder, RecordingPlan};
use super::left_out::LeftOut;
use super::metric::{MetricId, Points, Registry, Sink, Sinks, Trend};
use super::part::PartExchanges;
use super::progress::TestProgress;
use super::worker::{Report, Worker};
use super::workload::{UserError, UserId, Workloads};
use crate::conditions::throttled;
use crate::part::PartReport;
use crate::run::saturation;
use crate::run::standstill::{CORES_OF_SCRIPT, Facts, JudgedLatency};
use crate::union::{longest_throttled, worst_share};
use crate::worker::recorder::Interval;
use crate::worker::thread_share::ThreadShare;

/// Virtual users that may wait to be added to a worker.
const ADDITIONS: usize = 1024;

/// Reports of workers that may wait.
const REPORTS: usize = 64;

/// How often the caller may end the run.
const LOOK: Duration = Duration::from_millis(50);

/// A shorter run tries out a script: a millisecond for which the generator waited is a large share of it.
const SHORTEST_MEASUREMENT: Duration = Duration::from_secs(1);

/// Iterations of one kind.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// Its name.
    pub name: String,
    /// Its iterations.
    pub claims: Arc<Claims>,
    /// When it starts, since the start of the run.
    pub start_time: Duration,
    /// Time for iterations in flight behind its end.
    pub graceful_stop: Duration,
}

/// A run of scenarios.
#[derive(Debug)]
pub struct ScenarioRun {
    /// Not empty.
    pub scenarios: Vec<Scenario>,
    /// Threads; at least 1.
    pub workers: usize,
    /// The metrics.
    pub registry: Registry,
    /// How far it is; made for as many scenarios.
    pub progress: Arc<TestProgress>,
    /// Ends it early.
    pub abort: Arc<Abort>,
    /// Whether ticks have the samples themselves.
    pub keeps_points: bool,
    /// Whether ticks have the aggregates of the time since the last one.
    pub keeps_recent: bool,
    /// The trend of the latency, in milliseconds, that the generator may have moved.
    pub latency: Option<MetricId>,
}

/// What a run of scenarios has measured.
#[derive(Debug)]
pub struct ScenarioFigures {
    /// Aggregates of all samples.
    pub sinks: Sinks,
    /// What readers of the metrics should know, if there is no record: the summary of a record has it.
    pub cautions: Vec<String>,
    /// The record, if there is one.
    pub recorded: Option<RecordedRun>,
    /// What the process that merges the parts of a run needs of this one, beside its samples: its total is empty.
    pub report: PartReport,
}

/// A run of scenarios, as far as it decides what a generator may have moved.
#[derive(Debug, Clone, Copy)]
pub struct JudgedRun<'a> {
    /// Its length.
    pub window: Duration,
    /// Virtual users at most.
    pub users: usize,
    /// Whether a scenario has a schedule.
    pub is_open: bool,
    /// The latency, in milliseconds, if there is one.
    pub latency: Option<&'a Trend>,
}

/// Figures so far.
#[derive(Debug)]
pub struct ScenarioTick<'a> {
    /// Since the start of the run.
    pub at: Duration,
    /// Aggregates of all samples so far.
    pub total: &'a Sinks,
    /// Aggregates of the samples since the last tick, if the run keeps them.
    pub recent: Option<&'a Sinks>,
    /// The samples since the last tick, if the run keeps them.
    pub points: &'a Points,
    /// The exchanges since the last tick, if the recording hands them over.
    pub exchanges: Option<&'a PartExchanges>,
    /// The busiest worker since the last tick: share of one core in percent.
    pub busiest_worker_percent: f64,
    /// No other tick follows.
    pub is_last: bool,
}

/// Ends a run early: iterations are interrupted at once.
#[derive(Debug)]
pub struct Abort {
    reason: Mutex<Option<String>>,
    signal: watch::Sender<bool>,
}

impl Default for Abort {
    fn default() -> Self {
        Self {
            reason: Mutex::default(),
            signal: watch::Sender::new(false),
        }
    }
}

impl Abort {
    /// Ends the run; the first reason counts.
    pub fn abort(&self, reason: impl Into<String>) {
        let mut kept = self.reason.lock().unwrap_or_else(PoisonError::into_inner);
        kept.get_or_insert_with(|| reason.into());
        self.signal.send_replace(true);
    }

    /// Why the run was ended; `None` if it was not.
    pub fn reason(&self) -> Option<String> {
        let reason = self.reason.lock().unwrap_or_else(PoisonError::into_inner);
        reason.clone()
    }

    /// Whether the run was ended.
    pub fn is_aborted(&self) -> bool {
        *self.signal.borrow()
    }

    /// Returns once the run is ended.
    pub(super) async fn aborted(&self) {
        let mut signal = self.signal.subscribe();
        // The sender lives as long as `self`.
        signal.wait_for(|is_aborted| *is_aborted).await.ok();
    }
}

/// Why a run of scenarios has no result.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// A virtual user could not be made before the start.
    #[error(transparent)]
    User(UserError),
    /// The system gives no thread.
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
    /// The system gives no poller or no timers.
    #[error("cannot start a runtime: {0}")]
    Runtime(io::Error),
    /// A worker ended without a report.
    #[error("a worker panicked")]
    Panicked,
    /// The processes of the target cannot be observed.
    #[error(transparent)]
    Unobserved(#[from] AttachError),
}

/// What a run calls while it is under way, on the thread of its caller.
pub struct ScenarioHooks<'a> {
    /// Called once, when the virtual users of the start exist. The run starts when it returns true, and ends without an iteration
    /// if it returns false.
    pub before_start: &'a mut dyn FnMut() -> bool,
    /// Called about once a second and once at the end.
    pub on_tick: &'a mut dyn FnMut(&ScenarioTick<'_>),
    /// Called 20 times a second, to abort the run.
    pub look: &'a mut dyn FnMut(),
}

impl fmt::Debug for ScenarioHooks<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScenarioHooks").finish_non_exhaustive()
    }
}

/// Runs scenarios to their end.
///
/// - `recording`: the exchanges are recorded by it.
///
/// Fails if a thread cannot be started, if the processes of a recording's target cannot be observed, or with the error of a
/// virtual user that could not be made before the start.
pub fn run_scenarios(
    run: &ScenarioRun,
    workloads: &Arc<dyn Workloads>,
    hooks: ScenarioHooks<'_>,
    recording: Option<RecordingPlan<'_>>,
) -> Result<ScenarioFigures, ScenarioError> {
    let mut recorder = recording.map(|plan| Recorder::new(plan, run.workers, is_open(run)));
    let (sinks, generator) = run_workers(run, workloads, hooks, &mut recorder)?;
    let window = run.progress.elapsed(SystemClock.now());
    let left_out = left_out(run).cautions(run.abort.is_aborted());
    let mut report = generator.report(window);
    let recorder = match recorder {
        Some(recorder) if !recorder.hands_over() => recorder,
        handing_over => {
            if let Some(recorder) = handing_over {
                recorder.add_to(&mut report);
            }
            let mut cautions = left_out;
            cautions.extend(judged_run(run, &sinks, window).cautions(&generator));
            return Ok(ScenarioFigures {
                sinks,
                cautions,
                recorded: None,
                report,
            });
        }
    };
    let end = RecordEnd {
        window,
        worst_worker: generator.worst_worker,
        is_interrupted: run.abort.is_aborted(),
        dropped: dropped_arrivals(run),
        left_out,
    };
    Ok(ScenarioFigures {
        recorded: recorder.finish(end, None),
        sinks,
        cautions: Vec::new(),
        report,
    })
}

/// The generator's own share of a run.
#[derive(Debug, Clone, Copy, Default)]
struct GeneratorShare {
    worst_worker: ThreadShare,
    /// Time for which the control group of this process was throttled.
    throttled: Option<Duration>,
}

impl GeneratorShare {
    /// - `stopped`: when the run ended, since its start.
    fn report(&self, stopped: Duration) -> PartReport {
        let ThreadShare {
            cpu_percent,
            run_delay,
            stalls,
        } = self.worst_worker;
        PartReport {
            total: Interval::new(0, false),
            stopped,
            late: Duration::ZERO,
            cpu: None,
            peak_memory_bytes: None,
            busiest_worker_percent: cpu_percent,
            stalls,
            run_delay,
            throttled: self.throttled,
            stream_limit: None,
            surplus: 0,
            // How late iterations were is known to a record alone.
            saturated: saturation::judge(cpu_percent, &Histogram::new(), &Histogram::new(), false),
            warnings: Vec::new(),
        }
    }
}

impl JudgedRun<'_> {
    /// What the generators of a run of several parts may have moved: the worst of them is judged.
    pub fn cautions_of_parts(&self, reports: &[&PartReport]) -> Vec<String> {
        self.cautions(&GeneratorShare {
            worst_worker: worst_share(reports),
            throttled: longest_throttled(reports),
        })
    }

    /// What is judged without a record: the metric of the latency takes the place of its histogram.
    fn cautions(&self, generator: &GeneratorShare) -> Vec<String> {
        if self.window < SHORTEST_MEASUREMENT {
            return Vec::new();
        }
        let facts = Facts {
            window: self.window,
            stalls: generator.worst_worker.stalls,
            run_delay: generator.worst_worker.run_delay,
            throttled: generator.throttled,
            stolen: Duration::ZERO,
            cores_by: CORES_OF_SCRIPT,
            places: self.users,
            is_open: self.is_open,
            latency: self.latency.map(judged).unwrap_or_default(),
        };
        facts.warnings()
    }
}

fn judged_run<'a>(run: &ScenarioRun, sinks: &'a Sinks, window: Duration) -> JudgedRun<'a> {
    let latency = run.latency.map(|id| run.registry.metric(id).series);
    let executors = run.scenarios.iter();
    let executors = executors.map(|scenario| scenario.claims.executor());
    JudgedRun {
        window,
        users: executors.map(|it| it.most_vus() as usize).sum(),
        is_open: is_open(run),
        latency: match latency.and_then(|series| sinks.series(series)) {
            Some(Sink::Trend(trend)) => Some(trend),
            _ => None,
        },
    }
}

/// - `trend`: in milliseconds.
fn judged(trend: &Trend) -> JudgedLatency {
    JudgedLatency::new(trend.count(), |fraction| {
        let seconds = trend.quantile(fraction) / 1e3;
        Duration::try_from_secs_f64(seconds).ok()
    })
}

/// Makes the run, and returns its samples.
fn run_workers(
    run: &ScenarioRun,
    workloads: &Arc<dyn Workloads>,
    hooks: ScenarioHooks<'_>,
    recorder: &mut Option<Recorder<'_>>,
) -> Result<(Sinks, GeneratorShare), ScenarioError> {
    let (reports, received) = sync_channel(REPORTS);
    let start = watch::Sender::new(None);
    let (senders, mut receivers): (Vec<_>, VecDeque<_>) =
        (0..run.workers).map(|_| mpsc::channel(ADDITIONS)).unzip();
    let mut threads = Vec::new();
    for number in 0..run.workers {
        let worker = Worker {
            scenarios: run.scenarios.clone(),
            initial: initial_users(run, number),
            next_user: first_added_user(run),
            registry: run.registry.clone(),
            keeps_points: run.keeps_points,
            number: u32::try_from(number).unwrap_or(u32::MAX),
            exchanges: recorder.as_ref().map(|recorder| recorder.progress(number)),
            hands_over: recorder.as_ref().is_some_and(Recorder::hands_over),
            progress: Arc::clone(&run.progress),
            abort: Arc::clone(&run.abort),
            workloads: Arc::clone(workloads),
            start: start.subscribe(),
            commands: receivers.pop_front().expect("there is one per worker"),
            // The first worker watches open executors, and adds virtual users to all.
            workers: if number == 0 {
                senders.clone()
            } else {
                Vec::new()
            },
            reports: reports.clone(),
        };
        let builder = thread::Builder::new().name(format!("vus-{number}"));
        let thread = builder.spawn(move || worker.run());
        threads.push(thread.map_err(ScenarioError::Thread)?);
    }
    drop((senders, reports));
    let mut total = Sinks::new(run.registry.clone());
    let result = follow(run, &received, &start, &mut total, hooks, recorder);
    // Workers that wait for the start end when there will be none.
    drop(start);
    for thread in threads {
        if thread.join().is_err() {
            return Err(ScenarioError::Panicked);
        }
    }
    result.map(|generator| (total, generator))
}

/// Follows the workers from their initialisation to their end.
fn follow(
    run: &ScenarioRun,
    received: &Receiver<Report>,
    start: &watch::Sender<Option<Instant>>,
    total: &mut Sinks,
    hooks: ScenarioHooks<'_>,
    recorder: &mut Option<Recorder<'_>>,
) -> Result<GeneratorShare, ScenarioError> {
    let ScenarioHooks {
        before_start,
        on_tick,
        look,
    } = hooks;
    let mut ready = 0;
    let mut generator = GeneratorShare::default();
    let mut throttled_before = None;
    let mut next_tick = Duration::from_secs(1);
    let mut points = Points::default();
    let mut busiest = 0.0_f64;
    let mut recent = run.keeps_recent.then(|| Sinks::new(run.registry.clone()));
    loop {
        match received.recv_timeout(LOOK) {
            Ok(Report::Ready) => {
                ready += 1;
                if ready == run.workers {
                    if !before_start() {
                        look();
                        return Ok(generator);
                    }
                    let now = SystemClock.now();
                    run.progress.begin(now);
                    throttled_before = throttled();
                    if let Some(recorder) = recorder
                        && let Err(error) = recorder.start(now)
                    {
                        run.abort.abort(error.to_string());
                        return Err(error.into());
                    }
                    start.send_replace(Some(now));
                }
            }
            Ok(Report::Failed(error)) => {
                run.abort.abort(error.to_string());
                return Err(error);
            }
            Ok(Report::Samples(mut sinks)) => {
                total.merge(&sinks);
                if let Some(recent) = &mut recent {
                    recent.merge(&sinks);
                }
                points.append(&sinks.take_points());
            }
            Ok(Report::Second(second)) => {
                if let Some(recorder) = recorder {
                    recorder.take_second(second, dropped_arrivals(run));
                }
            }
            Ok(Report::Ended(thread)) => {
                generator.worst_worker = generator.worst_worker.worse(thread);
            }
            Ok(Report::Busy(percent)) => busiest = busiest.max(percent),
            Ok(Report::Exchanges(last)) => {
                if let Some(recorder) = recorder {
                    recorder.take_last(*last);
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        look();
        let at = run.progress.elapsed(SystemClock.now());
        if at >= next_tick {
            next_tick += Duration::from_secs(1);
            let exchanges = exchanges_since(recorder, run);
            on_tick(&ScenarioTick {
                at,
                total,
                recent: recent.as_ref(),
                points: &points,
                exchanges: exchanges.as_ref(),
                busiest_worker_percent: std::mem::take(&mut busiest),
                is_last: false,
            });
            points = Points::default();
            recent = recent.map(|_| Sinks::new(run.registry.clone()));
        }
    }
    look();
    let at = run.progress.elapsed(SystemClock.now());
    let exchanges = exchanges_since(recorder, run);
    on_tick(&ScenarioTick {
        at,
        total,
        recent: recent.as_ref(),
        points: &points,
        exchanges: exchanges.as_ref(),
        busiest_worker_percent: busiest,
        is_last: true,
    });
    let throttled = throttled_before.zip(throttled());
    generator.throttled = throttled.map(|(before, after)| after.saturating_sub(before));
    Ok(generator)
}

/// What the recording hands over, if it does.
fn exchanges_since(
    recorder: &mut Option<Recorder<'_>>,
    run: &ScenarioRun,
) -> Option<PartExchanges> {
    recorder.as_mut()?.take_part(dropped_arrivals(run))
}

/// Whether a scenario has a schedule.
fn is_open(run: &ScenarioRun) -> bool {
    let mut scenarios = run.scenarios.iter();
    scenarios.any(|scenario| scenario.claims.executor().is_open())
}

fn left_out(run: &ScenarioRun) -> LeftOut {
    let scenarios = run.scenarios.iter();
    LeftOut {
        requests: run.progress.aborted(),
        iterations: run.progress.interrupted(),
        dropped: scenarios.map(|scenario| scenario.claims.dropped()).sum(),
    }
}

/// Arrivals of schedules for which no virtual user was free until now.
fn dropped_arrivals(run: &ScenarioRun) -> u64 {
    let scenarios = run.scenarios.iter();
    let open = scenarios.filter(|scenario| scenario.claims.executor().is_open());
    open.map(|scenario| scenario.claims.dropped()).sum()
}

/// The virtual users that a worker makes before the start; they take turns among the workers.
fn initial_users(run: &ScenarioRun, worker: usize) -> Vec<UserId> {
    let mut users = Vec::new();
    let mut in_test = 0;
    for (scenario, of) in run.scenarios.iter().enumerate() {
        for in_scenario in 0..of.claims.executor().initial_vus() {
            in_test += 1;
            if (in_test - 1) % run.workers as u64 == worker as u64 {
                users.push(UserId {
                    scenario,
                    in_scenario,
                    in_test,
                });
            }
        }
    }
    users
}

fn first_added_user(run: &ScenarioRun) -> u64 {
    let initial = run.scenarios.iter();
    let initial = initial.map(|scenario| u64::from(scenario.claims.executor().initial_vus()));
    initial.sum::<u64>() + 1
}
