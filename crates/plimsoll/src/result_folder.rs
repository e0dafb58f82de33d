//! The folder that `--out` names.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use plimsoll_report::files::NamedFile;
use plimsoll_wire::files::NewFile;

use crate::exit::Exit;
use crate::problem::{Failed, Problem};

/// The folder of `--out`, known to be writable before the run starts.
#[derive(Debug)]
pub(crate) struct ResultFolder {
    path: PathBuf,
}

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
        fs::create_dir_all(path)
            .and_then(|()| NewFile::beside(&path.join("plimsoll")))
            .map_err(|error| folder.unwritable(&error))?;
        Ok(folder)
    }

    /// Writes all result files, or none.
    pub(crate) fn write(&self, files: &[NamedFile]) -> Result<(), Failed> {
        let new = files.iter().map(|(name, bytes)| {
            let mut new = NewFile::beside(&self.path.join(name))?;
            new.file().write_all(bytes)?;
            Ok(new)
        });
        let new: io::Result<Vec<_>> = new.collect();
        new.and_then(|new| new.into_iter().try_for_each(NewFile::put))
            .map_err(|error| self.unwritable(&error))
    }

    fn unwritable(&self, error: &io::Error) -> Failed {
        let message = format!("cannot write to {}: {error}", self.path.display());
        Failed {
            exit: Exit::CouldNotRun,
            problems: vec![Problem::with("--out", message)],
        }
    }
}
