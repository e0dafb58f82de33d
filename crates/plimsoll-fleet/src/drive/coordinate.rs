//! A run of several agents, from the call for them to the summary.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use plimsoll_load::Interrupt;
use plimsoll_model::{Clock as _, with_causes};
use plimsoll_wire::SystemClock;

use super::outbox::{Outbox, Refused, Unsent};
use super::{QUEUE, into_queue, patience, publish};
use crate::coordinator::{
    BEAT_EVERY, Coordinator, CoordinatorOutput, Ending, FleetPlan, MemberEnd, MemberSecond,
    NotStarted, Note,
};
use crate::merge::{Merger, UnionError};
use crate::message::{
    Instances, MessageError, RunNames, SetUp, Shares, ToAgents, ToCoordinator, decode,
    encode_signed,
};
use crate::order::{Argument, OrderFile, RunOrder, Work};
use crate::transport::{Delivered, FleetTransport, Subscription, TransportError};
use crate::trust::SigningKey;

/// How long agents may take to end after the user no longer wants to wait.
const URGENT_WAIT: Duration = Duration::from_secs(5);

/// How long the log may take to deliver what it has.
const LOG_WAIT: Duration = Duration::from_secs(2);

/// Bytes of the result of the work before the start, which all agents get.
const MOST_DATA: usize = 512 << 10;

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
    /// Version of the program, the same on every agent.
    pub program: String,
    /// What kind of run it is.
    pub work: Work,
    /// Seconds of a tick of a plain load; at least one.
    pub tick_seconds: u64,
    /// What agents run.
    pub command: Vec<Argument>,
    /// The files of the command.
    pub files: Vec<OrderFile>,
    /// The run as it was found on the broker, to go on with it.
    pub attached: Option<FoundRun>,
    /// Signs the order.
    pub key: Option<&'a SigningKey>,
    /// Bytes that the log may take.
    pub most_log_bytes: u64,
    /// Whether the log and the files stay on the broker.
    pub keep: bool,
    /// Ends the run early.
    pub interrupt: Arc<Interrupt>,
    /// Called with what a user wants to know on the way.
    pub on_note: &'a mut dyn FnMut(&Note),
}

impl std::fmt::Debug for FleetRun<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FleetRun")
            .field("run", &self.run)
            .field("fleet", &self.fleet)
            .finish_non_exhaustive()
    }
}

/// How a run of several agents ended.
#[derive(Debug, Default)]
pub struct FleetOutcome {
    /// Each agent.
    pub members: Vec<MemberEnd>,
    /// Whether it ended before its time, without the user.
    pub is_early: bool,
    /// Why the log and the files of the run stay on the broker, if they were to be deleted.
    pub left: Option<String>,
}

