//! Where absolute paths of a script begin: at the root of this machine, or at that of an unpacked archive.

use std::path::{Path, PathBuf};

use crate::source::archive::{anonymous, relative};

/// The folder that stands for `/`; absent for the machine's own.
#[derive(Debug, Clone, Default)]
pub(crate) struct FileRoot(Option<PathBuf>);

/// A path that leads out of the archive.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} is outside of the archive", .0.display())]
pub(crate) struct OutsideOfArchive(PathBuf);

impl FileRoot {
    /// - `folder`: an absolute path.
    pub(crate) fn of_archive(folder: PathBuf) -> Self {
        Self(Some(folder))
    }

    /// The place of a file on this machine.
    ///
    /// - `path`: absolute, as the script or its folder gives it.
    ///
    /// Fails if the path leads out of the archive.
    pub(crate) fn place(&self, path: &Path) -> Result<PathBuf, OutsideOfArchive> {
        let Some(root) = &self.0 else {
            return Ok(path.to_owned());
        };
        let inner = match path.strip_prefix(root) {
            Ok(inner) => inner.to_string_lossy().into_owned(),
            // The archive has no names of users.
            Err(_) => anonymous(&path.to_string_lossy()),
        };
        let inner = relative(&inner);
        let inner = inner.ok_or_else(|| OutsideOfArchive(path.to_owned()))?;
        Ok(root.join(inner))
    }

    /// The path as a script outside of an archive would see it.
    pub(crate) fn shown(&self, path: &Path) -> PathBuf {
        let inner = self
            .0
            .as_ref()
            .and_then(|root| path.strip_prefix(root).ok());
        inner.map_or_else(|| path.to_owned(), |inner| Path::new("/").join(inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_an_archive_stay_in_it() {
        let root = FileRoot::of_archive(PathBuf::from("/tmp/x"));
        let place = |path: &str| root.place(Path::new(path));
        for (path, expected) in [
            ("/data/a.csv", "/tmp/x/data/a.csv"),
            ("/home/ann/a.csv", "/tmp/x/home/nobody/a.csv"),
            ("/tmp/x/home/nobody/../b.js", "/tmp/x/home/b.js"),
        ] {
            assert_eq!(place(path), Ok(PathBuf::from(expected)));
        }
        assert!(place("/tmp/x/../../../etc/passwd").is_err());
        let machine = FileRoot::default();
        assert_eq!(machine.place(Path::new("/a/b")), Ok(PathBuf::from("/a/b")));
        assert_eq!(root.shown(Path::new("/tmp/x/a.js")), PathBuf::from("/a.js"));
    }
}
