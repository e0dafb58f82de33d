//! One thread with its virtual users.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::{SyncSender, TrySendError};
use std::time::{Duration, Instant};

use plimsoll_model::{Clock as _, Stalls};
use plimsoll_wire::{SystemClock, block_on_local};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant as Alarm, interval_at, sleep_until};

use crate::run::collector::Published;
use crate::run::progress::Progress;

use super::claims::NextStart;
use super::exchanges::{ExchangeRecorder, WorkerExchanges};
use super::metric::{Registry, Sinks};
use super::progress::{ScenarioProgress, TestProgress};
use super::run::{Abort, Scenario, ScenarioError};
use super::workload::{
    Iteration, IterationEnd, UserId, VirtualUsers, WorkerState, Workload, Workloads,
};
use crate::worker::thread_share::{BusyMeter, ThreadMark, ThreadShare};

/// How often exchanges are handed over, and how often a worker looks whether it stood still.
const SECOND: Duration = Duration::from_secs(1);

/// How often samples are handed over.
const TICK: Duration = Duration::from_millis(500);

/// Commands to a worker.
#[derive(Debug)]
pub(super) enum Command {
    /// Make one more virtual user.
    Add(UserId),
}

/// Reports of a worker.
#[derive(Debug)]
pub(super) enum Report {
    /// Its virtual users exist.
    Ready,
    /// One of them could not be made.
    Failed(ScenarioError),
    /// Samples since the last report.
    Samples(Sinks),
    /// Exchanges of a second.
    Second(Published),
    /// What is known of exchanges beside the counts of seconds.
    Exchanges(Box<WorkerExchanges>),
    /// The share of its core in a second, in percent.
    Busy(f64),
    /// The share of its thread, at the end.
    Ended(ThreadShare),
}

pub(super) struct Worker {
    pub(super) scenarios: Vec<Scenario>,
    pub(super) initial: Vec<UserId>,
    /// The number of the first virtual user that is added later.
    pub(super) next_user: u64,
    pub(super) registry: Registry,
    pub(super) keeps_points: bool,
    pub(super) number: u32,
    /// The counters of its exchanges, if they are recorded.
    pub(super) exchanges: Option<Arc<Progress>>,
    /// Whether everything that is known of exchanges is handed over each second, and not at the end alone.
    pub(super) hands_over: bool,
    pub(super) progress: Arc<TestProgress>,
    pub(super) abort: Arc<Abort>,
    pub(super) workloads: Arc<dyn Workloads>,
    pub(super) start: watch::Receiver<Option<Instant>>,
    pub(super) commands: mpsc::Receiver<Command>,
    /// Where virtual users are added, for the worker that does that.
    pub(super) workers: Vec<mpsc::Sender<Command>>,
    pub(super) reports: SyncSender<Report>,
}

impl Worker {
    pub(super) fn run(self) {
        let reports = self.reports.clone();
        let failed = match block_on_local(self.work()) {
            Ok(result) => result.err(),
            Err(error) => Some(ScenarioError::Runtime(error)),
        };
        if let Some(error) = failed {
            // Without a receiver the run is over anyway.
            reports.send(Report::Failed(error)).ok();
        }
    }

