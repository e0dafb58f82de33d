//! Changes as Linux reports them (inotify(7)).

use std::fs;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::inotify::{CreateFlags, ReadFlags, Reader, WatchFlags, add_watch, init};
use rustix::io::Errno;

use super::News;

/// More folders than these are not watched: the system has only so many watches for all of a user's programs.
const MOST_FOLDERS: usize = 4096;

/// Links may lead in circles.
const DEEPEST: usize = 64;

#[derive(Debug)]
pub(super) struct Watch {
    events: OwnedFd,
    roots: Vec<PathBuf>,
}

impl Watch {
    pub(super) fn new(roots: &[PathBuf]) -> Option<Self> {
        let watch = Self {
            events: init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).ok()?,
            roots: roots.to_vec(),
        };
        watch.add_all().then_some(watch)
    }

    /// Whether every folder is watched now.
    fn add_all(&self) -> bool {
        let mut left = MOST_FOLDERS;
        self.roots
            .iter()
            .all(|root| self.add(root, &mut left, DEEPEST))
    }

    /// Watches a folder before it is listed, so that what comes into it meanwhile is seen.
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
            // Links are not followed: where they lead inside of the folder is watched as such.
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            !is_folder || self.add(&entry.path(), left, depth)
        })
    }

    pub(super) fn news(&mut self) -> News {
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
                        return News::Unknown;
                    }
                    let came = ReadFlags::CREATE | ReadFlags::MOVED_TO | ReadFlags::MOVED_FROM;
                    has_new_folders |= events.contains(ReadFlags::ISDIR) && events.intersects(came);
                }
                Err(Errno::WOULDBLOCK) => break,
                Err(Errno::INTR) => {}
                Err(_) => return News::Unknown,
            }
        }
        if has_new_folders && !self.add_all() {
            return News::Unknown;
        }
        if has_news { News::Changed } else { News::None }
    }
}
