//! The files of an order, in a folder that only this user can read.

use std::path::{Path, PathBuf};
use std::{fs, io};

use plimsoll_fleet::{OrderFile, PartError};

/// The files of an order, deleted at its end.
#[derive(Debug)]
pub(crate) struct Folder(PathBuf);

impl Folder {
    /// Writes the files.
    pub(crate) fn new(files: &[OrderFile]) -> Result<Self, PartError> {
        let wrong =
            |path: &Path, error: io::Error| format!("cannot write {}: {error}", path.display());
        let name = format!("plimsoll-agent-{}", plimsoll_fleet::new_run_name());
        let folder = Self(std::env::temp_dir().join(name));
        let mut builder = fs::DirBuilder::new();
        // Requests may hold credentials.
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder
            .create(&folder.0)
            .map_err(|cause| wrong(&folder.0, cause))?;
        for file in files {
            let path = folder.0.join(&file.name);
            fs::write(&path, &file.content).map_err(|cause| wrong(&path, cause))?;
        }
        Ok(folder)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_an_order_are_private_and_deleted() {
        let files = [OrderFile {
            name: "0-a.csv".to_owned(),
            content: b"a".to_vec(),
        }];
        let folder = Folder::new(&files).unwrap();
        let path = folder.0.clone();
        assert_eq!(fs::read(path.join("0-a.csv")).unwrap(), b"a");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o700);
        }
        drop(folder);
        assert!(!path.exists());
    }
}