    async fn work(mut self) -> Result<(), ScenarioError> {
        let mut sinks = Sinks::new(self.registry.clone());
        if self.keeps_points {
            sinks = sinks.with_points();
        }
        let sinks = Rc::new(RefCell::new(sinks));
        let exchanges = self.exchanges.take().map(|progress| {
            let mut scenarios = self.scenarios.iter();
            let is_open = scenarios.any(|scenario| scenario.claims.executor().is_open());
            Rc::new(ExchangeRecorder::new(is_open, progress))
        });
        let state = WorkerState {
            sinks: Rc::clone(&sinks),
            progress: Arc::clone(&self.progress),
            abort: Arc::clone(&self.abort),
            exchanges: exchanges.clone(),
        };
        let users = self
            .workloads
            .on_worker(state)
            .map_err(ScenarioError::User)?;
        let mut made = Vec::new();
        for id in std::mem::take(&mut self.initial) {
            let user = tokio::select! {
                user = users.create(id) => user.map_err(ScenarioError::User)?,
                () = self.abort.aborted() => return Ok(()),
            };
            ScenarioProgress::add(&self.progress.scenario(id.scenario).initialised);
            made.push((id, user));
        }
        self.reports.send(Report::Ready).ok();
        let start = tokio::select! {
            start = self.start.wait_for(Option::is_some) => match start {
                Ok(start) => *start,
                Err(_) => None,
            },
            () = self.abort.aborted() => None,
        };
        let Some(start) = start else {
            return Ok(());
        };
        let mut tasks = JoinSet::new();
        for (id, user) in made {
            let task = self.user(id, &users, start, exchanges.as_ref());
            tasks.spawn_local(task.run(Some(user), Duration::ZERO));
        }
        let workers = Rc::new(std::mem::take(&mut self.workers));
        if !workers.is_empty() {
            let next_user = Rc::new(Cell::new(self.next_user));
            for index in 0..self.scenarios.len() {
                let watcher = Watcher {
                    index,
                    scenario: self.scenarios[index].clone(),
                    start: start + self.scenarios[index].start_time,
                    workers: Rc::clone(&workers),
                    next_user: Rc::clone(&next_user),
                    progress: Arc::clone(&self.progress),
                    abort: Arc::clone(&self.abort),
                };
                tasks.spawn_local(watcher.run());
            }
        }
        drop(workers);
        let mut ticks = tokio::time::interval(TICK);
        let mut has_commands = true;
        let began = ThreadMark::read(SystemClock.now());
        let mut busy = BusyMeter::start(began.at);
        let mut seconds = interval_at(Alarm::from_std(start) + SECOND, SECOND);
        let mut standstill = StandstillWatch::new(start);
        loop {
            tokio::select! {
                command = self.commands.recv(), if has_commands => match command {
                    Some(Command::Add(id)) => {
                        let scenario_start = start + self.scenarios[id.scenario].start_time;
                        let task = self.user(id, &users, start, exchanges.as_ref());
                        let now = SystemClock.now().saturating_duration_since(scenario_start);
                        tasks.spawn_local(task.run(None, now));
                    }
                    None => has_commands = false,
                },
                done = tasks.join_next(), if !tasks.is_empty() => {
                    if let Some(Err(error)) = done && error.is_panic() {
                        std::panic::resume_unwind(error.into_panic());
                    }
                }
                _ = ticks.tick() => self.report(&sinks),
                _ = seconds.tick() => {
                    let now = SystemClock.now();
                    let late = standstill.look(now);
                    // If the receiver is behind, it does without.
                    self.reports.try_send(Report::Busy(busy.look(now))).ok();
                    if let Some(exchanges) = &exchanges {
                        self.report_second(exchanges, now.saturating_duration_since(start), late);
                        if self.hands_over {
                            self.report_exchanges(exchanges);
                        }
                    }
                }
                else => break,
            }
            if !has_commands && tasks.is_empty() {
                break;
            }
        }
        let rest = sinks.borrow_mut().take_samples();
        self.reports.send(Report::Samples(rest)).ok();
        if let Some(exchanges) = exchanges {
            let last = Published {
                worker: self.number,
                at: SystemClock.now().saturating_duration_since(start),
                is_last: true,
                grace: false,
                interval: exchanges.second(Duration::ZERO),
            };
            self.reports.send(Report::Second(last)).ok();
            let last = Box::new(exchanges.take_recorded());
            self.reports.send(Report::Exchanges(last)).ok();
        }
        let ended = ThreadMark::read(SystemClock.now());
        standstill.look(ended.at);
        let share = ThreadShare {
            stalls: standstill.stalls,
            ..ended.since(began)
        };
        self.reports.send(Report::Ended(share)).ok();
        Ok(())
    }

    /// Hands over the exchanges of a second; if the receiver is behind, they are kept for the next time.
    ///
    /// - `at`: since the start of the run.
    /// - `late`: how late its timer fired.
    fn report_second(&self, exchanges: &ExchangeRecorder, at: Duration, late: Duration) {
        let second = Published {
            worker: self.number,
            at,
            is_last: false,
            grace: false,
            interval: exchanges.second(late),
        };
        let sent = self.reports.try_send(Report::Second(second));
        if let Err(TrySendError::Full(Report::Second(second))) = sent {
            exchanges.give_back(second.interval);
        }
    }

    /// Hands over what is known of exchanges beside the counts of seconds; if the receiver is behind, it is kept for the next time.
    fn report_exchanges(&self, exchanges: &ExchangeRecorder) {
        let taken = Box::new(exchanges.take_recorded());
        let sent = self.reports.try_send(Report::Exchanges(taken));
        if let Err(TrySendError::Full(Report::Exchanges(taken))) = sent {
            exchanges.restore_recorded(*taken);
        }
    }

