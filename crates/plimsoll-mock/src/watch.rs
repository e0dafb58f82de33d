//! Whether something in a folder has changed.
//!
//! On Linux the system reports changes: an event is there once the change is, so one read that does not
//! wait says whether what is kept of files still holds. Elsewhere, and where the system has no more to give,
//! nothing is kept and each file is looked at each time.

use std::path::PathBuf;

#[cfg(target_os = "linux")]
mod inotify;

#[cfg(target_os = "linux")]
use self::inotify::Watch;

#[cfg(not(target_os = "linux"))]
mod none;

#[cfg(not(target_os = "linux"))]
use self::none::Watch;

/// Folders with everything in them, as one worker watches them.
#[derive(Debug)]
pub(crate) struct Watcher {
    roots: Vec<PathBuf>,
    watch: Option<Watch>,
}

/// What a worker knows of its folders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum News {
    /// What was read since the last question still holds.
    None,
    /// It may hold no more.
    Changed,
    /// Changes are not watched, so nothing may be kept.
    Unknown,
}

impl Watcher {
    /// Watches folders and what is in them.
    pub(crate) fn new(roots: Vec<PathBuf>) -> Self {
        let watch = Watch::new(&roots);
        Self { roots, watch }
    }

    /// What has happened since the last call. Does not wait.
    pub(crate) fn news(&mut self) -> News {
        let Some(watch) = &mut self.watch else {
            self.watch = Watch::new(&self.roots);
            return if self.watch.is_some() {
                News::Changed
            } else {
                News::Unknown
            };
        };
        match watch.news() {
            News::Unknown => {
                self.watch = None;
                News::Unknown
            }
            news => news,
        }
    }
}
