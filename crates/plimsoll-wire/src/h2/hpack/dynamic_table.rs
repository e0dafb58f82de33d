//! The dynamic table of the decoding side (RFC 7541, sections 2.3.2 and 4).
//!
//! Names and values lie one after the other in one buffer, oldest first, so that an insertion copies
//! bytes and allocates nothing once the buffer has its size.

use std::collections::VecDeque;

use crate::h2::hpack::fields::{FieldKind, NameKind};

/// The size of an entry beyond its text (RFC 7541, section 4.1).
pub(crate) const ENTRY_OVERHEAD: usize = 32;

#[derive(Debug)]
pub(crate) struct DynamicTable {
    /// The text of the entries, and before `base` that of evicted ones.
    text: Vec<u8>,
    base: usize,
    /// Oldest first; the youngest has the lowest index on the wire.
    entries: VecDeque<Entry>,
    size: usize,
    limit: usize,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    name_length: usize,
    length: usize,
    /// Distance from the start of all text that was ever inserted.
    start: usize,
    name_kind: NameKind,
    kind: FieldKind,
}

impl DynamicTable {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            text: Vec::new(),
            base: 0,
            entries: VecDeque::new(),
            size: 0,
            limit,
        }
    }

    /// Bytes that all entries may take.
    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    /// The kind of the entry at `index`, 0 for the youngest.
    #[inline]
    pub(crate) fn kind(&self, index: usize) -> Option<FieldKind> {
        self.entry(index).map(|entry| entry.kind)
    }

    /// The kind of the name at `index`; its value may be malformed all the same.
    pub(crate) fn name_kind(&self, index: usize) -> Option<NameKind> {
        self.entry(index).map(|entry| entry.name_kind)
    }

    /// Name and value of the entry at `index`.
    pub(crate) fn field(&self, index: usize) -> Option<(&[u8], &[u8])> {
        let entry = self.entry(index)?;
        let start = entry.start - self.base;
        Some(self.text[start..start + entry.length].split_at(entry.name_length))
    }

    /// Bytes of the name and the value at `index`.
    pub(crate) fn length(&self, index: usize) -> Option<usize> {
        self.entry(index).map(|entry| entry.length)
    }

    /// Sets the limit and evicts what is beyond it.
    pub(crate) fn resize(&mut self, limit: usize) {
        self.limit = limit;
        self.evict_to(limit);
    }

    /// Inserts an entry; one that is larger than the table empties it (RFC 7541, section 4.4).
    pub(crate) fn insert(&mut self, name: &[u8], value: &[u8], kinds: (NameKind, FieldKind)) {
        let length = name.len() + value.len();
        if !self.make_room(length) {
            return;
        }
        self.text.extend_from_slice(name);
        self.text.extend_from_slice(value);
        self.push(name.len(), length, kinds);
    }

    /// Inserts an entry with the name of the one at `index`, which may be evicted by that.
    pub(crate) fn insert_named(&mut self, index: usize, value: &[u8], kind: FieldKind) {
        let Some(named) = self.entry(index).copied() else {
            return;
        };
        let length = named.name_length + value.len();
        // The text of an evicted entry stays where it is until the buffer is compacted, which
        // happens at its end only.
        if !self.make_room(length) {
            return;
        }
        let start = named.start - self.base;
        self.text
            .extend_from_within(start..start + named.name_length);
        self.text.extend_from_slice(value);
        self.push(named.name_length, length, (named.name_kind, kind));
    }

    #[inline]
    fn entry(&self, index: usize) -> Option<&Entry> {
        let position = self.entries.len().checked_sub(index + 1)?;
        self.entries.get(position)
    }

    fn push(&mut self, name_length: usize, length: usize, kinds: (NameKind, FieldKind)) {
        let (name_kind, kind) = kinds;
        self.entries.push_back(Entry {
            name_length,
            length,
            start: self.base + self.text.len() - length,
            name_kind,
            kind,
        });
        self.size += length + ENTRY_OVERHEAD;
        self.compact();
    }

    /// Evicts for an entry of `length`; false if it does not fit at all.
    fn make_room(&mut self, length: usize) -> bool {
        let needed = length + ENTRY_OVERHEAD;
        self.evict_to(self.limit.saturating_sub(needed));
        needed <= self.limit
    }

    fn evict_to(&mut self, size: usize) {
        while self.size > size {
            let Some(evicted) = self.entries.pop_front() else {
                return;
            };
            self.size -= evicted.length + ENTRY_OVERHEAD;
        }
    }

    /// Moves the text to the front when more than half of a full buffer is of evicted entries.
    fn compact(&mut self) {
        let first = self
            .entries
            .front()
            .map_or(self.base + self.text.len(), |entry| entry.start);
        let dead = first - self.base;
        if dead > self.limit.max(256) {
            self.text.copy_within(dead.., 0);
            self.text.truncate(self.text.len() - dead);
            self.base = first;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    const REGULAR: (NameKind, FieldKind) = (NameKind::Regular, FieldKind::Regular);

    proptest! {
        /// The same entries as a table of plain strings has.
        #[test]
        fn it_is_a_bounded_queue(
            limit in 0_usize..300,
            steps in prop::collection::vec((0_usize..6, 0_usize..90, any::<u8>()), 0..200),
        ) {
            let mut table = DynamicTable::new(limit);
            let mut model: VecDeque<(Vec<u8>, Vec<u8>)> = VecDeque::new();
            for (named, length, byte) in steps {
                let value = vec![byte; length];
                let name = if let Some((name, _)) = model.get(named) {
                    table.insert_named(named, &value, FieldKind::Regular);
                    name.clone()
                } else {
                    let name = vec![byte; named];
                    table.insert(&name, &value, REGULAR);
                    name
                };
                model.push_front((name, value));
                while model.iter().map(|(n, v)| n.len() + v.len() + 32).sum::<usize>() > limit {
                    model.pop_back();
                }
                for (index, (name, value)) in model.iter().enumerate() {
                    prop_assert_eq!(table.field(index), Some((&name[..], &value[..])));
                }
                prop_assert_eq!(table.field(model.len()), None);
                prop_assert!(table.text.len() <= 3 * limit.max(256));
            }
        }
    }

    #[test]
    fn a_smaller_limit_evicts_the_oldest() {
        let mut table = DynamicTable::new(100);
        table.insert(b"a", b"1", REGULAR);
        table.insert(b"b", b"2", REGULAR);
        table.resize(34);
        assert_eq!(table.field(0), Some((&b"b"[..], &b"2"[..])));
        assert_eq!(table.field(1), None);
        table.resize(0);
        assert_eq!(table.field(0), None);
    }
}
