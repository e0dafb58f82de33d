//! Files that only their owner may read, and that are there as a whole or not at all.

use std::fs::{self, DirBuilder};
use std::io::{self, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use plimsoll_wire::files::NewFile;

/// A file that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("cannot {verb} `{}`", path.display())]
pub(crate) struct StoreError {
    verb: &'static str,
    path: PathBuf,
    source: io::Error,
}

/// A file that is written and not yet in its place.
#[derive(Debug)]
pub(crate) struct TemporaryFile {
    new: NewFile,
    place: PathBuf,
}

impl TemporaryFile {
    /// Writes `content` beside `place`, readable by its owner alone, in a folder that is made if it is not there.
    pub(crate) fn new(place: &Path, content: impl AsRef<[u8]>) -> Result<Self, StoreError> {
        let folder = folder_of(place);
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .map_err(failed("make", folder))?;
        let mut new = NewFile::private(place).map_err(failed("write", place))?;
        new.file()
            .write_all(content.as_ref())
            .map_err(failed("write", place))?;
        Ok(Self {
            new,
            place: place.to_owned(),
        })
    }

    /// Its current file.
    pub(crate) fn path(&self) -> &Path {
        self.new.path()
    }

    /// Puts it in its place, instead of what is there.
    pub(crate) fn keep(self) -> Result<(), StoreError> {
        self.new.put().map_err(failed("replace", &self.place))
    }
}

/// The content of a file; nothing if it does not exist.
pub(crate) fn read(path: &Path) -> Result<Option<String>, StoreError> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed("read", path)(error)),
    }
}

/// Without a folder it is the working directory's.
fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

fn failed(verb: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StoreError {
    let path = path.to_owned();
    move |source| StoreError { verb, path, source }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn files_are_their_owners_and_replaced_as_a_whole() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("a/b/account.json");
        assert_eq!(read(&place).unwrap(), None);
        let written = TemporaryFile::new(&place, "one").unwrap();
        assert_eq!(read(&place).unwrap(), None);
        assert_eq!(read(written.path()).unwrap().unwrap(), "one");
        written.keep().unwrap();
        TemporaryFile::new(&place, "two").unwrap().keep().unwrap();
        assert_eq!(read(&place).unwrap().unwrap(), "two");
        let mode = fs::metadata(&place).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn what_cannot_be_written_is_reported_with_its_place() {
        let error = TemporaryFile::new(Path::new("/dev/null/account.json"), "").unwrap_err();
        assert_eq!(error.to_string(), "cannot make `/dev/null`");
    }
}
