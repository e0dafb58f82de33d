//! Blocks that repeat with the same meaning: most of what a server under load sends.
//!
//! A block leaves the table as it found it if it inserts nothing, or if the table holds nothing but
//! what the same block inserted before: what goes in at one end is what falls out at the other. So
//! once the same block has come often enough, it need not be decoded to know what it says and does.

use crate::h2::hpack::Summary;

/// Longer blocks are not remembered.
const MOST_BYTES: usize = 1024;

/// The last block, and whether the same once more would change anything.
#[derive(Debug, Default)]
pub(crate) struct Repeat {
    block: Vec<u8>,
    summary: Summary,
    /// Entries inserted since another block came, as the table counts them.
    inserted: usize,
    is_settled: bool,
}

/// The effects of a block on the table.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Effect {
    /// Names, values and overhead.
    pub(crate) inserted: usize,
    /// It names entries of the table.
    pub(crate) refers: bool,
    pub(crate) resizes: bool,
}

impl Repeat {
    /// The summary of `block`, if it is known and changes nothing.
    #[inline]
    pub(crate) fn recognise(&self, block: &[u8]) -> Option<Summary> {
        (self.is_settled && self.block == block).then_some(self.summary)
    }

    /// Remembers a block that was decoded.
    ///
    /// - `limit`: of the table.
    pub(crate) fn learn(&mut self, block: &[u8], summary: Summary, effect: Effect, limit: usize) {
        if effect.resizes || block.len() > MOST_BYTES {
            return self.forget();
        }
        if self.block != block {
            self.block.clear();
            self.block.extend_from_slice(block);
            self.inserted = 0;
        }
        self.inserted += effect.inserted;
        self.summary = summary;
        // Its entries depend on the table if it refers to it.
        self.is_settled = effect.inserted == 0 || (!effect.refers && self.inserted >= limit);
    }

    /// Something else happened to the table.
    pub(crate) fn forget(&mut self) {
        self.is_settled = false;
        self.inserted = 0;
        self.block.clear();
    }
}
