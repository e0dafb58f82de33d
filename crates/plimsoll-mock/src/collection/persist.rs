//! Changes on their way to the disk.

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// Where a collection is kept.
#[derive(Debug)]
pub(super) struct Keeper {
    file: Arc<PathBuf>,
    /// The last version that was written.
    written: Arc<Mutex<u64>>,
}

/// A version of a collection that is to be written.
#[derive(Debug)]
pub(crate) struct Written {
    file: Arc<PathBuf>,
    last: Arc<Mutex<u64>>,
    version: u64,
    text: String,
}

impl Keeper {
    pub(super) fn new(file: PathBuf) -> Self {
        Self {
            file: Arc::new(file),
            written: Arc::default(),
        }
    }

    pub(super) fn written(&self, version: u64, text: String) -> Written {
        Written {
            file: Arc::clone(&self.file),
            last: Arc::clone(&self.written),
            version,
            text,
        }
    }
}

impl Written {
    /// Writes it, unless a later version was written already: the file holds one version or another, whole. Blocks.
    pub(crate) fn write(&self) -> io::Result<()> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if *last >= self.version {
            return Ok(());
        }
        let mut name = self.file.file_name().unwrap_or_default().to_owned();
        name.push(".new");
        // Folders show no file whose name begins with a dot.
        let mut hidden = std::ffi::OsString::from(".");
        hidden.push(name);
        let beside = self.file.with_file_name(hidden);
        let mut file = fs::File::create(&beside)?;
        file.write_all(self.text.as_bytes())?;
        file.write_all(b"\n")?;
        file.sync_all()?;
        fs::rename(&beside, &*self.file)?;
        *last = self.version;
        Ok(())
    }
}
