//! The loop: what is due, what ended, what is commanded.

mod absence;

mod agents;

mod apply;

mod batch;

mod channels;

mod commands;

mod notices;

mod regions;

mod reload;

mod sharing;

mod sources;

mod turns;

mod windows;

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use plimsoll_wire::SystemClock;
use tokio::sync::{mpsc, oneshot};
use tokio::task::{self, JoinSet};

use crate::config::{MonitorPlan, Plan};
use crate::detect::{Detector, Input};
use crate::discovery::Discovery;
use crate::engine::Beside;
use crate::engine::board::{Board, Figures};
use crate::engine::clock::{Break, ClockWatch, EngineClock, origin};
use crate::engine::command::{Command, CommandError};
use crate::engine::heartbeat::HeartbeatState;
use crate::engine::memory::Silence;
use crate::engine::recorder::Recorder;
use crate::engine::running::{self, Finished};
use crate::engine::supervisor::agents::Agents;
use crate::engine::supervisor::batch::Batch;
use crate::engine::supervisor::channels::Channels;
use crate::engine::supervisor::sharing::Sharing;
use crate::engine::supervisor::sources::SourceState;
use crate::engine::supervisor::windows::Windows;
use crate::ids::MonitorMap;
use crate::probe::ProbeContext;
use crate::probe::reading::CheckResult;
use crate::schedule::{DropReason, Gates, Pass, Scheduler};
use crate::store::shards::Division;
use crate::store::{Change, MonitorId, OrgId, ResultRow, Retention, Store, StoreError};
use crate::time::{Moment, Timestamp};

/// Between two upkeeps of the store.
const UPKEEP: Duration = Duration::from_mins(1);

/// The longest wait at the end of the program.
const SHUT_DOWN_WITHIN: Duration = Duration::from_secs(5);

/// The longest wait at the end of the program for receivers to which notices are being sent. Another process may
/// wait for the store meanwhile.
const LAST_SENT: Duration = Duration::from_secs(2);

/// The number of this process's own region in the store.
pub(in crate::engine) const OWN: u16 = 0;

/// One monitor.
pub(super) struct LiveMonitor {
    pub(super) plan: Arc<MonitorPlan>,
    pub(super) detector: Detector,
    pub(super) heartbeat: Option<HeartbeatState>,
    pub(super) host: Option<Arc<str>>,
    pub(super) is_paused: bool,
    /// Its only entry among the timers.
    pub(super) wake: Option<Duration>,
    /// The date of its last result.
    pub(super) last_at: Option<Timestamp>,
    /// The silence that was announced.
    pub(super) silence: Option<Silence>,
    /// What the store was last given to remember, for comparison; empty if it has to be given anew.
    pub(super) remembered: Box<[u8]>,
}

impl LiveMonitor {
    /// The date under which a result is stored. The store knows results by monitor, date and region, so two that are
    /// pushed within one millisecond get different ones; after a step of the clock backwards dates stay as they are.
    fn unique_date(&mut self, at: Timestamp) -> Timestamp {
        let at = match self.last_at {
            Some(last) if at <= last && last.since(at) < Duration::from_secs(1) => {
                last.plus(Duration::from_millis(1))
            }
            _ => at,
        };
        self.last_at = Some(at);
        at
    }
}

type Waiting = oneshot::Sender<Result<CheckResult, CommandError>>;

