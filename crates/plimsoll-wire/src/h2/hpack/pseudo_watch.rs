//! Header blocks of requests on their way to another decoder, looked at for pseudo-fields that it would pass over.
//!
//! The `h2` crate drops pseudo-fields among trailer fields, and the fragment of a path, without a word. Both make a
//! request malformed (RFC 9113, sections 8.1 and 8.3.1). Values are decoded only where the tables or the answer need
//! them: what a client repeats is a few indexes.

use crate::h2::hpack::dynamic_table::DynamicTable;
use crate::h2::hpack::fields::{FieldKind, NameKind};
use crate::h2::hpack::static_table::{STATIC_ENTRIES, STATIC_TABLE};
use crate::h2::hpack::{DEFAULT_TABLE_SIZE, HpackError, huffman, integer};

const PATH: &[u8] = b":path";

/// Follows the blocks of one connection, in their order.
#[derive(Debug)]
pub struct PseudoWatch {
    table: DynamicTable,
    /// A block could not be decoded, which ends the connection.
    is_broken: bool,
    name: Vec<u8>,
    value: Vec<u8>,
}

/// What a block has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PseudoFields {
    /// Any at all, which trailer fields must not have.
    pub any: bool,
    /// A path with a fragment.
    pub fragment: bool,
}

impl PseudoFields {
    fn add(&mut self, name: &[u8], value: &[u8]) {
        self.any |= name.first() == Some(&b':');
        self.fragment |= name == PATH && value.contains(&b'#');
    }
}

impl Default for PseudoWatch {
    fn default() -> Self {
        Self {
            table: DynamicTable::new(DEFAULT_TABLE_SIZE as usize),
            is_broken: false,
            name: Vec::new(),
            value: Vec::new(),
        }
    }
}

impl PseudoWatch {
    /// Looks at the next block. Of one that cannot be decoded, and of all that follow, nothing is said: the decoder
    /// reports it.
    pub fn look(&mut self, block: &[u8]) -> PseudoFields {
        let mut found = PseudoFields::default();
        if !self.is_broken && self.fields(block, &mut found).is_err() {
            self.is_broken = true;
        }
        if self.is_broken {
            return PseudoFields::default();
        }
        found
    }

