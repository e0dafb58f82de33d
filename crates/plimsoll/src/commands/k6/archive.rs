//! `k6 archive`: a script with everything that it loads, in a tar file that `run` takes.

use std::fs::File;
use std::io::{self, BufWriter};

use plimsoll_k6::ExitCode as K6ExitCode;

use super::super::load::script::flags::{GlobalFlags, OverrideFlags, SourceFlags, TestType};
use super::super::load::script::inspect::inspected;
use super::super::load::script::{Failure, overrides};
use crate::problem::Problem;

/// Write a script with its modules, files and options to a tar file
#[derive(Debug, clap::Args)]
#[command(args_override_self = true)]
pub(crate) struct Args {
    #[command(flatten)]
    source: SourceFlags,

    #[command(flatten)]
    overrides: OverrideFlags,

    #[command(flatten)]
    pub(super) global: GlobalFlags,

    /// Take SCRIPT for this, whatever it looks like
    #[arg(short = 't', long = "type", value_enum, value_name = "TYPE")]
    test_type: Option<TestType>,

    /// File to write; `-` for standard output
    #[arg(short = 'O', long, value_name = "FILE", default_value = "archive.tar")]
    archive_out: String,

    /// Leave variables of `__ENV` out
    #[arg(long)]
    exclude_env_vars: bool,
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let invalid = |problem: Problem| (problem, K6ExitCode::InvalidConfig);
    let overrides = overrides(&args.overrides, &args.source, &args.global).map_err(invalid)?;
    let inspection = inspected(&args.source, &args.global, args.test_type, overrides, None)?;
    let mut archive = inspection.archive;
    if args.exclude_env_vars {
        archive.leave_out_variables();
    }
    let path = &args.archive_out;
    let written = if path == "-" {
        archive.write(io::stdout().lock())
    } else {
        File::create(path).and_then(|file| archive.write(BufWriter::new(file)))
    };
    written.map_err(|error| {
        let message = format!("cannot write {path}: {error}");
        let problem = Problem::with("--archive-out", message);
        (problem, K6ExitCode::Other)
    })
}
