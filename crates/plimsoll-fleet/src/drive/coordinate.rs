//! A run of several agents, from the call for them to the summary.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant, SystemTime};

use plimsoll_load::conditions::RunFacts;
use plimsoll_load::{Interrupt, PartReport, RunPlan, Standing, Union, UnionEnd, UnionSecond};
use plimsoll_model::{Clock as _, RunSummary, Saturation, Threshold};
use plimsoll_wire::SystemClock;

use super::{QUEUE, into_queue, patience};
use crate::coordinator::{
    Coordinator, Ending, FleetPlan, MemberEnd, MemberSecond, NotStarted, Note, Output,
};
use crate::message::{Checksum, MessageError, RunNames, ToAgents, ToCoordinator, decode, encode};
use crate::order::{Argument, OrderFile, RunOrder};
use crate::share::Share;
use crate::transport::{Message, Subscription, Transport, TransportError};
use crate::trust::SigningKey;

/// How long agents may take to end after the user no longer wants to wait.
const URGENT_WAIT: Duration = Duration::from_secs(5);

/// A start that is later than this on an agent is reported.
const LATE: Duration = Duration::from_millis(20);

/// How long the log may take to deliver what it has.
const LOG_WAIT: Duration = Duration::from_secs(2);

/// Letters and digits of the name of a run.
const RUN_LETTERS: usize = 12;

/// A new name for a run.
pub fn new_run_name() -> String {
    let letter = |_| fastrand::char('a'..='z');
    (0..RUN_LETTERS).map(letter).collect()
}

/// A run that agents make.
pub struct FleetRun<'a> {
    /// Its name, by [`new_run_name`].
    pub run: String,
    /// The group of agents.
    pub group: String,
    /// How many, and how long to wait.
    pub fleet: FleetPlan,
    /// The load; its workers are set by those of the agents.
    pub load: &'a RunPlan,
    /// Thresholds on the figures of all agents.
    pub thresholds: &'a [Threshold],
    /// Facts that the caller knows.
    pub facts: RunFacts,
    /// Version of the program, the same on every agent.
    pub program: String,
    /// What agents run.
    pub command: Vec<Argument>,
    /// The files of the command.
    pub files: Vec<OrderFile>,
    /// The run as it was found on the broker, to go on with it.
    pub attached: Option<FoundRun>,
    /// Signs the order.
    pub key: Option<&'a SigningKey>,
    /// Whether the log and the files stay on the broker.
    pub keep: bool,
    /// Ends the run early.
    pub interrupt: Arc<Interrupt>,
    /// Called with what a user wants to know on the way.
    pub on_note: &'a mut dyn FnMut(&Note),
    /// Called once a second, with the figures of all agents.
    pub on_tick: &'a mut dyn FnMut(&Standing<'_>),
}

impl std::fmt::Debug for FleetRun<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FleetRun")
            .field("run", &self.run)
            .field("fleet", &self.fleet)
            .finish_non_exhaustive()
    }
}

/// What a run of several agents found.
#[derive(Debug)]
pub struct FleetOutcome {
    /// The figures of all agents, merged.
    pub summary: RunSummary,
    /// Each agent.
    pub agents: Vec<AgentOutcome>,
    /// Why the figures are not those of the whole run; empty if they are.
    pub incomplete: Vec<String>,
}

