//! `plimsoll`: finds the load line of HTTP services.
//!
//! The only crate that prints, reads the environment or the command line, handles signals and
//! decides the exit code. Everything it does is done by the libraries beneath.

mod cli;

mod commands;

mod exit;

mod flags;

mod problem;

mod signals;

mod terminal;

use std::process::ExitCode;

use clap::Parser;

use crate::cli::Cli;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return exit::after_parsing(&error),
    };
    match commands::run(cli.command) {
        Ok(exit) => exit.into(),
        Err(failed) => {
            terminal::print_failure(&failed);
            failed.exit.into()
        }
    }
}
