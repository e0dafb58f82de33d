//! Changes below folders, as the system reports them.
//!
//! On Linux an event can be read as soon as the change is visible, so a read that does not wait decides whether cached
//! files are still valid. Where the system reports no changes, or its watches are used up, the answer is
//! [`FolderNews::Unknown`], and callers have to look at the files themselves.

use std::path::PathBuf;
use std::time::Duration;

#[cfg(target_os = "linux")]
mod inotify;

#[cfg(target_os = "linux")]
use self::inotify::Watch;

#[cfg(not(target_os = "linux"))]
mod none;

#[cfg(not(target_os = "linux"))]
use self::none::Watch;

/// Calls after which watching is attempted again: an attempt lists every folder, and a caller may call once per request.
const CALLS_UNTIL_RETRY: u32 = 64;

/// Folders with everything below them, watched by one caller.
#[derive(Debug)]
pub struct FolderWatch {
    roots: Vec<PathBuf>,
    limit: usize,
    watch: Option<Watch>,
    calls_until_retry: u32,
}

/// Changes since the previous call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FolderNews {
    /// Nothing has changed.
    None,
    /// Something may have changed.
    Changed,
    /// Changes are not reported, so nothing read before may be relied on.
    Unknown,
}

impl FolderWatch {
    /// Watches `roots` with all folders below them. A root may be a link, links below it are not followed.
    ///
    /// - `limit`: most folders to watch. The system has a limited number of watches for all programs of a user. With more
    ///   folders than this, every answer is [`FolderNews::Unknown`].
    pub fn new(roots: Vec<PathBuf>, limit: usize) -> Self {
        Self {
            watch: Watch::new(&roots, limit),
            roots,
            limit,
            calls_until_retry: CALLS_UNTIL_RETRY,
        }
    }

    /// Reports changes since the previous call. Does not wait: one system call.
    pub fn news(&mut self) -> FolderNews {
        match &mut self.watch {
            Some(watch) => match watch.news() {
                FolderNews::Unknown => self.lost(),
                news => news,
            },
            None => self.attempt(),
        }
    }

    /// As [`news`](Self::news), and waits up to `longest` for something to happen. Blocks the thread.
    ///
    /// Returns [`FolderNews::Unknown`] after `longest` where changes are not reported.
    pub fn wait(&mut self, longest: Duration) -> FolderNews {
        match &mut self.watch {
            Some(watch) => watch.wait(longest),
            None => Watch::wait_blindly(longest),
        }
        self.news()
    }

    /// Watches again: a root has been removed or replaced, or events were lost.
    pub fn restart(&mut self) {
        self.watch = Watch::new(&self.roots, self.limit);
        self.calls_until_retry = CALLS_UNTIL_RETRY;
    }

    fn lost(&mut self) -> FolderNews {
        self.restart();
        if self.watch.is_some() {
            FolderNews::Changed
        } else {
            FolderNews::Unknown
        }
    }

    fn attempt(&mut self) -> FolderNews {
        self.calls_until_retry -= 1;
        if self.calls_until_retry > 0 {
            FolderNews::Unknown
        } else {
            self.lost()
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests;
