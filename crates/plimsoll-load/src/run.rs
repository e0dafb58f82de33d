//! A load run from beginning to end.

pub(crate) mod collector;

pub(crate) mod crew;

pub(crate) mod progress;

pub(crate) mod judge;

mod observed;

pub(crate) mod costs;

pub(crate) mod saturation;

pub(crate) mod hazards;

pub(crate) mod standstill;

mod summary;

use std::io;
use std::sync::Arc;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use plimsoll_client::{Connector, Endpoint, Http2, ReadBuffer, require_http2};
use plimsoll_model::{
    Clock, Counts, Failure, FailureCount, FailureKind, Histogram, Phase, ResourceSample,
    RunSummary, Threshold, Tick,
};
use plimsoll_observe::{AttachError, NamedTarget, Target};
use plimsoll_wire::SystemClock;
use plimsoll_wire::cores::PinError;
use plimsoll_wire::descriptors::TooFewDescriptors;

use crate::conditions::{Before, RunFacts};
use crate::part::RunPart;
use crate::plan::{HttpPlan, Pacing, RunPlan, WorkloadPlan};
use crate::rows::Rows;
use crate::run::collector::{Collector, Second};
use crate::run::costs::{Costs, OpenSources};
use crate::run::crew::Crew;
use crate::run::judge::Judge;
use crate::run::progress::Interrupt;
use crate::worker::Report;
use crate::worker::recorder::Interval;
use crate::worker::thread_share::ThreadShare;
use crate::workload::websocket;

pub use crate::run::summary::shape;
pub(crate) use crate::run::summary::{Measured, summarise, summary_of};

/// How often a run is looked at while nothing happens, so that the window of one that is interrupted
/// ends for the costs when it ends for the workers.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Why a run could not be made, or not be finished.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The limit on open files is too low for the configured connections.
    #[error(transparent)]
    Descriptors(#[from] TooFewDescriptors),
    /// No connection to the target can be opened.
    #[error("cannot reach {endpoint}")]
    Unreachable {
        /// Scheme, host and port.
        endpoint: String,
        /// The failure of the attempt.
        #[source]
        failure: Failure,
    },
    /// The target's processes cannot be observed.
    #[error(transparent)]
    Target(#[from] AttachError),
    /// A worker cannot be bound to its core.
    #[error(transparent)]
    Pin(PinError),
    /// A runtime or timer could not be had.
    #[error("cannot set up a worker")]
    Runtime(#[source] io::Error),
    /// A worker panicked: a defect of this program.
    #[error("a worker panicked: {0}")]
    Panicked(String),
    /// Another worker failed first.
    #[error("stopped before it started")]
    Stopped,
}

/// Observations beside the exchanges.
#[derive(Debug, Default)]
pub struct Observation<'a> {
    /// The processes that answer, if they are on this machine.
    pub target: Option<&'a dyn Target>,
    /// Servers that are observed by name; without `target` the first one is the target of the run.
    pub observed: &'a [NamedTarget],
    /// Facts that the caller knows.
    pub facts: RunFacts,
    /// Thresholds for the figures.
    pub thresholds: &'a [Threshold],
}

/// Follows a run while it goes on, and may end it.
pub struct Watch<'a> {
    /// Ends the run early.
    pub interrupt: Arc<Interrupt>,
    /// Called once a second.
    pub on_tick: &'a mut dyn FnMut(&Standing<'_>),
}

/// State of a run at the end of a second; counts are those of the measured window until then.
#[derive(Debug)]
pub struct Standing<'a> {
    /// The second.
    pub tick: &'a Tick,
    /// Counts of exchanges by outcome.
    pub counts: Counts,
    /// Responses by status.
    pub statuses: Vec<(u16, u64)>,
    /// Failures by kind and phase.
    pub failures: &'a [FailureCount],
    /// Latency from the intended start where there is one.
    pub latency: &'a Histogram,
    /// The target, if its processes are observed.
    pub target: Option<ResourceSample>,
}

impl std::fmt::Debug for Watch<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watch")
            .field("interrupt", &self.interrupt)
            .finish_non_exhaustive()
    }
}

/// Opens one connection to each endpoint of `plan` and closes it again, so that a target that is
/// not there is reported at once and not as thousands of failures.
pub fn check_reachable(plan: &RunPlan) -> Result<(), RunError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(RunError::Runtime)?;
    runtime.block_on(async {
        let connector = Connector::new(Arc::clone(&plan.connect));
        for (position, endpoint) in plan.endpoints.iter().enumerate() {
            reach(plan, &connector, endpoint, position)
                .await
                .map_err(|failure| RunError::Unreachable {
                    endpoint: plan.site(endpoint),
                    failure,
                })?;
        }
        Ok(())
    })
}

