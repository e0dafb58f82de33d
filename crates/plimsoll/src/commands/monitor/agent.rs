//! `plimsoll monitor agent`: checks monitors from another place.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use plimsoll_model::Secret;
use plimsoll_monitor::agent::{self, AgentOptions, Centre};
use plimsoll_wire::tls::Trust;
use tokio::runtime::LocalOptions;
use tokio::sync::oneshot;
use url::Url;

use crate::commands::monitor::server::secret;
use crate::commands::serving::keep_private;
use crate::exit::Exit;
use crate::problem::{Failed, Problem};
use crate::signals::Ends;
use crate::terminal;

/// Check monitors from another place for the monitor that has the store
///
/// The agent fetches the monitors of its region, and sends results every second. While the monitor cannot be reached the
/// checks go on and results wait. `plimsoll monitor token NAME --agent` makes its token.
#[derive(Debug, clap::Args)]
pub(super) struct AgentArgs {
    /// Address of the running monitor
    url: Url,

    /// Token of the agent
    #[arg(long, env = "PLIMSOLL_AGENT_TOKEN", hide_env_values = true, value_parser = secret)]
    token: Option<Secret>,

    /// Read the token from this file, again for every request, so that it can be replaced
    #[arg(long, value_name = "FILE", conflicts_with = "token")]
    token_file: Option<PathBuf>,

    /// Keep the last configuration in this file, to begin with it while the monitor cannot be reached
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,

    /// Results that wait while the monitor cannot be reached; the oldest beyond it are given up
    #[arg(long, value_name = "N", default_value = "100000")]
    buffer: NonZeroUsize,

    /// Trust the certificates in this PEM file alone
    #[arg(long, value_name = "FILE")]
    cacert: Option<PathBuf>,
}

pub(super) fn run(args: &AgentArgs) -> Result<Exit, Failed> {
    keep_private()?;
    let trust = match &args.cacert {
        Some(file) => Trust::Only(file.clone()),
        None => Trust::PublicRoots,
    };
    let centre = match (&args.token, &args.token_file) {
        (Some(token), _) => Centre::new(args.url.clone(), token.clone(), trust),
        (None, Some(file)) => Centre::with_token_file(args.url.clone(), file.clone(), trust),
        (None, None) => {
            let problem = Problem::new("the agent has no token");
            let hint = "give --token-file or set PLIMSOLL_AGENT_TOKEN; `plimsoll monitor token NAME --agent` makes one";
            return Err(problem.hint(hint).usage());
        }
    };
    let centre = centre.map_err(|error| Problem::caused_by(&error).could_not_run())?;
    let options = AgentOptions {
        buffer: args.buffer.get(),
        state: args.state.clone(),
        ..AgentOptions::default()
    };
    let could_not = |error: std::io::Error| Problem::caused_by(&error).could_not_run();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build_local(LocalOptions::default())
        .map_err(could_not)?;
    runtime.block_on(async {
        let mut signals = Ends::listen().map_err(could_not)?;
        let (stop, stopped) = oneshot::channel();
        let report = |message: &str| terminal::print_notes(&[Problem::new(message)]);
        let agent = agent::run(options, Rc::new(centre), Arc::new(report), stopped);
        let agent = tokio::task::spawn_local(agent);
        signals.next().await;
        drop(stop);
        tokio::select! {
            _ = agent => {}
            () = signals.next() => {}
        }
        Ok(Exit::Fine)
    })
}
