//! The subcommands, one file each.

#[cfg(feature = "fleet")]
mod agent;

#[cfg(feature = "lab")]
mod compare;

#[cfg(feature = "lab")]
mod lab;

#[cfg(feature = "lab")]
mod line;

#[cfg(feature = "k6")]
mod k6;

mod load;

mod check;

#[cfg(feature = "lab")]
mod profile;

mod chaos;

#[cfg(feature = "site")]
mod crawl;

#[cfg(feature = "serve")]
mod gateway;

mod report;

mod loadtest;

#[cfg(feature = "site")]
mod observe;

mod origin;

#[cfg(feature = "site")]
pub(crate) mod serving;

#[cfg(feature = "lab")]
mod soak;

#[cfg(feature = "site")]
mod pack;

#[cfg(feature = "site")]
mod serve;

#[cfg(feature = "serve")]
mod up;

#[cfg(feature = "serve")]
mod mock;

#[cfg(feature = "monitor")]
mod monitor;

#[cfg(feature = "mcp")]
mod mcp;

mod schema;

mod completions;

mod man;

use clap::Subcommand;

use crate::exit::Exit;
use crate::own_file::own_file;
use crate::problem::{Failed, Problem};

#[cfg(feature = "k6")]
pub(crate) use self::k6::{Args as K6Args, VERSION as K6_VERSION, run as run_k6};
#[cfg(feature = "k6")]
pub(crate) use self::load::script::{ScriptArgs, is_meant as is_script_meant, run_script};
pub(crate) use self::loadtest::{Args as LoadtestArgs, run as run_loadtest};
#[cfg(feature = "site")]
pub(crate) use self::pack::{PackedArgs, PackedSite, run_packed};
#[cfg(feature = "site")]
pub(crate) use self::serve::stand_in::Original;
#[cfg(feature = "site")]
pub(crate) use self::serve::{Args as ServeArgs, run_as as serve_as};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Load(Box<load::Args>),
    #[cfg(feature = "fleet")]
    Agent(agent::Args),
    #[cfg(feature = "k6")]
    K6(Box<k6::Args>),
    #[cfg(feature = "site")]
    Observe(observe::Args),
    Check(Box<check::Args>),
    #[cfg(feature = "lab")]
    Compare(Box<compare::Args>),
    #[cfg(feature = "lab")]
    Lab(lab::Args),
    #[cfg(feature = "lab")]
    Line(Box<line::Args>),
    Loadtest(Box<loadtest::Args>),
    #[cfg(feature = "site")]
    Pack(Box<pack::Args>),
    #[cfg(feature = "lab")]
    Profile(profile::Args),
    Chaos(Box<chaos::Args>),
    #[cfg(feature = "site")]
    Crawl(crawl::Args),
    Report(report::Args),
    #[cfg(feature = "site")]
    Serve(Box<serve::Args>),
    #[cfg(feature = "serve")]
    Gateway(Box<gateway::Args>),
    #[cfg(feature = "serve")]
    Up(up::Args),
    #[cfg(feature = "serve")]
    Mock(Box<mock::Args>),
    #[cfg(feature = "monitor")]
    Monitor(Box<monitor::Args>),
    #[cfg(feature = "lab")]
    Soak(Box<soak::Args>),
    #[cfg(feature = "mcp")]
    Mcp(mcp::Args),
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
        #[cfg(feature = "fleet")]
        Command::Agent(args) => agent::run(&args),
        #[cfg(feature = "k6")]
        Command::K6(args) => Ok(k6::run(&args)),
        #[cfg(feature = "site")]
        Command::Observe(args) => observe::run(&args),
        Command::Check(mut args) => check::run(&mut args),
        #[cfg(feature = "lab")]
        Command::Compare(args) => compare::run(&args),
        #[cfg(feature = "lab")]
        Command::Lab(args) => lab::run(&args),
        #[cfg(feature = "lab")]
        Command::Line(args) => line::run(*args),
        #[cfg(feature = "site")]
        Command::Pack(args) => pack::run(&args),
        #[cfg(feature = "lab")]
        Command::Profile(args) => profile::run(&args),
        Command::Chaos(args) => chaos::run(&args),
        #[cfg(feature = "site")]
        Command::Crawl(args) => crawl::run(&args),
        Command::Report(args) => report::run(&args),
        #[cfg(feature = "site")]
        Command::Serve(args) => serve::run(&args),
        #[cfg(feature = "serve")]
        Command::Gateway(args) => gateway::run(&args),
        #[cfg(feature = "serve")]
        Command::Up(args) => up::run(&args),
        #[cfg(feature = "serve")]
        Command::Mock(args) => mock::run(&args),
        #[cfg(feature = "monitor")]
        Command::Monitor(args) => monitor::run(&args),
        #[cfg(feature = "lab")]
        Command::Soak(args) => soak::run(&args),
        #[cfg(feature = "mcp")]
        Command::Mcp(args) => mcp::run(args),
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
    let path = own_file().map_err(|error| {
        Problem::new(format!("cannot find this program's own file: {error}")).could_not_run()
    })?;
    Ok(path.to_string_lossy().into_owned())
}