/// How one agent of a run did.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentOutcome {
    /// Its name.
    pub agent: String,
    /// Its cores.
    pub cores: usize,
    /// Its workers.
    pub workers: usize,
    /// Requests that it began.
    pub started: u64,
    /// Those with a complete response.
    pub ok: u64,
    /// Busiest worker: share of one core in percent; absent if it was lost.
    pub busiest_worker_percent: Option<f64>,
    /// How long after the agreed start it started; absent if it was lost.
    pub late: Option<Duration>,
    /// Why its figures are not complete.
    pub problem: Option<String>,
}

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    /// The broker cannot be used.
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// The run did not start.
    #[error(transparent)]
    NotStarted(#[from] NotStarted),
    /// The broker has no run of that name.
    #[error("the broker has no run {0}")]
    NoRun(String),
    /// The coordinator was gone before the start, so nothing was measured.
    #[error("the run {0} has not started")]
    NeverStarted(String),
    /// The log cannot be understood.
    #[error(transparent)]
    Message(#[from] MessageError),
}

/// A run that has started, as its log has it.
#[derive(Debug, Clone)]
pub struct FoundRun {
    /// What is run, and who makes which part.
    pub order: RunOrder,
    /// Whether it was stopped before its time.
    pub is_stopping: bool,
}

/// Looks for a run on the broker, to go on with it in place of a coordinator that is gone.
pub fn find_run(transport: &dyn Transport, run: &str) -> Result<FoundRun, FleetError> {
    let names = RunNames::new(run);
    let (queue, inbox) = sync_channel(QUEUE);
    let deliver = into_queue(&queue, |message| message);
    let _reading = transport
        .follow_log(&names.log(), &names.log_to_agents(), deliver)
        .map_err(|_| FleetError::NoRun(run.to_owned()))?;
    let (mut order, mut has_started, mut is_stopping) = (None, false, false);
    // There are three of them at most, one behind the other.
    while let Ok(message) = inbox.recv_timeout(LOG_WAIT) {
        match decode::<ToAgents>(&message.payload)?.body {
            ToAgents::Plan { order: text, .. } => {
                let read = serde_json::from_str(&text);
                order = Some(read.map_err(|error| MessageError::Form(error.to_string()))?);
            }
            ToAgents::Start { .. } => has_started = true,
            ToAgents::Stop { .. } => is_stopping = true,
            _ => {}
        }
    }
    match (order, has_started) {
        (Some(order), true) => Ok(FoundRun { order, is_stopping }),
        _ => Err(FleetError::NeverStarted(run.to_owned())),
    }
}

/// Makes a run over agents; blocks until it is over.
pub fn coordinate<'a>(
    transport: &'a dyn Transport,
    run: FleetRun<'a>,
) -> Result<FleetOutcome, FleetError> {
    let names = RunNames::new(&run.run);
    let kept = run.keep;
    let outcome = Driver::start(transport, run, names.clone()).and_then(Driver::drive);
    // A run that never started is of no use to anyone.
    if !kept || outcome.is_err() {
        let deleted = transport.delete(&names.log(), &names.bucket());
        if outcome.is_ok() {
            deleted?;
        }
    }
    outcome
}

struct Driver<'a> {
    transport: &'a dyn Transport,
    run: FleetRun<'a>,
    names: RunNames,
    coordinator: Coordinator,
    inbox: Receiver<Message>,
    _subscriptions: [Subscription; 2],
    union: Option<Union>,
    /// Workers of all agents.
    workers: usize,
    members: usize,
    /// Keeps messages of this coordinator apart from those of one before it.
    sender: String,
    logged: u64,
    is_asked: bool,
    urgent_since: Option<Instant>,
    is_early: bool,
}

impl<'a> Driver<'a> {
    fn start(
        transport: &'a dyn Transport,
        run: FleetRun<'a>,
        names: RunNames,
    ) -> Result<Self, FleetError> {
        let (queue, inbox) = sync_channel(QUEUE);
        let subjects = [names.log_to_agents(), names.log_to_coordinator()];
        if run.attached.is_none() {
            transport.create_log(&names.log(), &subjects)?;
        }
        let live = names.live_to_coordinator();
        let subscriptions = [
            transport.subscribe(&live, into_queue(&queue, |message| message))?,
            transport.follow_log(
                &names.log(),
                &names.log_to_coordinator(),
                into_queue(&queue, |message| message),
            )?,
        ];
        let now = SystemClock.now();
        let fleet = run.fleet.clone();
        let coordinator = match &run.attached {
            None => {
                for file in &run.files {
                    transport.put_blob(&names.bucket(), &file.name, file.content.clone())?;
                }
                Coordinator::new(fleet, now)
            }
            Some(found) => {
                let parts = &found.order.shares;
                Coordinator::attached(fleet, parts, found.is_stopping, now)
            }
        };
        let mut driver = Self {
            coordinator,
            transport,
            names,
            inbox,
            _subscriptions: subscriptions,
            union: None,
            workers: 0,
            members: 0,
            sender: new_run_name(),
            logged: 0,
            is_asked: false,
            urgent_since: None,
            is_early: run.attached.as_ref().is_some_and(|found| found.is_stopping),
            run,
        };
        if let Some(found) = &driver.run.attached {
            let shares = found.order.shares.clone();
            let made = SystemTime::UNIX_EPOCH + Duration::from_secs(found.order.made_at);
            driver.count(&shares);
            driver.begin_union(made);
            let agents = driver.members;
            (driver.run.on_note)(&Note::Attached { agents });
        }
        Ok(driver)
    }

