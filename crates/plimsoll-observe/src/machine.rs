//! The files of the kernel and of container runtimes on one machine.

use std::path::{Path, PathBuf};

/// A machine by its root directory; `/` but in tests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    root: PathBuf,
}

impl Default for Machine {
    fn default() -> Self {
        Self::at(Path::new("/"))
    }
}

impl Machine {
    /// The machine whose files are below `root`.
    pub fn at(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
        }
    }

    /// The file at `path`, which is relative to the root: `proc/1/stat`.
    pub(crate) fn file(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    /// Where control groups are mounted.
    pub(crate) fn groups(&self) -> PathBuf {
        self.file("sys/fs/cgroup")
    }

    /// The files of a process.
    pub(crate) fn process(&self, pid: u32) -> PathBuf {
        self.file("proc").join(pid.to_string())
    }
}
