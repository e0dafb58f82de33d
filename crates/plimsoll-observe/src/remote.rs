//! A target on another machine, sampled by the agent there (`plimsoll observe`).

mod agent_url;

mod connection;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use plimsoll_model::{Clock, ClockDifference, CpuTime, ResourceSample, Secret};
use plimsoll_wire::SystemClock;
use plimsoll_wire::tls::Trust;

pub use self::agent_url::RemoteUrlError;

use self::agent_url::AgentUrl;
use self::connection::{Answered, Connection};
use crate::clock::ClockAlignment;
use crate::group::counters::never_back;
use crate::target_name::TargetName;
use crate::{AttachError, SampleError, SampleSource, Target};

/// How to reach a target on another machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemotePlan {
    url: AgentUrl,
    /// The token of the agent.
    token: Option<Secret>,
    /// Which agents are trusted.
    trust: Trust,
}

/// Why an agent gives no samples.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RemoteError {
    /// It does not answer, or not in time.
    #[error("the agent at {agent} does not answer: {reason}")]
    Unreachable {
        /// Scheme, host and port.
        agent: String,
        /// Why.
        reason: String,
    },
    /// TLS or a thread cannot be set up here.
    #[error("cannot prepare requests to the agent at {agent}: {reason}")]
    Unprepared {
        /// Scheme, host and port.
        agent: String,
        /// Why.
        reason: String,
    },
    /// It wants a token, or another one.
    #[error("the agent at {agent} rejects the token: it wants the one of its --token-file")]
    Token {
        /// Scheme, host and port.
        agent: String,
    },
    /// It does not serve the target.
    #[error("the agent at {agent} does not allow {}: start it with --allow {target}", target.shown())]
    NotAllowed {
        /// Scheme, host and port.
        agent: String,
        /// The target.
        target: TargetName,
    },
    /// The target is not there.
    #[error("the agent at {agent}: {reason}")]
    Missing {
        /// Scheme, host and port.
        agent: String,
        /// Why, as the agent has it.
        reason: String,
    },
    /// It is asked too often.
    #[error("the agent at {agent} answers no more requests for now (its --rate)")]
    TooMany {
        /// Scheme, host and port.
        agent: String,
    },
    /// Its answer is not that of an agent.
    #[error("the server at {agent} is no agent of `plimsoll observe`: {reason}")]
    NoAgent {
        /// Scheme, host and port.
        agent: String,
        /// What is wrong with its answer.
        reason: String,
    },
}

impl RemotePlan {
    /// - `url`: of the agent with the target as its query, such as `https://HOST:7070/?unit=postgresql`.
    pub fn new(url: &str, token: Option<Secret>, trust: Trust) -> Result<Self, RemoteUrlError> {
        let url = AgentUrl::parse(url)?;
        if token.is_some() && !url.keeps_secrets() {
            return Err(RemoteUrlError::Clear(url.agent().to_owned()));
        }
        Ok(Self { url, token, trust })
    }

    /// Samples of the target, from now on; an error if its agent gives none now.
    pub(crate) fn source(&self) -> Result<Box<dyn SampleSource>, AttachError> {
        Ok(Box::new(RemoteSource::open(self, PROBES)?))
    }

    /// The target.
    pub fn target(&self) -> &TargetName {
        self.url.target()
    }

    /// Scheme, host and port of the agent.
    pub fn agent(&self) -> &str {
        self.url.agent()
    }
}

/// A target on another machine; it is observed and otherwise left alone.
#[derive(Debug)]
pub struct RemoteTarget {
    plan: RemotePlan,
    name: String,
}

impl RemoteTarget {
    /// The target of `plan`, which its agent must serve now.
    pub fn new(plan: RemotePlan) -> Result<Self, AttachError> {
        let name = format!("{} at {}", plan.target().shown(), plan.agent());
        RemoteSource::open(&plan, 1)?;
        Ok(Self { plan, name })
    }
}

impl Target for RemoteTarget {
    fn name(&self) -> &str {
        &self.name
    }

    fn pid(&self) -> Option<u32> {
        None
    }