    fn drive(mut self) -> Result<FleetOutcome, FleetError> {
        loop {
            let now = SystemClock.now();
            self.heed_interrupt(now);
            if !self.transport.is_connected() {
                self.coordinator.excuse_silence(now);
            }
            self.coordinator.wake(now);
            if let Some(ending) = self.act()? {
                return match ending {
                    Ending::NotStarted(reason) => Err(reason.into()),
                    Ending::Ended => {
                        let members = self.coordinator.member_ends();
                        Ok(self.finish(&members))
                    }
                };
            }
            let patience = patience(self.coordinator.next_wake(), now);
            match self.inbox.recv_timeout(patience) {
                Ok(message) => {
                    let now = SystemClock.now();
                    // What is none of ours, or of a former run, is not for this one.
                    if let Ok(envelope) = decode::<ToCoordinator>(&message.payload)
                        && envelope.run == self.run.run
                    {
                        self.coordinator.receive(envelope.body, now);
                    }
                }
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
        }
    }

    fn heed_interrupt(&mut self, now: Instant) {
        let interrupt = &self.run.interrupt;
        if interrupt.is_set() && !self.is_asked {
            self.is_asked = true;
            self.coordinator.stop("interrupted", false);
        }
        if interrupt.is_urgent() {
            match self.urgent_since {
                None => {
                    self.urgent_since = Some(now);
                    self.coordinator.stop("interrupted", true);
                }
                Some(since) if now >= since + URGENT_WAIT => {
                    self.coordinator.abandon("it did not end in time");
                }
                Some(_) => {}
            }
        }
    }

    /// Does what the coordinator wants; returns how the run ended, once it has.
    fn act(&mut self) -> Result<Option<Ending>, FleetError> {
        loop {
            let outputs = self.coordinator.take_outputs();
            if outputs.is_empty() {
                return Ok(None);
            }
            for output in outputs {
                match output {
                    Output::Call => {
                        let call = encode(&self.run.run, ToAgents::Call);
                        self.publish(&RunNames::call(&self.run.group), call);
                    }
                    Output::Order(shares) => self.order(shares)?,
                    Output::Live(message) => {
                        let message = encode(&self.run.run, message);
                        self.publish(&self.names.live_to_agents(), message);
                    }
                    Output::Log(message) => self.log(message)?,
                    Output::Second(second) => self.merge(&second),
                    Output::GiveUp(member) => {
                        if let Some(union) = &mut self.union {
                            let ends = union.give_up(member, self.run.on_tick);
                            self.end_by_threshold(ends);
                        }
                    }
                    Output::Note(note) => {
                        if let Note::Starting { .. } = note {
                            self.begin_union(SystemClock.wall());
                        }
                        self.is_early |= matches!(note, Note::Lost { goes_on: false, .. });
                        (self.run.on_note)(&note);
                    }
                    Output::End(ending) => return Ok(Some(ending)),
                }
            }
        }
    }

    /// Publishes what is said again anyway; while the broker is away it is not heard.
    fn publish(&self, subject: &str, payload: Vec<u8>) {
        drop(self.transport.publish(subject, payload));
    }

    fn log(&mut self, message: ToAgents) -> Result<(), FleetError> {
        self.logged += 1;
        let id = format!("{}-{}", self.sender, self.logged);
        let payload = encode(&self.run.run, message);
        let subject = self.names.log_to_agents();
        Ok(self.transport.append(&subject, &id, payload)?)
    }

    fn order(&mut self, shares: BTreeMap<String, Share>) -> Result<(), FleetError> {
        self.count(&shares);
        let made_at = SystemClock.wall().duration_since(SystemTime::UNIX_EPOCH);
        let order = RunOrder {
            run: self.run.run.clone(),
            made_at: made_at.unwrap_or_default().as_secs(),
            program: self.run.program.clone(),
            command: self.run.command.clone(),
            files: self.run.files.iter().map(OrderFile::entry).collect(),
            shares,
        };
        let order = serde_json::to_string(&order).expect("keys are texts");
        let signature = self.run.key.map(|key| key.sign(&order));
        self.log(ToAgents::Plan { order, signature })
    }

    fn count(&mut self, shares: &BTreeMap<String, Share>) {
        self.workers = shares.values().next().map_or(0, |share| share.of);
        self.members = shares.len();
    }

    fn begin_union(&mut self, started: SystemTime) {
        let mut plan = self.run.load.clone();
        plan.workers = self.workers;
        let union = Union::new(plan, self.members, self.run.thresholds, started);
        self.union = Some(union);
    }

    fn merge(&mut self, second: &MemberSecond) {
        let Some(union) = &mut self.union else {
            return;
        };
        let mut interval = union.empty_interval();
        if let Err(error) = second.figures.add_to(&mut interval) {
            self.coordinator.reject(second.member, error.to_string());
            return;
        }
        self.coordinator
            .merged(second.member, &Checksum::of(&interval));
        let second = UnionSecond {
            part: second.member,
            at: Duration::from_micros(second.at_us),
            grace: second.grace,
            is_last: second.is_last,
            interval,
        };
        let ends = union.take(second, self.run.on_tick);
        self.end_by_threshold(ends);
    }

    fn end_by_threshold(&mut self, ends: bool) {
        if ends {
            self.is_early = true;
            self.coordinator.stop("a threshold was breached", false);
        }
    }

    fn finish(self, members: &[MemberEnd]) -> FleetOutcome {
        let union = self.union.expect("a run that ended has started");
        let empty = union.empty_interval();
        let reports: Vec<Option<PartReport>> = members
            .iter()
            .map(|member| Some(member.report.as_ref()?.read(empty.clone())))
            .collect();
        let complete: Vec<&PartReport> = reports.iter().flatten().collect();
        let end = UnionEnd {
            facts: self.run.facts,
            is_early: self.is_early,
            is_interrupted: self.run.interrupt.is_set(),
        };
        let mut summary = union.finish(&complete, end);
        let incomplete = members.iter().filter_map(|member| {
            let problem = member.problem.as_ref()?;
            Some(format!("agent {}: {problem}", member.agent))
        });
        let incomplete: Vec<_> = incomplete.collect();
        let cautions = cautions(members, &reports);
        summary.conditions.warnings.extend(cautions);
        let lacks = incomplete
            .iter()
            .map(|reason| format!("incomplete: {reason}"));
        summary.conditions.warnings.splice(0..0, lacks);
        let agents = members
            .iter()
            .zip(&reports)
            .map(|(member, report)| AgentOutcome {
                agent: member.agent.clone(),
                cores: member.cores,
                workers: member.share.workers,
                started: member.merged.started,
                ok: member.merged.ok,
                busiest_worker_percent: report.as_ref().map(|it| it.busiest_worker_percent),
                late: report.as_ref().map(|it| it.late),
                problem: member.problem.clone(),
            });
        FleetOutcome {
            agents: agents.collect(),
            summary,
            incomplete,
        }
    }
}

/// Doubts about single agents.
fn cautions(members: &[MemberEnd], reports: &[Option<PartReport>]) -> Vec<String> {
    let mut cautions = Vec::new();
    for (member, report) in members.iter().zip(reports) {
        let Some(report) = report else { continue };
        let agent = &member.agent;
        match report.saturated {
            Some(Saturation::Cpu { percent }) => cautions.push(format!(
                "agent {agent} was the limit: a worker used {percent:.0} % of its core"
            )),
            Some(Saturation::Lag { p99 }) => cautions.push(format!(
                "agent {agent} was the limit: it started requests up to {p99:?} late (p99) although connections were free"
            )),
            None => {}
        }
        if report.late >= LATE {
            cautions.push(format!(
                "agent {agent} started {:.0} ms after the others",
                report.late.as_secs_f64() * 1e3
            ));
        }
        let warnings = report.warnings.iter();
        cautions.extend(warnings.map(|warning| format!("agent {agent}: {warning}")));
    }
    cautions
}
