//! An agent at work: it waits for coordinators and makes its parts of their runs, one run at a time.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime};

use plimsoll_load::Interrupt;
use plimsoll_model::{Clock as _, with_causes};
use plimsoll_wire::SystemClock;

use super::outbox::{Outbox, Refused, Unsent};
use super::{QUEUE, fetch_files, into_queue, micros_since, patience, publish};
use crate::agent::{Agent, AgentOutput};
use crate::message::{AgentReport, Envelope, RunNames, ToAgents, ToCoordinator, decode, encode};
use crate::order::{OrderError, OrderFile, RunOrder};
use crate::part::{PartControl, PartError, PartMaker, PartStart, PartTick};
use crate::share::Share;
use crate::transport::{Delivered, FleetTransport, Subscription, TransportError};
use crate::trust::TrustedKeys;

/// An order is run at most this long after, or before, it was made, by the date of the agent.
const MOST_AGE: Duration = Duration::from_mins(10);

/// An agent that is about to exit waits this long for an unreachable broker, to send its figures.
const UNSENT_WAIT: Duration = Duration::from_mins(1);

/// Whose orders are run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OrderTrust {
    /// Those that one of these keys signed.
    Keys(TrustedKeys),
    /// All of them: for a broker and targets on loopback.
    Everyone,
}

/// Settings of an agent.
#[derive(Debug, Clone)]
pub struct AgentSettings {
    /// Its name, unlike that of any other.
    pub name: String,
    /// This process, unlike any other: letters, digits, `-`, `_` and `.`, such as its machine and its number.
    pub instance: String,
    /// The group that it offers itself to.
    pub group: String,
    /// Cores that it may use.
    pub cores: usize,
    /// Version of the program.
    pub program: String,
    /// After this time without the coordinator it ends its part.
    pub orphan_timeout: Duration,
    /// Whether it ends after one run.
    pub once: bool,
    /// Whose orders it runs.
    pub trust: OrderTrust,
}

/// An event of an agent, to be logged for its operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentNote {
    /// It waits for a coordinator.
    Waiting,
    /// It is ready.
    Ready {
        /// The run.
        run: String,
        /// Its part.
        share: Share,
    },
    /// It cannot make its part.
    Refused {
        /// The run.
        run: String,
        /// Why.
        problem: String,
    },
    /// It has started.
    Started {
        /// The run.
        run: String,
    },
    /// It has left the run.
    Left {
        /// Why.
        reason: String,
    },
}

/// How a run of an agent ended, of one that makes a single run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentEnd {
    /// It was ended by a signal.
    Interrupted,
    /// It has made its part.
    Made,
    /// It could not.
    Failed,
}

/// Serves coordinators until `interrupt` is set, or for one run.
pub fn serve(
    transport: &dyn FleetTransport,
    plan: &AgentSettings,
    maker: Arc<dyn PartMaker>,
    interrupt: &Interrupt,
    on_note: &mut dyn FnMut(&AgentNote),
) -> Result<AgentEnd, TransportError> {
    let (queue, inbox) = sync_channel(QUEUE);
    let call = RunNames::call(&plan.group);
    let _calls = transport.subscribe(&call, into_queue(&queue, Event::Call))?;
    let epoch = SystemClock.now();
    let agent = Agent::new(
        &plan.name,
        &plan.instance,
        plan.cores,
        &plan.program,
        plan.orphan_timeout,
        epoch,
    );
    on_note(&AgentNote::Waiting);
    let driver = Driver {
        transport,
        plan,
        maker,
        agent,
        epoch,
        queue,
        run: String::new(),
        subscriptions: Vec::new(),
        part: None,
        seen: HashSet::new(),
        logged: 0,
        outbox: Outbox::new(),
        free_since: None,
        end: None,
    };
    driver.drive(&inbox, interrupt, on_note)
}

enum Event {
    Call(Delivered),
    Coordinator(Delivered),
    Prepared(Result<(), PartError>),
    Tick(PartTick),
    Finished(Result<Option<Box<AgentReport>>, PartError>),
}

/// The thread that makes a part.
struct PartThread {
    thread: JoinHandle<()>,
    interrupt: Arc<Interrupt>,
    /// Dropped if there will be no start.
    go: Option<SyncSender<PartStart>>,
    share: Share,
}

