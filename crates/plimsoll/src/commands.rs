//! The subcommands, one file each.

mod compare;

mod lab;

mod line;

mod load;

mod check;

mod profile;

mod chaos;

mod crawl;

mod gateway;

mod report;

mod loadtest;

mod origin;

pub(crate) mod serving;

mod soak;

mod pack;

mod serve;

mod up;

mod mock;

#[cfg(feature = "monitor")]
mod monitor;

mod schema;

mod completions;

mod man;

use clap::Subcommand;

use crate::exit::Exit;
use crate::problem::{Failed, Problem};

#[cfg(feature = "k6")]
pub(crate) use self::load::script::{ScriptArgs, is_meant as is_script_meant, run_script};
pub(crate) use self::loadtest::{Args as LoadtestArgs, run as run_loadtest};
pub(crate) use self::pack::{PackedArgs, PackedSite, run_packed};
pub(crate) use self::serve::stand_in::Original;
pub(crate) use self::serve::{Args as ServeArgs, run_as as serve_as};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Load(Box<load::Args>),
    Check(Box<check::Args>),
    Compare(Box<compare::Args>),
    Lab(lab::Args),
    Line(Box<line::Args>),
    Loadtest(loadtest::Args),
    Pack(Box<pack::Args>),
    Profile(profile::Args),
    Chaos(Box<chaos::Args>),
    Crawl(crawl::Args),
    Report(report::Args),
    Serve(Box<serve::Args>),
    Gateway(Box<gateway::Args>),
    Up(up::Args),
    Mock(Box<mock::Args>),
    #[cfg(feature = "monitor")]
    Monitor(Box<monitor::Args>),
    Soak(Box<soak::Args>),
    Schema(schema::Args),
    Completions(completions::Args),
    Man(man::Args),
    #[command(hide = true)]
    Origin(origin::Args),
    #[command(hide = true)]
    LoadtestOrigins(loadtest::parts::OriginsArgs),
    #[command(hide = true)]
    LoadtestClients(loadtest::parts::ClientsArgs),
}

/// Runs the command.
pub(crate) fn run(command: Command) -> Result<Exit, Failed> {
    match command {
        Command::Load(mut args) => load::run(&mut args),
        Command::Check(mut args) => check::run(&mut args),
        Command::Compare(args) => compare::run(&args),
        Command::Lab(args) => lab::run(&args),
        Command::Line(args) => line::run(*args),
        Command::Pack(args) => pack::run(&args),
        Command::Profile(args) => profile::run(&args),
        Command::Chaos(args) => chaos::run(&args),
        Command::Crawl(args) => crawl::run(&args),
        Command::Report(args) => report::run(&args),
        Command::Serve(args) => serve::run(&args),
        Command::Gateway(args) => gateway::run(&args),
        Command::Up(args) => up::run(&args),
        Command::Mock(args) => mock::run(&args),
        #[cfg(feature = "monitor")]
        Command::Monitor(args) => monitor::run(&args),
        Command::Soak(args) => soak::run(&args),
        Command::Schema(args) => schema::run(&args),
        Command::Completions(args) => completions::run(&args),
        Command::Man(args) => man::run(&args),
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

/// A fraction, from a percentage with or without its sign.
fn parse_percent(text: &str) -> Result<f64, String> {
    let number = text.trim().trim_end_matches('%').trim_end();
    let percent: f64 = number
        .parse()
        .map_err(|_| format!("`{text}` is not a percentage such as 5%"))?;
    if percent.is_finite() && percent >= 0.0 {
        Ok(percent / 100.0)
    } else {
        Err(format!("`{text}` must be 0 or more"))
    }
}
