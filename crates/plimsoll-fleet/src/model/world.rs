//! A network, agents and a coordinator with one virtual clock.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use plimsoll_model::Clock as _;
use plimsoll_wire::SystemClock;

use super::{figures, one_request};
use crate::agent::{Agent, AgentOutput};
use crate::coordinator::{Coordinator, CoordinatorOutput, Ending, FleetPlan, MemberEnd, Note};
use crate::message::{AgentReport, Checksum, Instances, SetUp, Shares, ToAgents, ToCoordinator};

/// A run that takes longer than this never ends.
const MOST: Duration = Duration::from_hours(1);

/// What goes wrong.
#[derive(Debug, Clone, Copy)]
pub(super) enum Fault {
    Kill {
        agent: usize,
        at: Duration,
    },
    KillCoordinator {
        at: Duration,
    },
    /// Another coordinator goes on with the run.
    Attach {
        at: Duration,
    },
    Stop {
        at: Duration,
        is_urgent: bool,
    },
    /// A signal ends an agent.
    Interrupt {
        agent: usize,
        at: Duration,
    },
    /// The broker carries nothing from then on.
    CutBroker {
        at: Duration,
    },
    /// It carries messages again; what is for the log has waited.
    ConnectBroker {
        at: Duration,
    },
    LoseTick {
        agent: usize,
        number: u64,
    },
    /// The log takes no more.
    FillLog {
        at: Duration,
    },
}

#[derive(Debug)]
pub(super) struct SimulatedAgent {
    pub(super) machine: Agent,
    pub(super) arrives: Duration,
    pub(super) prepares: Duration,
    pub(super) refuses: Option<String>,
    pub(super) clock_ahead: Duration,
    pub(super) tick_every: Duration,
    /// When its part began, since the start of the world.
    pub(super) started: Option<Duration>,
    pub(super) ticks: u64,
    most_ticks: u64,
    is_dead: bool,
    hears_run: bool,
}

#[derive(Debug)]
enum Event {
    Call { agent: usize },
    ToAgent { agent: usize, message: ToAgents },
    ToCoordinator(ToCoordinator),
    SetUp,
    Prepared { agent: usize },
    Tick { agent: usize },
    Fault(Fault),
}

#[derive(Debug)]
pub(super) struct World {
    epoch: Instant,
    now: Instant,
    events: BTreeMap<(Instant, u64), Event>,
    next: u64,
    coordinator: Option<Coordinator>,
    /// What the coordinator put into the log, for agents that read it later.
    log: Vec<ToAgents>,
    /// What agents put into it.
    log_of_agents: Vec<ToCoordinator>,
    log_is_full: bool,
    is_cut: bool,
    /// What waits for the broker, for the log.
    waiting: (Vec<ToAgents>, Vec<ToCoordinator>),
    plan: FleetPlan,
    shares: Shares,
    pub(super) agents: Vec<SimulatedAgent>,
    pub(super) latency: (Duration, Duration),
    /// How long the work before the start takes.
    pub(super) set_up: Duration,
    /// Messages of 100 that come twice, and live ones that do not come.
    pub(super) repeats: u32,
    pub(super) loses_live: u32,
    lost_ticks: Vec<(usize, u64)>,
    pub(super) notes: Vec<Note>,
    pub(super) ending: Option<Ending>,
    random: fastrand::Rng,
}

impl World {
    /// - `ticks`: of each agent's part.
    pub(super) fn new(plan: FleetPlan, agents: usize, ticks: u64) -> Self {
        let epoch = SystemClock.now();
        let agents = (0..agents).map(|number| SimulatedAgent {
            machine: Agent::new(
                &format!("agent-{number}"),
                &format!("process-{number}"),
                2,
                "1",
                Duration::from_secs(10),
                epoch,
            ),
            arrives: Duration::ZERO,
            prepares: Duration::from_millis(300),
            refuses: None,
            clock_ahead: Duration::from_secs(number as u64),
            tick_every: Duration::from_secs(1),
            started: None,
            ticks: 0,
            most_ticks: ticks,
            is_dead: false,
            hears_run: false,
        });
        Self {
            epoch,
            now: epoch,
            events: BTreeMap::new(),
            next: 0,
            coordinator: Some(Coordinator::new(plan.clone(), epoch)),
            log: Vec::new(),
            log_of_agents: Vec::new(),
            log_is_full: false,
            is_cut: false,
            waiting: (Vec::new(), Vec::new()),
            plan,
            shares: Shares::new(),
            agents: agents.collect(),
            latency: (Duration::from_millis(1), Duration::from_millis(8)),
            set_up: Duration::from_millis(100),
            repeats: 0,
            loses_live: 0,
            lost_ticks: Vec::new(),
            notes: Vec::new(),
            ending: None,
            random: fastrand::Rng::with_seed(7),
        }
    }

