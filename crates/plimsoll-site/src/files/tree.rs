//! The files of a site, wherever they are stored.

use std::fmt::{Debug, Write as _};
use std::io;

use plimsoll_server::{Coding, FilePart};
use ring::digest::{SHA256, digest};

/// Files by their paths, for all workers. A path is names joined by slashes, empty for the root.
pub(crate) trait Tree: Debug + Send + Sync {
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
    /// The last change of any kind, in nanoseconds since 1970; the least number for what never changes.
    pub(crate) changed: i128,
}

/// The time, in nanoseconds, for which a file may change again without another time of its change: some file systems count
/// in two seconds, others in the ticks of the kernel.
const RESOLUTION: i128 = 2_000_000_000;

/// Content up to this length, in bytes, is hashed to distinguish it from earlier content.
const HASHED: u64 = 4 * 1024 * 1024;

impl Tag {
    /// As a header field has it.
    pub(crate) fn shown(&self) -> String {
        let weak = if self.is_weak { "W/" } else { "" };
        format!("{weak}\"{}\"", self.opaque)
    }

    /// Whether the file may have changed without another tag, as seen at `now`, in nanoseconds since 1970.
    pub(crate) fn is_unsure(&self, now: i128) -> bool {
        self.changed > now - RESOLUTION
    }

    /// The tag as it is shown at `now`, and whether it says all about the content. Where the times of the file do not, the
    /// content does; where that is too long to be read, the tag is another one each time, and is to be made again.
    ///
    /// - `part`: the content. Fails where it cannot be read.
    pub(crate) fn at(mut self, part: &FilePart, now: i128) -> io::Result<(Self, bool)> {
        if !self.is_unsure(now) {
            return Ok((self, true));
        }
        let is_hashed = part.length() <= HASHED;
        if is_hashed {
            let hash = digest(&SHA256, &part.read()?);
            for byte in hash.as_ref().iter().take(8) {
                write!(self.opaque, "{byte:02x}").expect("a String takes everything");
            }
        } else {
            write!(self.opaque, "-{now:x}").expect("a String takes everything");
        }
        Ok((self, is_hashed))
    }

    /// That of the same file compressed on the way: like it, but not in bytes.
    pub(crate) fn coded(&self, coding: Coding) -> Self {
        Self {
            is_weak: true,
            opaque: format!("{}-{}", self.opaque, coding.name()),
            changed: self.changed,
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