    fn cores(&self) -> &[usize] {
        &[]
    }

    fn source(&self) -> Result<Box<dyn SampleSource>, AttachError> {
        self.plan.source()
    }

    fn agent(&self) -> Option<&str> {
        Some(self.plan.agent())
    }

    fn stop(self: Box<Self>) {}
}

/// Requests before a run, of which the fastest aligns the clocks. The first opens the connection.
const PROBES: usize = 8;

/// The samples of an agent, each by a request of its own.
#[derive(Debug)]
struct RemoteSource {
    connection: Connection,
    agent: String,
    alignment: ClockAlignment,
    /// The agent that the alignment is of: a restarted one counts from another origin.
    agent_id: String,
    /// The time of day there minus that of here, in nanoseconds.
    offset_ns: i64,
    cores: usize,
    last: CpuTime,
}

impl RemoteSource {
    /// - `probes`: requests by which clocks are aligned, at least one.
    fn open(plan: &RemotePlan, probes: usize) -> Result<Self, RemoteError> {
        let connection = Connection::open(plan)?;
        let mut source = Self {
            connection,
            agent: plan.agent().to_owned(),
            alignment: ClockAlignment::default(),
            agent_id: String::new(),
            offset_ns: 0,
            cores: 0,
            last: CpuTime::default(),
        };
        for _ in 0..probes {
            let answered = source.connection.sample()?;
            source.align(&answered);
            if let Some(problem) = answered.problem {
                return Err(RemoteError::Missing {
                    agent: source.agent,
                    reason: problem,
                });
            }
        }
        Ok(source)
    }

    fn align(&mut self, answered: &Answered) {
        if self.agent_id != answered.agent.id {
            self.agent_id.clone_from(&answered.agent.id);
            self.alignment.reset();
        }
        self.cores = answered.agent.cores;
        let shown = Duration::from_nanos(answered.agent.clock_ns);
        self.alignment
            .observe(answered.sent, answered.received, shown);
        let passed = self
            .alignment
            .here(shown)
            .map(|here| answered.received.saturating_duration_since(here));
        let here = answered.wall - passed.unwrap_or_default();
        let there = UNIX_EPOCH + Duration::from_micros(answered.agent.unix_us);
        self.offset_ns = difference_ns(there, here);
    }
}

/// `one` minus `other`.
fn difference_ns(one: SystemTime, other: SystemTime) -> i64 {
    let whole = |time: Duration| i64::try_from(time.as_nanos()).unwrap_or(i64::MAX);
    match one.duration_since(other) {
        Ok(later) => whole(later),
        Err(earlier) => -whole(earlier.duration()),
    }
}

impl SampleSource for RemoteSource {
    fn sample(&mut self, at: Duration, completed: u64) -> Result<ResourceSample, SampleError> {
        let gap = |reason: String| SampleError::Gap { reason };
        let answered = self.connection.sample();
        let answered = answered.map_err(|error| gap(error.to_string()))?;
        self.align(&answered);
        let figures = answered.figures.ok_or_else(|| {
            let problem = answered.problem.clone().unwrap_or_default();
            gap(format!("the agent at {}: {problem}", self.agent))
        })?;
        let shown = Duration::from_nanos(answered.agent.clock_ns);
        // It was taken within the request, also where the aligned clock says otherwise.
        let taken = self.alignment.here(shown).unwrap_or(answered.sent);
        let taken = taken.clamp(answered.sent, answered.received);
        let since = taken.saturating_duration_since(answered.sent);
        let mut sample = figures.sample(at + since, completed);
        // An agent that was started again has not seen children that ended before.
        sample.cpu = never_back(self.last, sample.cpu);
        self.last = sample.cpu;
        Ok(sample)
    }

    fn cores(&self) -> Option<usize> {
        Some(self.cores)
    }

    fn clock(&self) -> Option<ClockDifference> {
        Some(ClockDifference {
            offset_ns: self.offset_ns,
            error: self.alignment.error(SystemClock.now())?,
        })
    }
}

#[cfg(test)]
mod tests;
