//! A site within an executable: what follows the program in its file.
//!
//! Contents come one after the other, each once however many paths have it, then the index, then a trailer that
//! says where they are. Everything is under one checksum. Only the index is kept in memory; contents are sent from
//! the file.

mod executable;

mod format;

mod reader;

mod writer;

pub use self::executable::program_length;
pub use self::format::{PackError, PackedFile};
pub(crate) use self::reader::Pack;
pub use self::reader::{extract, list, packed_keys};
pub use self::writer::{PackOptions, Packed, pack};

#[cfg(test)]
mod tests;
