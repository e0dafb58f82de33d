//! The coordinator of a run, as a machine without clock, thread or transport: messages and time in, [`CoordinatorOutput`]s out.
//!
//! It gathers agents, gives each its share, compares clocks, sets one start for all, puts their ticks in order, notices agents
//! that are silent, and ends when each agent has ended or was lost. [`coordinate`](crate::coordinate) runs it over a transport.

mod member;

mod offers;

mod output;

use std::time::{Duration, Instant};

use self::member::{Done, Member};
pub use self::output::{CoordinatorOutput, Ending, MemberEnd, MemberSecond, NotStarted, Note};
use plimsoll_model::with_causes;

use crate::merge::UnionError;
use crate::message::{Checksum, SetUp, Shares, ToAgents, ToCoordinator};
use crate::probe::{ClockOffset, spread};

/// Time between two calls for agents.
const CALL_EVERY: Duration = Duration::from_millis(500);

/// Time between two signs of life.
pub(crate) const BEAT_EVERY: Duration = Duration::from_secs(1);

/// From the message of the start to the start itself.
const LEAD: Duration = Duration::from_millis(500);

/// A run that is stopping waits this long for an unreachable broker at most. By then agents have stopped, unless their
/// `--orphan-timeout` is longer.
const STOP_WAIT: Duration = Duration::from_secs(10);

/// Settings of a run of several agents.
#[derive(Debug, Clone)]
pub struct FleetPlan {
    /// Agents that are wanted; at least one.
    pub agents: usize,
    /// How long to wait for them.
    pub agent_wait: Duration,
    /// How long agents may take to make ready.
    pub ready_wait: Duration,
    /// An agent that is silent for this long is lost.
    pub agent_timeout: Duration,
    /// A run whose broker is unreachable for this long ends with the figures so far.
    pub broker_timeout: Duration,
    /// Whether the run goes on without an agent that was lost.
    pub goes_on_without: bool,
    /// Starts of agents may differ by this at most.
    pub most_spread: Duration,
    /// Connections of the run.
    pub connections: usize,
    /// Whether to end when the parts are known, before anything is sent to agents.
    pub is_dry: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum State {
    Gathering {
        since: Instant,
    },
    Preparing {
        since: Instant,
    },
    Probing {
        since: Instant,
    },
    /// Everything is ready, and something is done before the start.
    SettingUp,
    Running,
    Ended,
}

/// The broker is unreachable: no message of an agent or of the coordinator arrives.
#[derive(Debug, Clone, Copy)]
struct Away {
    since: Instant,
    /// The end of the wait for it.
    until: Instant,
}

/// The machine.
#[derive(Debug)]
pub struct Coordinator {
    plan: FleetPlan,
    /// From which its clock counts.
    epoch: Instant,
    state: State,
    members: Vec<Member>,
    next_call: Instant,
    next_beat: Instant,
    is_stopping: bool,
    away: Option<Away>,
    outputs: Vec<CoordinatorOutput>,
}

impl Coordinator {
    /// Begins to look for agents.
    pub fn new(plan: FleetPlan, now: Instant) -> Self {
        Self {
            plan,
            epoch: now,
            state: State::Gathering { since: now },
            members: Vec::new(),
            next_call: now,
            next_beat: now,
            is_stopping: false,
            away: None,
            outputs: Vec::new(),
        }
    }

    /// Goes on with a run that has started, in place of a coordinator that is gone. The log says the rest: all of its messages
    /// are to be received, from the first one on.
    ///
    /// - `parts`: of the agents, by their names.
    /// - `is_stopping`: whether the run was stopped already.
    pub fn attached(plan: FleetPlan, parts: &Shares, is_stopping: bool, now: Instant) -> Self {
        let members = parts.iter().map(|(agent, share)| {
            let mut member = Member::new(agent.clone(), String::new(), share.workers, now, now);
            member.share = *share;
            member
        });
        Self {
            state: State::Running,
            members: members.collect(),
            is_stopping,
            ..Self::new(plan, now)
        }
    }

    /// When [`wake`](Self::wake) is to be called.
    pub fn next_wake(&self) -> Option<Instant> {
        if let Some(away) = self.away.filter(|_| self.state != State::Ended) {
            return Some(self.next_beat.min(away.until));
        }
        let silent = self
            .expected()
            .map(|member| member.heard + self.plan.agent_timeout);
        match self.state {
            State::Ended => None,
            State::Gathering { since } => {
                let until = since + self.plan.agent_wait;
                Some(self.next_call.min(self.next_beat).min(until))
            }
            State::Preparing { since } => silent
                .chain([self.next_beat, since + self.plan.ready_wait])
                .min(),
            State::Probing { since } => {
                let probes = self.members.iter().filter_map(|it| it.probes.next_wake());
                let until = since + self.plan.ready_wait;
                silent.chain(probes).chain([self.next_beat, until]).min()
            }
            State::SettingUp => Some(self.next_beat),
            State::Running => {
                let patience = self.plan.agent_timeout;
                let waits = self
                    .members
                    .iter()
                    .filter_map(|it| it.waits_until(patience));
                silent.chain(waits).chain([self.next_beat]).min()
            }
        }
    }

