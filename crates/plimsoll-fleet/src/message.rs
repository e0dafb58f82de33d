//! The messages between coordinator and agents: JSON with a version.
//!
//! A run has four subjects: messages of the coordinator and messages of agents, each either live (gone without a listener) or in
//! the log of the run. A message of another version is refused with both versions, never guessed at.

pub(crate) mod figures;

mod checksum;

mod counted;

mod exchanges;

mod report;

mod script;

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

pub use self::checksum::Checksum;
pub use self::counted::Counted;
pub use self::figures::{Figures, FiguresError};
pub use self::report::{AgentReport, ReportedProcesses};
pub use self::script::{CheckFigures, ScriptFigures};
use crate::share::Share;
use crate::trust::{SigningKey, TrustedKeys};

/// The version of the messages. Another number is another format.
pub const VERSION: u32 = 1;

/// About how many bytes a tick has.
///
/// - `per_second`: requests that an agent makes in a second; `None` if that is not known.
/// - `histograms`: of durations that it has, beside those that every load has.
pub fn tick_bytes(per_second: Option<f64>, histograms: usize) -> u64 {
    // A histogram has as many entries as different durations, and no more than buckets in their range: some 600.
    const MOST: u64 = 32 << 10;
    const LEAST: u64 = 2 << 10;
    const OF_REQUEST: f64 = 64.0;

    let most = MOST.saturating_mul(1 + histograms as u64);
    let of_rate = |rate: f64| {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a rate is not negative, and a cast of a float stays within its type"
        )]
        let bytes = (rate * OF_REQUEST) as u64;
        most.min(LEAST.saturating_add(bytes))
    };
    per_second.map_or(most, of_rate)
}

/// Subjects and names of a run on the broker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunNames {
    run: String,
}

impl RunNames {
    /// - `run`: letters and digits.
    pub fn new(run: &str) -> Self {
        Self {
            run: run.to_owned(),
        }
    }

    /// Where coordinators look for agents of a group.
    pub fn call(group: &str) -> String {
        format!("plimsoll.agents.{group}")
    }

    /// The stream of the log.
    pub fn log(&self) -> String {
        format!("plimsoll-{}", self.run)
    }

    /// The bucket of the files.
    pub fn bucket(&self) -> String {
        format!("plimsoll-{}", self.run)
    }

    /// Live messages of the coordinator.
    pub fn live_to_agents(&self) -> String {
        format!("plimsoll.run.{}.live.agents", self.run)
    }

    /// Live messages of agents.
    pub fn live_to_coordinator(&self) -> String {
        format!("plimsoll.run.{}.live.coordinator", self.run)
    }

    /// Messages of the coordinator in the log.
    pub fn log_to_agents(&self) -> String {
        format!("plimsoll.run.{}.log.agents", self.run)
    }

    /// Messages of agents in the log.
    pub fn log_to_coordinator(&self) -> String {
        format!("plimsoll.run.{}.log.coordinator", self.run)
    }
}

/// A message with its version and run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Envelope<B> {
    /// See [`VERSION`].
    pub version: u32,
    /// The run.
    pub run: String,
    /// The content.
    pub body: B,
    /// Of messages of a coordinator that signs: Ed25519 over run and content, base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
}

impl Envelope<ToAgents> {
    /// Whether one of the keys signed it, for this run.
    pub fn is_signed_by(&self, keys: &TrustedKeys) -> bool {
        let signature = self.signature.as_deref();
        signature.is_some_and(|it| keys.have_signed(&signed_text(&self.run, &self.body), it))
    }
}

/// What is signed of a message: it holds for its run alone.
fn signed_text(run: &str, body: &ToAgents) -> String {
    let body = serde_json::to_string(body).expect("keys are texts and numbers are finite");
    format!("plimsoll message of run {run}\n{body}")
}

/// Encodes a message of the coordinator, signed if it has a key.
pub(crate) fn encode_signed(run: &str, body: ToAgents, key: Option<&SigningKey>) -> Vec<u8> {
    let signature = key.map(|key| key.sign(&signed_text(run, &body)));
    encode_envelope(run, body, signature)
}