/// Opens a connection; the server must also say that it speaks the protocol that is wanted.
async fn reach(
    plan: &RunPlan,
    connector: &Connector,
    endpoint: &Endpoint,
    position: usize,
) -> Result<(), Failure> {
    let http = plan.workload.http();
    if let HttpPlan::Http3(_) = http {
        let connecting = connector.connect_http3(endpoint, plan.limits, &SystemClock);
        let connection = Box::pin(connecting).await.map_err(|error| error.failure)?;
        connection.http.close();
        // Its last packet leaves while the tasks of QUIC have their turn.
        tokio::task::yield_now().await;
        return Ok(());
    }
    let connecting = connector.connect(endpoint, &SystemClock);
    let connection = connecting.await.map_err(|error| error.failure)?;
    if let WorkloadPlan::WebSocket(websocket) = &plan.workload
        && http == HttpPlan::Http1
    {
        let stream = connection.stream;
        return Box::pin(websocket::reach(plan, websocket, stream, position)).await;
    }
    if let HttpPlan::Http2(http2) = http {
        require_http2(&connection, endpoint)?;
        let settings = http2.settings(&plan.limits);
        let mut http = Http2::new(connection.stream, settings, SystemClock.now());
        let buffer = ReadBuffer::new();
        let greeting = http.greeted(&buffer, &SystemClock);
        match tokio::time::timeout(plan.timeout, greeting).await {
            Ok(greeted) => greeted?,
            Err(_) => {
                return Err(Failure::new(Phase::Wait, FailureKind::Timeout)
                    .because("the server did not answer the preface of HTTP/2"));
            }
        }
    }
    Ok(())
}

/// Endpoints that each connection slot of a run may lead to. Redirects often lead to one other server.
pub(crate) fn endpoints(plan: &RunPlan) -> u64 {
    let follows = matches!(
        &plan.workload,
        WorkloadPlan::Requests(_, responses) if responses.redirects.is_some()
    );
    plan.endpoints.len() as u64 + u64::from(follows)
}

/// Makes the run that `plan` describes; blocks until it is over.
pub fn run(
    plan: &RunPlan,
    observation: Observation<'_>,
    watch: &mut Watch<'_>,
) -> Result<RunSummary, RunError> {
    let part = RunPart::whole(plan);
    let before = Before::observe(SystemClock.wall());
    let sources = OpenSources::open(observation.observed, plan.sample_every)?;
    let crew = Crew::hire(plan, part, &watch.interrupt)?;
    let start = SystemClock.now();
    let mut costs = costs_of(plan, &crew, observation.target, sources, start)?;
    crew.go(start);
    let mut collector = Collector::new(empty_interval(plan), part.workers, plan.warm_up);
    let end = plan.stop.duration.map(|duration| plan.warm_up + duration);
    let names = observation.observed.iter();
    let names = names.map(|observed| observed.name.clone()).collect();
    let mut judge = Judge::new(observation.thresholds, names, plan.warm_up, end);
    let mut ticks = Rows::new();
    let interrupt = Arc::clone(&watch.interrupt);
    let mut on_second = |tick: Tick, second: EndedSecond<'_>| {
        let EndedSecond {
            interval,
            total,
            sample,
            observed,
            ..
        } = second;
        if judge.second(&tick, interval, total, sample, &observed) {
            interrupt.call_off();
        }
        (watch.on_tick)(&standing(&tick, total, sample));
        ticks.push(tick);
    };
    follow(
        &crew,
        &mut costs,
        &interrupt,
        &mut collector,
        &mut on_second,
    );
    let reports = crew.dismiss()?;
    let window = window(plan, &reports, start, watch.interrupt.is_over());
    let observed = costs.finish();
    let worst = reports.iter().map(|report| report.thread);
    let worst = worst.fold(ThreadShare::default(), ThreadShare::worse);
    let total = collector.finish();
    let conditions = before.after(observation.facts);
    let measured = Measured {
        ticks: ticks.into_ticks(),
        window,
        worst_worker: worst,
        observed,
        target: observation.target,
        named: observation.observed,
        conditions,
        interrupted: watch.interrupt.is_set(),
    };
    let mut summary = summarise(plan, total, measured);
    summary.thresholds = judge.verdicts(&summary);
    let stream_limit = reports
        .iter()
        .filter_map(|report| report.stream_limit)
        .min();
    let surplus = reports.iter().map(|report| report.surplus).sum();
    warn(plan, &mut summary, stream_limit, surplus);
    Ok(summary)
}

