//! `k6 inspect`: the options of a script, as JSON.

use plimsoll_k6::{ExitCode as K6ExitCode, go_duration};
use serde_json::json;

use super::super::load::script::flags::{GlobalFlags, OverrideFlags, SourceFlags, TestType};
use super::super::load::script::{Failure, overrides};
use super::inspected;
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
    let inspection = inspected(source, global, args.test_type, overrides)?;
    let mut shown = if args.execution_requirements {
        inspection.derived
    } else {
        inspection.options
    };
    if args.execution_requirements
        && let Some(shown) = shown.as_object_mut()
    {
        let duration = go_duration(inspection.plan.duration);
        shown.insert("totalDuration".to_owned(), json!(duration));
        shown.insert("maxVUs".to_owned(), json!(inspection.plan.most_vus));
    }
    terminal::print(&format!("{shown:#}"))
        .map_err(|error| (Problem::new(error.to_string()), K6ExitCode::Other))
}
