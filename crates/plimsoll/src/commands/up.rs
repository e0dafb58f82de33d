//! `plimsoll up`: listeners and routes of one file.

mod against;

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use plimsoll_server::config::STARTER;

use self::against::AgainstArgs;
use crate::commands::serving::{self, Brought, ConfinementArgs, ProcessOptions, Source};
use crate::exit::Exit;
use crate::problem::{Failed, Problem};
use crate::terminal;

/// Serve HTTP as a configuration file describes
///
/// SIGHUP reloads the file if it is valid; with --watch a change of the file does too. SIGTERM and Ctrl-C drain open
/// connections; a second signal stops at once.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Configuration file (TOML)
    #[arg(default_value = "plimsoll.toml")]
    file: PathBuf,

    /// Report all errors in the file and exit
    #[arg(long)]
    check: bool,

    #[command(flatten)]
    against: AgainstArgs,

    /// Take the sockets over from the server that was started with the same socket, if there is one, and hand them over to
    /// the next one
    #[arg(long, value_name = "SOCKET", conflicts_with_all = ["check", "init"])]
    takeover: Option<PathBuf>,

    /// Reload the file when it changes, as SIGHUP does
    #[arg(long, conflicts_with_all = ["check", "init"])]
    watch: bool,

    /// Write an example file, unless it exists
    #[arg(long, conflicts_with = "check")]
    init: bool,

    #[command(flatten)]
    confinement: ConfinementArgs,
}

pub(crate) fn run(args: &Args) -> Result<Exit, Failed> {
    if args.init {
        return init(&args.file);
    }
    let source = Source::File(args.file.clone());
    if args.check {
        let text = serving::checked(source, Brought::all())?;
        let differences = args.against.differences(&text)?.unwrap_or_default();
        let mut lines = vec![format!("{}: no mistakes", args.file.display())];
        lines.extend(differences.iter().map(ToString::to_string));
        terminal::print(&lines.join("\n"))
            .map_err(|error| Problem::caused_by(&error).could_not_run())?;
        let is_same = differences.is_empty();
        return Ok(if is_same { Exit::Fine } else { Exit::Objective });
    }
    let options = ProcessOptions {
        takeover: args.takeover.as_deref(),
        watch: args.watch,
        confinement: &args.confinement,
    };
    serving::run(source, Brought::all(), &options)
}

fn init(file: &Path) -> Result<Exit, Failed> {
    let written = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(file)
        .and_then(|mut file| file.write_all(STARTER.as_bytes()));
    written.map_err(|error| {
        let message = format!("cannot write {}: {error}", file.display());
        Problem::new(message).could_not_run()
    })?;
    let file = file.display();
    let line = format!("wrote {file}; start it with `plimsoll up {file}`");
    terminal::print(&line).map_err(|error| Problem::caused_by(&error).could_not_run())?;
    Ok(Exit::Fine)
}
