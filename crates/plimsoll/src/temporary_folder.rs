//! Folders for the files of a run, deleted at its end.

use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::time::Duration;

use plimsoll_model::Clock as _;
use plimsoll_wire::SystemClock;
use tempfile::TempDir;

/// A folder that only this user can read, deleted when it is dropped.
///
/// A process that is killed deletes nothing: the next one does. The folder is locked while its process lives.
#[derive(Debug)]
pub(crate) struct TemporaryFolder {
    folder: TempDir,
    _lock: Option<File>,
}

/// What a folder is for, which its name says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The files of an order that an agent carries out.
    Agent,
    /// What an archive of k6 has in it.
    Archive,
    /// What a command that a tool of the Model Context Protocol runs writes.
    Tool,
}

impl Purpose {
    const ALL: [Self; 3] = [Self::Agent, Self::Archive, Self::Tool];

    const fn prefix(self) -> &'static str {
        match self {
            Self::Agent => "plimsoll-agent-",
            Self::Archive => "plimsoll-archive-",
            Self::Tool => "plimsoll-tool-",
        }
    }
}

impl TemporaryFolder {
    /// Makes a folder in the system's directory for temporary files.
    pub(crate) fn new(purpose: Purpose) -> io::Result<Self> {
        Self::within(&std::env::temp_dir(), purpose)
    }

    fn within(parent: &Path, purpose: Purpose) -> io::Result<Self> {
        // Requests may hold credentials.
        let folder = tempfile::Builder::new()
            .prefix(purpose.prefix())
            .permissions(fs::Permissions::from_mode(0o700))
            .tempdir_in(parent)?;
        // Where there are no locks, nothing is deleted either.
        let lock = File::open(folder.path()).ok();
        let lock = lock.filter(|it| it.try_lock().is_ok());
        if lock.is_some() {
            remove_abandoned(parent, fs::metadata(folder.path())?.uid());
        }
        Ok(Self {
            folder,
            _lock: lock,
        })
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Between making a folder and locking it.
const GRACE: Duration = Duration::from_mins(1);

/// Deletes the folders of a user whose processes have ended without doing so.
fn remove_abandoned(parent: &Path, user: u32) {
    let Ok(entries) = fs::read_dir(parent) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let has_prefix = |name: &str| Purpose::ALL.iter().any(|it| name.starts_with(it.prefix()));
        if !name.to_str().is_some_and(has_prefix) {
            continue;
        }
        // Not of what a link leads to.
        let Ok(found) = entry.metadata() else {
            continue;
        };
        if found.is_dir() && found.uid() == user && is_older_than(&found, GRACE) {
            let path = entry.path();
            let lock = File::open(&path);
            if lock.is_ok_and(|lock| lock.try_lock().is_ok()) {
                fs::remove_dir_all(&path).ok();
            }
        }
    }
}

fn is_older_than(found: &Metadata, age: Duration) -> bool {
    let changed = found.modified().ok();
    let since = changed.and_then(|it| SystemClock.wall().duration_since(it).ok());
    since.is_some_and(|since| since > age)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_processes_that_were_killed_are_deleted_by_the_next_one() {
        let parent = tempfile::tempdir().unwrap();
        let made = |name: &str, age: Duration| {
            let path = parent.path().join(name);
            fs::create_dir(&path).unwrap();
            fs::write(path.join("a.csv"), "a").unwrap();
            let at = SystemClock.wall() - age;
            File::open(&path).unwrap().set_modified(at).unwrap();
            path
        };
        let old = GRACE * 2;
        let killed = made("plimsoll-agent-1", old);
        let kept = [
            made("plimsoll-agent-2", Duration::ZERO),
            made("another-3", old),
            made("elsewhere", old),
        ];
        let linked = parent.path().join("plimsoll-agent-4");
        std::os::unix::fs::symlink(&kept[2], &linked).unwrap();
        let first = TemporaryFolder::within(parent.path(), Purpose::Archive).unwrap();
        assert!(!killed.exists());
        assert!(kept.iter().all(|it| it.join("a.csv").exists()));
        assert!(linked.is_symlink());
        // One whose process lives is locked, however old it is.
        let at = SystemClock.wall() - old;
        File::open(first.path()).unwrap().set_modified(at).unwrap();
        let second = TemporaryFolder::within(parent.path(), Purpose::Agent).unwrap();
        assert!(first.path().exists());
        let bits = fs::metadata(second.path()).unwrap().permissions().mode();
        assert_eq!(bits & 0o777, 0o700);
        let path = second.path().to_owned();
        drop(second);
        assert!(!path.exists());
    }
}
