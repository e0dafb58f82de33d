//! Header compression (RFC 7541): blocks into fields, and request heads into blocks.
//!
//! Written here rather than taken from a crate: the well-kept implementations are private to their
//! HTTP/2 crates, those published apart allocate for each field, and both directions lie on the path
//! that is measured. The decoder undoes only what
//! somebody looks at; the encoder does its work once for each kind of request.

mod decoder;

mod encoder;

mod fields;

mod pseudo_watch;

mod repeat;

mod dynamic_table;

mod static_table;

pub(crate) mod integer;

pub(crate) mod huffman;

pub use crate::h2::hpack::decoder::{Decoder, FieldLimits, Summary};
pub use crate::h2::hpack::encoder::Encoder;
pub use crate::h2::hpack::fields::Fields;
pub use crate::h2::hpack::pseudo_watch::{PseudoFields, PseudoWatch};

pub(crate) use crate::h2::hpack::encoder::RequestField;

/// The size of both tables before SETTINGS say otherwise (RFC 9113, section 6.5.2).
pub const DEFAULT_TABLE_SIZE: u32 = 4096;

/// Why a header block cannot be decompressed; the connection cannot go on after that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HpackError {
    /// The block ends inside a field.
    #[error("ends inside a field")]
    Truncated,
    /// An integer is larger than anything that a block needs.
    #[error("integer out of range")]
    Integer,
    /// An index beyond both tables, or zero.
    #[error("no entry at index {0}")]
    Index(u32),
    /// A string that is not Huffman coded properly.
    #[error("invalid Huffman code")]
    Huffman,
    /// The peer wants a larger table than we allow.
    #[error("table size {size} exceeds {limit}")]
    TableSize {
        /// The peer's setting, in bytes.
        size: u32,
        /// Our `SETTINGS_HEADER_TABLE_SIZE`.
        limit: u32,
    },
    /// A change of the table size after a field (RFC 7541, section 4.2).
    #[error("table size changed inside a block")]
    LateTableSize,
    /// The peer did not follow our smaller table size (RFC 7541, section 4.2).
    #[error("table size not reduced as SETTINGS demand")]
    MissingTableSize,
}

#[cfg(test)]
pub(crate) mod tests;
