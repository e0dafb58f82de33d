//! `plimsoll origin`: the embedded origin, in the process of its own that `load` starts.

use std::io::Write;

use plimsoll_server::{Origin, Speaks};
use plimsoll_wire::process;

use crate::exit::Exit;
use crate::problem::{Failed, Problem};

/// Serves one small answer on the loopback interface until it is stopped.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Port to listen on; 0 takes a free one.
    #[arg(long, default_value_t = 0)]
    port: u16,

    /// Speak HTTP/2 by prior knowledge instead of HTTP/1.1.
    #[arg(long)]
    http2: bool,

    /// End when the process that started it does.
    #[arg(long)]
    end_with_parent: bool,
}

const BODY: &[u8] = b"hello, load\n";

pub(crate) fn run(args: &Args) -> Result<Exit, Failed> {
    let fail = |error: &dyn std::error::Error| Problem::caused_by(error).could_not_run();
    if args.end_with_parent {
        process::end_with_parent().map_err(|error| fail(&error))?;
    }
    plimsoll_wire::descriptors::raise().map_err(|error| fail(&error))?;
    let speaks = if args.http2 {
        Speaks::Http2
    } else {
        Speaks::Http1
    };
    let origin = Origin::bind(args.port, BODY).map_err(|error| fail(&error))?;
    let origin = origin.speaking(speaks);
    // The parent process reads this line to know that and where it serves.
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "listening on http://{}/", origin.address()).map_err(|error| fail(&error))?;
    stdout.flush().map_err(|error| fail(&error))?;
    drop(stdout);
    origin.serve().map_err(|error| fail(&error))?;
    Ok(Exit::Fine)
}