/// Messages of the coordinator.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToAgents {
    /// Agents are wanted for a run.
    Call,
    /// Which agents make which part of what, in the log. The text is a [`RunOrder`](crate::RunOrder).
    Plan {
        /// JSON, exactly as it was signed.
        order: String,
        /// Ed25519 over `order`, base64; absent if it is not signed.
        signature: Option<String>,
    },
    /// Compares the clocks; the agent answers at once with [`ToCoordinator::Echo`].
    Probe {
        /// Which agent is meant.
        agent: String,
        /// Number of the probe.
        number: u32,
    },
    /// When the run starts, in the log.
    Start {
        /// Microseconds on the clock of each agent.
        at_us: BTreeMap<String, u64>,
        /// The same moment in microseconds since 1970, for a coordinator that goes on with the run.
        unix_us: u64,
        /// The result of the work before the start.
        set_up: SetUp,
    },
    /// The coordinator is there.
    Beat,
    /// The run ends, in the log.
    Stop {
        /// Why.
        reason: String,
        /// Whether exchanges under way are given up at once.
        is_urgent: bool,
    },
    /// The coordinator has all that it waits for, or waits no longer: agents leave the run.
    Leave,
}

/// What was done before the start of a run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SetUp {
    /// What agents get of it: the result of a script's `setup()` as JSON.
    pub data: Option<String>,
    /// How long it took, in microseconds.
    pub took_us: u64,
    /// Why it marked the run as failed, if it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
    /// What it measured, for a coordinator that goes on with the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub figures: Option<Box<ScriptFigures>>,
}

/// Messages of an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToCoordinator {
    /// An agent that has nothing to do.
    Offer {
        /// Its name, unlike that of any other.
        agent: String,
        /// Identifies this process, so that two agents of one name are recognized.
        instance: String,
        /// Cores that it may use.
        cores: usize,
        /// Version of its program.
        program: String,
    },
    /// The agent has made its part ready, or cannot; in the log.
    Ready {
        /// Its name.
        agent: String,
        /// Why it cannot.
        problem: Option<String>,
    },
    /// The answer to a probe.
    Echo {
        /// Its name.
        agent: String,
        /// That of the probe.
        number: u32,
        /// Microseconds on its clock.
        at_us: u64,
    },
    /// The agent is there.
    Alive {
        /// Its name.
        agent: String,
        /// Why it could not add to the log; what it counts from then on is missing.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        problem: Option<String>,
    },
    /// What was counted since the last one, in the log.
    Tick {
        /// Its name.
        agent: String,
        /// From 0.
        number: u64,
        /// Microseconds since the start of the run.
        at_us: u64,
        /// Whether nothing was begun any more.
        grace: bool,
        /// Whether no other follows.
        is_last: bool,
        /// The counts.
        figures: Counted,
    },
    /// The agent has ended its part; in the log.
    Done {
        /// Its name.
        agent: String,
        /// Ticks that it has sent.
        ticks: u64,
        /// What they add up to.
        checksum: Checksum,
        /// What it found beside; absent if it could not make its part.
        report: Option<Box<AgentReport>>,
        /// Why it ended before its time.
        problem: Option<String>,
    },
}

impl ToCoordinator {
    /// The agent that sends it.
    pub fn agent(&self) -> &str {
        match self {
            Self::Offer { agent, .. }
            | Self::Ready { agent, .. }
            | Self::Echo { agent, .. }
            | Self::Alive { agent, .. }
            | Self::Tick { agent, .. }
            | Self::Done { agent, .. } => agent,
        }
    }
}

/// Why a message cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    /// It is of another version.
    #[error(
        "the message has version {found}, this program reads version {VERSION}: use the same plimsoll everywhere"
    )]
    Version {
        /// The version of the message.
        found: u64,
    },
    /// It is not one of ours.
    #[error("the message is not one of a fleet: {0}")]
    Form(String),
}

/// Encodes a message.
pub fn encode<B: Serialize>(run: &str, body: B) -> Vec<u8> {
    encode_envelope(run, body, None)
}

fn encode_envelope<B: Serialize>(run: &str, body: B, signature: Option<String>) -> Vec<u8> {
    let envelope = Envelope {
        version: VERSION,
        run: run.to_owned(),
        body,
        signature,
    };
    serde_json::to_vec(&envelope).expect("keys are texts and numbers are finite")
}

/// Decodes a message.
pub fn decode<B: DeserializeOwned>(payload: &[u8]) -> Result<Envelope<B>, MessageError> {
    #[derive(Deserialize)]
    struct Versioned {
        version: u64,
    }

    let wrong = |error: serde_json::Error| MessageError::Form(error.to_string());
    let Versioned { version } = serde_json::from_slice(payload).map_err(wrong)?;
    if version != u64::from(VERSION) {
        return Err(MessageError::Version { found: version });
    }
    serde_json::from_slice(payload).map_err(wrong)
}

/// The processes that make the parts of a run, by the names of their agents.
pub type Instances = BTreeMap<String, String>;

/// The parts of a run by the names of their agents.
pub type Shares = BTreeMap<String, Share>;

#[cfg(test)]
mod tests;
