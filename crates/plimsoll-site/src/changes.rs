//! Whether anything below a directory has changed, as reported by the kernel rather than looked up for each request.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use notify::event::{AccessKind, AccessMode};
use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher};

/// A number that grows when something changes.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    generation: AtomicU64,
    /// Changes that the kernel reported, without suspicions.
    seen: AtomicU64,
    /// Changes are not reported.
    is_blind: bool,
}

/// How often the root itself is looked at, and how long a change may stay unknown where it cannot be watched.
const LOOK: Duration = Duration::from_secs(1);

/// Looks after which it is tried again to watch: there may be room for a watch by then.
const RETRY: u32 = 60;

/// Tidings that may wait; more say nothing new.
const MOST_WAITING: usize = 16;

impl Changes {
    /// Watches `root` with all below it, by a thread that ends once the value is dropped.
    ///
    /// Where it cannot be watched, it counts as changed every second; without a thread, always.
    pub(crate) fn watch(root: PathBuf) -> Arc<Self> {
        let changes = Arc::new(Self::default());
        let changes_weak = Arc::downgrade(&changes);
        let thread = thread::Builder::new().name("site-changes".to_owned());
        match thread.spawn(move || Watch::new(root).run(&changes_weak)) {
            Ok(_) => changes,
            Err(_) => Arc::new(Self {
                is_blind: true,
                ..Self::default()
            }),
        }
    }

    /// Of things that never change.
    #[cfg(test)]
    pub(crate) fn none() -> Arc<Self> {
        Arc::default()
    }

    #[inline]
    pub(crate) fn generation(&self) -> u64 {
        if self.is_blind {
            self.changed();
        }
        self.generation.load(Ordering::Acquire)
    }

    /// How often something was seen to change since it is watched.
    pub(crate) fn seen(&self) -> u64 {
        self.seen.load(Ordering::Acquire)
    }

    pub(crate) fn changed(&self) {
        self.generation.fetch_add(1, Ordering::Release);
    }
}

/// By what a directory is known to be another one.
type Stamp = Option<(u64, u64)>;

fn stamp(root: &Path) -> Stamp {
    let metadata = fs::metadata(root).ok()?;
    Some((metadata.dev(), metadata.ino()))
}

struct Watch {
    root: PathBuf,
    seen: Stamp,
    watcher: Option<RecommendedWatcher>,
    /// Looks until it is tried again to watch what cannot be watched.
    until_retry: u32,
    sender: SyncSender<()>,
    tidings: Receiver<()>,
}

impl Watch {
    fn new(root: PathBuf) -> Self {
        let (sender, tidings) = sync_channel(MOST_WAITING);
        // Looked at before it is watched: if it is another one by then, that is found out.
        let seen = stamp(&root);
        Self {
            watcher: watcher(&root, sender.clone()),
            root,
            seen,
            until_retry: RETRY,
            sender,
            tidings,
        }
    }

    fn run(mut self, changes_weak: &Weak<Changes>) {
        // What changed before it was watched is not known.
        if let Some(changes) = changes_weak.upgrade() {
            changes.changed();
        }
        loop {
            let waited = self.tidings.recv_timeout(LOOK);
            let Some(changes) = changes_weak.upgrade() else {
                return;
            };
            if waited.is_ok() || self.watcher.is_none() {
                changes.changed();
            }
            if waited.is_ok() {
                changes.seen.fetch_add(1, Ordering::Release);
            }
            let now = stamp(&self.root);
            if self.watcher.is_none() {
                self.until_retry -= 1;
            }
            if now != self.seen || self.until_retry == 0 {
                self.seen = now;
                self.until_retry = RETRY;
                self.watcher = watcher(&self.root, self.sender.clone());
                changes.changed();
            }
        }
    }
}

/// What watches, if it can.
fn watcher(root: &Path, sender: SyncSender<()>) -> Option<RecommendedWatcher> {
    let handler = move |event: notify::Result<notify::Event>| {
        let is_change = event.map_or(true, |event| match event.kind {
            EventKind::Access(AccessKind::Close(AccessMode::Write)) => true,
            EventKind::Access(_) => false,
            _ => true,
        });
        if is_change {
            // If there is no room, it is about to be known anyway.
            sender.try_send(()).ok();
        }
    };
    // A link is followed here, since a watch is of what it leads to.
    let root = fs::canonicalize(root).ok()?;
    let mut watcher = notify::recommended_watcher(handler).ok()?;
    watcher.watch(&root, RecursiveMode::Recursive).ok()?;
    Some(watcher)
}

#[cfg(test)]
mod tests {
    use plimsoll_testkit::eventually;

    use super::*;

    #[test]
    fn changes_are_noticed_below_and_of_the_root_itself() {
        let outer = tempfile::tempdir().unwrap();
        let (one, other) = (outer.path().join("one"), outer.path().join("other"));
        for root in [&one, &other] {
            fs::create_dir_all(root.join("a/b")).unwrap();
        }
        let link = outer.path().join("link");
        std::os::unix::fs::symlink(&one, &link).unwrap();
        let changes = Changes::watch(link.clone());
        eventually(|| changes.generation() > 0);
        let changed_by = |change: &dyn Fn()| {
            let before = changes.generation();
            change();
            eventually(|| changes.generation() > before);
        };
        changed_by(&|| fs::write(one.join("a/b/c"), "1").unwrap());
        changed_by(&|| fs::rename(one.join("a"), one.join("d")).unwrap());
        let turned = || {
            let new = outer.path().join("new");
            std::os::unix::fs::symlink(&other, &new).unwrap();
            fs::rename(&new, &link).unwrap();
        };
        changed_by(&turned);
        changed_by(&|| fs::write(other.join("a/b/c"), "1").unwrap());
        changed_by(&|| fs::remove_dir_all(&other).unwrap());
        changed_by(&|| fs::create_dir_all(&other).unwrap());
    }
}
