//! Changes on their way to the disk.

use std::io::{self, BufWriter, Write as _};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use plimsoll_wire::files::NewFile;

use super::database::Snapshot;

/// File of a persistent database.
#[derive(Debug)]
pub(super) struct Keeper {
    file: Arc<PathBuf>,
    /// The last version that was written.
    written: Arc<Mutex<u64>>,
}

/// A version of a database that is to be written.
#[derive(Debug)]
pub(crate) struct DatabaseVersion {
    file: Arc<PathBuf>,
    last: Arc<Mutex<u64>>,
    snapshot: Snapshot,
}

impl Keeper {
    pub(super) fn new(file: PathBuf) -> Self {
        Self {
            file: Arc::new(file),
            written: Arc::default(),
        }
    }

    pub(super) fn written(&self, snapshot: Snapshot) -> DatabaseVersion {
        DatabaseVersion {
            file: Arc::clone(&self.file),
            last: Arc::clone(&self.written),
            snapshot,
        }
    }
}

impl DatabaseVersion {
    /// Writes it, unless a later version was written already: the file holds one version or another, whole. Blocks.
    pub(crate) fn write(&self) -> io::Result<()> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if *last >= self.snapshot.version {
            return Ok(());
        }
        let mut new = NewFile::beside(&self.file)?;
        let mut writer = BufWriter::new(new.file());
        self.snapshot.write(&mut writer)?;
        writer.write_all(b"\n")?;
        writer.flush()?;
        drop(writer);
        new.put()?;
        *last = self.snapshot.version;
        Ok(())
    }
}
