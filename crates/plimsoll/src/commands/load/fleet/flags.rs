//! The flags of `plimsoll load` about agents on other machines.

use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;
use plimsoll_fleet::NatsPlan;
use plimsoll_model::{ByteSize, parse_byte_size};

use crate::flags::number;

/// The group of agents that were given none.
pub(crate) const DEFAULT_GROUP: &str = "default";

/// How long agents may take to read files, find their targets and start their workers.
pub(super) const READY_WAIT: Duration = Duration::from_mins(2);

/// With longer ticks nothing is seen of a run.
const MOST_TICK: Duration = Duration::from_mins(1);

/// A log of fewer bytes has no room for the order of a run.
const LEAST_LOG: u64 = 64 << 10;

/// Larger numbers are taken for typing errors.
const MOST_AGENTS: u64 = 1000;

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Fleet")]
pub(crate) struct FleetArgs {
    /// Have agents on other machines make the load, found over this NATS broker: `nats://HOST:4222`
    #[arg(long, value_name = "URL")]
    pub(crate) fleet: Option<String>,

    /// Number of agents
    #[arg(long, value_name = "N", requires = "fleet", value_parser = number::count::<usize>(MOST_AGENTS))]
    pub(crate) agents: Option<usize>,

    /// Go on with this run, whose coordinator is gone, and report it
    #[arg(long, value_name = "RUN", requires = "fleet", value_parser = group,
          conflicts_with_all = ["agents", "agent_wait", "agent_group", "most_spread"])]
    pub(crate) attach: Option<String>,

    /// Time to wait for the agents
    #[arg(long, value_name = "TIME", value_parser = number::positive_duration, default_value = "30s", requires = "fleet")]
    pub(crate) agent_wait: Duration,

    /// Group of agents, as `plimsoll agent --group` names it
    #[arg(long, value_name = "NAME", default_value = DEFAULT_GROUP, value_parser = group, requires = "fleet")]
    pub(crate) agent_group: String,

    /// Take an agent for lost after this time without a sign of life
    // Agents give one a second; a broker that restarts takes a few.
    #[arg(long, value_name = "TIME", value_parser = number::positive_duration, default_value = "10s", requires = "fleet")]
    pub(crate) agent_timeout: Duration,

    /// End the run with what was counted when the broker is away for longer than this
    // Agents stop by themselves after --orphan-timeout, and send what they counted when the broker is back.
    #[arg(long, value_name = "TIME", value_parser = number::positive_duration, default_value = "30s", requires = "fleet")]
    pub(crate) broker_timeout: Duration,

    /// What to do when an agent is lost or ends before its time; the result is incomplete either way
    #[arg(long, value_enum, default_value_t = OnAgentLoss::Stop, requires = "fleet")]
    pub(crate) on_agent_loss: OnAgentLoss,

    /// Largest difference between the starts of two agents, as far as it can be measured
    #[arg(long, value_name = "TIME", value_parser = number::positive_duration, default_value = "50ms", requires = "fleet")]
    pub(crate) most_spread: Duration,

    /// Sign the run with this private key (PEM, Ed25519), so that agents that trust it accept the run
    #[arg(long, value_name = "FILE", requires = "fleet")]
    pub(crate) sign: Option<PathBuf>,

    /// Trust the CA certificates in this PEM file for the broker
    #[arg(long, value_name = "FILE", requires = "fleet")]
    pub(crate) fleet_cacert: Option<PathBuf>,

    /// Authenticate at the broker by this file: the seed of an nkey, or a .creds file of `nsc`
    #[arg(long, value_name = "FILE", requires = "fleet")]
    pub(crate) fleet_creds: Option<PathBuf>,

    /// Client certificate for the broker (PEM)
    #[arg(long, value_name = "FILE", requires_all = ["fleet", "fleet_key"])]
    pub(crate) fleet_cert: Option<PathBuf>,

    /// Key of the client certificate for the broker (PEM)
    #[arg(long, value_name = "FILE", requires = "fleet_cert")]
    pub(crate) fleet_key: Option<PathBuf>,

    /// Time between two ticks of an agent, whole seconds; longer ones make the log smaller, and rows and plots coarser
    #[arg(long, value_name = "TIME", value_parser = tick, default_value = "1s", requires = "fleet")]
    pub(crate) fleet_tick: Duration,

    /// Largest log of the run on the broker, which has a tick of each agent a second; the run ends when it is full
    // A broker reserves this much when the run begins.
    #[arg(long, value_name = "SIZE", value_parser = log_size, default_value = "256MiB", requires = "fleet")]
    pub(crate) fleet_log: ByteSize,

    #[command(flatten)]
    pub(crate) kubernetes: super::kubernetes::flags::KubernetesArgs,

    /// Say which agent would make which part, and start nothing
    #[arg(long, requires = "fleet", conflicts_with = "attach")]
    pub(crate) dry_run: bool,

    /// Keep the log and the files of the run on the broker, for a day
    #[arg(long, requires = "fleet")]
    pub(crate) keep: bool,
}

impl FleetArgs {
    /// How the broker is reached.
    ///
    /// - `url`: of it.
    pub(super) fn broker(&self, url: &str) -> NatsPlan {
        NatsPlan {
            url: url.to_owned(),
            authority: self.fleet_cacert.clone(),
            credentials: self.fleet_creds.clone(),
            certificate: self.fleet_cert.clone().zip(self.fleet_key.clone()),
            name: "plimsoll load".to_owned(),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnAgentLoss {
    /// Stop the others
    Stop,
    /// Go on with the others
    Continue,
}

/// Whole seconds of a tick.
fn tick(text: &str) -> Result<Duration, String> {
    let every = number::positive_duration(text)?;
    let is_whole = every.subsec_nanos() == 0 && every <= MOST_TICK;
    if is_whole {
        Ok(every)
    } else {
        Err("must be whole seconds, 60 at most".to_owned())
    }
}

/// The size of a log: a run has an order and ends of agents beside its ticks.
fn log_size(text: &str) -> Result<ByteSize, String> {
    let size = parse_byte_size(text).map_err(|error| error.to_string())?;
    if size.0 < LEAST_LOG {
        return Err("must be at least 64KiB".to_owned());
    }
    Ok(size)
}

/// The name of a group: a word of a subject.
pub(crate) fn group(text: &str) -> Result<String, String> {
    let is_word = !text.is_empty()
        && text.len() <= 64
        && text
            .bytes()
            .all(|it| it.is_ascii_alphanumeric() || matches!(it, b'-' | b'_'));
    if is_word {
        Ok(text.to_owned())
    } else {
        Err(format!(
            "`{text}` is not a name of letters, digits, `-` and `_`"
        ))
    }
}
