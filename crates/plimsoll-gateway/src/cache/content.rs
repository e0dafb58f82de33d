//! The content of a stored response.

use std::io;
use std::ops::Range;

use bytes::Bytes;
use plimsoll_server::{FilePart, ResponseBody};

/// Content in memory, or a part of the file that a response is stored in.
#[derive(Debug, Clone)]
pub(super) enum Content {
    Memory(Bytes),
    /// The file stays as it is as long as it is open, also once it is removed.
    File(FilePart),
}

impl Content {
    /// Bytes of it.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Memory(bytes) => bytes.len(),
            Self::File(part) => usize::try_from(part.length()).unwrap_or(usize::MAX),
        }
    }

    /// Bytes of memory that it takes.
    pub(super) fn in_memory(&self) -> usize {
        match self {
            Self::Memory(bytes) => bytes.len(),
            Self::File(_) => 0,
        }
    }

    /// A part of it, within its length.
    pub(super) fn slice(&self, range: Range<usize>) -> Self {
        match self {
            Self::Memory(bytes) => Self::Memory(bytes.slice(range)),
            Self::File(part) => Self::File(part.slice(range.start as u64..range.end as u64)),
        }
    }

    /// All of it; reads the file.
    pub(super) fn read(&self) -> io::Result<Bytes> {
        match self {
            Self::Memory(bytes) => Ok(bytes.clone()),
            Self::File(part) => part.read(),
        }
    }

    /// As the content of a response.
    pub(super) fn into_body(self) -> ResponseBody {
        match self {
            Self::Memory(bytes) if bytes.is_empty() => ResponseBody::Empty,
            Self::Memory(bytes) => ResponseBody::Bytes(bytes),
            Self::File(part) => ResponseBody::File(part),
        }
    }
}
