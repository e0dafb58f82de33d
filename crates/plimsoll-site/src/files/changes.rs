//! Whether anything below a directory has changed, as reported by the kernel rather than looked up for each request.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use plimsoll_wire::{FolderNews, FolderWatch};

/// A number that grows when something changes.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    generation: AtomicU64,
    /// Changes that the kernel reported, without suspicions.
    seen: AtomicU64,
    /// Changes are not reported.
    is_blind: bool,
}

/// How often the root itself is checked, and how long a change may go unnoticed where changes are not reported.
const LOOK: Duration = Duration::from_secs(1);

/// More folders than these are not watched. Linux permits a user 8,192 to 1,048,576 watches, by the machine's memory.
const MOST_FOLDERS: usize = 65_536;

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

    /// Number of changes seen since it is watched.
    pub(crate) fn seen(&self) -> u64 {
        self.seen.load(Ordering::Acquire)
    }

    pub(crate) fn changed(&self) {
        self.generation.fetch_add(1, Ordering::Release);
    }
}

/// Identifies a directory: its device and its number.
type Stamp = Option<(u64, u64)>;

fn stamp(root: &Path) -> Stamp {
    let metadata = fs::metadata(root).ok()?;
    Some((metadata.dev(), metadata.ino()))
}

struct Watch {
    root: PathBuf,
    stamp: Stamp,
    folders: FolderWatch,
}

impl Watch {
    fn new(root: PathBuf) -> Self {
        // Before the watch begins: if the root is replaced in between, the next look notices.
        let stamp = stamp(&root);
        let folders = FolderWatch::new(vec![root.clone()], MOST_FOLDERS);
        Self {
            root,
            stamp,
            folders,
        }
    }

    fn run(mut self, changes_weak: &Weak<Changes>) {
        // Changes from before the watch are not known.
        if let Some(changes) = changes_weak.upgrade() {
            changes.changed();
        }
        loop {
            let news = self.folders.wait(LOOK);
            let Some(changes) = changes_weak.upgrade() else {
                return;
            };
            if news == FolderNews::Changed {
                changes.seen.fetch_add(1, Ordering::Release);
            }
            if news != FolderNews::None {
                changes.changed();
            }
            // A watch follows the folder that a link led to, and nothing reports that the link leads elsewhere now.
            let now = stamp(&self.root);
            if now != self.stamp {
                self.stamp = now;
                self.folders.restart();
                changes.changed();
            }
        }
    }
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
