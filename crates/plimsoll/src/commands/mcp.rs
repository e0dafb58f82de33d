//! `plimsoll mcp`: the commands of this program as tools of the Model Context Protocol, over standard input and output.
//!
//! A call goes through the files below in this order: `server` (protocol), `tools` and `arguments` (what a tool takes, checked
//! against `bounds`), `program` (the command, as a confined process), `outcome` (its JSON and messages as a result).

mod arguments;

mod bounds;

mod outcome;

mod pages;

mod program;

mod resources;

mod server;

mod tools;

use std::sync::Arc;
use std::time::Duration;

use plimsoll_model::Secret;
use rmcp::ServiceExt as _;
use rmcp::transport::async_rw::AsyncRwTransport;
use url::Url;

use self::bounds::BoundArgs;
use self::server::Server;
use crate::exit::Exit;
use crate::problem::{Failed, Problem};
use crate::{signals, terminal};

/// Offer checks, load tests and configuration checks as tools to coding agents
///
/// Speak the Model Context Protocol (MCP) on standard input and output, for a client that starts this command. Tools send requests
/// to loopback and to the targets of --allow-target alone, within the bounds below; they read files below --root and write none.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    bounds: BoundArgs,

    /// Address of the running monitor for `monitor_status` and `incidents`
    #[arg(
        long,
        value_name = "URL",
        default_value = "http://127.0.0.1:8080",
        help_heading = "Monitor"
    )]
    monitor: Url,

    /// Token for it with the scope `read`; tools do not see it
    #[arg(
        long,
        value_name = "TOKEN",
        env = "PLIMSOLL_MONITOR_TOKEN",
        hide_env_values = true,
        help_heading = "Monitor"
    )]
    monitor_token: Option<String>,
}

const EXAMPLES: &str = "\
Examples:
  plimsoll mcp
  plimsoll mcp --root ~/shop --allow-target https://staging.example.org --max-rate 500/s

Configuration of a client:
  { \"mcpServers\": { \"plimsoll\": { \"command\": \"plimsoll\", \"args\": [\"mcp\"] } } }";

/// Lines of the protocol; longer ones are dropped.
const LONGEST_LINE: usize = 8 << 20;

/// From the end of the protocol to that of commands that still run.
const ENDING: Duration = Duration::from_secs(5);

/// Runs the command.
pub(crate) fn run(args: Args) -> Result<Exit, Failed> {
    let bounds = args.bounds.compile()?;
    let could_not = |error: &dyn std::error::Error| Problem::caused_by(error).could_not_run();
    let server = Server::new(bounds, args.monitor, args.monitor_token.map(Secret::new));
    let runs = Arc::clone(&server.runs);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| could_not(&error))?;
    let exit = runtime.block_on(async {
        let mut ends = signals::Ends::listen().map_err(|error| could_not(&error))?;
        let (input, output) = rmcp::transport::stdio();
        let transport =
            AsyncRwTransport::new_server(input, output).with_max_line_length(LONGEST_LINE);
        let serving = async {
            match server.serve(transport).await {
                Ok(running) => running
                    .waiting()
                    .await
                    .map(|_| ())
                    .map_err(|error| could_not(&error)),
                // A client that leaves before it begins is none.
                Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) => Ok(()),
                Err(error) => Err(could_not(&error)),
            }
        };
        let exit = tokio::select! {
            outcome = serving => outcome.map(|()| Exit::Fine),
            () = ends.next() => Ok(Exit::Interrupted),
        };
        // The calls were cancelled with the protocol; their commands are still to end.
        let ended = tokio::time::timeout(ENDING, runs.ended()).await;
        if ended.is_err() {
            terminal::log_line("plimsoll mcp: a command did not end in time");
        }
        exit
    });
    // A thread may be reading standard input for ever.
    runtime.shutdown_background();
    exit
}
