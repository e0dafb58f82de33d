//! The outputs of the coordinator: steps for its loop, notes for the user, and the end of a run.

use std::time::{Duration, Instant};

use crate::message::{AgentReport, Checksum, Counted, Instances, Shares, ToAgents};
use crate::share::Share;

/// What is to be done.
#[derive(Debug, Clone, PartialEq)]
pub enum CoordinatorOutput {
    /// Call for agents.
    Call,
    /// Make an order and add it to the log.
    Order {
        /// The parts by the names of the agents.
        shares: Shares,
        /// Which process makes each.
        instances: Instances,
    },
    /// Do what comes before the start, such as a script's `setup()`, and hand it to [`Coordinator::set_up`](super::Coordinator::set_up).
    SetUp,
    /// Send to the agents.
    Live(ToAgents),
    /// Add to the log.
    Log(ToAgents),
    /// Merge what an agent counted.
    Second(MemberSecond),
    /// Wait for no more figures of an agent.
    GiveUp(usize),
    /// Show to the user.
    Note(Note),
    /// The run is over.
    End(Ending),
}

/// What an agent counted since its last tick; each agent's come in order, and once.
#[derive(Debug, Clone, PartialEq)]
pub struct MemberSecond {
    /// Position of the agent.
    pub member: usize,
    /// Microseconds since the start of the run.
    pub at_us: u64,
    /// Whether nothing was begun any more.
    pub grace: bool,
    /// Whether no other follows.
    pub is_last: bool,
    /// The counts.
    pub figures: Counted,
}

/// What a user wants to know on the way.
#[derive(Debug, Clone, PartialEq)]
pub enum Note {
    /// An agent is there.
    Joined {
        /// Its name.
        agent: String,
        /// Its cores.
        cores: usize,
        /// Agents so far.
        have: usize,
        /// Agents wanted.
        wanted: usize,
    },
    /// Who would make which part, of a run that is not to start.
    Parts(Shares),
    /// A run that goes on was taken over.
    Attached {
        /// Its agents.
        agents: usize,
    },
    /// All agents are ready and start together.
    Starting {
        /// Agents.
        agents: usize,
        /// By how much their starts may differ.
        spread: Duration,
        /// When, by the clock of the coordinator.
        start: Instant,
    },
    /// The broker cannot be reached.
    BrokerAway {
        /// How long the run waits for it.
        waits: Duration,
    },
    /// It can again.
    BrokerBack {
        /// How long it was away.
        after: Duration,
    },
    /// The run no longer waits for any agent, for this reason; it keeps the figures.
    Abandoned(String),
    /// An agent was lost, or has ended before its time.
    Lost {
        /// Its name.
        agent: String,
        /// Why it is taken for lost.
        reason: String,
        /// Whether the others go on.
        goes_on: bool,
    },
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Ending {
    /// It did not start.
    NotStarted(NotStarted),
    /// It started, and each agent has ended or was lost: see [`Coordinator::member_ends`](super::Coordinator::member_ends).
    Ended,
}

/// Why a run did not start.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotStarted {
    /// Too few agents have offered themselves.
    #[error("{have} of {wanted} agents are there after {waited:?}")]
    TooFew {
        /// How many are there.
        have: usize,
        /// How many are wanted.
        wanted: usize,
        /// How long the run waited.
        waited: Duration,
    },
    /// Two agents have one name.
    #[error("two agents are named {agent}: the processes {} and {}", instances[0], instances[1])]
    SameName {
        /// Their name.
        agent: String,
        /// Both of them.
        instances: [String; 2],
    },
    /// There are more agents than connections.
    #[error("{agents} agents have nothing to do with {connections} connections or virtual users")]
    TooMany {
        /// Agents.
        agents: usize,
        /// Connections.
        connections: usize,
    },
    /// An agent cannot make its part.
    #[error("agent {agent} cannot make its part: {problem}")]
    Refused {
        /// Its name.
        agent: String,
        /// Why.
        problem: String,
    },
    /// An agent was lost before the start.
    #[error("agent {agent} was lost before the start: {reason}")]
    Lost {
        /// Its name.
        agent: String,
        /// Why it is taken for lost.
        reason: String,
    },
    /// Agents do not get ready.
    #[error("not ready after {waited:?}: agents {}", agents.join(", "))]
    NotReady {
        /// Their names.
        agents: Vec<String>,
        /// How long the run waited.
        waited: Duration,
    },
    /// The clocks cannot be compared well enough.
    #[error(
        "the agents would start up to {spread:?} apart, more than {most:?}: the network between them and the broker is too slow or too busy"
    )]
    Spread {
        /// By how much their starts may differ.
        spread: Duration,
        /// By how much they may.
        most: Duration,
    },
    /// The broker stays away.
    #[error("the broker was away for {waited:?} before the start")]
    BrokerAway {
        /// How long the run waited.
        waited: Duration,
    },
    /// What comes before the start has failed.
    #[error("{0}")]
    SetUp(String),
    /// It was not to start.
    #[error("nothing was to be started")]
    Dry,
    /// The user ended it.
    #[error("interrupted before the start")]
    Interrupted,
}

/// How an agent ended.
#[derive(Debug, Clone, PartialEq)]
pub struct MemberEnd {
    /// Its name.
    pub agent: String,
    /// Its cores.
    pub cores: usize,
    /// Its part.
    pub share: Share,
    /// What it found, if it came to its end.
    pub report: Option<Box<AgentReport>>,
    /// Why its figures are not all that it counted, or its part is not whole.
    pub problem: Option<String>,
    /// The checksum of what was merged of it.
    pub merged: Checksum,
}

impl MemberEnd {
    /// Why the figures of the run are not whole because of this agent, with its name.
    pub fn lack(&self) -> Option<String> {
        let problem = self.problem.as_ref()?;
        Some(format!("agent {}: {problem}", self.agent))
    }
}