impl FleetOutcome {
    /// Why the figures are not those of the whole run; empty if they are.
    pub fn incomplete(&self) -> Vec<String> {
        self.members.iter().filter_map(MemberEnd::lack).collect()
    }
}

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    /// The broker cannot be used.
    #[error(transparent)]
    FleetTransport(#[from] TransportError),
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
    Delivered(#[from] MessageError),
    /// A run that has not started cannot be taken over.
    #[error("the run cannot go on")]
    SetUp(#[source] UnionError),
}

/// A run that has started, as its log has it.
#[derive(Debug, Clone)]
pub struct FoundRun {
    /// What is run, and who makes which part.
    pub order: RunOrder,
    /// When it started.
    pub started: SystemTime,
    /// The result of the work before the start.
    pub set_up: SetUp,
    /// Whether it was stopped before its time.
    pub is_stopping: bool,
}

/// Looks for a run on the broker, to go on with it in place of a coordinator that is gone.
pub fn find_run(transport: &dyn FleetTransport, run: &str) -> Result<FoundRun, FleetError> {
    let names = RunNames::new(run);
    let (queue, inbox) = sync_channel(QUEUE);
    let deliver = into_queue(&queue, |message| message);
    let _reading = transport
        .follow_log(&names.log(), &names.log_to_agents(), deliver)
        .map_err(|_| FleetError::NoRun(run.to_owned()))?;
    let (mut order, mut start, mut is_stopping) = (None, None, false);
    // There are three of them at most, one behind the other.
    while let Ok(message) = inbox.recv_timeout(LOG_WAIT) {
        // A message that is not a coordinator's does not end the run.
        let envelope = match decode::<ToAgents>(&message.payload) {
            Ok(envelope) => envelope,
            Err(error @ MessageError::Version { .. }) => return Err(error.into()),
            Err(MessageError::Form(_)) => continue,
        };
        match envelope.body {
            ToAgents::Plan { order: text, .. } => {
                let read = serde_json::from_str(&text);
                order = Some(read.map_err(|error| MessageError::Form(error.to_string()))?);
            }
            ToAgents::Start {
                unix_us, set_up, ..
            } => start = Some((unix_us, set_up)),
            ToAgents::Stop { .. } => is_stopping = true,
            _ => {}
        }
    }
    match (order, start) {
        (Some(order), Some((unix_us, set_up))) => Ok(FoundRun {
            order,
            started: SystemTime::UNIX_EPOCH + Duration::from_micros(unix_us),
            set_up,
            is_stopping,
        }),
        _ => Err(FleetError::NeverStarted(run.to_owned())),
    }
}

/// Makes a run over agents; blocks until it is over.
pub fn coordinate<'a>(
    transport: &'a dyn FleetTransport,
    run: FleetRun<'a>,
    merger: &'a mut dyn Merger,
) -> Result<FleetOutcome, FleetError> {
    let names = RunNames::new(&run.run);
    let (is_kept, is_attached) = (run.keep, run.attached.is_some());
    let delete = || {
        if transport.is_connected() {
            transport.delete(&names.log(), &names.bucket())
        } else {
            let reason = "the broker is away";
            Err(TransportError::away("delete the log", reason))
        }
    };
    let outcome = Driver::start(transport, run, merger, names.clone()).and_then(Driver::drive);
    match outcome {
        Ok(mut outcome) => {
            if !is_kept {
                outcome.left = delete().err().map(|error| error.to_string());
            }
            Ok(outcome)
        }
        Err(error) => {
            // The log of a run that never started is useless; that of an attached run is not.
            if !is_attached {
                drop(delete());
            }
            Err(error)
        }
    }
}

struct Driver<'a> {
    transport: &'a dyn FleetTransport,
    run: FleetRun<'a>,
    merger: &'a mut dyn Merger,
    names: RunNames,
    coordinator: Coordinator,
    inbox: Receiver<Delivered>,
    _subscriptions: [Subscription; 2],
    shares: Shares,
    /// Keeps messages of this coordinator apart from those of one before it.
    sender: String,
    logged: u64,
    /// For the log: whether the run cannot start without the message.
    outbox: Outbox<bool>,
    is_asked: bool,
    urgent_since: Option<Instant>,
    is_early: bool,
    /// Once it has.
    started: SystemTime,
}

