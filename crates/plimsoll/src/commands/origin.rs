//! `plimsoll origin`: the embedded origin, in the process of its own that `load` starts.

use std::io::Write;

use plimsoll_server::Origin;

use crate::exit::Exit;
use crate::problem::{Failed, Problem};

/// Serves one small answer on the loopback interface until it is stopped.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Port to listen on; 0 takes a free one.
    #[arg(long, default_value_t = 0)]
    port: u16,
}

const BODY: &[u8] = b"hello, load\n";

pub(crate) fn run(args: &Args) -> Result<Exit, Failed> {
    let fail = |error: &dyn std::error::Error| Problem::new(error).could_not_run();
    plimsoll_wire::descriptors::raise().map_err(|error| fail(&error))?;
    let origin = Origin::bind(args.port, BODY).map_err(|error| fail(&error))?;
    // Whoever started it reads this line to know that and where it serves.
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "listening on http://{}/", origin.address()).map_err(|error| fail(&error))?;
    stdout.flush().map_err(|error| fail(&error))?;
    drop(stdout);
    origin.serve().map_err(|error| fail(&error))?;
    Ok(Exit::Fine)
}