    /// What is to be done, in order.
    pub fn take_outputs(&mut self) -> Vec<CoordinatorOutput> {
        std::mem::take(&mut self.outputs)
    }

    /// Does what is due at `now`.
    pub fn wake(&mut self, now: Instant) {
        if self.state != State::Ended && now >= self.next_beat {
            self.next_beat = now + BEAT_EVERY;
            self.outputs.push(CoordinatorOutput::Live(ToAgents::Beat));
        }
        if self.away.is_some() {
            self.wait_for_broker(now);
            return;
        }
        match self.state {
            State::Gathering { since } => {
                self.replace_silent(now);
                if !matches!(self.state, State::Gathering { .. }) {
                    return;
                }
                if now >= since + self.plan.agent_wait {
                    self.fail(NotStarted::TooFew {
                        have: self.members.len(),
                        wanted: self.plan.agents,
                        waited: self.plan.agent_wait,
                    });
                } else if now >= self.next_call {
                    self.next_call = now + CALL_EVERY;
                    self.outputs.push(CoordinatorOutput::Call);
                }
            }
            State::Preparing { since } | State::Probing { since } => {
                self.find_silent(now);
                if self.state == State::Ended {
                    return;
                }
                if now >= since + self.plan.ready_wait {
                    let waiting = self.members.iter().filter(|it| !it.is_prepared());
                    self.fail(NotStarted::NotReady {
                        agents: waiting.map(|it| it.agent.clone()).collect(),
                        waited: self.plan.ready_wait,
                    });
                } else if let State::Probing { .. } = self.state {
                    self.probe(now);
                }
            }
            State::Running => {
                self.give_up_ticks(now);
                self.find_silent(now);
            }
            State::SettingUp | State::Ended => {}
        }
    }

    /// Updates whether the broker is reachable. Only this decides how a run with an unreachable broker continues: it waits, loses
    /// no agent meanwhile, and keeps the figures however long the broker stays away.
    pub fn follow_broker(&mut self, is_there: bool, now: Instant) {
        if self.state == State::Ended {
            return;
        }
        match (self.away, is_there) {
            (None, false) => {
                let waits = self.plan.broker_timeout;
                let until = now + waits;
                self.away = Some(Away { since: now, until });
                let note = Note::BrokerAway { waits };
                self.outputs.push(CoordinatorOutput::Note(note));
            }
            (Some(away), true) => {
                self.away = None;
                let after = now.saturating_duration_since(away.since);
                self.excuse(after, now);
                // Agents wait for the next beat.
                self.next_beat = now;
                let note = Note::BrokerBack { after };
                self.outputs.push(CoordinatorOutput::Note(note));
            }
            (None, true) | (Some(_), false) => {}
        }
    }

    /// Takes a message of an agent.
    pub fn receive(&mut self, message: ToCoordinator, now: Instant) {
        if let ToCoordinator::Offer {
            agent,
            instance,
            cores,
            ..
        } = message
        {
            self.offer(agent, instance, cores, now);
            return;
        }
        let agent = message.agent();
        let Some(position) = self.members.iter().position(|it| it.agent == agent) else {
            return;
        };
        self.members[position].heard = now;
        if self.members[position].is_over() {
            return;
        }
        match message {
            ToCoordinator::Alive {
                problem: Some(problem),
                ..
            } => self.lose(position, problem),
            ToCoordinator::Offer { .. } | ToCoordinator::Alive { .. } => {}
            ToCoordinator::Ready { problem, agent } => self.ready(position, agent, problem, now),
            ToCoordinator::Echo { number, at_us, .. } => {
                self.members[position].probes.answer(number, at_us, now);
                if let State::Probing { .. } = self.state {
                    self.probe(now);
                }
            }
            ToCoordinator::Tick {
                number,
                at_us,
                grace,
                is_last,
                figures,
                ..
            } => {
                let second = MemberSecond {
                    member: position,
                    at_us,
                    grace,
                    is_last,
                    figures,
                };
                let in_order = self.members[position].take_tick(number, second);
                self.outputs
                    .extend(in_order.into_iter().map(CoordinatorOutput::Second));
                if self.members[position].complete() {
                    self.ended(position);
                }
            }
            ToCoordinator::Done {
                ticks,
                checksum,
                report,
                problem,
                ..
            } => {
                let done = Done {
                    at: now,
                    ticks,
                    checksum,
                    report,
                };
                let abort = done.report.as_ref().and_then(|report| report.abort.clone());
                // A repeated end is not reported again.
                let is_news = !self.members[position].has_ended();
                let broken_off = problem.clone().filter(|_| is_news);
                self.members[position].end(done, problem);
                if let Some(message) = abort {
                    self.stop(&message, false);
                }
                if let Some(reason) = broken_off {
                    self.note_loss(position, reason);
                }
                if self.members[position].is_over() {
                    self.ended(position);
                }
            }
        }
    }

