//! The target of a run: a running process, a program to start, or our own origin.

use std::net::{SocketAddr, ToSocketAddrs};
use std::time::Duration;

use plimsoll_client::Endpoint;
use plimsoll_load::{Interrupt, RunPlan};
use plimsoll_observe::{NotReady, Pid, Readiness, Spawned, SpawnedPlan, Target};
use plimsoll_wire::cores;

use super::Args;
use crate::exit::Exit;
use crate::problem::{Failed, Problem};

/// Stands for the embedded origin until its port is known.
pub(super) const PLACEHOLDER_URL: &str = "http://127.0.0.1:1/";

/// How long a started command may take to end before it is killed.
const STOP_GRACE: Duration = Duration::from_secs(5);

/// A target that is ready for load.
#[derive(Debug, Default)]
pub(super) struct Started {
    /// Its processes, if their cost can be measured.
    pub(super) target: Option<Box<dyn Target>>,
    /// Its URL, where that is only known now.
    pub(super) url: Option<String>,
}

/// The cores that are left for the workers.
pub(super) fn worker_cores(args: &Args, is_embedded: bool) -> Vec<usize> {
    let mut available = cores::available();
    if is_embedded && available.len() > 1 {
        let origin = origin_cores(args);
        available.retain(|core| !origin.contains(core));
    }
    available
}

/// The embedded origin gets the last core, unless its cores are given.
fn origin_cores(args: &Args) -> Vec<usize> {
    if args.server.server_cores.is_empty() {
        let available = cores::available();
        match available.as_slice() {
            [_, .., last] => vec![*last],
            _ => Vec::new(),
        }
    } else {
        args.server.server_cores.clone()
    }
}

/// Starts or finds the target.
pub(super) fn start(
    args: &Args,
    is_embedded: bool,
    plan: &RunPlan,
    interrupt: &Interrupt,
) -> Result<Started, Failed> {
    if let Some(pid) = args.server.pid {
        let target = Pid::new(pid)
            .map_err(|error| Problem::caused_by(&error).about("--pid").could_not_run())?;
        return Ok(Started {
            target: Some(Box::new(target)),
            url: None,
        });
    }
    let spawned = match &args.server.spawn {
        Some(command) => SpawnedPlan {
            name: None,
            argv: split(command)?,
            cores: args.server.server_cores.clone(),
            ready: Readiness::Accepts(addresses(args, plan)?),
            timeout: args.server.spawn_timeout,
            grace: STOP_GRACE,
        },
        None if is_embedded => SpawnedPlan {
            name: Some("embedded origin".to_owned()),
            argv: origin_command(args)?,
            cores: origin_cores(args),
            ready: Readiness::Announces,
            timeout: args.server.spawn_timeout,
            grace: STOP_GRACE,
        },
        None => return Ok(Started::default()),
    };
    let target = Spawned::start(&spawned, &|| interrupt.is_set()).map_err(|error| Failed {
        exit: match error {
            NotReady::Interrupted { .. } => Exit::Interrupted,
            _ => Exit::CouldNotRun,
        },
        problems: vec![Problem::caused_by(&error).about("--spawn")],
    })?;
    Ok(Started {
        url: target.announced().map(str::to_owned),
        target: Some(Box::new(target)),
    })
}

fn split(command: &str) -> Result<Vec<String>, Failed> {
    match shlex::split(command) {
        Some(argv) if !argv.is_empty() => Ok(argv),
        Some(_) => Err(Problem::with("--spawn", "is empty").usage()),
        None => Err(Problem::with("--spawn", "a quote is not closed").usage()),
    }
}

fn origin_command(args: &Args) -> Result<Vec<String>, Failed> {
    let mut command = vec![super::super::own_program()?, "origin".to_owned()];
    command.push("--end-with-parent".to_owned());
    if args.connection.http2 {
        command.push("--http2".to_owned());
    }
    Ok(command)
}

/// Where the command to be started will accept connections.
fn addresses(args: &Args, plan: &RunPlan) -> Result<Vec<SocketAddr>, Failed> {
    if args.connection.unix_socket.is_some() {
        return Err(Problem::with("--spawn", "does not go with --unix-socket")
            .hint("start the command yourself and name it with --pid")
            .usage());
    }
    let endpoint = &plan.endpoints[0];
    let resolved = (endpoint.host().to_string(), endpoint.port()).to_socket_addrs();
    let addresses: Vec<_> = resolved
        .map_err(|error| {
            Problem::with("--spawn", format!("{}: {error}", endpoint.authority())).could_not_run()
        })?
        .collect();
    Ok(addresses)
}

/// Whether all load goes to this machine; `None` if the addresses do not show that.
pub(super) fn is_local(plan: &RunPlan) -> Option<bool> {
    let is_loopback = |endpoint: &Endpoint| match endpoint.address() {
        Some(address) => Some(address.is_loopback()),
        None if endpoint.host().to_string() == "localhost" => Some(true),
        None => None,
    };
    plan.endpoints
        .iter()
        .map(is_loopback)
        .try_fold(true, |all, local| Some(all && local?))
}