    /// Hands samples over; if the receiver is behind, they are kept for the next time.
    fn report(&self, sinks: &RefCell<Sinks>) {
        let taken = sinks.borrow_mut().take_samples();
        if taken.is_empty() {
            return;
        }
        let sent = self.reports.try_send(Report::Samples(taken));
        if let Err(TrySendError::Full(Report::Samples(taken))) = sent {
            sinks.borrow_mut().merge(&taken);
        }
    }

    fn user(
        &self,
        id: UserId,
        users: &Rc<dyn VirtualUsers>,
        start: Instant,
        exchanges: Option<&Rc<ExchangeRecorder>>,
    ) -> UserTask {
        let scenario = self.scenarios[id.scenario].clone();
        UserTask {
            id,
            users: Rc::clone(users),
            start: start + scenario.start_time,
            exchanges: exchanges
                .filter(|_| scenario.claims.executor().is_open())
                .cloned(),
            scenario,
            progress: Arc::clone(&self.progress),
            abort: Arc::clone(&self.abort),
        }
    }
}

/// Sees that a worker stood still: one that looks each second looks late then.
struct StandstillWatch {
    /// When it looks next.
    due: Instant,
    stalls: Stalls,
}

impl StandstillWatch {
    fn new(start: Instant) -> Self {
        Self {
            due: start + SECOND,
            stalls: Stalls::default(),
        }
    }

    /// Called each second, and at the end. Returns how late that is; seconds that passed in one stall are late once.
    fn look(&mut self, now: Instant) -> Duration {
        let late = now.saturating_duration_since(self.due);
        self.stalls.record(late);
        while self.due <= now {
            self.due += SECOND;
        }
        late
    }
}

/// A virtual user from its first to its last iteration.
struct UserTask {
    id: UserId,
    users: Rc<dyn VirtualUsers>,
    scenario: Scenario,
    /// Of the scenario.
    start: Instant,
    /// Where iterations of a schedule are recorded, if they are.
    exchanges: Option<Rc<ExchangeRecorder>>,
    progress: Arc<TestProgress>,
    abort: Arc<Abort>,
}

impl UserTask {
    /// - `now`: since the start of the scenario.
    async fn run(self, mut user: Option<Box<dyn Workload>>, mut now: Duration) {
        let progress = self.progress.scenario(self.id.scenario);
        let executor = self.scenario.claims.executor();
        let is_open = executor.is_open();
        let mut made = 0;
        if !is_open {
            // A ramp counts those whose turn it is.
            set_active(&progress.active, true);
        }
        while !self.abort.is_aborted() {
            if user.is_none() {
                let created = tokio::select! {
                    created = self.users.create(self.id) => created,
                    () = self.abort.aborted() => break,
                };
                match created {
                    Ok(created) => {
                        if made == 0 {
                            ScenarioProgress::add(&progress.initialised);
                        }
                        user = Some(created);
                    }
                    Err(error) => {
                        self.abort.abort(error.to_string());
                        break;
                    }
                }
                now = self.now().max(now);
            }
            let (at, number) = match self.scenario.claims.claim(self.id.in_scenario, made, now) {
                NextStart::Never => break,
                NextStart::Later(at) => {
                    set_active(&progress.active, false);
                    let is_aborted = self.wait_until(at).await;
                    set_active(&progress.active, true);
                    if is_aborted {
                        break;
                    }
                    now = at;
                    continue;
                }
                NextStart::Iteration { at, number } => (at, number),
            };
            if self.wait_until(at).await {
                break;
            }
            let Some(workload) = &mut user else { continue };
            let begin = self.now().max(at);
            let stop = self.scenario.graceful_stop;
            let deadline = executor.deadline(self.id.in_scenario, begin, stop);
            let iteration = Iteration {
                in_scenario: number,
                of_user: made,
                intended: self.start + at,
                deadline: self.start + deadline,
            };
            if is_open {
                set_active(&progress.active, true);
            }
            if let Some(exchanges) = &self.exchanges {
                exchanges.iteration_began(begin.saturating_sub(at));
            }
            let end = self.iterate(workload.as_mut(), iteration).await;
            if let (Some(exchanges), Some(_)) = (&self.exchanges, &end) {
                exchanges.iteration_ended(self.now().saturating_sub(at));
            }
            if is_open {
                set_active(&progress.active, false);
            }
            made += 1;
            if let Some(end) = end {
                ScenarioProgress::add(&progress.completed);
                if end == IterationEnd::Broken {
                    user = None;
                }
            } else {
                ScenarioProgress::add(&progress.interrupted);
                user = None;
                if self.now() >= executor.end() {
                    if !self.abort.is_aborted() {
                        self.scenario.claims.drop_rest(made);
                    }
                    break;
                }
            }
            now = self.now();
        }
        if !is_open {
            set_active(&progress.active, false);
        }
    }