/// Adds what a reader of `summary` should know.
pub(crate) fn warn(
    plan: &RunPlan,
    summary: &mut RunSummary,
    stream_limit: Option<usize>,
    surplus: u64,
) {
    let mut found = hazards::warnings(summary, plan.endpoints.len(), stream_limit, surplus);
    found.extend(standstill::warnings(summary, standstill::CORES_OF_RUN));
    if is_back_to_back(plan) {
        found.extend(standstill::idle_connections(
            summary,
            stream_limit.is_some(),
        ));
    }
    summary.conditions.warnings.extend(found);
}

/// The samplers of both sides, with the ends of the measured window as far as they are known.
pub(crate) fn costs_of(
    plan: &RunPlan,
    crew: &Crew,
    target: Option<&dyn Target>,
    sources: OpenSources,
    start: Instant,
) -> Result<Costs, RunError> {
    let window_start = start + plan.warm_up;
    let mut due = vec![window_start];
    due.extend(plan.stop.duration.map(|duration| window_start + duration));
    let progress = crew.progress.clone();
    Ok(Costs::start(
        target,
        sources,
        progress,
        start,
        plan.sample_every,
        due,
    )?)
}

/// A second that every worker has handed over.
pub(crate) struct EndedSecond<'a> {
    /// What was counted in it.
    pub(crate) interval: &'a Interval,
    /// What was counted until its end.
    pub(crate) total: &'a Interval,
    /// The target at its end, if it is observed.
    pub(crate) sample: Option<ResourceSample>,
    /// The newest sample in it of each server that is observed by name.
    pub(crate) observed: Vec<Option<ResourceSample>>,
    /// No other second follows.
    pub(crate) is_last: bool,
}

/// The state of a run at the end of `tick`.
pub(crate) fn standing<'a>(
    tick: &'a Tick,
    total: &'a Interval,
    target: Option<ResourceSample>,
) -> Standing<'a> {
    Standing {
        tick,
        counts: total.counts,
        statuses: total.statuses().collect(),
        failures: &total.failures,
        latency: total.honest_latency().observed(),
        target,
    }
}

/// Merges what the workers hand over until the last of them has ended.
pub(crate) fn follow(
    crew: &Crew,
    costs: &mut Costs,
    interrupt: &Interrupt,
    collector: &mut Collector,
    on_second: &mut dyn FnMut(Tick, EndedSecond<'_>),
) {
    loop {
        let now = SystemClock.now();
        costs.mark(now);
        if interrupt.is_over() {
            costs.end(now);
        }
        let patience = costs.next_mark().map_or(LOOK_EVERY, |at| {
            at.saturating_duration_since(now).min(LOOK_EVERY)
        });
        match crew.published.recv_timeout(patience) {
            Ok(published) => {
                let worker = published.worker;
                let (spare, complete) = collector.collect_published(published);
                crew.give_back(worker, spare);
                let is_over = collector.is_complete();
                let mut complete = complete.into_iter().peekable();
                while let Some(Second { tick, interval }) = complete.next() {
                    let (sample, observed) = costs.at_second();
                    let second = EndedSecond {
                        interval: &interval,
                        total: collector.total(),
                        sample,
                        observed,
                        is_last: is_over && complete.peek().is_none(),
                    };
                    on_second(tick, second);
                    collector.recycle(interval);
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
}

/// Whether each connection begins an exchange as soon as the last one is done.
fn is_back_to_back(plan: &RunPlan) -> bool {
    let is_immediate = matches!(
        plan.pacing,
        Pacing::Closed {
            ramp: None,
            think: None
        }
    );
    is_immediate && !matches!(plan.workload, WorkloadPlan::Events(..))
}

pub(crate) fn empty_interval(plan: &RunPlan) -> Interval {
    let is_open = matches!(plan.pacing, Pacing::Open { .. });
    Interval::new(plan.expectations.conditions().len(), is_open)
}

/// From the end of the warm-up to the moment when nothing more was begun.
fn window(plan: &RunPlan, reports: &[Report], start: Instant, is_interrupted: bool) -> Duration {
    let stopped = reports.iter().map(|report| report.stopped).max();
    let stopped = stopped.map(|stopped| stopped.saturating_duration_since(start));
    window_until(plan, stopped, is_interrupted)
}

/// The same from the time since the start of the run when the last worker began nothing more.
pub(crate) fn window_until(
    plan: &RunPlan,
    stopped: Option<Duration>,
    is_interrupted: bool,
) -> Duration {
    let ran = stopped.unwrap_or_default().saturating_sub(plan.warm_up);
    match plan.stop.duration {
        // Workers notice the end a beat late, but begin nothing after it.
        Some(duration)
            if !is_interrupted && plan.stop.requests.is_none() && !plan.uses_rows_once() =>
        {
            duration
        }
        Some(duration) => ran.min(duration),
        None => ran,
    }
}
