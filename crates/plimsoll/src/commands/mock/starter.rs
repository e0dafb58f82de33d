//! `plimsoll mock --init`: files to start from.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;

use super::FILE;
use crate::exit::Exit;
use crate::problem::{Failed, Problem};
use crate::terminal;

const ROOT: &str = include_str!("apimock.toml");

const RULES: &str = include_str!("apimock-rule-set.toml");

/// Writes both files into a folder, over none that is there.
pub(super) fn write(folder: &Path) -> Result<Exit, Failed> {
    let files = [(FILE, ROOT), ("apimock-rule-set.toml", RULES)];
    for (name, _) in files {
        let path = folder.join(name);
        if path.exists() {
            let message = format!("{} exists, so nothing was written", path.display());
            return Err(Problem::new(message).could_not_run());
        }
    }
    for (name, text) in files {
        let path = folder.join(name);
        let written = OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&path)
            .and_then(|mut file| file.write_all(text.as_bytes()));
        written.map_err(|error| {
            Problem::new(format!("cannot write {}: {error}", path.display())).could_not_run()
        })?;
    }
    let file = folder.join(FILE);
    let file = file.display();
    let line = format!("wrote {file} and its rules; start it with `plimsoll mock {file}`");
    terminal::print(&line).map_err(|error| Problem::caused_by(&error).could_not_run())?;
    Ok(Exit::Fine)
}
