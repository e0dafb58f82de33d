//! Changes as Linux reports them (inotify(7)).

use std::fs;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{CreateFlags, ReadFlags, Reader, WatchFlags, add_watch, init};
use rustix::io::Errno;

use super::FolderNews;

/// Folders deeper than this are not watched: the walk is recursive, and no path the kernel opens at once (4,096 bytes) has
/// many more useful levels.
const DEEPEST: usize = 64;

#[derive(Debug)]
pub(super) struct Watch {
    events: OwnedFd,
    roots: Vec<PathBuf>,
    limit: usize,
}

impl Watch {
    pub(super) fn new(roots: &[PathBuf], limit: usize) -> Option<Self> {
        let watch = Self {
            events: init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).ok()?,
            roots: roots.to_vec(),
            limit,
        };
        watch.add_all().then_some(watch)
    }

    /// Whether every folder is watched now.
    fn add_all(&self) -> bool {
        let mut left = self.limit;
        self.roots
            .iter()
            .all(|root| self.add(root, &mut left, DEEPEST))
    }

    /// Watches a folder before listing it, so that a folder created meanwhile is noticed.
    fn add(&self, folder: &Path, left: &mut usize, depth: usize) -> bool {
        let (Some(fewer), Some(depth)) = (left.checked_sub(1), depth.checked_sub(1)) else {
            return false;
        };
        *left = fewer;
        let flags = WatchFlags::ATTRIB
            | WatchFlags::CREATE
            | WatchFlags::DELETE
            | WatchFlags::DELETE_SELF
            | WatchFlags::MODIFY
            | WatchFlags::MOVE
            | WatchFlags::MOVE_SELF
            | WatchFlags::ONLYDIR;
        if add_watch(&self.events, folder, flags).is_err() {
            return false;
        }
        let Ok(entries) = fs::read_dir(folder) else {
            return false;
        };
        entries.flatten().all(|entry| {
            // Links are not followed: the folder that one leads to is watched where it is, if it lies below a root.
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            !is_folder || self.add(&entry.path(), left, depth)
        })
    }

    pub(super) fn news(&mut self) -> FolderNews {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut reader = Reader::new(&self.events, &mut buffer);
        let mut has_news = false;
        let mut has_new_folders = false;
        loop {
            match reader.next() {
                Ok(event) => {
                    has_news = true;
                    let events = event.events();
                    let lost = ReadFlags::QUEUE_OVERFLOW
                        | ReadFlags::IGNORED
                        | ReadFlags::MOVE_SELF
                        | ReadFlags::UNMOUNT;
                    if events.intersects(lost) {
                        return FolderNews::Unknown;
                    }
                    let came = ReadFlags::CREATE | ReadFlags::MOVED_TO | ReadFlags::MOVED_FROM;
                    has_new_folders |= events.contains(ReadFlags::ISDIR) && events.intersects(came);
                }
                Err(Errno::WOULDBLOCK) => break,
                Err(Errno::INTR) => {}
                Err(_) => return FolderNews::Unknown,
            }
        }
        if has_new_folders && !self.add_all() {
            return FolderNews::Unknown;
        }
        if has_news {
            FolderNews::Changed
        } else {
            FolderNews::None
        }
    }

    /// Waits until an event can be read, or `longest`. A signal may end the wait early.
    pub(super) fn wait(&mut self, longest: Duration) {
        let mut ready = [PollFd::new(&self.events, PollFlags::IN)];
        let timeout = Timespec::try_from(longest).ok();
        // However it ends, the caller reads next.
        let _outcome = poll(&mut ready, timeout.as_ref());
    }

    pub(super) fn wait_blindly(longest: Duration) {
        let timeout = Timespec::try_from(longest).ok();
        let _outcome = poll(&mut [], timeout.as_ref());
    }
}