impl<'a> Driver<'a> {
    fn start(
        transport: &'a dyn FleetTransport,
        run: FleetRun<'a>,
        merger: &'a mut dyn Merger,
        names: RunNames,
    ) -> Result<Self, FleetError> {
        let (queue, inbox) = sync_channel(QUEUE);
        let subjects = [names.log_to_agents(), names.log_to_coordinator()];
        if run.attached.is_none() {
            transport.create_log(&names.log(), &subjects, run.most_log_bytes)?;
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
        let driver = Self {
            coordinator,
            transport,
            names,
            inbox,
            _subscriptions: subscriptions,
            merger,
            shares: Shares::new(),
            sender: new_run_name(),
            logged: 0,
            outbox: Outbox::new(),
            is_asked: false,
            urgent_since: None,
            is_early: run.attached.as_ref().is_some_and(|found| found.is_stopping),
            started: SystemTime::UNIX_EPOCH,
            run,
        };
        if let Some(found) = &driver.run.attached {
            let shares = found.order.shares.clone();
            let taken = driver.merger.take_over(&found.set_up, found.started);
            taken.map_err(FleetError::SetUp)?;
            driver.merger.begin(&shares, found.started);
            let agents = shares.len();
            (driver.run.on_note)(&Note::Attached { agents });
        }
        Ok(driver)
    }

    fn drive(mut self) -> Result<FleetOutcome, FleetError> {
        loop {
            let now = SystemClock.now();
            self.follow_interrupt(now);
            let is_there = self.transport.is_connected();
            self.coordinator.follow_broker(is_there, now);
            self.send_log()?;
            self.coordinator.wake(now);
            if let Some(reason) = self.merger.look() {
                self.is_early = true;
                self.coordinator.stop(&reason, false);
            }
            if let Some(ending) = self.act()? {
                return match ending {
                    Ending::NotStarted(reason) => Err(reason.into()),
                    // No agent has received the start.
                    Ending::Ended if self.outbox.holds(|is_needed| *is_needed) => {
                        let reason = "the broker is away";
                        Err(TransportError::away("start the run", reason).into())
                    }
                    Ending::Ended => Ok(FleetOutcome {
                        members: self.coordinator.member_ends(),
                        is_early: self.is_early,
                        left: None,
                    }),
                };
            }
            let patience = patience(self.coordinator.next_wake(), now);
            match self.inbox.recv_timeout(patience) {
                Ok(message) => {
                    let now = SystemClock.now();
                    // Messages of other programs and of former runs are ignored.
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

    fn follow_interrupt(&mut self, now: Instant) {
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
                    CoordinatorOutput::Call => {
                        let call = encode_signed(&self.run.run, ToAgents::Call, self.run.key);
                        self.publish(&RunNames::call(&self.run.group), call);
                    }
                    CoordinatorOutput::Order { shares, instances } => {
                        self.order(shares, instances)?;
                    }
                    CoordinatorOutput::Live(message) => {
                        let message = encode_signed(&self.run.run, message, self.run.key);
                        self.publish(&self.names.live_to_agents(), message);
                    }
                    CoordinatorOutput::Log(message) => self.log(message)?,
                    CoordinatorOutput::Second(second) => self.merge(&second),
                    CoordinatorOutput::GiveUp(member) => self.merger.give_up(member),
                    CoordinatorOutput::SetUp => self.set_up(),
                    CoordinatorOutput::Note(note) => {
                        if let Note::Starting { start, .. } = note {
                            let ahead = start.saturating_duration_since(SystemClock.now());
                            self.started = SystemClock.wall() + ahead;
                            self.merger.begin(&self.shares, self.started);
                        }
                        let ends =
                            matches!(note, Note::Lost { goes_on: false, .. } | Note::Abandoned(_));
                        self.is_early |= ends;
                        (self.run.on_note)(&note);
                    }
                    CoordinatorOutput::End(ending) => return Ok(Some(ending)),
                }
            }
        }
    }

    fn publish(&self, subject: &str, payload: Vec<u8>) {
        publish(self.transport, subject, payload);
    }

    fn log(&mut self, mut message: ToAgents) -> Result<(), FleetError> {
        if let ToAgents::Start { unix_us, .. } = &mut message {
            let since = self.started.duration_since(SystemTime::UNIX_EPOCH);
            *unix_us = u64::try_from(since.unwrap_or_default().as_micros()).unwrap_or(u64::MAX);
        }
        self.logged += 1;
        let id = format!("{}-{}", self.sender, self.logged);
        let is_needed = !matches!(message, ToAgents::Stop { .. });
        let payload = encode_signed(&self.run.run, message, self.run.key);
        let subject = self.names.log_to_agents();
        let has_room = self.outbox.push(Unsent {
            about: is_needed,
            subject,
            id,
            payload,
        });
        debug_assert!(has_room, "there are three of them");
        self.send_log()
    }

    /// Sends the messages that wait for the log. Only the order and the start of a run can fail: after them an error of the
    /// transport must not discard figures.
    fn send_log(&mut self) -> Result<(), FleetError> {
        while let Err(refused) = self.outbox.send(self.transport) {
            let Refused { message, error } = *refused;
            let is_needed = message.about;
            if is_needed {
                return Err(error.into());
            }
            // Agents stop even if the log is full.
            self.publish(&self.names.live_to_agents(), message.payload);
        }
        Ok(())
    }

    fn order(&mut self, shares: Shares, instances: Instances) -> Result<(), FleetError> {
        self.shares.clone_from(&shares);
        let made_at = SystemClock.wall().duration_since(SystemTime::UNIX_EPOCH);
        let order = RunOrder {
            run: self.run.run.clone(),
            made_at: made_at.unwrap_or_default().as_secs(),
            program: self.run.program.clone(),
            work: self.run.work,
            tick_seconds: self.run.tick_seconds,
            command: self.run.command.clone(),
            files: self.run.files.iter().map(OrderFile::entry).collect(),
            shares,
            instances,
        };
        let order = serde_json::to_string(&order).expect("keys are texts");
        let signature = self.run.key.map(|key| key.sign(&order));
        self.log(ToAgents::Plan { order, signature })
    }

    /// Does what comes before the start. Agents hear signs of life meanwhile.
    fn set_up(&mut self) {
        let outcome = {
            let (transport, run) = (self.transport, self.run.run.clone());
            let subject = self.names.live_to_agents();
            let merger = &mut *self.merger;
            let key = self.run.key;
            thread::scope(|scope| {
                let (done, is_done) = sync_channel::<()>(1);
                scope.spawn(move || {
                    while is_done.recv_timeout(BEAT_EVERY) == Err(RecvTimeoutError::Timeout) {
                        let beat = encode_signed(&run, ToAgents::Beat, key);
                        publish(transport, &subject, beat);
                    }
                });
                let outcome = merger.set_up();
                drop(done);
                outcome
            })
        };
        let outcome = outcome.and_then(|set_up| match &set_up.data {
            Some(data) if data.len() > MOST_DATA => Err(UnionError::Data(MOST_DATA)),
            _ => Ok(set_up),
        });
        self.coordinator.set_up(outcome, SystemClock.now());
    }

    fn merge(&mut self, second: &MemberSecond) {
        match self.merger.merge_second(second) {
            Ok(checksum) => self.coordinator.merged(second.member, &checksum),
            Err(error) => {
                self.coordinator.reject(second.member, with_causes(&error));
            }
        }
    }
}
