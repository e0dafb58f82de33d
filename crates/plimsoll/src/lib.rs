//! `plimsoll`: finds the load line of HTTP services. And `loadtest`, one of its commands by itself.
//!
//! The only crate that prints, reads the environment or the command line, handles signals and
//! decides the exit code. Everything it does is done by the libraries beneath.

#![cfg_attr(
    not(all(
        feature = "lab",
        feature = "serve",
        feature = "k6",
        feature = "monitor"
    )),
    allow(
        dead_code,
        unused_imports,
        reason = "helpers of commands that are left out"
    )
)]

mod cli;

mod commands;

#[cfg(feature = "mcp")]
mod confined;

mod dashboard;

#[cfg(test)]
mod docs;

mod grpc;

mod exit;

mod flags;

mod own_file;

mod problem;

mod result_folder;

#[cfg(feature = "site")]
mod service_manager;

mod signals;

#[cfg(any(feature = "fleet", feature = "k6", feature = "mcp"))]
mod temporary_folder;

mod terminal;

use std::path::Path;
use std::process::ExitCode;

use clap::Parser;

use crate::cli::{Cli, LoadtestCli};
#[cfg(feature = "k6")]
use crate::cli::{K6Cli, ScriptCli};
#[cfg(feature = "site")]
use crate::cli::{PackedCli, ServeCli};
#[cfg(feature = "site")]
use crate::commands::{Original, PackedSite};
use crate::exit::Exit;
use crate::problem::{Failed, Problem};

/// The program: `plimsoll`, under the names `loadtest` and `k6` the commands of these names, and under those of servy and
/// gosherve what stands in for them.
pub fn main() -> ExitCode {
    #[cfg(feature = "mcp")]
    if let Err(failed) = confined::enter() {
        return finish(Err(failed));
    }
    #[cfg(feature = "site")]
    if let Some(packed) = packed_site() {
        return serve_packed(&packed);
    }
    if own_name().is_some_and(|name| name == "loadtest") {
        return match LoadtestCli::try_parse() {
            Ok(cli) => finish(commands::run_loadtest(&cli.args)),
            Err(error) => exit::after_parsing(&error),
        };
    }
    #[cfg(feature = "site")]
    if let Some(original) = own_name().and_then(|name| Original::called(&name)) {
        return match ServeCli::try_parse() {
            Ok(cli) => finish(commands::serve_as(&cli.args, original)),
            Err(error) => exit::after_parsing(&error),
        };
    }
    #[cfg(feature = "k6")]
    if let Some(arguments) = script_arguments() {
        return match ScriptCli::try_parse_from(arguments) {
            Ok(cli) => commands::run_script(&cli.args).into(),
            Err(error) => exit::after_parsing(&error),
        };
    }
    #[cfg(feature = "k6")]
    if own_name().is_some_and(|name| name == "k6") {
        return match K6Cli::try_parse() {
            Ok(cli) => commands::run_k6(&cli.args).into(),
            Err(error) => exit::after_parsing_with(&error, K6_MISTAKE.into()),
        };
    }
    match Cli::parse_arguments() {
        Ok(cli) => finish(commands::run(cli.command)),
        #[cfg(feature = "k6")]
        Err(error) if std::env::args_os().nth(1).is_some_and(|name| name == "k6") => {
            exit::after_parsing_with(&error, K6_MISTAKE.into())
        }
        Err(error) => exit::after_parsing(&error),
    }
}

/// The exit code of k6 for wrong command lines.
#[cfg(feature = "k6")]
const K6_MISTAKE: u8 = 255;

/// The arguments of `plimsoll load` with the name of the program, if they name a script.
#[cfg(feature = "k6")]
fn script_arguments() -> Option<Vec<String>> {
    let arguments: Option<Vec<_>> = std::env::args_os()
        .map(|argument| argument.into_string().ok())
        .collect();
    let mut arguments = arguments?;
    let is_load = arguments.get(1).is_some_and(|command| command == "load");
    if !is_load || !commands::is_script_meant(&arguments[2..]) {
        return None;
    }
    arguments.remove(1);
    Some(arguments)
}

/// The program of packed sites, which has no commands: what it serves is in its own file.
#[cfg(feature = "site")]
pub fn packed_main() -> ExitCode {
    match packed_site() {
        Some(packed) => serve_packed(&packed),
        None => finish(Err(Problem::new("there is no site in this program")
            .hint("`plimsoll pack DIR -o FILE` makes a program of it")
            .usage())),
    }
}

/// The site that this program carries, if it does.
#[cfg(feature = "site")]
fn packed_site() -> Option<PackedSite> {
    let program = own_file::own_file().ok()?;
    let keys = plimsoll_site::pack::packed_keys(&program)?;
    Some(PackedSite { program, keys })
}

#[cfg(feature = "site")]
fn serve_packed(packed: &PackedSite) -> ExitCode {
    match PackedCli::try_parse() {
        Ok(cli) => finish(commands::run_packed(&cli.args, packed)),
        Err(error) => exit::after_parsing(&error),
    }
}

/// The name and form under which the program was started.
fn own_name() -> Option<String> {
    let name = std::env::args_os().next()?;
    let name = Path::new(&name).file_name()?;
    Some(name.to_str()?.to_owned())
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