    /// Notes what a merged tick adds up to.
    pub fn merged(&mut self, member: usize, checksum: &Checksum) {
        self.members[member].merged.add(checksum);
    }

    /// Takes an agent for lost whose messages cannot be used.
    pub fn reject(&mut self, member: usize, reason: String) {
        if self.members[member].is_over() {
            self.members[member].problem.get_or_insert(reason);
        } else {
            self.lose(member, reason);
        }
    }

    /// How each agent ended; valid once all outputs up to the end are done.
    pub fn member_ends(&self) -> Vec<MemberEnd> {
        self.members.iter().map(Member::ending).collect()
    }

    /// What comes before the start is done, or has failed; its result goes to all agents.
    pub fn set_up(&mut self, outcome: Result<SetUp, UnionError>, now: Instant) {
        if self.state != State::SettingUp {
            return;
        }
        // They were not listened to meanwhile.
        self.excuse(Duration::ZERO, now);
        match outcome {
            Ok(set_up) => self.start(set_up, now),
            Err(error) => self.fail(NotStarted::SetUp(with_causes(&error))),
        }
    }

    /// Ends the run. Agents that have started end what they have begun, or give it up if it is urgent.
    pub fn stop(&mut self, reason: &str, is_urgent: bool) {
        match self.state {
            State::Ended => {}
            State::Running if is_urgent && self.away.is_some() => {
                self.abandon_without_broker("the broker was away when the run was ended");
            }
            State::Running => {
                if is_urgent || !self.is_stopping {
                    self.is_stopping = true;
                    self.outputs.push(CoordinatorOutput::Log(ToAgents::Stop {
                        reason: reason.to_owned(),
                        is_urgent,
                    }));
                }
            }
            _ => self.fail(NotStarted::Interrupted),
        }
    }

    /// Waits for no agent any longer.
    pub fn abandon(&mut self, reason: &str) {
        if self.state != State::Running {
            self.stop(reason, true);
            return;
        }
        for position in 0..self.members.len() {
            if !self.members[position].is_over() {
                self.members[position].lose(reason.to_owned());
                self.outputs.push(CoordinatorOutput::GiveUp(position));
            }
        }
        self.end_if_all_did();
    }

    /// No message of an agent could arrive until now.
    ///
    /// - `away`: how long messages of the coordinator did not arrive either.
    fn excuse(&mut self, away: Duration, now: Instant) {
        for member in &mut self.members {
            member.excuse(now);
        }
        if let State::Gathering { since } | State::Preparing { since } | State::Probing { since } =
            &mut self.state
        {
            *since += away;
        }
    }

    /// Waits for an unreachable broker until the timeout.
    fn wait_for_broker(&mut self, now: Instant) {
        let Some(away) = &mut self.away else {
            return;
        };
        if self.is_stopping {
            away.until = away.until.min(now + STOP_WAIT);
        }
        if now < away.until {
            return;
        }
        let waited = away.until.saturating_duration_since(away.since);
        match self.state {
            State::Ended => {}
            State::Running => {
                // A stop in between shortens the wait to any number.
                let tenths = waited.as_millis() / 100;
                let waited = Duration::from_millis(u64::try_from(tenths * 100).unwrap_or(u64::MAX));
                self.abandon_without_broker(&format!("the broker was away for {waited:?}"));
            }
            _ => self.fail(NotStarted::BrokerAway { waited }),
        }
    }

    fn abandon_without_broker(&mut self, reason: &str) {
        self.outputs
            .push(CoordinatorOutput::Note(Note::Abandoned(reason.to_owned())));
        self.abandon(reason);
    }

    /// Agents that something is still expected of.
    fn expected(&self) -> impl Iterator<Item = &Member> {
        self.members.iter().filter(|member| !member.is_over())
    }

    fn ready(&mut self, position: usize, agent: String, problem: Option<String>, now: Instant) {
        let State::Preparing { .. } = self.state else {
            return;
        };
        if let Some(problem) = problem {
            self.fail(NotStarted::Refused { agent, problem });
            return;
        }
        self.members[position].is_ready = true;
        if self.members.iter().all(|member| member.is_ready) {
            self.state = State::Probing { since: now };
            self.probe(now);
        }
    }

