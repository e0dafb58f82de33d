//! An agent: a process in another place that checks monitors for a centre and sends what it finds.
//!
//! It has no store. It fetches the monitors of its region as a configuration, checks them by the same schedule, gates and
//! probes as the centre, and sends the results in batches. While the centre is away it goes on with the last
//! configuration, and results wait in a bounded buffer; the oldest are given up, and counted. A centre that refuses its
//! token ends its checks until it accepts one.

mod buffer;

pub mod helper;

mod link;

pub mod work;

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use plimsoll_model::Clock;
use plimsoll_wire::{SystemClock, files};
use tokio::sync::oneshot;
use tokio::task::{JoinError, JoinSet};

use crate::agent::buffer::Buffer;
use crate::config::{MonitorPlan, What, of_agent};
use crate::engine::report::{Found, MOST_RESULTS, Report};
use crate::engine::running::{self, Finished};
use crate::probe::ProbeContext;
use crate::schedule::{DropReason, Gates, Pass, Scheduler};
use crate::store::MonitorId;
use crate::time::Timestamp;

pub use crate::agent::link::{Centre, CentreError, Link, LinkFuture, Reply};

/// First checks are spread over so much time for each monitor.
const SPREAD: Duration = Duration::from_millis(2);

/// Between two attempts while the centre is away: doubled up to the last.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// The longest wait at the end of the program.
const SHUT_DOWN_WITHIN: Duration = Duration::from_secs(5);

/// Settings of an agent.
#[derive(Debug, Clone)]
pub struct AgentOptions {
    /// Between two looks at what is to be checked.
    pub fetch_every: Duration,
    /// Results wait at most this long for others.
    pub send_every: Duration,
    /// Results that wait while the centre is away.
    pub buffer: usize,
    /// File of the last configuration, for a start without the centre. It may hold credentials of targets.
    pub state: Option<PathBuf>,
}

impl Default for AgentOptions {
    fn default() -> Self {
        Self {
            fetch_every: Duration::from_secs(10),
            send_every: Duration::from_secs(1),
            buffer: 100_000,
            state: None,
        }
    }
}

/// Runs an agent on the present `LocalSet` until `stop` is dropped; results that wait are sent at the end.
///
/// - `report`: receives what an operator should see.
pub async fn run(
    options: AgentOptions,
    link: Rc<dyn Link>,
    report: Arc<dyn Fn(&str) + Send + Sync>,
    mut stop: oneshot::Receiver<()>,
) {
    let mut agent = Agent::new(options, link, report);
    agent.restore();
    loop {
        let now = agent.clock.now();
        agent.start_checks(now);
        agent.talk(now);
        let wake = agent.next_wake(now);
        tokio::select! {
            biased;
            _ = &mut stop => break,
            ended = agent.checks.join_next_with_id(), if !agent.checks.is_empty() => {
                if let Some(ended) = ended {
                    agent.finish(ended);
                }
            }
            Some(ended) = agent.talks.join_next(), if !agent.talks.is_empty() => {
                if let Ok(talked) = ended {
                    agent.heard(talked);
                }
            }
            () = tokio::time::sleep_until(wake.into()) => {}
        }
    }
    agent.shut_down().await;
}

/// The outcome of an exchange with the centre.
enum Talked {
    Fetched(Result<Reply, CentreError>),
    Sent(u64, Result<Reply, CentreError>),
}

/// When the next exchange of a kind begins.
#[derive(Debug)]
struct Turn {
    due: Instant,
    is_running: bool,
    failures: u32,
}

impl Turn {
    fn new(now: Instant) -> Self {
        Self {
            due: now,
            is_running: false,
            failures: 0,
        }
    }

    fn ended(&mut self, is_good: bool, pause: Duration, now: Instant) {
        self.is_running = false;
        self.failures = if is_good { 0 } else { self.failures + 1 };
        let wait = match self.failures {
            0 => pause,
            failures => {
                let longer = FIRST_PAUSE.saturating_mul(2_u32.saturating_pow(failures - 1));
                longer.min(LONGEST_PAUSE).max(pause)
            }
        };
        self.due = now + wait;
    }
}

struct Agent {
    options: AgentOptions,
    link: Rc<dyn Link>,
    operator: Arc<dyn Fn(&str) + Send + Sync>,
    clock: SystemClock,
    /// Differs with every start.
    run: u64,
    context: Rc<ProbeContext>,
    monitors: HashMap<MonitorId, Arc<MonitorPlan>>,
    /// Numbers of this process, of which none is used twice.
    ids: HashMap<String, MonitorId>,
    last_id: i64,
    scheduler: Scheduler<MonitorId>,
    gates: Gates<MonitorId>,
    checks: JoinSet<Finished>,
    passes: HashMap<tokio::task::Id, Pass<MonitorId>>,
    talks: JoinSet<Talked>,
    fetching: Turn,
    sending: Turn,
    /// The configuration as it was fetched.
    work: Option<String>,
    buffer: Rc<RefCell<Buffer>>,
    /// The last reported trouble, so that each is reported once.
    trouble: Option<String>,
}