    pub(super) fn seed(&mut self, seed: u64) {
        self.random = fastrand::Rng::with_seed(seed);
    }

    pub(super) fn fault(&mut self, fault: Fault) {
        match fault {
            Fault::Kill { at, .. }
            | Fault::KillCoordinator { at }
            | Fault::Attach { at }
            | Fault::FillLog { at }
            | Fault::Interrupt { at, .. }
            | Fault::CutBroker { at }
            | Fault::ConnectBroker { at }
            | Fault::Stop { at, .. } => {
                self.schedule(self.epoch + at, Event::Fault(fault));
            }
            Fault::LoseTick { agent, number } => self.lost_ticks.push((agent, number)),
        }
    }

    /// Gives an agent the name of another.
    pub(super) fn rename(&mut self, agent: usize, name: &str) {
        let machine = Agent::new(
            name,
            &format!("process-{agent}"),
            2,
            "1",
            Duration::from_secs(10),
            self.epoch,
        );
        self.agents[agent].machine = machine;
    }

    /// Until the coordinator has ended.
    pub(super) fn run(&mut self) {
        let end = self.epoch + MOST;
        while self.ending.is_none() {
            assert!(self.step(end), "the run never ends: {:?}", self.coordinator);
        }
        self.settle();
    }

    /// Until the agents have heard the end.
    pub(super) fn settle(&mut self) {
        self.run_until(self.now - self.epoch + Duration::from_secs(15));
    }

    pub(super) fn run_until(&mut self, at: Duration) {
        while self.step(self.epoch + at) {}
        self.now = self.epoch + at;
    }

    pub(super) fn member_ends(&self) -> Vec<MemberEnd> {
        let coordinator = self.coordinator.as_ref();
        coordinator
            .map(Coordinator::member_ends)
            .unwrap_or_default()
    }

    fn schedule(&mut self, at: Instant, event: Event) {
        self.next += 1;
        self.events.insert((at, self.next), event);
    }

    /// One event or wake-up before `end`; false if there is none.
    fn step(&mut self, end: Instant) -> bool {
        let wakes = self.agents.iter().filter(|agent| !agent.is_dead);
        let wakes = wakes.filter_map(|agent| agent.machine.next_wake());
        let own = self.coordinator.iter().filter_map(Coordinator::next_wake);
        let wake = wakes.chain(own).min();
        let event = self.events.first_key_value().map(|((at, _), _)| *at);
        let Some(at) = wake.into_iter().chain(event).min().filter(|at| *at <= end) else {
            return false;
        };
        self.now = self.now.max(at);
        if event.is_some_and(|event| event <= at) {
            let (_, event) = self.events.pop_first().expect("there is one");
            self.happen(event);
        }
        let now = self.now;
        if let Some(coordinator) = &mut self.coordinator {
            coordinator.follow_broker(!self.is_cut, now);
            coordinator.wake(now);
        }
        for agent in &mut self.agents {
            if !agent.is_dead {
                agent.machine.wake(now);
            }
        }
        self.act();
        true
    }