    /// Makes one iteration; `None` if it is interrupted.
    async fn iterate(
        &self,
        workload: &mut dyn Workload,
        iteration: Iteration,
    ) -> Option<IterationEnd> {
        let deadline = Alarm::from_std(iteration.deadline);
        let end = tokio::select! {
            biased;
            end = workload.iterate(iteration) => end,
            () = sleep_until(deadline) => return None,
            () = self.abort.aborted() => return None,
        };
        // One that computed up to its deadline ended by that.
        let is_late = end == IterationEnd::Broken
            && (SystemClock.now() >= iteration.deadline || self.abort.is_aborted());
        if is_late {
            return None;
        }
        // Iterations that never wait must not keep others from their turn.
        tokio::task::yield_now().await;
        Some(end)
    }

    /// Waits until a time of the scenario; returns whether the run is aborted instead.
    async fn wait_until(&self, at: Duration) -> bool {
        let alarm = self.start + at;
        if SystemClock.now() >= alarm {
            return self.abort.is_aborted();
        }
        tokio::select! {
            () = sleep_until(Alarm::from_std(alarm)) => false,
            () = self.abort.aborted() => true,
        }
    }

    fn now(&self) -> Duration {
        SystemClock.now().saturating_duration_since(self.start)
    }
}

fn set_active(count: &AtomicU64, is_active: bool) {
    if is_active {
        ScenarioProgress::add(count);
    } else {
        ScenarioProgress::subtract(count);
    }
}

/// Drops arrivals that no virtual user is free for, and adds virtual users where there may be more.
struct Watcher {
    /// Of the scenario.
    index: usize,
    scenario: Scenario,
    /// Of the scenario.
    start: Instant,
    workers: Rc<Vec<mpsc::Sender<Command>>>,
    next_user: Rc<Cell<u64>>,
    progress: Arc<TestProgress>,
    abort: Arc<Abort>,
}

impl Watcher {
    async fn run(self) {
        let executor = self.scenario.claims.executor();
        let mut users = executor.initial_vus();
        while executor.is_open() {
            let now = SystemClock.now().saturating_duration_since(self.start);
            let next = match self.scenario.claims.drop_due(now) {
                Ok(_) => {
                    // One at a time is made, so that a burst does not make all of them.
                    let initialised = self.progress.scenario(self.index).initialised();
                    if users < executor.most_vus() && initialised >= u64::from(users) {
                        self.add(users).await;
                        users += 1;
                    }
                    continue;
                }
                Err(Some(next)) => next,
                Err(None) => break,
            };
            // Virtual users claim ahead, so a later look finds an arrival that is due only if none was free.
            let alarm = self.start + next.max(now + Duration::from_millis(1));
            tokio::select! {
                () = sleep_until(Alarm::from_std(alarm)) => {}
                () = self.abort.aborted() => break,
            }
        }
    }

    async fn add(&self, in_scenario: u32) {
        let in_test = self.next_user.get();
        self.next_user.set(in_test + 1);
        let user = UserId {
            scenario: self.index,
            in_scenario,
            in_test,
        };
        let worker = usize::try_from(in_test - 1).unwrap_or_default() % self.workers.len();
        // A worker that ended has its run aborted.
        self.workers[worker].send(Command::Add(user)).await.ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_standstill_of_several_seconds_is_counted_once() {
        let start = SystemClock.now();
        let mut watch = StandstillWatch::new(start);
        // It stands still from 1.2 s on, and three seconds are due at 4.5 s.
        for (millis, late) in [(1_000, 0), (4_500, 2_500), (4_500, 0), (4_500, 0)] {
            let late_by = watch.look(start + Duration::from_millis(millis));
            assert_eq!(late_by, Duration::from_millis(late), "{millis}");
        }
        watch.look(start + Duration::from_millis(5_700));
        assert_eq!(watch.stalls.count, 2);
        assert_eq!(watch.stalls.longest, Duration::from_millis(2_500));
        assert_eq!(watch.stalls.total, Duration::from_millis(3_200));
    }
}