/// The owner of all state.
pub(super) struct Supervisor {
    clock: Rc<dyn EngineClock>,
    watch: Rc<ClockWatch>,
    /// What happened to the clocks and was not applied yet.
    breaks: Rc<RefCell<Vec<Break>>>,
    origin: Instant,
    store: Arc<dyn Store>,
    org: OrgId,
    board: Arc<Board>,
    notice: Arc<dyn Fn(&str) + Send + Sync>,
    context: Rc<ProbeContext>,
    live: MonitorMap<LiveMonitor>,
    keys: HashMap<String, MonitorId>,
    /// Monitors that depend on one.
    children: MonitorMap<Vec<MonitorId>>,
    /// Monitors that one is a member of.
    composites: MonitorMap<Vec<MonitorId>>,
    scheduler: Scheduler<MonitorId>,
    gates: Gates<MonitorId>,
    checks: JoinSet<Finished>,
    passes: HashMap<task::Id, Pass<MonitorId>>,
    /// Callers that wait for the result of a check.
    waiting_for: MonitorMap<Vec<Waiting>>,
    timers: BTreeSet<(Duration, MonitorId)>,
    windows: Windows,
    recorder: Recorder,
    /// Changes of the present step, which the store gets as one.
    group: Vec<Change>,
    batch: Batch,
    retention: Retention,
    upkeep_due: Instant,
    upkeep: Option<task::JoinHandle<()>>,
    /// Actor of the current change.
    actor: Option<String>,
    channels: Channels,
    /// Checks of monitors that may not be there.
    trials: JoinSet<()>,
    /// Whether what the last process left was read.
    is_restored: bool,
    /// Whether results were not written when the store was last looked at.
    is_troubled: bool,
    /// The configuration of the file, to which definitions of the store are added.
    base: Plan,
    agents: Agents,
    sharing: Sharing,
    discovery: Discovery,
    /// The state of each source, in their order.
    sources: Vec<SourceState>,
}

impl Supervisor {
    /// Restores the state of the last run.
    pub(super) async fn start(
        plan: Plan,
        store: Arc<dyn Store>,
        board: Arc<Board>,
        notice: Arc<dyn Fn(&str) + Send + Sync>,
        beside: &'static [Beside],
        division: Option<(String, Division)>,
    ) -> Result<Self, StoreError> {
        let clock = Rc::new(SystemClock);
        let started = Self::start_by(clock, plan, store, board, notice, division);
        let mut started = started.await?;
        started.channels.run_beside(beside);
        Ok(started)
    }

    /// The same by other clocks.
    async fn start_by(
        clock: Rc<dyn EngineClock>,
        plan: Plan,
        store: Arc<dyn Store>,
        board: Arc<Board>,
        notice: Arc<dyn Fn(&str) + Send + Sync>,
        division: Option<(String, Division)>,
    ) -> Result<Self, StoreError> {
        let org = store.org(&plan.organisation).await?;
        let now = clock.now();
        let began = Timestamp::from_system(clock.wall());
        if let Some((process, division)) = &division {
            board.set_division(process, division);
        }
        let mut supervisor = Self {
            sharing: Sharing::new(division, began),
            watch: Rc::new(ClockWatch::new(&*clock)),
            breaks: Rc::default(),
            clock,
            origin: origin(now),
            org,
            recorder: Recorder::new(Arc::clone(&board)),
            store,
            board,
            notice,
            context: Rc::default(),
            live: MonitorMap::default(),
            keys: HashMap::new(),
            children: MonitorMap::default(),
            composites: MonitorMap::default(),
            scheduler: Scheduler::new(fastrand::u64(..)),
            gates: Gates::new(plan.limits),
            checks: JoinSet::new(),
            passes: HashMap::new(),
            waiting_for: MonitorMap::default(),
            timers: BTreeSet::new(),
            windows: Windows::default(),
            group: Vec::new(),
            batch: Batch::default(),
            retention: plan.retention,
            upkeep_due: now + UPKEEP,
            upkeep: None,
            actor: None,
            channels: Channels::default(),
            trials: JoinSet::new(),
            agents: Agents::default(),
            is_troubled: false,
            is_restored: false,
            discovery: Discovery::default(),
            sources: Vec::new(),
            base: plan.clone(),
        };
        supervisor.board.histories.follow();
        let last = supervisor.store.last_alive(org).await?;
        supervisor.load(plan).await?;
        supervisor.come_back(last).await?;
        Ok(supervisor)
    }

    pub(super) fn org(&self) -> OrgId {
        self.org
    }

