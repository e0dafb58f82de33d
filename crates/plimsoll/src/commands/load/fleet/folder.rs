//! The files of an order, in a folder that only this user can read.

use std::fs;

use plimsoll_fleet::{OrderFile, PartError};

use crate::temporary_folder::{Purpose, TemporaryFolder};

/// Writes the files of an order; they are deleted with the folder.
pub(super) fn folder_with(files: &[OrderFile]) -> Result<TemporaryFolder, PartError> {
    let folder = TemporaryFolder::new(Purpose::Agent)
        .map_err(|error| format!("cannot make a folder for the files of a run: {error}"))?;
    for file in files {
        let path = folder.path().join(&file.name);
        let written = fs::write(&path, &file.content);
        written.map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    }
    Ok(folder)
}
