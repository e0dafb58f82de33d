//! The bytes of a payload: the index as JSON, and a trailer of fixed length at the very end.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use ring::digest::{Context, SHA256};
use serde::{Deserialize, Serialize};

/// The start of a trailer, with the version of the format at its end.
const MAGIC: &[u8; 16] = b"PLIMSOLL-PACK\0\0\x01";

/// Magic, three numbers of eight bytes in little endian, and the checksum.
pub(super) const TRAILER_BYTES: usize = 16 + 3 * 8 + 32;

/// Bytes that an index may have.
const MOST_INDEX_BYTES: u64 = 256 * 1024 * 1024;

/// The index of a payload.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Index {
    /// Keys of `files` that it is served with, as they stand in TOML, one a line.
    pub(super) keys: String,
    /// Lines of aliases and URLs.
    pub(super) links: String,
    pub(super) contents: Vec<Stored>,
    pub(super) files: Vec<IndexedFile>,
}

/// One content.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Stored {
    /// From the beginning of the payload.
    pub(super) offset: u64,
    pub(super) length: u64,
    /// SHA-256, as 64 hexadecimal digits.
    pub(super) hash: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct IndexedFile {
    pub(super) path: String,
    /// Seconds since 1970.
    pub(super) modified: Option<u64>,
    /// The place of its content.
    pub(super) content: usize,
    /// Names of codings with the places of their contents.
    pub(super) copies: Vec<(String, usize)>,
}

/// One file of a payload, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackedFile {
    /// Names joined by slashes.
    pub path: String,
    /// Bytes.
    pub length: u64,
    /// Codings that there are copies in, with their lengths.
    pub copies: Vec<(String, u64)>,
}

/// Offsets of the parts of a packed file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Trailer {
    /// End of the program and start of the payload.
    pub(super) payload: u64,
    /// Start of the index.
    pub(super) index: u64,
    /// End of the index and start of the trailer.
    pub(super) end: u64,
    pub(super) checksum: [u8; 32],
}

/// Why a payload cannot be made or read.
#[derive(Debug, thiserror::Error)]
pub enum PackError {
    /// A file or directory cannot be read or written.
    #[error("cannot {verb} {}", .path.display())]
    Io {
        /// The failed step.
        verb: &'static str,
        /// To what.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// It has no payload.
    #[error("{} is no packed site", .0.display())]
    NoPayload(PathBuf),
    /// Its bytes are not those that were written.
    #[error("{} is damaged: {reason}", .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The error.
        reason: &'static str,
    },
    /// A name that is not UTF-8.
    #[error("{} has a name that is not UTF-8", .0.display())]
    Name(PathBuf),
    /// A path that would lead out of where it is extracted to.
    #[error("the path `{0}` leads elsewhere")]
    Path(String),
    /// There is something where files are to be written.
    #[error("{} is there already", .0.display())]
    Occupied(PathBuf),
}

impl Trailer {
    /// The trailer of a file, if it has one that can be.
    pub(super) fn read(file: &File) -> io::Result<Option<Self>> {
        let length = file.metadata()?.len();
        let Some(end) = length.checked_sub(TRAILER_BYTES as u64) else {
            return Ok(None);
        };
        let mut bytes = [0; TRAILER_BYTES];
        file.read_exact_at(&mut bytes, end)?;
        let (magic, rest) = bytes.split_at(MAGIC.len());
        if magic != MAGIC {
            return Ok(None);
        }
        let number = |at: usize| {
            let mut number = [0; 8];
            number.copy_from_slice(&rest[at * 8..at * 8 + 8]);
            u64::from_le_bytes(number)
        };
        let mut checksum = [0; 32];
        checksum.copy_from_slice(&rest[24..]);
        let trailer = Self {
            payload: number(0),
            index: number(1),
            end: number(2),
            checksum,
        };
        let is_possible = trailer.payload <= trailer.index
            && trailer.index <= trailer.end
            && trailer.end == end
            && trailer.end - trailer.index <= MOST_INDEX_BYTES;
        Ok(is_possible.then_some(trailer))
    }

    pub(super) fn to_bytes(self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        for number in [self.payload, self.index, self.end] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        bytes.extend_from_slice(&self.checksum);
        bytes
    }

    /// The checksum of what is there.
    pub(super) fn computed(&self, file: &File) -> io::Result<[u8; 32]> {
        let mut context = Context::new(&SHA256);
        let mut buffer = vec![0; 256 * 1024];
        let mut at = self.payload;
        while at < self.end {
            let left = usize::try_from(self.end - at).unwrap_or(usize::MAX);
            let piece = left.min(buffer.len());
            file.read_exact_at(&mut buffer[..piece], at)?;
            context.update(&buffer[..piece]);
            at += piece as u64;
        }
        Ok(digest_bytes(&context.finish()))
    }
}

pub(super) fn digest_bytes(digest: &ring::digest::Digest) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes.copy_from_slice(digest.as_ref());
    bytes
}

/// SHA-256 in hexadecimal digits.
pub(super) fn hash_of(content: &[u8]) -> String {
    use std::fmt::Write;

    let digest = ring::digest::digest(&SHA256, content);
    digest
        .as_ref()
        .iter()
        .fold(String::new(), |mut text, byte| {
            write!(text, "{byte:02x}").expect("a String takes whatever is written");
            text
        })
}