    fn happen(&mut self, event: Event) {
        let now = self.now;
        match event {
            Event::Call { agent } => {
                let agent = &mut self.agents[agent];
                if !agent.is_dead && now >= self.epoch + agent.arrives {
                    agent.machine.called("run", now);
                }
            }
            Event::ToAgent { agent, message } => {
                if !self.agents[agent].is_dead {
                    self.agents[agent].machine.receive(message, now);
                }
            }
            Event::ToCoordinator(message) => {
                if let Some(coordinator) = &mut self.coordinator {
                    coordinator.receive(message, now);
                }
            }
            Event::SetUp => {
                if let Some(coordinator) = &mut self.coordinator {
                    let set_up = SetUp {
                        data: Some("data".to_owned()),
                        ..SetUp::default()
                    };
                    coordinator.set_up(Ok(set_up), now);
                }
            }
            Event::Prepared { agent } => {
                let agent = &mut self.agents[agent];
                if !agent.is_dead {
                    let refuses = agent.refuses.clone();
                    let outcome = refuses.map_or(Ok(()), |reason| Err(reason.into()));
                    agent.machine.prepared(outcome);
                }
            }
            Event::Tick { agent } => self.tick(agent),
            Event::Fault(Fault::Kill { agent, .. }) => self.agents[agent].is_dead = true,
            Event::Fault(Fault::KillCoordinator { .. }) => self.coordinator = None,
            Event::Fault(Fault::Attach { .. }) => {
                let plan = self.plan.clone();
                let mut attached = Coordinator::attached(plan, &self.shares, false, now);
                for message in self.log_of_agents.clone() {
                    attached.receive(message, now);
                }
                self.coordinator = Some(attached);
            }
            Event::Fault(Fault::Stop { is_urgent, .. }) => {
                if let Some(coordinator) = &mut self.coordinator {
                    coordinator.stop("interrupted", is_urgent);
                }
            }
            Event::Fault(Fault::Interrupt { agent, .. }) => {
                self.agents[agent].machine.interrupt(false);
            }
            Event::Fault(Fault::CutBroker { .. }) => self.is_cut = true,
            Event::Fault(Fault::ConnectBroker { .. }) => {
                self.is_cut = false;
                let (of_coordinator, of_agents) = std::mem::take(&mut self.waiting);
                for message in of_coordinator {
                    self.log(&message);
                }
                for message in of_agents {
                    self.log_of_agent(message);
                }
            }
            Event::Fault(Fault::FillLog { .. }) => self.log_is_full = true,
            Event::Fault(Fault::LoseTick { .. }) => {}
        }
    }

    fn tick(&mut self, position: usize) {
        let agent = &mut self.agents[position];
        if agent.is_dead || agent.ticks >= agent.most_ticks {
            return;
        }
        agent.ticks += 1;
        let is_last = agent.ticks == agent.most_ticks;
        let at_us = agent.ticks * 1_000_000;
        let checksum = Checksum::from_interval(&one_request());
        agent
            .machine
            .second(at_us, false, is_last, figures(), &checksum);
        if is_last {
            agent.machine.finished(Ok(Box::<AgentReport>::default()));
        } else {
            let at = self.now + agent.tick_every;
            self.schedule(at, Event::Tick { agent: position });
        }
    }

    fn delay(&mut self) -> Duration {
        let (least, most) = self.latency;
        let range = u64::try_from(most.abs_diff(least).as_micros()).unwrap();
        least + Duration::from_micros(self.random.u64(0..=range))
    }

    fn send(&mut self, is_live: bool, event: impl Fn() -> Event) {
        if self.is_cut || is_live && self.random.u32(0..100) < self.loses_live {
            return;
        }
        let times = 1 + u32::from(self.random.u32(0..100) < self.repeats);
        for _ in 0..times {
            let at = self.now + self.delay();
            self.schedule(at, event());
        }
    }

    fn act(&mut self) {
        let outputs = self.coordinator.as_mut().map(Coordinator::take_outputs);
        for output in outputs.unwrap_or_default() {
            self.act_of_coordinator(output);
        }
        for position in 0..self.agents.len() {
            if self.agents[position].is_dead {
                continue;
            }
            for output in self.agents[position].machine.take_outputs() {
                self.act_of_agent(position, output);
            }
        }
    }

