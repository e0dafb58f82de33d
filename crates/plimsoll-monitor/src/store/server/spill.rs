//! Rows that wait on the disk while ClickHouse cannot take them: one file for each batch, the oldest first.

use std::collections::VecDeque;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

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
        // A file that is not whole has another name.
        let partial = self.folder.join("partial");
        private::write(&partial, lines.as_bytes())?;
        fs::rename(&partial, self.folder.join(batch.name()))?;
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

    /// The lines of the oldest batches, which stay, and how many batches that are: at least one, and more up to `most` rows.
    pub(super) fn oldest(&self, most: u64) -> io::Result<Option<(String, usize)>> {
        let (mut lines, mut rows, mut count) = (String::new(), 0, 0);
        for batch in &self.batches {
            rows += batch.rows;
            if count > 0 && rows > most {
                break;
            }
            lines.push_str(&fs::read_to_string(self.folder.join(batch.name()))?);
            count += 1;
        }
        Ok((count > 0).then_some((lines, count)))
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
        self.bytes -= batch.bytes;
        self.batches.pop_front();
        Ok(())
    }
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
        fs::write(folder.path().join("spill/0/partial"), "[9").unwrap();
        let mut spill = {
            drop(spill);
            open()
        };
        assert_eq!(spill.rows(), 3);
        spill.push("[4]\n", 1).unwrap();
        let mut all = String::new();
        let (lines, count) = spill.oldest(3).unwrap().unwrap();
        assert_eq!((lines.as_str(), count), ("[1]\n[2]\n[3]\n", 2));
        while let Some((lines, count)) = spill.oldest(1).unwrap() {
            assert_eq!(count, 1);
            all.push_str(&lines);
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
    fn the_oldest_batches_make_room() {
        let folder = tempfile::TempDir::new().unwrap();
        let mut spill = Spill::open(folder.path(), 10).unwrap();
        assert_eq!(spill.push("12345\n", 3).unwrap(), 0);
        assert_eq!(spill.push("67890\n", 2).unwrap(), 3);
        let (lines, _) = spill.oldest(1).unwrap().unwrap();
        assert_eq!(lines, "67890\n");
        assert_eq!(spill.rows(), 2);
    }
}
