//! The files of a site, wherever they are stored.

use std::io;

use plimsoll_server::{Coding, FilePart};

/// Files by their paths. A path is names joined by slashes, empty for the root.
pub(crate) trait Tree {
    /// The file or directory; `NotFound` if there is none that may be read.
    fn find(&self, path: &str) -> io::Result<TreeEntry>;

    /// Compressed copies of a file that was found at `path`.
    fn copies(&self, path: &str, file: &SiteFile) -> Vec<StoredCopy>;

    /// The entries of a directory, in no order.
    fn list(&self, path: &str) -> io::Result<Vec<Listed>>;

    /// Another number than before if anything may have changed.
    fn generation(&self) -> u64;
}

/// A tree without files, for sites that have short links and nothing else.
#[derive(Debug)]
pub(crate) struct NoFiles;

impl Tree for NoFiles {
    fn find(&self, _: &str) -> io::Result<TreeEntry> {
        Err(io::ErrorKind::NotFound.into())
    }

    fn copies(&self, _: &str, _: &SiteFile) -> Vec<StoredCopy> {
        Vec::new()
    }

    fn list(&self, _: &str) -> io::Result<Vec<Listed>> {
        Err(io::ErrorKind::NotFound.into())
    }

    fn generation(&self) -> u64 {
        0
    }
}

/// A file or directory.
#[derive(Debug)]
pub(crate) enum TreeEntry {
    File(SiteFile),
    Directory,
}

/// An open file.
#[derive(Debug, Clone)]
pub(crate) struct SiteFile {
    pub(crate) part: FilePart,
    /// Seconds since 1970.
    pub(crate) modified: Option<u64>,
    pub(crate) tag: Tag,
}

/// A compressed copy of a file.
#[derive(Debug, Clone)]
pub(crate) struct StoredCopy {
    pub(crate) coding: Coding,
    pub(crate) part: FilePart,
    pub(crate) tag: Tag,
}

/// An entity tag (RFC 9110, section 8.8.3).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Tag {
    /// The same tag does not promise the same bytes.
    pub(crate) is_weak: bool,
    /// The text within the quotes.
    pub(crate) opaque: String,
    /// Distinguishes files here, not for clients: the number of the file, and the time of its last change of
    /// any kind, in nanoseconds since 1970.
    pub(crate) file: (u64, i128),
}

impl Tag {
    /// As a header field has it.
    pub(crate) fn shown(&self) -> String {
        let weak = if self.is_weak { "W/" } else { "" };
        format!("{weak}\"{}\"", self.opaque)
    }

    /// That of the same file compressed on the way: like it, but not in bytes.
    pub(crate) fn coded(&self, coding: Coding) -> Self {
        Self {
            is_weak: true,
            opaque: format!("{}-{}", self.opaque, coding.name()),
            file: self.file,
        }
    }
}

/// One entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Listed {
    pub(crate) name: String,
    pub(crate) is_directory: bool,
    /// Bytes, of a file.
    pub(crate) length: u64,
    /// Seconds since 1970.
    pub(crate) modified: Option<u64>,
}
