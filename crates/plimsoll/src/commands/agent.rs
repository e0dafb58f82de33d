//! `plimsoll agent`: makes parts of load runs that `plimsoll load --fleet` gives to several machines.

use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_client::{AddressFilter, confine_process};
use plimsoll_fleet::{
    AgentEnd, AgentNote, AgentSettings, NatsPlan, OrderTrust, TrustedKeys, serve,
};

use super::load::fleet::make_part::Maker;
use super::load::fleet::{connect, flags, is_on_loopback};
use crate::exit::Exit;
use crate::flags::number;
use crate::problem::{Failed, Problem};
use crate::{signals, terminal};

/// More cores than a machine has.
const MOST_CORES: u64 = 4096;

/// Make parts of load runs for `plimsoll load --fleet`
///
/// The agent waits at a NATS broker for runs and makes one at a time. It runs only what a key of --trust signed, against hosts
/// of --allow; without --trust only a broker and targets on this machine are allowed.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// NATS broker, started with `-js`: `nats://HOST:4222`
    #[arg(
        long,
        value_name = "URL",
        env = "PLIMSOLL_NATS",
        hide_env_values = true
    )]
    nats: String,

    /// Name of the agent [default: the name of the machine with a random end]
    #[arg(long, value_name = "NAME", value_parser = flags::group)]
    name: Option<String>,

    /// Group of agents that a run can ask for
    #[arg(long, value_name = "NAME", default_value = flags::DEFAULT_GROUP, value_parser = flags::group)]
    group: String,

    /// Weight of this machine: its workers [default: its cores]
    #[arg(long, value_name = "N", value_parser = number::count::<usize>(MOST_CORES))]
    cores: Option<usize>,

    /// Exit after one run
    #[arg(long)]
    once: bool,

    /// Run what one of these public keys signed (PEM, Ed25519)
    #[arg(long, value_name = "FILE")]
    trust: Option<PathBuf>,

    /// Allow load on this host, repeatable: `shop.example.org`, `10.0.0.5`; `*` allows any. Loopback always is
    #[arg(long, value_name = "HOST", requires = "trust")]
    allow: Vec<String>,

    /// Stop a run after this time without its coordinator
    #[arg(long, value_name = "TIME", value_parser = number::positive_duration, default_value = "10s")]
    orphan_timeout: Duration,

    /// Authenticate at the broker by this file: the seed of an nkey, or a .creds file of `nsc`
    #[arg(long, value_name = "FILE")]
    creds: Option<PathBuf>,

    /// Client certificate for the broker (PEM)
    #[arg(long, value_name = "FILE", requires = "key")]
    cert: Option<PathBuf>,

    /// Key of the client certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,

    /// Trust the CA certificates in this PEM file for the broker
    #[arg(long, value_name = "FILE")]
    cacert: Option<PathBuf>,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<Exit, Failed> {
    let trust = trust(args)?;
    if !args.allow.iter().any(|host| host == "*") {
        let is_first = confine_process(filter(&args.allow));
        debug_assert!(is_first, "a process is confined once");
    }
    let interrupt = signals::watch().map_err(|error| {
        Problem::new(format!("cannot watch for signals: {error}")).could_not_run()
    })?;
    let transport = connect(&NatsPlan {
        url: args.nats.clone(),
        authority: args.cacert.clone(),
        credentials: args.creds.clone(),
        certificate: args.cert.clone().zip(args.key.clone()),
        name: "plimsoll agent".to_owned(),
    })?;
    let plan = AgentSettings {
        name: args.name.clone().unwrap_or_else(own_name),
        instance: own_instance(),
        group: args.group.clone(),
        cores: args
            .cores
            .unwrap_or_else(|| plimsoll_wire::cores::available().len()),
        program: env!("CARGO_PKG_VERSION").to_owned(),
        orphan_timeout: args.orphan_timeout,
        once: args.once,
        trust,
    };
    let name = plan.name.clone();
    let mut on_note = |note: &AgentNote| terminal::log_line(&format!("{name}: {}", show(note)));
    let end = serve(&transport, &plan, Arc::new(Maker), &interrupt, &mut on_note);
    match end {
        Ok(AgentEnd::Made) => Ok(Exit::Fine),
        Ok(AgentEnd::Failed) => Ok(Exit::CouldNotRun),
        Ok(AgentEnd::Interrupted) => Ok(Exit::Interrupted),
        Err(error) => Err(Problem::caused_by(&error).about("--nats").could_not_run()),
    }
}

