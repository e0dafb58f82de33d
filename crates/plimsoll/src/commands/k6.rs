//! `plimsoll k6`, and the program under the name `k6`: the commands of k6.
//!
//! Exit codes are k6's, those of wrong command lines too.

mod archive;

mod cloud;

mod inspect;

mod new;

mod version;

use clap::Subcommand;
use plimsoll_k6::ExitCode as K6ExitCode;

pub(crate) use self::version::VERSION;
use super::load::script::{K6RunArgs, end, end_as_k6, run_as_k6};
use crate::exit::Exit;
use crate::problem::Problem;

/// Run k6's commands: run, inspect, archive, new and version
///
/// Under the name `k6` (a link to this program) the first argument is one of these commands.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: K6Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum K6Command {
    Run(Box<K6RunArgs>),
    Inspect(Box<inspect::Args>),
    Archive(Box<archive::Args>),
    New(new::Args),
    Version(version::Args),
    #[command(hide = true)]
    Cloud(cloud::Args),
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Exit {
    let other = |problem: Problem| (problem, K6ExitCode::Other);
    let done = |()| K6ExitCode::Fine;
    end(match &args.command {
        K6Command::Run(args) => return run_as_k6(args),
        K6Command::Inspect(args) => return end_as_k6(&args.global, inspect::run(args).map(done)),
        K6Command::Archive(args) => return end_as_k6(&args.global, archive::run(args).map(done)),
        K6Command::New(args) => new::run(args).map(done).map_err(other),
        K6Command::Version(args) => version::run(args).map(done).map_err(other),
        K6Command::Cloud(args) => Err(other(cloud::refused(args))),
    })
}
