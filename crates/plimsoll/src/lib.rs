//! `plimsoll`: finds the load line of HTTP services. And `loadtest`, one of its commands by itself.
//!
//! The only crate that prints, reads the environment or the command line, handles signals and
//! decides the exit code. Everything it does is done by the libraries beneath. Each program is one
//! call into this library, so that what they have in common is compiled once.

mod cli;

mod commands;

mod grpc;

mod exit;

mod flags;

mod problem;

mod result_folder;

mod signals;

mod terminal;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;

use crate::cli::{Cli, LoadtestCli};
use crate::exit::Exit;
use crate::problem::Failed;

/// The program `plimsoll`.
pub fn plimsoll() -> ExitCode {
    match Cli::try_parse() {
        Ok(cli) => finish(commands::run(cli.command)),
        Err(error) => exit::after_parsing(&error),
    }
}

/// The program `loadtest`: `plimsoll loadtest` under a name of its own.
pub fn loadtest() -> ExitCode {
    // The processes that it starts are this program too, and are told so by a hidden command.
    let is_hidden = |argument: OsString| {
        let argument = argument.to_string_lossy();
        commands::HIDDEN_OF_LOADTEST.contains(&&*argument)
    };
    if std::env::args_os().nth(1).is_some_and(is_hidden) {
        return plimsoll();
    }
    match LoadtestCli::try_parse() {
        Ok(cli) => finish(commands::run_loadtest(&cli.args)),
        Err(error) => exit::after_parsing(&error),
    }
}

fn finish(result: Result<Exit, Failed>) -> ExitCode {
    match result {
        Ok(exit) => exit.into(),
        Err(failed) => {
            terminal::print_failure(&failed);
            failed.exit.into()
        }
    }
}