    pub(super) async fn run(
        mut self,
        mut queue: mpsc::Receiver<Command>,
        mut stop: oneshot::Receiver<()>,
    ) {
        let recording = task::spawn_local({
            let recorder = self.recorder.clone();
            let (store, notice) = (Arc::clone(&self.store), Arc::clone(&self.notice));
            let org = self.org;
            async move { recorder.run(org, store, notice).await }
        });
        let ticking = self.tick();
        self.sharing.start(self.org, &self.store);
        loop {
            self.look_at_clocks();
            self.start_deliveries();
            let now = self.clock.now();
            self.start_checks(now);
            self.fire(self.moment());
            self.hand_over(now).await;
            self.look_at_store();
            self.start_upkeep(now);
            let wake = self.next_wake(now);
            tokio::select! {
                biased;
                _ = &mut stop => break,
                ended = self.checks.join_next_with_id(), if !self.checks.is_empty() => {
                    self.look_at_clocks();
                    if let Some(ended) = ended {
                        self.finish(ended);
                    }
                    while let Some(ended) = self.checks.try_join_next_with_id() {
                        self.finish(ended);
                    }
                }
                command = queue.recv() => match command {
                    Some(command) => {
                        self.look_at_clocks();
                        self.handle_command(command).await;
                    }
                    None => break,
                },
                found = self.discovery.next() => {
                    self.look_at_clocks();
                    self.place_list(found).await;
                }
                found = self.sharing.next() => {
                    self.look_at_clocks();
                    self.take_handed_over(found);
                }
                () = tokio::time::sleep_until(wake.into()) => {}
            }
        }
        self.checks.abort_all();
        drop(ticking);
        let rest = self.sharing.finish().await;
        self.take_handed_over(rest);
        self.channels.end_deliveries(LAST_SENT).await;
        self.shut_down(recording).await;
    }

    /// Leaves nothing behind.
    async fn shut_down(mut self, recording: task::JoinHandle<()>) {
        let to = (self.org, &*self.store);
        self.batch.finish(to, &self.board, &self.notice).await;
        self.recorder.close();
        let at = self.moment().wall;
        let rest = async {
            // The one that writes goes on with what it has begun, so that nothing is written twice.
            recording.await.ok();
            let marked = self.store.mark_alive(self.org, at).await;
            // Without the database of the mark the results may still be written, or wait on the disk.
            self.store.flush().await?;
            Ok::<_, StoreError>(marked)
        };
        match tokio::time::timeout(SHUT_DOWN_WITHIN, rest).await {
            Ok(Ok(Ok(()))) => {}
            Ok(Ok(Err(error))) => (self.notice)(&format!(
                "the store does not note that this process ends: {error}"
            )),
            Ok(Err(error)) => (self.notice)(&format!("the last results are lost: {error}")),
            Err(_) => (self.notice)("the last results are lost: the store takes too long"),
        }
    }

    fn moment(&self) -> Moment {
        Moment {
            elapsed: self.clock.now().saturating_duration_since(self.origin),
            wall: Timestamp::from_system(self.clock.wall()),
        }
    }

    fn next_wake(&mut self, now: Instant) -> Instant {
        /// With nothing else to do.
        const FAR: Duration = Duration::from_mins(1);

        let timer = self.timers.first().map(|(at, _)| self.origin + *at);
        let windows = Some(self.origin + self.windows.due());
        let due = [
            self.scheduler.next_wake(),
            timer,
            self.batch.due(),
            windows,
            Some(self.upkeep_due),
        ];
        due.into_iter()
            .flatten()
            .min()
            .unwrap_or(now + FAR)
            .min(now + FAR)
    }

    fn start_checks(&mut self, now: Instant) {
        while let Some(due) = self.scheduler.pop(now) {
            Figures::add(&self.board.figures.missed, due.missed);
            let late = now.saturating_duration_since(due.intended).as_micros();
            Figures::add(
                &self.board.figures.late_us,
                u64::try_from(late).unwrap_or(u64::MAX),
            );
            let begun = self.begin(due.key, now);
            if begun.is_err_and(DropReason::is_for_room) {
                self.scheduler.put_off(due.key, now);
            }
        }
    }

