//! `plimsoll man`: manual pages, made from the same flags as the help.

use std::fs;
use std::path::{Path, PathBuf};

use crate::cli::Cli;
use crate::exit::Exit;
use crate::problem::{Failed, Problem};
use crate::terminal;

/// Print the manual page, or write one for each command into a directory
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Directory for the pages `plimsoll.1`, `plimsoll-load.1` and so on; it is created if it is missing
    directory: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> Result<Exit, Failed> {
    // Built, so that every page has the flags that all commands share.
    let mut command = Cli::public_command();
    command.build();
    let Some(directory) = &args.directory else {
        let page = page(&command).map_err(|error| Problem::caused_by(&error).could_not_run())?;
        terminal::print(String::from_utf8_lossy(&page).trim_end())
            .map_err(|error| Problem::caused_by(&error).could_not_run())?;
        return Ok(Exit::Fine);
    };
    let cannot_write = |path: &Path, error: std::io::Error| {
        Problem::new(format!("cannot write {}: {error}", path.display())).could_not_run()
    };
    fs::create_dir_all(directory).map_err(|error| cannot_write(directory, error))?;
    for command in std::iter::once(&command).chain(command.get_subcommands()) {
        let name = command.get_display_name().unwrap_or(command.get_name());
        let path = directory.join(format!("{name}.1"));
        let page = page(command).map_err(|error| cannot_write(&path, error))?;
        fs::write(&path, page).map_err(|error| cannot_write(&path, error))?;
    }
    Ok(Exit::Fine)
}

fn page(command: &clap::Command) -> std::io::Result<Vec<u8>> {
    let mut page = Vec::new();
    clap_mangen::Man::new(command.clone()).render(&mut page)?;
    Ok(page)
}
