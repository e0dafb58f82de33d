//! Files that are looked at from time to time: certificates and keys, rules.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

/// Files, as they were when they were loaded and when they were last looked at.
#[derive(Debug)]
pub struct WatchedFiles {
    files: Vec<PathBuf>,
    loaded: Vec<Stamp>,
    seen: Vec<Stamp>,
}

/// By what a file is known to be another: its number, length and time of change, if it is there.
type Stamp = Option<(u64, u64, i64, i64)>;

impl WatchedFiles {
    /// As they are now, which is how they are about to be loaded.
    pub fn new(files: Vec<PathBuf>) -> Self {
        let loaded = stamps(&files);
        Self {
            files,
            seen: loaded.clone(),
            loaded,
        }
    }

    /// Whether they are others than those that were loaded, and the same as at the last look: a file takes a while to
    /// be written, and a certificate is written before its key or after it. A change is reported once.
    pub fn has_changed(&mut self) -> bool {
        let now = stamps(&self.files);
        let has_settled = now == self.seen;
        self.seen = now;
        if !has_settled || self.seen == self.loaded {
            return false;
        }
        self.loaded.clone_from(&self.seen);
        true
    }
}

fn stamps(files: &[PathBuf]) -> Vec<Stamp> {
    let stamp = |file: &PathBuf| {
        let metadata = fs::metadata(file).ok()?;
        Some((
            metadata.ino(),
            metadata.len(),
            metadata.mtime(),
            metadata.mtime_nsec(),
        ))
    };
    files.iter().map(stamp).collect()
}

#[cfg(test)]
mod tests {
    use plimsoll_testkit::MaterialFiles;

    use super::*;

    #[test]
    fn a_change_is_reported_once_and_when_it_has_settled() {
        let files = MaterialFiles::new();
        let (one, other) = (files.write("one", "1"), files.path("other"));
        let mut watched = WatchedFiles::new(vec![one.clone(), other.clone()]);
        assert!(!watched.has_changed());
        fs::write(&one, "12").unwrap();
        assert!(!watched.has_changed());
        fs::write(&other, "1").unwrap();
        assert!(!watched.has_changed());
        assert!(watched.has_changed());
        assert!(!watched.has_changed());
        fs::remove_file(&other).unwrap();
        assert!(!watched.has_changed());
        assert!(watched.has_changed());
    }
}
