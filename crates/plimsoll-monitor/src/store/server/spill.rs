//! Rows that wait on the disk while ClickHouse cannot take them: one file for each batch, the oldest first.

use std::collections::VecDeque;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use plimsoll_wire::files;

use crate::store::private;

/// Processes that share a folder, such as those that wait for the lease.
const MOST_PROCESSES: u32 = 64;

/// A folder of batches, of this process alone.
pub(super) struct Spill {
    folder: PathBuf,
    /// Held while the folder is in use; the system releases it when the process ends, however it does.
    _lock: File,
    /// Bytes of all batches together; beyond it the oldest are deleted.
    most: u64,
    batches: VecDeque<Batch>,
    bytes: u64,
    next: u64,
}

/// A batch in its file.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Batch {
    number: u64,
    rows: u64,
    bytes: u64,
}

impl Batch {
    fn name(&self) -> String {
        format!("{:020}-{}.rows", self.number, self.rows)
    }

    fn of_name(name: &str, bytes: u64) -> Option<Self> {
        let (number, rows) = name.strip_suffix(".rows")?.split_once('-')?;
        Some(Self {
            number: number.parse().ok()?,
            rows: rows.parse().ok()?,
            bytes,
        })
    }
}

impl Spill {
    /// Opens the first folder below `parent` that no other process uses, and finds the batches of the last run.
    pub(super) fn open(parent: &Path, most: u64) -> io::Result<Self> {
        let (folder, lock) = claim(parent)?;
        let mut batches = Vec::new();
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            let name = entry.file_name();
            let found = name
                .to_str()
                .and_then(|name| Some(Batch::of_name(name, entry.metadata().ok()?.len())));
            batches.extend(found.flatten());
        }
        batches.sort_by_key(|batch| batch.number);
        Ok(Self {
            folder,
            _lock: lock,
            most,
            bytes: batches.iter().map(|batch| batch.bytes).sum(),
            next: batches.last().map_or(0, |last| last.number + 1),
            batches: batches.into(),
        })
    }

    /// Rows that wait.
    pub(super) fn rows(&self) -> u64 {
        self.batches.iter().map(|batch| batch.rows).sum()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.batches.is_empty()
    }

    /// Adds a batch of lines; returns how many rows were deleted because there were too many.
    pub(super) fn push(&mut self, lines: &str, rows: u64) -> io::Result<u64> {
        let batch = Batch {
            number: self.next,
            rows,
            bytes: lines.len() as u64,
        };
        // A name must never outlive a loss of power without its content, nor be lost itself.
        files::replace_private(&self.folder.join(batch.name()), lines.as_bytes())?;
        self.next += 1;
        self.bytes += batch.bytes;
        self.batches.push_back(batch);
        let mut deleted = 0;
        while self.bytes > self.most && self.batches.len() > 1 {
            deleted += self.batches.front().map_or(0, |batch| batch.rows);
            self.pop()?;
        }
        Ok(deleted)
    }

    /// The lines of the oldest batches, which stay: of one at least, and of more up to `most` rows.
    ///
    /// A batch that cannot be read holds up no other: it is set aside, and its rows are counted.
    pub(super) fn oldest(&mut self, most: u64) -> io::Result<Oldest> {
        let mut oldest = Oldest::default();
        let mut rows = 0;
        while let Some(batch) = self.batches.get(oldest.batches.len()) {
            let path = self.folder.join(batch.name());
            let bytes = match fs::read(&path) {
                Ok(bytes) => bytes,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    oldest.damaged += batch.rows;
                    self.drop_batch(oldest.batches.len());
                    continue;
                }
                Err(error) => return Err(error),
            };
            let Ok(text) = String::from_utf8(bytes) else {
                oldest.damaged += batch.rows;
                oldest.set_aside.push(self.set_aside(&path)?);
                self.drop_batch(oldest.batches.len());
                continue;
            };
            rows += batch.rows;
            if !oldest.batches.is_empty() && rows > most {
                break;
            }
            // Lines that a loss of power cut off.
            let found = text.lines().count() as u64;
            oldest.damaged += batch.rows.saturating_sub(found);
            oldest.batches.push(text);
        }
        Ok(oldest)
    }

    /// Keeps the file of the oldest batch under another name, for people to look at, and goes on without it.
    pub(super) fn set_aside_oldest(&mut self) -> io::Result<Option<PathBuf>> {
        let Some(batch) = self.batches.front() else {
            return Ok(None);
        };
        let path = self.set_aside(&self.folder.join(batch.name()))?;
        self.drop_batch(0);
        Ok(Some(path))
    }

    fn set_aside(&self, path: &Path) -> io::Result<PathBuf> {
        let aside = path.with_extension("damaged");
        fs::rename(path, &aside)?;
        self.sync_folder()?;
        Ok(aside)
    }

    /// Deletes the oldest batch.
    pub(super) fn pop(&mut self) -> io::Result<()> {
        let Some(batch) = self.batches.front() else {
            return Ok(());
        };
        match fs::remove_file(self.folder.join(batch.name())) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        self.drop_batch(0);
        Ok(())
    }

    fn drop_batch(&mut self, index: usize) {
        if let Some(batch) = self.batches.remove(index) {
            self.bytes -= batch.bytes;
        }
    }

    fn sync_folder(&self) -> io::Result<()> {
        File::open(&self.folder)?.sync_all()
    }
}