    /// Sends the probes that are due, and sets the start when all were answered.
    fn probe(&mut self, now: Instant) {
        for member in &mut self.members {
            if let Some(number) = member.probes.next(now) {
                let agent = member.agent.clone();
                let probe = ToAgents::Probe { agent, number };
                self.outputs.push(CoordinatorOutput::Live(probe));
            }
        }
        if !self.members.iter().all(|it| it.probes.is_complete()) {
            return;
        }
        let spread = spread(&self.offsets());
        if spread > self.plan.most_spread {
            self.fail(NotStarted::Spread {
                spread,
                most: self.plan.most_spread,
            });
            return;
        }
        self.state = State::SettingUp;
        self.outputs.push(CoordinatorOutput::SetUp);
    }

    fn offsets(&self) -> Vec<ClockOffset> {
        let offsets = self.members.iter().filter_map(|it| it.probes.offset());
        offsets.collect()
    }

    fn start(&mut self, set_up: SetUp, now: Instant) {
        let offsets = self.offsets();
        let spread = spread(&offsets);
        let start = now.saturating_duration_since(self.epoch) + LEAD;
        let start = i64::try_from(start.as_micros()).unwrap_or(i64::MAX);
        let at_us = self.members.iter().zip(&offsets).map(|(member, offset)| {
            let at = start.saturating_add(offset.ahead_us);
            (member.agent.clone(), u64::try_from(at).unwrap_or_default())
        });
        let at_us = at_us.collect();
        self.outputs.push(CoordinatorOutput::Note(Note::Starting {
            agents: self.members.len(),
            spread,
            start: now + LEAD,
        }));
        self.outputs.push(CoordinatorOutput::Log(ToAgents::Start {
            at_us,
            // The loop, which has a clock, sets it.
            unix_us: 0,
            set_up,
        }));
        self.state = State::Running;
    }

    /// An agent has ended, and all of its ticks were taken.
    fn ended(&mut self, position: usize) {
        if !self.members[position].has_last {
            self.outputs.push(CoordinatorOutput::GiveUp(position));
        }
        // Outputs are done in order: what is merged of it is known when the run ends.
        self.end_if_all_did();
    }

    /// Gives up ticks that were announced and have not arrived.
    fn give_up_ticks(&mut self, now: Instant) {
        let patience = self.plan.agent_timeout;
        for position in 0..self.members.len() {
            let member = &mut self.members[position];
            if member
                .waits_until(patience)
                .is_some_and(|until| now >= until)
            {
                let rest = member.give_up_ticks();
                self.outputs
                    .extend(rest.into_iter().map(CoordinatorOutput::Second));
                self.ended(position);
            }
        }
    }

    fn find_silent(&mut self, now: Instant) {
        let timeout = self.plan.agent_timeout;
        for position in 0..self.members.len() {
            let member = &self.members[position];
            if self.state != State::Ended && !member.is_over() && now >= member.heard + timeout {
                self.lose(position, format!("nothing was heard of it for {timeout:?}"));
            }
        }
    }

    fn lose(&mut self, position: usize, reason: String) {
        let member = &mut self.members[position];
        let agent = member.agent.clone();
        if self.state != State::Running {
            self.fail(NotStarted::Lost { agent, reason });
            return;
        }
        member.lose(reason.clone());
        self.outputs.push(CoordinatorOutput::GiveUp(position));
        self.note_loss(position, reason);
        self.end_if_all_did();
    }

    /// Reports an incomplete agent, and stops the others unless they are to continue.
    fn note_loss(&mut self, position: usize, reason: String) {
        let agent = self.members[position].agent.clone();
        let goes_on = self.plan.goes_on_without;
        let mut members = self.members.iter().enumerate();
        let has_others = members.any(|(other, member)| other != position && !member.is_over());
        self.outputs.push(CoordinatorOutput::Note(Note::Lost {
            agent: agent.clone(),
            reason,
            goes_on: goes_on && has_others,
        }));
        if !goes_on {
            self.stop(&format!("agent {agent} was lost"), false);
        }
    }

    fn end_if_all_did(&mut self) {
        if self.state != State::Running || self.expected().next().is_some() {
            return;
        }
        self.state = State::Ended;
        self.outputs.push(CoordinatorOutput::Live(ToAgents::Leave));
        self.outputs.push(CoordinatorOutput::End(Ending::Ended));
    }

    fn fail(&mut self, reason: NotStarted) {
        self.state = State::Ended;
        // Those that prepare read it in the log, if they miss it now.
        self.outputs.push(CoordinatorOutput::Log(ToAgents::Stop {
            reason: reason.to_string(),
            is_urgent: true,
        }));
        self.outputs.push(CoordinatorOutput::Live(ToAgents::Leave));
        self.outputs
            .push(CoordinatorOutput::End(Ending::NotStarted(reason)));
    }
}