    fn fields(&mut self, block: &[u8], found: &mut PseudoFields) -> Result<(), HpackError> {
        let mut input = block;
        let mut is_late = false;
        while let Some(first) = input.first() {
            let is_resize = first >> 5 == 1;
            if is_resize && is_late {
                return Err(HpackError::LateTableSize);
            }
            is_late |= !is_resize;
            match first {
                0x80.. => {
                    let index = integer::read_integer(&mut input, 7)?;
                    let (name, value) = self.entry(index)?;
                    found.add(name, value);
                }
                0x40..0x80 => {
                    let index = integer::read_integer(&mut input, 6)?;
                    self.take_name(&mut input, index)?;
                    take_string(&mut input, &mut self.value)?;
                    found.add(&self.name, &self.value);
                    let kinds = (NameKind::from_name(&self.name), FieldKind::Regular);
                    self.table.insert(&self.name, &self.value, kinds);
                }
                0x20..0x40 => {
                    let size = integer::read_integer(&mut input, 5)?;
                    if size > DEFAULT_TABLE_SIZE {
                        let limit = DEFAULT_TABLE_SIZE;
                        return Err(HpackError::TableSize { size, limit });
                    }
                    self.table.resize(size as usize);
                }
                0x00..0x20 => {
                    let index = integer::read_integer(&mut input, 4)?;
                    let is_path = if index == 0 {
                        take_string(&mut input, &mut self.name)?;
                        found.add(&self.name, b"");
                        self.name == PATH
                    } else {
                        let (name, _) = self.entry(index)?;
                        found.add(name, b"");
                        name == PATH
                    };
                    if is_path {
                        take_string(&mut input, &mut self.value)?;
                        found.add(PATH, &self.value);
                    } else {
                        raw_string(&mut input)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// The name of a literal that is to be an entry of the table.
    fn take_name(&mut self, input: &mut &[u8], index: u32) -> Result<(), HpackError> {
        if index == 0 {
            return take_string(input, &mut self.name);
        }
        let mut name = std::mem::take(&mut self.name);
        name.clear();
        name.extend_from_slice(self.entry(index)?.0);
        self.name = name;
        Ok(())
    }

    fn entry(&self, index: u32) -> Result<(&[u8], &[u8]), HpackError> {
        let wrong = || HpackError::Index(index);
        let position = index.checked_sub(1).ok_or_else(wrong)?;
        if position < STATIC_ENTRIES {
            let (name, value) = STATIC_TABLE[position as usize];
            return Ok((name.as_bytes(), value.as_bytes()));
        }
        let dynamic = (position - STATIC_ENTRIES) as usize;
        self.table.field(dynamic).ok_or_else(wrong)
    }
}

fn take_string(input: &mut &[u8], text: &mut Vec<u8>) -> Result<(), HpackError> {
    let is_huffman = input.first().is_some_and(|first| first & 0x80 != 0);
    let coded = raw_string(input)?;
    text.clear();
    if is_huffman {
        huffman::decode(coded, text).map_err(|huffman::Malformed| HpackError::Huffman)
    } else {
        text.extend_from_slice(coded);
        Ok(())
    }
}

fn raw_string<'a>(input: &mut &'a [u8]) -> Result<&'a [u8], HpackError> {
    let length = integer::read_integer(input, 7)? as usize;
    let split = input.split_at_checked(length);
    let (text, rest) = split.ok_or(HpackError::Truncated)?;
    *input = rest;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::h2::hpack::{Decoder, FieldLimits, Fields};

    /// A literal in one of its forms, with both texts as they are.
    fn literal(pattern: u8, name: &str, value: &str) -> Vec<u8> {
        let mut line = vec![pattern];
        for text in [name, value] {
            line.push(u8::try_from(text.len()).unwrap());
            line.extend_from_slice(text.as_bytes());
        }
        line
    }

    #[test]
    fn pseudo_fields_are_found_in_every_form() {
        let found = |any, fragment| PseudoFields { any, fragment };
        let mut watch = PseudoWatch::default();
        for (block, expected) in [
            (vec![0x82, 0x84], found(true, false)),
            (vec![0x90], found(false, false)),
            (literal(0x00, "a", "#"), found(false, false)),
            (literal(0x10, ":path", "/a#b"), found(true, true)),
            (literal(0x00, ":x", "y"), found(true, false)),
            // The name of an entry: 4 is `:path`.
            (vec![0x04, 2, b'/', b'#'], found(true, true)),
            (vec![0x44, 3, b'/', b'#', b'a'], found(true, true)),
            // What was inserted just now.
            (vec![0xbe], found(true, true)),
            (literal(0x40, "a", "b"), found(false, false)),
            (vec![0xbe], found(false, false)),
            (vec![0xbf], found(true, true)),
            (vec![0x0f, 0x30, 1, b'/'], found(true, false)),
            // The table is emptied, and the index leads nowhere: nothing is said any more.
            (vec![0x20, 0xbe], found(false, false)),
            (vec![0x84], found(false, false)),
        ] {
            assert_eq!(watch.look(&block), expected, "{block:x?}");
        }
    }

    proptest! {
        /// The watch and the decoder know the same entries, whatever blocks came before.
        #[test]
        fn tables_stay_in_step(blocks in prop::collection::vec(prop::collection::vec(
            prop_oneof![
                (prop::sample::select(vec![0x00_u8, 0x10, 0x40]), "[a-c:#]{1,3}", "[a-c#/]{0,4}").prop_map(|(pattern, name, value)| literal(pattern, &name, &value)),
                (0x81_u8..0xc8).prop_map(|byte| vec![byte]),
                Just(vec![0x3f, 0x10]),
            ], 0..6), 0..8),
        ) {
            let limits = FieldLimits { count: 1000, bytes: 100_000 };
            let mut decoder = Decoder::new(DEFAULT_TABLE_SIZE, limits);
            let mut watch = PseudoWatch::default();
            for block in blocks {
                let block = block.concat();
                watch.look(&block);
                let decoded = decoder.decode(&block, Some(&mut Fields::default()));
                prop_assert_eq!(decoded.is_err(), watch.is_broken);
                if decoded.is_err() {
                    break;
                }
                let entries: Vec<_> = (0..).map_while(|index| watch.table.field(index)).map(|(name, value)| (name.to_vec(), value.to_vec())).collect();
                prop_assert_eq!(entries, decoder.entries());
            }
        }
    }
}