impl Agent {
    fn new(
        options: AgentOptions,
        link: Rc<dyn Link>,
        operator: Arc<dyn Fn(&str) + Send + Sync>,
    ) -> Self {
        let clock = SystemClock;
        let now = clock.now();
        Self {
            buffer: Rc::new(RefCell::new(Buffer::new(options.buffer))),
            options,
            link,
            operator,
            clock,
            run: fastrand::u64(..),
            context: Rc::default(),
            monitors: HashMap::new(),
            ids: HashMap::new(),
            last_id: 0,
            scheduler: Scheduler::new(fastrand::u64(..)),
            gates: Gates::new(crate::schedule::GateLimits::default()),
            checks: JoinSet::new(),
            passes: HashMap::new(),
            talks: JoinSet::new(),
            fetching: Turn::new(now),
            sending: Turn::new(now),
            work: None,
            trouble: None,
        }
    }

    /// Begins with the configuration of the last run.
    fn restore(&mut self) {
        let Some(path) = self.options.state.clone() else {
            return;
        };
        if let Ok(text) = std::fs::read_to_string(path) {
            self.apply(text);
        }
    }

    fn start_checks(&mut self, now: Instant) {
        while let Some(due) = self.scheduler.pop(now) {
            let Some(plan) = self.monitors.get(&due.key) else {
                continue;
            };
            let host = match &plan.what {
                What::Probe(probe) => probe.host(),
                _ => None,
            };
            let pass = match self.gates.enter(due.key, host.as_ref(), now) {
                Ok(pass) => pass,
                Err(reason) => {
                    if reason.is_for_room() {
                        self.scheduler.put_off(due.key, now);
                    }
                    if reason == DropReason::BreakerOpen {
                        self.link.hold_back(&plan.key);
                    }
                    continue;
                }
            };
            let context = Rc::clone(&self.context);
            let check = running::check(Arc::clone(plan), pass.clone(), context);
            let handle = self.checks.spawn_local(check);
            self.passes.insert(handle.id(), pass);
        }
    }

    fn finish(&mut self, ended: Result<(tokio::task::Id, Finished), JoinError>) {
        let now = self.clock.now();
        let (pass, connected, result) = match ended {
            Ok((task, finished)) => {
                self.passes.remove(&task);
                (finished.pass, finished.connected, Some(finished.result))
            }
            Err(error) => match self.passes.remove(&error.id()) {
                Some(pass) => {
                    (self.operator)(&format!("a check ended unexpectedly: {error}"));
                    (pass, true, None)
                }
                None => return,
            },
        };
        let id = pass.key;
        let plan = self.monitors.get(&id);
        let interval = plan.and_then(|plan| Some(plan.timing?.interval));
        self.gates
            .leave(pass, connected, interval.unwrap_or(Duration::MAX), now);
        if let (Some(plan), Some(result)) = (plan, result) {
            self.buffer.borrow_mut().push(&plan.key, result);
        }
    }

    fn next_wake(&mut self, now: Instant) -> Instant {
        /// With nothing else to do.
        const FAR: Duration = Duration::from_mins(1);

        let turn = |turn: &Turn| (!turn.is_running).then_some(turn.due);
        let has_results = !self.buffer.borrow().is_empty();
        let sending = turn(&self.sending).filter(|_| has_results || self.sending.due > now);
        let due = [self.scheduler.next_wake(), turn(&self.fetching), sending];
        due.into_iter()
            .flatten()
            .min()
            .unwrap_or(now + FAR)
            .min(now + FAR)
    }

    /// Begins the exchanges that are due.
    fn talk(&mut self, now: Instant) {
        if !self.fetching.is_running && now >= self.fetching.due {
            self.fetching.is_running = true;
            let (link, known) = (Rc::clone(&self.link), self.work.as_deref().map(work::tag));
            self.talks
                .spawn_local(async move { Talked::Fetched(link.fetch(known).await) });
        }
        // A report without results shows the centre that the agent is there.
        if !self.sending.is_running && now >= self.sending.due {
            self.sending.is_running = true;
            let (last, content) = self.report();
            let link = Rc::clone(&self.link);
            self.talks
                .spawn_local(async move { Talked::Sent(last, link.send(content).await) });
        }
    }

