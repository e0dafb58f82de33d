//! The archive: everything in one folder, to be unpacked anywhere.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use flate2::{Compression, GzBuilder};
use tar::{Builder, EntryType, Header};

use super::files::{self, Staged};
use super::{Release, cannot};
use crate::{Failure, Outcome};

/// Writes `NAME.tar.gz`.
pub(super) fn write(out: &Path, release: &Release, staged: &Staged) -> Result<PathBuf, Failure> {
    let name = release.name();
    let path = out.join(format!("{name}.tar.gz"));
    let file = File::create(&path).map_err(|error| cannot("write", &path, &error))?;
    let mut tar = Tarball::new(
        GzBuilder::new().write(BufWriter::new(file), Compression::best()),
        release.epoch,
    );
    for inner in files::below(&staged.0)? {
        tar.file(&staged.0.join(&inner), &Path::new(&name).join(&inner))?;
    }
    let finished = tar.finish()?.finish().and_then(|mut file| file.flush());
    finished.map_err(|error| cannot("write", &path, &error))?;
    Ok(path)
}

/// A tar file whose bytes depend on its content alone: files are of root, and as old as the commit.
pub(super) struct Tarball<W: Write> {
    tar: Builder<W>,
    epoch: u64,
}

impl<W: Write> Tarball<W> {
    pub(super) fn new(to: W, epoch: u64) -> Self {
        Self {
            tar: Builder::new(to),
            epoch,
        }
    }

    /// Adds the file `from` as `path`, executable if it is.
    pub(super) fn file(&mut self, from: &Path, path: &Path) -> Outcome {
        let read = || -> std::io::Result<_> {
            let mode = fs::metadata(from)?.permissions().mode();
            Ok((fs::read(from)?, mode))
        };
        let (content, mode) = read().map_err(|error| cannot("read", from, &error))?;
        let mode = if mode & 0o100 == 0 { 0o644 } else { 0o755 };
        self.content(&content, path, mode)
    }

    /// Adds a file with this content.
    pub(super) fn content(&mut self, content: &[u8], path: &Path, mode: u32) -> Outcome {
        let mut header = self.header(EntryType::Regular, mode);
        header.set_size(content.len() as u64);
        self.append(header, path, content)
    }

    /// Adds a folder.
    pub(super) fn folder(&mut self, path: &Path, mode: u32) -> Outcome {
        let mut header = self.header(EntryType::Directory, mode);
        header.set_size(0);
        self.append(header, path, &[])
    }

    /// What it was written to.
    pub(super) fn finish(self) -> Result<W, Failure> {
        let finished = self.tar.into_inner();
        finished.map_err(|error| format!("cannot write a tar file: {error}").into())
    }

    fn header(&self, kind: EntryType, mode: u32) -> Header {
        let mut header = Header::new_ustar();
        header.set_entry_type(kind);
        header.set_mode(mode);
        header.set_mtime(self.epoch);
        header.set_uid(0);
        header.set_gid(0);
        header
    }

    fn append(&mut self, mut header: Header, path: &Path, content: &[u8]) -> Outcome {
        let appended = self.tar.append_data(&mut header, path, content);
        appended.map_err(|error| cannot("package", path, &error))
    }
}
