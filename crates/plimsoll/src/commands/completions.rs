//! `plimsoll completions`: scripts with which shells complete commands and flags.

use clap_complete::Shell;

use crate::cli::Cli;
use crate::exit::Exit;
use crate::problem::{Failed, Problem};
use crate::terminal;

/// Print a completion script for a shell
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

pub(crate) fn run(args: &Args) -> Result<Exit, Failed> {
    let mut command = Cli::public_command();
    let name = command.get_name().to_owned();
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, name, &mut script);
    terminal::print(String::from_utf8_lossy(&script).trim_end())
        .map_err(|error| Problem::caused_by(&error).could_not_run())?;
    Ok(Exit::Fine)
}
