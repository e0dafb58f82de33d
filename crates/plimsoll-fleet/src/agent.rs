//! An agent as a machine without clock, thread or transport: messages and time in, [`AgentOutput`]s out.
//!
//! It offers itself when a coordinator calls, makes its part ready when the order names it, answers probes, starts at the agreed
//! moment, numbers its ticks, and leaves when the coordinator has all of them, or is silent for too long.
//! [`serve`](crate::serve) runs it over a transport.

use std::time::{Duration, Instant};

use plimsoll_model::with_causes;

use crate::coordinator::BEAT_EVERY;
use crate::message::{AgentReport, Checksum, Counted, ToAgents, ToCoordinator};
use crate::part::PartError;

/// Why it leaves a run.
const SIGNAL: &str = "ended by a signal";

/// What is to be done.
#[derive(Debug, Clone, PartialEq)]
pub enum AgentOutput {
    /// Listen to the coordinator of this run.
    Join(String),
    /// Make the part of this order ready.
    Prepare {
        /// As it was signed.
        order: String,
        /// Its signature.
        signature: Option<String>,
    },
    /// Send to the coordinator.
    Live(ToCoordinator),
    /// Add to the log.
    Log(ToCoordinator),
    /// Start.
    Begin {
        /// At this moment of the agent's clock, in microseconds.
        at_us: u64,
        /// What came of the work before the start.
        data: Option<String>,
    },
    /// End the part: what is under way may end, or is given up if it is urgent. One that has not begun is not begun.
    EndPart {
        /// Whether not to wait.
        is_urgent: bool,
    },
    /// Stop listening to the coordinator of the run.
    Leave {
        /// Why.
        reason: String,
        /// Whether the agent took part.
        took_part: bool,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Idle,
    Offered,
    Preparing,
    Ready,
    Running,
    /// Its part is over, in order or not.
    Done,
}

/// The machine.
#[derive(Debug)]
pub struct Agent {
    name: String,
    instance: String,
    cores: usize,
    program: String,
    orphan_timeout: Duration,
    state: State,
    run: String,
    /// When the coordinator was heard last.
    heard: Instant,
    next_alive: Instant,
    ticks: u64,
    checksum: Checksum,
    problem: Option<String>,
    /// Whether a signal has ended it.
    is_ending: bool,
    /// Why a message could not be added to the log.
    unlogged: Option<String>,
    outputs: Vec<AgentOutput>,
}

impl Agent {
    /// - `name`: unlike that of any other agent.
    /// - `instance`: unlike that of any other process.
    /// - `program`: its version.
    pub fn new(
        name: &str,
        instance: &str,
        cores: usize,
        program: &str,
        orphan_timeout: Duration,
        now: Instant,
    ) -> Self {
        Self {
            name: name.to_owned(),
            instance: instance.to_owned(),
            cores,
            program: program.to_owned(),
            orphan_timeout,
            state: State::Idle,
            run: String::new(),
            heard: now,
            next_alive: now,
            ticks: 0,
            checksum: Checksum::default(),
            problem: None,
            is_ending: false,
            unlogged: None,
            outputs: Vec::new(),
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The run that it is in; empty without one.
    pub fn run(&self) -> &str {
        &self.run
    }

    /// Whether it is in no run.
    pub fn is_idle(&self) -> bool {
        self.state == State::Idle
    }

    /// When [`wake`](Self::wake) is to be called.
    pub fn next_wake(&self) -> Option<Instant> {
        let orphaned = self.heard + self.orphan_timeout;
        match self.state {
            State::Idle => None,
            State::Offered => Some(orphaned),
            // What was to be done without a coordinator is done.
            State::Running | State::Preparing if self.problem.is_some() => Some(self.next_alive),
            _ => Some(orphaned.min(self.next_alive)),
        }
    }

    /// What is to be done, in order.
    pub fn take_outputs(&mut self) -> Vec<AgentOutput> {
        std::mem::take(&mut self.outputs)
    }

    /// Does what is due at `now`.
    pub fn wake(&mut self, now: Instant) {
        if matches!(self.state, State::Idle) {
            return;
        }
        if self.state != State::Offered && now >= self.next_alive {
            self.next_alive = now + BEAT_EVERY;
            let agent = self.name.clone();
            let problem = self.unlogged.clone();
            self.live(ToCoordinator::Alive { agent, problem });
        }
        if now >= self.heard + self.orphan_timeout {
            self.orphaned();
        }
    }

    /// A coordinator calls for agents.
    pub fn called(&mut self, run: &str, now: Instant) {
        match self.state {
            State::Idle => {
                self.state = State::Offered;
                run.clone_into(&mut self.run);
                self.heard = now;
                self.ticks = 0;
                self.checksum = Checksum::default();
                self.problem = None;
                self.unlogged = None;
                self.outputs.push(AgentOutput::Join(self.run.clone()));
                self.offer();
            }
            // The offer may have been lost.
            State::Offered if self.run == run => {
                self.heard = now;
                self.offer();
            }
            _ => {}
        }
    }

    /// Takes a message of the coordinator of its run.
    pub fn receive(&mut self, message: ToAgents, now: Instant) {
        if self.state == State::Idle {
            return;
        }
        match message {
            ToAgents::Call => {}
            ToAgents::Beat => self.heard = now,
            ToAgents::Plan { order, signature } => {
                self.heard = now;
                if self.state == State::Offered {
                    self.state = State::Preparing;
                    self.next_alive = now;
                    self.outputs.push(AgentOutput::Prepare { order, signature });
                }
            }
            ToAgents::Probe { agent, number } => {
                if agent == self.name {
                    self.heard = now;
                    // The loop, which has a clock, sets the time.
                    let at_us = 0;
                    self.live(ToCoordinator::Echo {
                        agent,
                        number,
                        at_us,
                    });
                }
            }
            ToAgents::Start { at_us, set_up, .. } => {
                if let (State::Ready, Some(at)) = (self.state, at_us.get(&self.name)) {
                    self.heard = now;
                    self.state = State::Running;
                    let (at_us, data) = (*at, set_up.data);
                    self.outputs.push(AgentOutput::Begin { at_us, data });
                }
            }
            ToAgents::Stop { reason, is_urgent } => match self.state {
                State::Running => self.outputs.push(AgentOutput::EndPart { is_urgent }),
                State::Preparing | State::Ready => {
                    self.outputs.push(AgentOutput::EndPart { is_urgent: true });
                    self.leave(&reason);
                }
                _ => self.leave(&reason),
            },
            ToAgents::Leave => match self.state {
                State::Running | State::Preparing | State::Ready => {
                    self.outputs.push(AgentOutput::EndPart { is_urgent: true });
                    self.leave("the coordinator has ended the run");
                }
                _ => self.leave("the run is over"),
            },
        }
    }

    /// The order does not name this agent.
    pub fn not_wanted(&mut self) {
        self.state = State::Offered;
        self.leave("the run has enough agents");
    }

    /// The part is ready, or cannot be made.
    pub fn prepared(&mut self, outcome: Result<(), PartError>) {
        if self.state != State::Preparing {
            return;
        }
        let problem = outcome.err().map(|error| with_causes(&*error));
        self.state = if problem.is_some() {
            State::Done
        } else {
            State::Ready
        };
        let agent = self.name.clone();
        let ready = ToCoordinator::Ready { agent, problem };
        self.outputs.push(AgentOutput::Log(ready));
    }

    /// The part has counted something.
    pub fn second(
        &mut self,
        at_us: u64,
        grace: bool,
        is_last: bool,
        figures: Counted,
        checksum: &Checksum,
    ) {
        if self.state != State::Running {
            return;
        }
        self.checksum.add(checksum);
        let tick = ToCoordinator::Tick {
            agent: self.name.clone(),
            number: self.ticks,
            at_us,
            grace,
            is_last,
            figures,
        };
        self.ticks += 1;
        self.outputs.push(AgentOutput::Log(tick));
    }

    /// The part is over.
    pub fn finished(&mut self, outcome: Result<Box<AgentReport>, PartError>) {
        if self.state != State::Running {
            return;
        }
        self.state = State::Done;
        let (report, failed) = match outcome {
            Ok(report) => (Some(report), None),
            Err(error) => (None, Some(with_causes(&*error))),
        };
        let done = ToCoordinator::Done {
            agent: self.name.clone(),
            ticks: self.ticks,
            checksum: self.checksum,
            report,
            problem: failed.or_else(|| self.problem.take()),
        };
        self.outputs.push(AgentOutput::Log(done));
        if self.is_ending {
            // The log has all of it: the coordinator needs it no longer.
            self.leave(SIGNAL);
        }
    }

    /// A message could not be added to the log, so the figures have a gap: the part ends, and signs of life say why.
    pub fn unlogged(&mut self, reason: &str, now: Instant) {
        if self.state == State::Idle || self.unlogged.is_some() {
            return;
        }
        self.unlogged = Some(reason.to_owned());
        self.next_alive = now;
        if self.state == State::Running {
            self.outputs.push(AgentOutput::EndPart { is_urgent: false });
        }
    }

    /// The agent is to end: it leaves its run.
    pub fn interrupt(&mut self, is_urgent: bool) {
        self.is_ending = true;
        match self.state {
            State::Running => {
                let problem = format!("it was {SIGNAL}");
                self.problem.get_or_insert(problem);
                self.outputs.push(AgentOutput::EndPart { is_urgent });
            }
            State::Preparing | State::Ready => {
                self.outputs.push(AgentOutput::EndPart { is_urgent: true });
                self.leave(SIGNAL);
            }
            State::Idle => {}
            State::Offered | State::Done => self.leave(SIGNAL),
        }
    }

    fn orphaned(&mut self) {
        let timeout = self.orphan_timeout;
        let reason = format!("nothing was heard of the coordinator for {timeout:?}");
        match self.state {
            State::Running => {
                if self.problem.is_none() {
                    self.problem = Some(reason);
                    self.outputs.push(AgentOutput::EndPart { is_urgent: false });
                }
            }
            State::Preparing | State::Ready => {
                self.outputs.push(AgentOutput::EndPart { is_urgent: true });
                self.leave(&reason);
            }
            _ => self.leave(&reason),
        }
    }

    fn offer(&mut self) {
        let offer = ToCoordinator::Offer {
            agent: self.name.clone(),
            instance: self.instance.clone(),
            cores: self.cores,
            program: self.program.clone(),
        };
        self.live(offer);
    }

    fn live(&mut self, message: ToCoordinator) {
        self.outputs.push(AgentOutput::Live(message));
    }

    fn leave(&mut self, reason: &str) {
        let took_part = self.state != State::Offered;
        self.state = State::Idle;
        self.run.clear();
        self.outputs.push(AgentOutput::Leave {
            reason: reason.to_owned(),
            took_part,
        });
    }
}
