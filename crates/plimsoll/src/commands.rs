//! The subcommands, one file each.

mod compare;

mod load;

mod check;

mod report;

mod origin;

use clap::Subcommand;

use crate::exit::Exit;
use crate::problem::Failed;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Load(Box<load::Args>),
    Check(Box<check::Args>),
    Compare(Box<compare::Args>),
    Report(report::Args),
    #[command(hide = true)]
    Origin(origin::Args),
}

/// Does what was asked for.
pub(crate) fn run(command: Command) -> Result<Exit, Failed> {
    match command {
        Command::Load(mut args) => load::run(&mut args),
        Command::Check(args) => check::run(&args),
        Command::Compare(args) => compare::run(&args),
        Command::Report(args) => report::run(&args),
        Command::Origin(args) => origin::run(&args),
    }
}