    /// The next report, and the number of its last result.
    fn report(&self) -> (u64, Report) {
        let buffer = self.buffer.borrow();
        let results = buffer.first(MOST_RESULTS);
        let last = results.last().map_or(0, Found::number);
        let report = Report {
            run: self.run,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            now: Timestamp::from_system(self.clock.wall()).0,
            waiting: (buffer.len() - results.len()) as u64,
            lost: buffer.lost(),
            results,
        };
        (last, report)
    }

    fn heard(&mut self, talked: Talked) {
        let now = self.clock.now();
        let outcome = match talked {
            Talked::Fetched(outcome) => {
                self.fetching
                    .ended(outcome.is_ok(), self.options.fetch_every, now);
                outcome
            }
            Talked::Sent(last, outcome) => {
                if outcome.is_ok() {
                    self.buffer.borrow_mut().forget(last);
                }
                let is_behind = self.buffer.borrow().len() >= MOST_RESULTS;
                let pause = if is_behind {
                    Duration::ZERO
                } else {
                    self.options.send_every
                };
                self.sending.ended(outcome.is_ok(), pause, now);
                outcome
            }
        };
        match outcome {
            Ok(reply) => {
                self.trouble = None;
                match reply {
                    Reply::Work(text) => {
                        if self.apply(text.clone()) {
                            self.keep(&text);
                        }
                    }
                    Reply::Monitors(monitors, limits) => {
                        self.gates.set_limits(limits);
                        self.place(monitors);
                    }
                    Reply::Check(keys) => {
                        for id in keys.iter().filter_map(|key| self.ids.get(key)) {
                            self.scheduler.bring_forward(*id, now);
                        }
                    }
                    Reply::Fine => {}
                }
            }
            Err(error) => {
                if matches!(error, CentreError::Refused(_)) {
                    self.apply(String::new());
                    self.work = None;
                }
                self.show(error.to_string());
            }
        }
    }

    fn show(&mut self, trouble: String) {
        if self.trouble.as_ref() != Some(&trouble) {
            (self.operator)(&trouble);
            self.trouble = Some(trouble);
        }
    }

    /// Makes the monitors those of a configuration; whether it can be used.
    fn apply(&mut self, text: String) -> bool {
        let plan = match of_agent(&text) {
            Ok(plan) => plan,
            Err(problems) => {
                let first = problems
                    .first()
                    .map(ToString::to_string)
                    .unwrap_or_default();
                self.show(format!(
                    "the centre sent a configuration that this version does not understand, so the last one stays: {first}"
                ));
                // It is not fetched again and again.
                self.work = Some(text);
                return false;
            }
        };
        self.place(plan.monitors);
        self.work = Some(text);
        true
    }

    /// Makes the monitors those of a list.
    fn place(&mut self, monitors: Vec<Arc<MonitorPlan>>) {
        let now = self.clock.now();
        let spread = SPREAD * u32::try_from(monitors.len()).unwrap_or(u32::MAX);
        let mut staying = HashMap::new();
        for monitor in monitors {
            let id = *self.ids.entry(monitor.key.clone()).or_insert_with(|| {
                self.last_id += 1;
                MonitorId(self.last_id)
            });
            if let Some(timing) = monitor.timing {
                self.scheduler.set(id, timing, spread, now);
                staying.insert(id, monitor);
            }
        }
        for gone in self.monitors.keys() {
            if !staying.contains_key(gone) {
                self.scheduler.remove(gone);
            }
        }
        self.ids.retain(|_, id| staying.contains_key(id));
        self.monitors = staying;
        self.context.prune();
    }

    /// Keeps a configuration for the next start.
    fn keep(&mut self, text: &str) {
        let Some(path) = self.options.state.clone() else {
            return;
        };
        if let Err(error) = files::replace_private(&path, text.as_bytes()) {
            self.show(format!(
                "cannot keep the configuration in {}: {error}",
                path.display()
            ));
        }
    }

    /// Sends what waits.
    async fn shut_down(mut self) {
        self.checks.abort_all();
        self.talks.abort_all();
        let rest = async {
            while !self.buffer.borrow().is_empty() {
                let (last, content) = self.report();
                if self.link.send(content).await.is_err() {
                    break;
                }
                self.buffer.borrow_mut().forget(last);
            }
        };
        tokio::time::timeout(SHUT_DOWN_WITHIN, rest).await.ok();
        let left = self.buffer.borrow().len();
        if left > 0 {
            (self.operator)(&format!("{left} results were not sent"));
        }
    }
}
