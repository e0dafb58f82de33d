//! The subcommands, one file each.

mod compare;

mod load;

mod check;

mod report;

mod loadtest;

mod origin;

use clap::Subcommand;

use crate::exit::Exit;
use crate::problem::{Failed, Problem};

pub(crate) use self::loadtest::{Args as LoadtestArgs, run as run_loadtest};

/// The commands by which the harness starts processes of its own.
pub(crate) const HIDDEN_OF_LOADTEST: [&str; 2] = ["loadtest-origins", "loadtest-clients"];

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Load(Box<load::Args>),
    Check(Box<check::Args>),
    Compare(Box<compare::Args>),
    Loadtest(loadtest::Args),
    Report(report::Args),
    #[command(hide = true)]
    Origin(origin::Args),
    #[command(hide = true)]
    LoadtestOrigins(loadtest::parts::OriginsArgs),
    #[command(hide = true)]
    LoadtestClients(loadtest::parts::ClientsArgs),
}

/// Does what was asked for.
pub(crate) fn run(command: Command) -> Result<Exit, Failed> {
    match command {
        Command::Load(mut args) => load::run(&mut args),
        Command::Check(mut args) => check::run(&mut args),
        Command::Compare(args) => compare::run(&args),
        Command::Report(args) => report::run(&args),
        Command::Origin(args) => origin::run(&args),
        Command::Loadtest(args) => loadtest::run(&args),
        Command::LoadtestOrigins(args) => loadtest::parts::serve(&args),
        Command::LoadtestClients(args) => loadtest::parts::check(&args),
    }
}

/// The file of this program, to start more processes of it.
fn own_program() -> Result<String, Failed> {
    let path = std::env::current_exe().map_err(|error| {
        Problem::new(format!("cannot find this program's own file: {error}")).could_not_run()
    })?;
    Ok(path.to_string_lossy().into_owned())
}