/// The oldest batches.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Oldest {
    /// The lines of each.
    pub(super) batches: Vec<String>,
    /// Rows of batches that are missing or cannot be read.
    pub(super) damaged: u64,
    /// Where files that cannot be read are kept.
    pub(super) set_aside: Vec<PathBuf>,
}

fn claim(parent: &Path) -> io::Result<(PathBuf, File)> {
    for number in 0..MOST_PROCESSES {
        let folder = parent.join(number.to_string());
        private::create_folder(&folder)?;
        let lock = private::open(&folder.join("lock"))?;
        match lock.try_lock() {
            Ok(()) => return Ok((folder, lock)),
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
    Err(io::Error::other("too many processes use the folder"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_survive_a_restart_in_their_order() {
        let folder = tempfile::TempDir::new().unwrap();
        let open = || Spill::open(&folder.path().join("spill"), 1_000).unwrap();
        let mut spill = open();
        assert!(spill.is_empty());
        spill.push("[1]\n", 1).unwrap();
        spill.push("[2]\n[3]\n", 2).unwrap();
        // A process was killed while it wrote a batch.
        let name = Batch {
            number: 2,
            rows: 1,
            bytes: 2,
        };
        let partial = format!("spill/0/.{}.new", name.name());
        fs::write(folder.path().join(partial), "[9").unwrap();
        let mut spill = {
            drop(spill);
            open()
        };
        assert_eq!(spill.rows(), 3);
        spill.push("[4]\n", 1).unwrap();
        let mut all = String::new();
        let oldest = spill.oldest(3).unwrap();
        assert_eq!(oldest.batches, ["[1]\n", "[2]\n[3]\n"]);
        while !spill.is_empty() {
            let oldest = spill.oldest(1).unwrap();
            assert_eq!((oldest.batches.len(), oldest.damaged), (1, 0));
            all.push_str(&oldest.batches.concat());
            spill.pop().unwrap();
        }
        assert_eq!(all, "[1]\n[2]\n[3]\n[4]\n");
        // Another process, or another store of this one, has a folder of its own.
        assert!(open().is_empty());
        assert!(folder.path().join("spill/1").exists());
        drop(spill);
        assert!(open().is_empty());
    }

    #[test]
    fn files_that_are_missing_damaged_or_cut_off_hold_up_no_other_and_are_counted() {
        let folder = tempfile::TempDir::new().unwrap();
        let mut spill = Spill::open(folder.path(), 1_000).unwrap();
        for rows in ["[1]\n", "[2]\n[3]\n", "[4]\n[5]\n[6]\n", "[7]\n"] {
            spill.push(rows, rows.lines().count() as u64).unwrap();
        }
        let file = |batch: usize| {
            let batch = &spill.batches[batch];
            spill.folder.join(batch.name())
        };
        fs::remove_file(file(0)).unwrap();
        fs::write(file(1), b"\xff\xfe").unwrap();
        fs::write(file(2), "[4]\n[5").unwrap();
        let aside = file(1).with_extension("damaged");
        let oldest = spill.oldest(100).unwrap();
        assert_eq!(oldest.batches, ["[4]\n[5", "[7]\n"]);
        assert_eq!(oldest.damaged, 1 + 2 + 1);
        assert_eq!(oldest.set_aside, std::slice::from_ref(&aside));
        assert!(aside.exists());
        spill.pop().unwrap();
        spill.pop().unwrap();
        assert!(spill.is_empty());
        assert_eq!(spill.bytes, 0);
        drop(spill);
        assert!(Spill::open(folder.path(), 1_000).unwrap().is_empty());
    }

    #[test]
    fn the_oldest_batches_make_room() {
        let folder = tempfile::TempDir::new().unwrap();
        let mut spill = Spill::open(folder.path(), 10).unwrap();
        assert_eq!(spill.push("12345\n", 3).unwrap(), 0);
        assert_eq!(spill.push("67890\n", 2).unwrap(), 3);
        let oldest = spill.oldest(1).unwrap();
        assert_eq!(oldest.batches, ["67890\n"]);
        assert_eq!(spill.rows(), 2);
    }
}
