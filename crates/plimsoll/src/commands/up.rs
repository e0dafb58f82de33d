//! `plimsoll up`: listeners and routes of one file.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use plimsoll_server::config::STARTER;

use crate::commands::serving::{self, Brought, Source};
use crate::exit::Exit;
use crate::problem::{Failed, Problem};
use crate::terminal;

/// Serves HTTP by the listeners and routes of a file.
///
/// SIGHUP loads the file again, if it has no mistakes. SIGTERM and Ctrl-C stop listening and let open connections end;
/// the second time they do not wait.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The file, in TOML.
    #[arg(default_value = "plimsoll.toml")]
    file: PathBuf,

    /// Tell every mistake in the file, and serve nothing.
    #[arg(long)]
    check: bool,

    /// Write a file to start from, unless it is there already.
    #[arg(long, conflicts_with = "check")]
    init: bool,
}

pub(crate) fn run(args: &Args) -> Result<Exit, Failed> {
    if args.init {
        return init(&args.file);
    }
    let source = Source::File(args.file.clone());
    if args.check {
        serving::check(source)?;
        let fine = format!("{}: no mistakes", args.file.display());
        terminal::print(&fine).map_err(|error| Problem::caused_by(&error).could_not_run())?;
        return Ok(Exit::Fine);
    }
    serving::run(source, Brought::all())
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
