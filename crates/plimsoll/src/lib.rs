//! `plimsoll`: finds the load line of HTTP services. And `loadtest`, one of its commands by itself.
//!
//! The only crate that prints, reads the environment or the command line, handles signals and
//! decides the exit code. Everything it does is done by the libraries beneath.

mod cli;

mod commands;

mod grpc;

mod exit;

mod flags;

mod problem;

mod result_folder;

mod service_manager;

mod signals;

mod terminal;

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::ExitCode;

use clap::Parser;

use crate::cli::{Cli, LoadtestCli};
use crate::exit::Exit;
use crate::problem::Failed;

/// The program: `plimsoll`, or under the name `loadtest` the command of that name.
pub fn main() -> ExitCode {
    if is_loadtest(std::env::args_os().next()) {
        return match LoadtestCli::try_parse() {
            Ok(cli) => finish(commands::run_loadtest(&cli.args)),
            Err(error) => exit::after_parsing(&error),
        };
    }
    match Cli::try_parse() {
        Ok(cli) => finish(commands::run(cli.command)),
        Err(error) => exit::after_parsing(&error),
    }
}

fn is_loadtest(name: Option<OsString>) -> bool {
    name.is_some_and(|name| Path::new(&name).file_name() == Some(OsStr::new("loadtest")))
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