struct Driver<'a> {
    transport: &'a dyn FleetTransport,
    plan: &'a AgentSettings,
    maker: Arc<dyn PartMaker>,
    agent: Agent,
    epoch: Instant,
    queue: SyncSender<Event>,
    /// The run whose coordinator it listens to.
    run: String,
    subscriptions: Vec<Subscription>,
    part: Option<PartThread>,
    /// Runs that it took part in: no order is run twice.
    seen: HashSet<String>,
    logged: u64,
    /// For the log: the run of each message.
    outbox: Outbox<String>,
    /// Since when it is in no run.
    free_since: Option<Instant>,
    end: Option<AgentEnd>,
}

impl Driver<'_> {
    fn drive(
        mut self,
        inbox: &Receiver<Event>,
        interrupt: &Interrupt,
        on_note: &mut dyn FnMut(&AgentNote),
    ) -> Result<AgentEnd, TransportError> {
        let mut signals = 0;
        loop {
            let now = SystemClock.now();
            if interrupt.is_set() && signals == 0 {
                signals = 1;
                self.agent.interrupt(false);
            }
            if interrupt.is_urgent() && signals == 1 {
                signals = 2;
                self.agent.interrupt(true);
            }
            self.agent.wake(now);
            self.act(on_note);
            self.send_log();
            let interrupted = (signals > 0).then_some(AgentEnd::Interrupted);
            if let Some(end) = interrupted.or(self.end)
                && self.is_finished(signals > 1, now)
            {
                return Ok(end);
            }
            let patience = patience(self.agent.next_wake(), now);
            match inbox.recv_timeout(patience) {
                Ok(event) => self.handle_event(event, signals > 0, on_note),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
        }
    }

    /// Whether it can exit: it is in no run, and it has sent its figures or waited long enough for the broker.
    fn is_finished(&mut self, is_urgent: bool, now: Instant) -> bool {
        if !self.agent.is_idle() || self.part.is_some() {
            self.free_since = None;
            return false;
        }
        let since = *self.free_since.get_or_insert(now);
        self.outbox.is_empty() || is_urgent || now >= since + UNSENT_WAIT
    }

    fn handle_event(&mut self, event: Event, is_ending: bool, on_note: &mut dyn FnMut(&AgentNote)) {
        let now = SystemClock.now();
        match event {
            Event::Call(message) => {
                let wants_run = self.part.is_none() && self.end.is_none() && !is_ending;
                if let Ok(call) = decode::<ToAgents>(&message.payload)
                    && wants_run
                    && !self.seen.contains(&call.run)
                {
                    self.agent.called(&call.run, now);
                }
            }
            Event::Coordinator(message) => {
                if let Ok(envelope) = decode::<ToAgents>(&message.payload)
                    && envelope.run == self.agent.run()
                    && self.is_trusted(&envelope)
                {
                    self.agent.receive(envelope.body, now);
                }
            }
            Event::Prepared(outcome) => {
                // The agent may have left it meanwhile.
                let run = self.run.clone();
                match (&outcome, &self.part) {
                    (Err(error), _) => {
                        let problem = with_causes(&**error);
                        on_note(&AgentNote::Refused { run, problem });
                    }
                    (Ok(()), Some(part)) => {
                        let share = part.share;
                        on_note(&AgentNote::Ready { run, share });
                    }
                    (Ok(()), None) => {}
                }
                self.agent.prepared(outcome);
            }
            Event::Tick(tick) => {
                let PartTick {
                    at_us,
                    grace,
                    is_last,
                    figures,
                    checksum,
                } = tick;
                self.agent.second(at_us, grace, is_last, figures, &checksum);
            }
            Event::Finished(outcome) => {
                if let Some(part) = self.part.take() {
                    drop(part.thread.join());
                }
                if self.plan.once {
                    let end = match outcome {
                        Ok(Some(_)) => AgentEnd::Made,
                        _ => AgentEnd::Failed,
                    };
                    self.end = Some(end);
                }
                match outcome {
                    Ok(Some(report)) => self.agent.finished(Ok(report)),
                    Ok(None) => {}
                    Err(error) => self.agent.finished(Err(error)),
                }
            }
        }
    }

    /// Does what the agent wants.
    fn act(&mut self, on_note: &mut dyn FnMut(&AgentNote)) {
        loop {
            let outputs = self.agent.take_outputs();
            if outputs.is_empty() {
                return;
            }
            for output in outputs {
                match output {
                    AgentOutput::Join(run) => {
                        if let Err(error) = self.join(&run) {
                            let reason = error.to_string();
                            self.agent.not_wanted();
                            on_note(&AgentNote::Left { reason });
                        }
                    }
                    AgentOutput::Prepare { order, signature } => {
                        self.prepare(&order, signature.as_deref());
                    }
                    AgentOutput::Live(mut message) => {
                        if let ToCoordinator::Echo { at_us, .. } = &mut message {
                            *at_us = micros_since(self.epoch, SystemClock.now());
                        }
                        let names = RunNames::new(&self.run);
                        let payload = encode(&self.run, message);
                        publish(self.transport, &names.live_to_coordinator(), payload);
                    }
                    AgentOutput::Log(message) => self.log(message),
                    AgentOutput::Begin { at_us, data } => {
                        let run = self.run.clone();
                        on_note(&AgentNote::Started { run });
                        let at = self.epoch + Duration::from_micros(at_us);
                        let start = PartStart { at, data };
                        if let Some(go) = self.part.as_mut().and_then(|part| part.go.take()) {
                            // A part that has ended by itself needs no start.
                            go.send(start).ok();
                        }
                    }
                    AgentOutput::EndPart { is_urgent } => {
                        if let Some(part) = &mut self.part {
                            part.go = None;
                            part.interrupt.ask();
                            if is_urgent {
                                part.interrupt.ask();
                            }
                        }
                    }
                    AgentOutput::Leave { reason, took_part } => {
                        self.subscriptions.clear();
                        if took_part {
                            on_note(&AgentNote::Left { reason });
                            if self.plan.once {
                                self.end.get_or_insert(AgentEnd::Failed);
                            }
                        }
                        if self.end.is_none() {
                            on_note(&AgentNote::Waiting);
                        }
                    }
                }
            }
        }
    }

    fn join(&mut self, run: &str) -> Result<(), TransportError> {
        run.clone_into(&mut self.run);
        let names = RunNames::new(run);
        let queue = &self.queue;
        self.subscriptions = vec![
            self.transport.subscribe(
                &names.live_to_agents(),
                into_queue(queue, Event::Coordinator),
            )?,
            self.transport.follow_log(
                &names.log(),
                &names.log_to_agents(),
                into_queue(queue, Event::Coordinator),
            )?,
        ];
        Ok(())
    }

    fn log(&mut self, message: ToCoordinator) {
        self.logged += 1;
        // Ticks have numbers of their own; with the name no two agents of a run have one id.
        let id = format!("{}-{}", self.plan.name, self.logged);
        let names = RunNames::new(&self.run);
        let payload = encode(&self.run, message);
        let has_room = self.outbox.push(Unsent {
            about: self.run.clone(),
            subject: names.log_to_coordinator(),
            id,
            payload,
        });
        if !has_room {
            let reason = "the broker was away for too long";
            self.agent.unlogged(reason, SystemClock.now());
        }
        self.send_log();
    }

    /// Sends the messages that wait for logs, also those of runs that are over.
    fn send_log(&mut self) {
        let Err(refused) = self.outbox.send(self.transport) else {
            return;
        };
        let Refused { message, error } = *refused;
        if message.about == self.agent.run() {
            self.agent.unlogged(&error.to_string(), SystemClock.now());
        } else {
            // Its log is gone.
            self.outbox.forget(|run| *run == message.about);
        }
    }

    fn prepare(&mut self, text: &str, signature: Option<&str>) {
        let checked = self.check(text, signature);
        let (order, share) = match checked {
            Ok(Some(checked)) => checked,
            Ok(None) => {
                self.agent.not_wanted();
                return;
            }
            Err(error) => {
                self.refuse(error);
                return;
            }
        };
        self.seen.insert(order.run.clone());
        let files = match fetch_files(self.transport, &order) {
            Ok(files) => files,
            Err(error) => {
                self.refuse(error);
                return;
            }
        };
        let interrupt = Arc::new(Interrupt::default());
        let (go, wait) = sync_channel(1);
        let (queue, maker) = (self.queue.clone(), Arc::clone(&self.maker));
        let asked = Arc::clone(&interrupt);
        let work = move || {
            let outcome = make_part(&*maker, &order, files, share, asked, &wait, &queue);
            drop(queue.send(Event::Finished(outcome)));
        };
        match thread::Builder::new().name("part".to_owned()).spawn(work) {
            Ok(thread) => {
                self.part = Some(PartThread {
                    thread,
                    interrupt,
                    go: Some(go),
                    share,
                });
            }
            Err(error) => self.refuse(OrderError::Thread(error)),
        }
    }

    fn refuse(&self, error: OrderError) {
        // The queue is this thread's own: it has room, or nothing is heard of the agent any more.
        drop(self.queue.try_send(Event::Prepared(Err(error.into()))));
    }

    /// Whether a message is that of a coordinator whose key is trusted. An order says so by itself, with its reason.
    fn is_trusted(&self, envelope: &Envelope<ToAgents>) -> bool {
        match (&self.plan.trust, &envelope.body) {
            (OrderTrust::Everyone, _) | (_, ToAgents::Plan { .. }) => true,
            (OrderTrust::Keys(keys), _) => envelope.is_signed_by(keys),
        }
    }

    /// Checks who made the order, and whether it is for this agent; `None` if it does not name it.
    fn check(
        &self,
        text: &str,
        signature: Option<&str>,
    ) -> Result<Option<(RunOrder, Share)>, OrderError> {
        match (&self.plan.trust, signature) {
            (OrderTrust::Everyone, _) => {}
            (OrderTrust::Keys(_), None) => return Err(OrderError::NotSigned),
            (OrderTrust::Keys(keys), Some(signature)) => {
                if !keys.have_signed(text, signature) {
                    return Err(OrderError::UnknownKey);
                }
            }
        }
        let order: RunOrder = serde_json::from_str(text).map_err(OrderError::Unreadable)?;
        let Some(share) = order.shares.get(&self.plan.name).copied() else {
            return Ok(None);
        };
        // Another agent of this name makes the part.
        if order.instances.get(&self.plan.name) != Some(&self.plan.instance) {
            return Ok(None);
        }
        if order.run != self.agent.run() {
            return Err(OrderError::OtherRun(order.run));
        }
        if order.program != self.plan.program {
            return Err(OrderError::OtherVersion {
                coordinator: order.program,
                agent: self.plan.program.clone(),
            });
        }
        let made = SystemTime::UNIX_EPOCH + Duration::from_secs(order.made_at);
        let now = SystemClock.wall();
        let age = now
            .duration_since(made)
            .or_else(|_| made.duration_since(now));
        if age.is_ok_and(|age| age > MOST_AGE) {
            return Err(OrderError::Age(MOST_AGE));
        }
        let end = share.first.checked_add(share.workers);
        let is_share = share.workers > 0 && end.is_some_and(|end| end <= share.of);
        if !is_share {
            return Err(OrderError::NoPart);
        }
        Ok(Some((order, share)))
    }
}

/// Makes a part on the thread for it.
fn make_part(
    maker: &dyn PartMaker,
    order: &RunOrder,
    files: Vec<OrderFile>,
    share: Share,
    interrupt: Arc<Interrupt>,
    go: &Receiver<PartStart>,
    queue: &SyncSender<Event>,
) -> Result<Option<Box<AgentReport>>, PartError> {
    let prepared = match maker.prepare(order, files, share) {
        Ok(prepared) => prepared,
        Err(error) => {
            drop(queue.send(Event::Prepared(Err(error))));
            return Ok(None);
        }
    };
    let mut is_ready = false;
    let made = prepared.run(PartControl {
        interrupt,
        start: &mut || {
            is_ready = true;
            queue.send(Event::Prepared(Ok(()))).ok()?;
            go.recv().ok()
        },
        on_tick: &mut |tick| drop(queue.send(Event::Tick(tick))),
    });
    match made {
        Err(error) if !is_ready => {
            drop(queue.send(Event::Prepared(Err(error))));
            Ok(None)
        }
        made => made,
    }
}
