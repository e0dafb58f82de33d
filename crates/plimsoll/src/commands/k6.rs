//! `plimsoll k6`, and the program under the name `k6`: the commands of k6.
//!
//! Exit codes are k6's, those of wrong command lines too.

mod archive;

mod cloud;

mod inspect;

mod new;

mod version;

use std::sync::Arc;

use clap::Subcommand;
use plimsoll_k6::{ExitCode as K6ExitCode, InspectedScript, Invocation, Overrides, RunControl};
use plimsoll_model::Clock as _;
use plimsoll_wire::SystemClock;

pub(crate) use self::version::VERSION;
use super::load::script::flags::{GlobalFlags, SourceFlags, TestType};
use super::load::script::{
    Failure, K6RunArgs, end, end_as_k6, load, log_of, refuse_unsupported_of_all, run_as_k6,
};
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

/// Runs the initialisation of a script.
///
/// - `overrides`: options of the command line.
fn inspected(
    source: &SourceFlags,
    global: &GlobalFlags,
    test_type: Option<TestType>,
    overrides: Overrides,
) -> Result<InspectedScript, Failure> {
    let config = |problem: Problem| (problem, K6ExitCode::InvalidConfig);
    let other = |problem: Problem| (problem, K6ExitCode::Other);
    refuse_unsupported_of_all(source, global).map_err(other)?;
    let log = log_of(global, SystemClock.now(), None).map_err(config)?;
    let loaded = load(source, global, test_type, false)?;
    let goes_on = || false;
    let invocation = Invocation {
        overrides,
        // A script that begins paused can be inspected.
        control: Some(RunControl::default()),
        ..loaded.invocation(
            Arc::new(move |level, text, origin| log.write(level, text, origin)),
            &goes_on,
        )
    };
    plimsoll_k6::inspect(&invocation).map_err(|outcome| {
        let message = if outcome.message.is_empty() {
            format!("{} cannot be initialised", source.script)
        } else {
            outcome.message
        };
        (Problem::new(message), outcome.exit)
    })
}