fn trust(args: &Args) -> Result<OrderTrust, Failed> {
    let Some(path) = &args.trust else {
        if is_on_loopback(&args.nats) {
            return Ok(OrderTrust::Everyone);
        }
        return Err(Problem::with(
            "--nats",
            "needs --trust FILE unless the broker is on this machine",
        )
        .hint("`openssl pkey -in KEY -pubout` prints the public half of the key that signs runs")
        .usage());
    };
    let wrong =
        |reason: String| Problem::with("--trust", format!("{}: {reason}", path.display())).usage();
    let text = fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    let keys = TrustedKeys::parse(&text).map_err(|error| wrong(error.to_string()))?;
    Ok(OrderTrust::Keys(keys))
}

/// Loopback, and the hosts of `--allow` at any address.
fn filter(allowed: &[String]) -> AddressFilter {
    let normal = |host: &str| {
        let host = host.trim_start_matches('[').trim_end_matches(']');
        host.to_ascii_lowercase()
    };
    let allowed: Arc<[String]> = allowed.iter().map(|host| normal(host)).collect();
    let is_loopback_name = |host: &str| {
        let address = host.parse::<IpAddr>();
        host == "localhost" || address.is_ok_and(|it| it.to_canonical().is_loopback())
    };
    let hosts = Arc::clone(&allowed);
    AddressFilter::of_hosts(
        move |host, _| {
            let host = normal(host);
            is_loopback_name(&host) || hosts.contains(&host)
        },
        move |host, address: SocketAddr| {
            let host = normal(host);
            // A name of this machine that another one answers for is not it.
            allowed.contains(&host)
                || (is_loopback_name(&host) && address.ip().to_canonical().is_loopback())
        },
    )
}

fn own_name() -> String {
    format!("{}-{}", machine(), random_end())
}

/// This process: its machine, its number there, and a random end, because containers share both.
fn own_instance() -> String {
    format!("{}.{}.{}", machine(), std::process::id(), random_end())
}

fn machine() -> String {
    let name = rustix::system::uname();
    let name = name.nodename().to_string_lossy().into_owned();
    name.chars()
        .map(|it| if it.is_ascii_alphanumeric() { it } else { '-' })
        .take(40)
        .collect()
}

fn random_end() -> String {
    plimsoll_fleet::new_run_name().chars().take(4).collect()
}

fn show(note: &AgentNote) -> String {
    match note {
        AgentNote::Waiting => "waits for runs".to_owned(),
        AgentNote::Ready { run, share } => {
            format!(
                "is ready for run {run}: {} of {} workers",
                share.workers, share.of
            )
        }
        AgentNote::Refused { run, problem } => format!("refuses run {run}: {problem}"),
        AgentNote::Started { run } => format!("starts run {run}"),
        AgentNote::Left { reason } => format!("has left the run: {reason}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_and_allowed_hosts_are_reached_and_no_other() {
        let filter = filter(&["Shop.example.org".to_owned(), "10.0.0.5".to_owned()]);
        for (host, is_allowed) in [
            ("localhost", true),
            ("127.0.0.1", true),
            ("[::1]", true),
            ("shop.example.org", true),
            ("SHOP.example.org", true),
            ("10.0.0.5", true),
            ("10.0.0.6", false),
            ("example.org", false),
            ("shop.example.org.evil.test", false),
            ("169.254.169.254", false),
        ] {
            assert_eq!(filter.allows_host(host, 80), is_allowed, "{host}");
        }
    }
}
