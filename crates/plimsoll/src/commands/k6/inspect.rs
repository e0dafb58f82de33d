//! `k6 inspect`: the options of a script, as JSON.

use plimsoll_k6::ExitCode as K6ExitCode;

use super::super::load::script::flags::{GlobalFlags, OverrideFlags, SourceFlags, TestType};
use super::super::load::script::inspect::{inspected, requirements};
use super::super::load::script::{Failure, overrides};
use crate::problem::Problem;
use crate::terminal;

/// Print the options of a script or an archive as JSON
#[derive(Debug, clap::Args)]
#[command(args_override_self = true)]
pub(crate) struct Args {
    #[command(flatten)]
    source: SourceFlags,

    #[command(flatten)]
    pub(super) global: GlobalFlags,

    /// Take SCRIPT for this, whatever it looks like
    #[arg(short = 't', long = "type", value_enum, value_name = "TYPE")]
    test_type: Option<TestType>,

    /// Add the scenarios that shortcuts stand for, and the virtual users and the time that they need at most
    #[arg(long)]
    execution_requirements: bool,
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let (source, global) = (&args.source, &args.global);
    let invalid = |problem: Problem| (problem, K6ExitCode::InvalidConfig);
    // Options of the environment and of `--config` count for what a run needs, as in k6.
    let overrides = if args.execution_requirements {
        overrides(&OverrideFlags::default(), source, global).map_err(invalid)?
    } else {
        plimsoll_k6::Overrides::default()
    };
    let inspection = inspected(source, global, args.test_type, overrides, None)?;
    let shown = if args.execution_requirements {
        requirements(inspection)
    } else {
        inspection.options
    };
    terminal::print(&format!("{shown:#}"))
        .map_err(|error| (Problem::new(error.to_string()), K6ExitCode::Other))
}
