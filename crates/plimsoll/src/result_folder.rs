//! The folder that `--out` names.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use plimsoll_report::files::NamedFile;

use crate::exit::Exit;
use crate::problem::{Failed, Problem};

/// The folder of `--out`, known to be writable before the run starts.
#[derive(Debug)]
pub(crate) struct ResultFolder {
    path: PathBuf,
}

/// Behind the names of files that are not complete yet.
const PARTIAL: &str = ".partial";

impl ResultFolder {
    /// Makes the folder, and checks that results can be written to it and that none are there.
    ///
    /// - `names`: of the files that will be written.
    pub(crate) fn prepare(path: &Path, names: &[&str]) -> Result<Self, Failed> {
        let folder = Self {
            path: path.to_owned(),
        };
        let existing = names
            .iter()
            .map(|name| path.join(name))
            .find(|file| file.exists());
        if let Some(file) = existing {
            return Err(
                Problem::with("--out", format!("{} exists already", file.display()))
                    .hint("name another folder, or remove the results in this one")
                    .usage(),
            );
        }
        let probe = path.join(format!(".plimsoll{PARTIAL}"));
        fs::create_dir_all(path)
            .and_then(|()| fs::write(&probe, b""))
            .and_then(|()| fs::remove_file(&probe))
            .map_err(|error| folder.unwritable(&error))?;
        Ok(folder)
    }

    /// Writes all result files, or none.
    pub(crate) fn write(&self, files: &[NamedFile]) -> Result<(), Failed> {
        let partial = |name: &str| self.path.join(format!("{name}{PARTIAL}"));
        let mut written = Ok(());
        for (name, bytes) in files {
            written = written.and_then(|()| fs::write(partial(name), bytes));
        }
        for (name, _) in files {
            if written.is_ok() {
                written = fs::rename(partial(name), self.path.join(name));
            } else {
                // What could not be written may not be there to be removed either.
                fs::remove_file(partial(name)).ok();
            }
        }
        written.map_err(|error| self.unwritable(&error))
    }

    fn unwritable(&self, error: &io::Error) -> Failed {
        let message = format!("cannot write to {}: {error}", self.path.display());
        Failed {
            exit: Exit::CouldNotRun,
            problems: vec![Problem::with("--out", message)],
        }
    }
}
