//! One thread of the harness, and the workers that it carries.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use plimsoll_client::check::{Checker, Outcome, Reuse, SharedConnections};
use plimsoll_client::{Connector, ReadBuffer};
use plimsoll_model::{Clock, Failure, FailureKind, LoadtestConnections, LoadtestFound, Phase};
use plimsoll_wire::{SystemClock, h2};
use tokio::runtime::{Builder, LocalOptions};
use tokio::task::JoinSet;

use super::HarnessPlan;
use super::run::Found;
use crate::Interrupt;
use crate::run::RunError;
use crate::run::progress::{Progress, ProgressReport};
use crate::worker::back_off::BackOff;

/// How often a thread looks up from its workers.
const BEAT: Duration = Duration::from_millis(20);

/// How often a thread hands over what it has found: so old is what a tick has at most.
const HAND_OVER: Duration = Duration::from_millis(100);

/// The parameters of a thread.
#[derive(Debug)]
pub(super) struct Setup {
    pub(super) plan: HarnessPlan,
    /// Which thread this is, of how many.
    pub(super) index: usize,
    pub(super) of: usize,
    pub(super) start: Instant,
    pub(super) progress: Arc<Progress>,
    pub(super) handed: Arc<Found>,
    pub(super) interrupt: Arc<Interrupt>,
}

/// State that the workers of a thread share.
struct Common {
    connector: Connector,
    buffer: ReadBuffer,
    /// What was not handed over yet.
    found: RefCell<LoadtestFound>,
    handed: Arc<Found>,
    /// What was counted of checks in all.
    report: Cell<ProgressReport>,
    progress: Arc<Progress>,
    end: Instant,
    stopped: Cell<bool>,
    /// When the last check came to its end.
    last: Cell<Instant>,
}

/// Runs the workers of one thread to their end; returns when the last check was done.
pub(super) fn work(setup: Setup) -> Result<Instant, RunError> {
    let runtime = Builder::new_current_thread()
        .enable_all()
        .build_local(LocalOptions::default())
        .map_err(RunError::Runtime)?;
    runtime.block_on(drive(setup))
}

async fn drive(setup: Setup) -> Result<Instant, RunError> {
    let plan = &setup.plan;
    let common = Rc::new(Common {
        connector: Connector::new(Arc::clone(&plan.connect)),
        buffer: ReadBuffer::new(),
        found: RefCell::default(),
        handed: Arc::clone(&setup.handed),
        report: Cell::default(),
        progress: Arc::clone(&setup.progress),
        end: setup.start + plan.duration,
        stopped: Cell::new(false),
        last: Cell::new(setup.start),
    });
    let shared = shared_connections(plan, setup.of);
    let mut drivers = JoinSet::new();
    for connections in &shared {
        let (connections, common) = (connections.clone(), Rc::clone(&common));
        drivers.spawn_local(async move { connections.drive(&common.buffer, &SystemClock).await });
    }
    let mut workers = JoinSet::new();
    for number in (setup.index..plan.workers).step_by(setup.of) {
        // Evenly over the endpoints within each thread too.
        let check = (number / setup.of + setup.index) % plan.checks.len();
        let checker = match shared.get(check) {
            Some(connections) => {
                Checker::sharing(Arc::clone(&plan.checks[check]), connections.clone())
            }
            None => Checker::new(
                Arc::clone(&plan.checks[check]),
                match plan.connections {
                    LoadtestConnections::Fresh => Reuse::Fresh,
                    _ => Reuse::Keep,
                },
            ),
        };
        let fraction = number as f64 / plan.workers as f64;
        let begin = setup.start + plan.ramp.mul_f64(fraction);
        workers.spawn_local(check_on(Rc::clone(&common), checker, begin, number));
    }
    let mut beat = tokio::time::interval(BEAT);
    let mut stopped_at = None;
    let mut next_handover = setup.start + HAND_OVER;
    loop {
        tokio::select! {
            biased;
            _ = beat.tick() => {
                let now = SystemClock.now();
                common.progress.report(common.report.get());
                if now >= next_handover {
                    common.hand_over();
                    next_handover = now + HAND_OVER;
                }
                if now >= common.end || setup.interrupt.is_set() {
                    common.stopped.set(true);
                    stopped_at.get_or_insert(now);
                }
                let is_idle = common.progress.in_flight() == 0;
                let is_over = stopped_at.is_some_and(|at| is_idle || now >= at + plan.grace);
                if is_over || setup.interrupt.is_urgent() {
                    break;
                }
            }
            ended = workers.join_next() => match ended {
                None => break,
                Some(Ok(())) => {}
                Some(Err(error)) => return Err(RunError::Panicked(error.to_string())),
            },
        }
    }
    // Checks that are still under way are aborted by being dropped.
    drop(workers);
    common.progress.report(common.report.get());
    common.found.borrow_mut().counts.aborted = common.progress.in_flight();
    common.hand_over();
    Ok(common.last.get())
}

/// One for each endpoint, if connections are shared at all.
fn shared_connections(plan: &HarnessPlan, threads: usize) -> Vec<SharedConnections> {
    if plan.connections != LoadtestConnections::Shared {
        return Vec::new();
    }
    let at_a_time = plan.workers.div_ceil(plan.checks.len() * threads);
    let settings = h2::Settings {
        streams: u32::try_from(at_a_time).unwrap_or(u32::MAX),
        ..h2::Settings::default()
    };
    let share = |check: &Arc<plimsoll_client::check::CheckPlan>| {
        SharedConnections::new(check.endpoint.clone(), 1, settings)
    };
    plan.checks.iter().map(share).collect()
}

/// One worker: a check, and when it is done the next one.
///
/// - `number`: of the worker, among all.
async fn check_on(common: Rc<Common>, mut checker: Checker, begin: Instant, number: usize) {
    tokio::time::sleep_until(begin.into()).await;
    let mut back_off = BackOff::new(number as u64);
    let mut now = begin;
    while !common.stopped.get() && now < common.end {
        common.progress.begin();
        common.found.borrow_mut().counts.started += 1;
        let outcome = checker
            .check(&common.connector, &common.buffer, &SystemClock)
            .await;
        common.record(&outcome);
        now = outcome.exchange.done;
        let started = outcome.exchange.started;
        match &outcome.exchange.outcome {
            Ok(_) => back_off.carried(),
            Err(failure) if is_unconnected(failure) => back_off.refused(started),
            // A shared connection that its server leaves at once had begun to carry something.
            Err(failure) if !outcome.reused || failure.kind == FailureKind::Closed => {
                back_off.lost(started);
            }
            Err(_) => {}
        }
        let rest = back_off.remaining(now);
        if !rest.is_zero() {
            now += rest;
            tokio::time::sleep_until(now.into()).await;
        }
    }
}

/// Whether no connection could be opened.
fn is_unconnected(failure: &Failure) -> bool {
    matches!(failure.phase, Phase::Dns | Phase::Connect | Phase::Tls)
}

impl Common {
    fn record(&self, outcome: &Outcome) {
        self.progress.complete(outcome.exchange.outcome.is_ok());
        let mut found = self.found.borrow_mut();
        let before = found.counts.errors();
        found.record(&outcome.exchange, outcome.verdict);
        let mut report = self.report.get();
        report.ok += u64::from(outcome.exchange.outcome.is_ok());
        report.errors += found.counts.errors() - before;
        self.report.set(report);
        self.last.set(self.last.get().max(outcome.exchange.done));
    }

    /// Hands over what was found since the last time.
    fn hand_over(&self) {
        self.handed.add(&self.found.take());
    }
}
