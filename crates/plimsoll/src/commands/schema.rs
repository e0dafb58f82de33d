//! `plimsoll schema`: the JSON Schema of the file that `up` reads.

use plimsoll_server::config::SCHEMA;

use crate::exit::Exit;
use crate::problem::{Failed, Problem};
use crate::terminal;

/// Prints the JSON Schema of the files that `plimsoll up` serves, for editors.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

pub(crate) fn run(_args: &Args) -> Result<Exit, Failed> {
    terminal::print(SCHEMA.trim_end())
        .map_err(|error| Problem::caused_by(&error).could_not_run())?;
    Ok(Exit::Fine)
}