    fn act_of_coordinator(&mut self, output: CoordinatorOutput) {
        match output {
            CoordinatorOutput::Call => {
                for agent in 0..self.agents.len() {
                    self.send(true, || Event::Call { agent });
                }
            }
            CoordinatorOutput::Order { shares, instances } => {
                self.shares = shares;
                let order = serde_json::to_string(&instances).unwrap();
                self.log(&ToAgents::Plan {
                    order,
                    signature: None,
                });
            }
            CoordinatorOutput::SetUp => {
                let at = self.now + self.set_up;
                self.schedule(at, Event::SetUp);
            }
            CoordinatorOutput::Live(message) => {
                // The last word is in the log's end, too, for those that follow it.
                let is_lossy = message != ToAgents::Leave;
                for agent in 0..self.agents.len() {
                    if self.agents[agent].hears_run {
                        self.send(is_lossy, || Event::ToAgent {
                            agent,
                            message: message.clone(),
                        });
                    }
                }
            }
            CoordinatorOutput::Log(message) => self.log(&message),
            CoordinatorOutput::Second(second) => {
                let coordinator = self.coordinator.as_mut().expect("it has said so");
                coordinator.merged(second.member, &Checksum::from_interval(&one_request()));
            }
            CoordinatorOutput::GiveUp(_) => {}
            CoordinatorOutput::Note(note) => self.notes.push(note),
            CoordinatorOutput::End(ending) => self.ending = Some(ending),
        }
    }

    fn log(&mut self, message: &ToAgents) {
        if self.is_cut {
            self.waiting.0.push(message.clone());
            return;
        }
        self.log.push(message.clone());
        for agent in 0..self.agents.len() {
            if self.agents[agent].hears_run {
                // A log is read in its order, so what it holds comes without detours.
                let at = self.now + self.latency.0;
                let message = message.clone();
                self.schedule(at, Event::ToAgent { agent, message });
            }
        }
    }

    fn log_of_agent(&mut self, message: ToCoordinator) {
        if self.is_cut {
            self.waiting.1.push(message);
            return;
        }
        self.log_of_agents.push(message.clone());
        self.send(false, || Event::ToCoordinator(message.clone()));
    }

    fn act_of_agent(&mut self, position: usize, output: AgentOutput) {
        match output {
            AgentOutput::Join(_) => {
                self.agents[position].hears_run = true;
                for message in self.log.clone() {
                    let at = self.now + self.latency.0;
                    let agent = position;
                    self.schedule(at, Event::ToAgent { agent, message });
                }
            }
            AgentOutput::Prepare { order, .. } => {
                let agent = &mut self.agents[position];
                let instances: Instances = serde_json::from_str(&order).unwrap();
                let chosen = instances.get(agent.machine.name());
                if chosen == Some(&format!("process-{position}")) {
                    let at = self.now + agent.prepares;
                    self.schedule(at, Event::Prepared { agent: position });
                } else {
                    agent.machine.not_wanted();
                }
            }
            AgentOutput::Live(mut message) => {
                if let ToCoordinator::Echo { at_us, .. } = &mut message {
                    let at = self.now - self.epoch + self.agents[position].clock_ahead;
                    *at_us = u64::try_from(at.as_micros()).unwrap();
                }
                self.send(true, || Event::ToCoordinator(message.clone()));
            }
            AgentOutput::Log(message) => {
                if let ToCoordinator::Tick { number, .. } = &message
                    && self.lost_ticks.contains(&(position, *number))
                {
                    return;
                }
                if self.log_is_full {
                    let machine = &mut self.agents[position].machine;
                    machine.unlogged("the log is full", self.now);
                    return;
                }
                self.log_of_agent(message);
            }
            AgentOutput::Begin { at_us, data } => {
                assert_eq!(data.as_deref(), Some("data"));
                let agent = &mut self.agents[position];
                let at = Duration::from_micros(at_us).saturating_sub(agent.clock_ahead);
                let at = (self.epoch + at).max(self.now);
                agent.started = Some(at - self.epoch);
                let first = at + agent.tick_every;
                self.schedule(first, Event::Tick { agent: position });
            }
            AgentOutput::EndPart { .. } => {
                // What is under way ends with the next tick, the last one.
                let agent = &mut self.agents[position];
                agent.most_ticks = agent.most_ticks.min(agent.ticks + 1);
            }
            AgentOutput::Leave { .. } => self.agents[position].hears_run = false,
        }
    }
}
