//! The last head that was parsed: a server under load answers with the same bytes again and again.

use crate::h1::Limits;
use crate::h1::framing::Framing;

/// A head longer than this is not kept: copying it would cost more than it may save.
const LONGEST: usize = 1024;

/// Remembers the last head, so that one of the very same bytes need not be parsed again.
///
/// The decoders of one worker share it. The date of a response changes once a second, and
/// all else of it seldom; comparing 150 bytes costs a tenth of parsing them. Heads that differ each
/// time cost one copy more.
#[derive(Debug, Clone, Default)]
pub struct KnownHead {
    bytes: Vec<u8>,
    facts: Option<HeadFacts>,
}

/// Properties of the message that a head begins.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HeadFacts {
    /// Bytes of the head.
    pub(crate) length: usize,
    pub(crate) status: u16,
    pub(crate) minor_version: u8,
    /// Number of header fields.
    pub(crate) headers: usize,
    pub(crate) framing: Framing,
}

impl KnownHead {
    /// Nothing is known yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The properties of the head at the start of `bytes`, if it is the known one and within `limits`.
    #[inline]
    pub(crate) fn recognise(&self, bytes: &[u8], limits: &Limits) -> Option<HeadFacts> {
        let facts = self.facts?;
        let is_known = bytes.starts_with(&self.bytes)
            && facts.length <= limits.head_bytes
            && facts.headers <= limits.headers;
        is_known.then_some(facts)
    }

    /// Keeps a head.
    ///
    /// - `head`: all of it, its final empty line included.
    pub(crate) fn keep(&mut self, head: &[u8], facts: HeadFacts) {
        if head.len() <= LONGEST {
            self.bytes.clear();
            self.bytes.extend_from_slice(head);
            self.facts = Some(facts);
        }
    }
}