    /// Starts a check if the gates allow it.
    fn begin(&mut self, id: MonitorId, now: Instant) -> Result<(), DropReason> {
        let Some(live) = self.live.get(&id).filter(|live| !live.is_paused) else {
            return Ok(());
        };
        let plan = Arc::clone(&live.plan);
        let pass = match self.gates.enter(id, live.host.as_ref(), now) {
            Ok(pass) => pass,
            Err(reason) => {
                self.board.figures.set_dropped(&self.gates.dropped());
                if reason == DropReason::BreakerOpen {
                    let region = self.own_region();
                    self.feed(id, Input::HeldBack { region });
                }
                return Err(reason);
            }
        };
        Figures::add(&self.board.figures.started, 1);
        let check = running::check(plan, pass.clone(), Rc::clone(&self.context));
        let handle = self.checks.spawn_local(check);
        self.passes.insert(handle.id(), pass);
        Ok(())
    }

    fn finish(&mut self, ended: Result<(task::Id, Finished), task::JoinError>) {
        let now = self.clock.now();
        match ended {
            Ok((task, finished)) => {
                self.passes.remove(&task);
                Figures::add(&self.board.figures.finished, 1);
                let id = finished.pass.key;
                let interval = self.interval(id);
                self.gates
                    .leave(finished.pass, finished.connected, interval, now);
                self.accept_result(id, finished.result);
            }
            // Only a defect ends a check like this; it must not end the monitor of it.
            Err(error) => {
                if let Some(pass) = self.passes.remove(&error.id()) {
                    (self.notice)(&format!("a check ended unexpectedly: {error}"));
                    let interval = self.interval(pass.key);
                    self.gates.leave(pass, true, interval, now);
                }
            }
        }
    }

    /// Between two checks of a monitor.
    fn interval(&self, id: MonitorId) -> Duration {
        let live = self.live.get(&id);
        live.and_then(|live| Some(live.plan.timing.as_ref()?.interval))
            .unwrap_or(Duration::MAX)
    }

    /// The name of this process's region.
    pub(super) fn own_region(&self) -> Arc<str> {
        self.base.region.as_str().into()
    }

    /// A result of this process.
    fn accept_result(&mut self, id: MonitorId, result: CheckResult) {
        self.count_result(id, result, true);
    }

    /// Counts a result of this region.
    ///
    /// - `replies`: whether callers that wait for a result get it.
    fn count_result(&mut self, id: MonitorId, result: CheckResult, replies: bool) {
        if self.refuses(1) {
            return;
        }
        let Some(live) = self.live.get_mut(&id) else {
            return;
        };
        if live.is_paused {
            return;
        }
        let mut result = result.without(&live.plan.secrets);
        result.at = live.unique_date(result.at);
        let key = live.plan.key.clone();
        let now = self.clock.now();
        self.batch
            .add(ResultRow::from_result(id, OWN, &result), now);
        let input = Input::Observed {
            region: self.own_region(),
            status: result.status,
            reason: result.reason.clone(),
            at: result.at,
        };
        let mut waiting = Vec::new();
        if replies {
            waiting = self.waiting_for.remove(&id).unwrap_or_default();
        }
        let shared: Vec<_> = waiting.iter().map(|_| result.clone()).collect();
        self.board.change(&key, |view| view.count(result));
        self.feed(id, input);
        // A caller that looks at the board next finds the result there.
        for (waiting, result) in waiting.into_iter().zip(shared) {
            waiting.send(Ok(result)).ok();
        }
    }

    /// Gives results to the store, once they have waited or are many.
    async fn hand_over(&mut self, now: Instant) {
        let to = (self.org, &*self.store);
        self.batch
            .hand_over(now, to, &self.board, &self.notice)
            .await;
    }

    /// Has the store roll up and delete.
    fn start_upkeep(&mut self, now: Instant) {
        if now < self.upkeep_due {
            return;
        }
        self.upkeep_due = now + UPKEEP;
        if self
            .upkeep
            .as_ref()
            .is_some_and(|upkeep| !upkeep.is_finished())
        {
            return;
        }
        let (store, notice) = (Arc::clone(&self.store), Arc::clone(&self.notice));
        let (date, retention) = (self.moment().wall, self.retention);
        self.upkeep = Some(task::spawn_local(async move {
            if let Err(error) = store.upkeep(date, retention).await {
                notice(&format!("cannot tidy the store: {error}"));
            }
        }));
    }
}

#[cfg(test)]
mod model;
