//! From header blocks to fields.

use crate::h2::MessageError;
use crate::h2::hpack::dynamic_table::{DynamicTable, ENTRY_OVERHEAD};
use crate::h2::hpack::fields::{FieldKind, NameKind};
use crate::h2::hpack::repeat::{Effect, Repeat};
use crate::h2::hpack::static_table::{STATIC_ENTRIES, STATIC_TABLE};
use crate::h2::hpack::{DEFAULT_TABLE_SIZE, Fields, HpackError, huffman, integer};

/// Bounds on the fields of one block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FieldLimits {
    /// Number of fields.
    pub count: usize,
    /// Bytes of names and values, and 32 for each field (RFC 9113, section 6.5.2).
    pub bytes: usize,
}

/// Properties of a message by its response block, without its fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Summary {
    /// The value of `:status`.
    pub status: Option<u16>,
    /// The value of `content-length`.
    pub content_length: Option<u64>,
    /// The first thing that a response may not have; the block was decoded to its end all the same.
    pub malformed: Option<MessageError>,
    fields: usize,
    bytes: usize,
    regular_seen: bool,
}

/// Decodes the header blocks that one peer sends on one connection, in their order.
#[derive(Debug)]
pub struct Decoder {
    table: DynamicTable,
    limits: FieldLimits,
    /// Our `SETTINGS_HEADER_TABLE_SIZE`.
    most_table_size: u32,
    /// The peer has to begin its first block by making the table smaller.
    reduction_due: bool,
    /// Of blocks whose fields were not taken.
    repeat: Repeat,
    /// Of the block that is being decoded.
    effect: Effect,
    name: Vec<u8>,
    value: Vec<u8>,
}

/// The name of a literal field: an index of either table, or text.
enum Name<'a> {
    Static(u32),
    Dynamic(usize),
    Text(&'a [u8]),
}

impl Decoder {
    /// A decoder for a new connection.
    ///
    /// - `table_size`: our `SETTINGS_HEADER_TABLE_SIZE`, sent before any request.
    pub fn new(table_size: u32, limits: FieldLimits) -> Self {
        Self {
            table: DynamicTable::new(DEFAULT_TABLE_SIZE as usize),
            limits,
            most_table_size: table_size,
            reduction_due: table_size < DEFAULT_TABLE_SIZE,
            repeat: Repeat::default(),
            effect: Effect::default(),
            name: Vec::new(),
            value: Vec::new(),
        }
    }

    /// Decodes one block.
    ///
    /// - `keep`: takes the fields, those before a limit only. Without it, a value that is not needed
    ///   is skipped and not judged; it then counts by its length on the wire.
    #[inline]
    pub fn decode(
        &mut self,
        block: &[u8],
        keep: Option<&mut Fields>,
    ) -> Result<Summary, HpackError> {
        if let Some(fields) = keep {
            fields.clear();
            self.repeat.forget();
            return self.decode_fields(block, Some(fields));
        }
        if let Some(summary) = self.repeat.recognise(block) {
            return Ok(summary);
        }
        self.effect = Effect::default();
        let summary = self.decode_fields(block, None)?;
        let limit = self.table.limit();
        self.repeat.learn(block, summary, self.effect, limit);
        Ok(summary)
    }

    fn decode_fields(
        &mut self,
        block: &[u8],
        mut keep: Option<&mut Fields>,
    ) -> Result<Summary, HpackError> {
        let mut summary = Summary::default();
        let mut input = block;
        while let Some(first) = input.first() {
            if self.reduction_due && first >> 5 != 1 {
                return Err(HpackError::MissingTableSize);
            }
            match first {
                0x80.. => {
                    let index = integer::read_integer(&mut input, 7)?;
                    self.indexed(index, &mut summary, keep.as_deref_mut())?;
                }
                0x40..0x80 => {
                    input = self.literal(input, true, &mut summary, keep.as_deref_mut())?;
                }
                0x20..0x40 => {
                    let size = integer::read_integer(&mut input, 5)?;
                    self.resize(size, summary)?;
                }
                0x00..0x20 => {
                    if keep.is_none()
                        && let Some((length, rest)) = pass_over(input)?
                    {
                        summary.add(FieldKind::Regular, length, self.limits);
                        input = rest;
                    } else {
                        input = self.literal(input, false, &mut summary, keep.as_deref_mut())?;
                    }
                }
            }
        }
        Ok(summary)
    }

    /// Whether `block` need not be decoded.
    #[cfg(test)]
    pub(crate) fn recognises(&self, block: &[u8]) -> bool {
        self.repeat.recognise(block).is_some()
    }

    /// The entries of the table, youngest first.
    #[cfg(test)]
    pub(crate) fn entries(&self) -> Vec<(Vec<u8>, Vec<u8>)> {
        (0..)
            .map_while(|index| self.table.field(index))
            .map(|(name, value)| (name.to_vec(), value.to_vec()))
            .collect()
    }

    /// An indexed field (RFC 7541, section 6.1).
    #[inline]
    fn indexed(
        &mut self,
        index: u32,
        summary: &mut Summary,
        keep: Option<&mut Fields>,
    ) -> Result<(), HpackError> {
        if let 1..=STATIC_ENTRIES = index {
            let (name, value) = STATIC_TABLE[index as usize - 1];
            let length = name.len() + value.len();
            if summary.add(FieldKind::of_static(index), length, self.limits)
                && let Some(fields) = keep
            {
                fields.push(name.as_bytes(), value.as_bytes());
            }
            return Ok(());
        }
        let dynamic = dynamic_index(index).ok_or(HpackError::Index(index))?;
        let kind = self.table.kind(dynamic).ok_or(HpackError::Index(index))?;
        self.effect.refers = true;
        let length = self.table.length(dynamic).unwrap_or(0);
        if summary.add(kind, length, self.limits)
            && let Some(fields) = keep
            && let Some((name, value)) = self.table.field(dynamic)
        {
            fields.push(name, value);
        }
        Ok(())
    }

    /// A literal field (RFC 7541, section 6.2); returns what comes after it.
    fn literal<'a>(
        &mut self,
        mut input: &'a [u8],
        is_indexed: bool,
        summary: &mut Summary,
        keep: Option<&mut Fields>,
    ) -> Result<&'a [u8], HpackError> {
        let index = integer::read_integer(&mut input, if is_indexed { 6 } else { 4 })?;
        let (name, name_kind) = match index {
            0 => {
                let text = string(&mut input, &mut self.name)?;
                (Name::Text(text), NameKind::from_name(text))
            }
            1..=STATIC_ENTRIES => (Name::Static(index), NameKind::of_static(index)),
            _ => {
                let dynamic = dynamic_index(index).ok_or(HpackError::Index(index))?;
                let kind = self.table.name_kind(dynamic);
                self.effect.refers = true;
                (
                    Name::Dynamic(dynamic),
                    kind.ok_or(HpackError::Index(index))?,
                )
            }
        };
        if !is_indexed && keep.is_none() && !name_kind.needs_value() {
            let length = name.length(&self.table) + raw_string(&mut input)?.len();
            let kind = match name_kind {
                NameKind::Malformed(error) => error.into(),
                _ => FieldKind::Regular,
            };
            summary.add(kind, length, self.limits);
            return Ok(input);
        }
        let value = string(&mut input, &mut self.value)?;
        let kind = FieldKind::from_field(name_kind, value);
        let length = name.length(&self.table) + value.len();
        if summary.add(kind, length, self.limits)
            && let Some(fields) = keep
        {
            fields.push(name.text(&self.table), value);
        }
        if is_indexed {
            self.effect.inserted += length + ENTRY_OVERHEAD;
            match name {
                Name::Dynamic(index) => self.table.insert_named(index, value, kind),
                Name::Static(index) => {
                    let name = STATIC_TABLE[index as usize - 1].0;
                    self.table.insert(name.as_bytes(), value, (name_kind, kind));
                }
                Name::Text(name) => self.table.insert(name, value, (name_kind, kind)),
            }
        }
        Ok(input)
    }

    /// A change of the table size (RFC 7541, section 6.3).
    fn resize(&mut self, size: u32, summary: Summary) -> Result<(), HpackError> {
        if summary.fields > 0 {
            return Err(HpackError::LateTableSize);
        }
        if size > self.most_table_size {
            return Err(HpackError::TableSize {
                size,
                limit: self.most_table_size,
            });
        }
        self.reduction_due = false;
        self.effect.resizes = true;
        self.table.resize(size as usize);
        Ok(())
    }
}

impl Name<'_> {
    fn length(&self, table: &DynamicTable) -> usize {
        self.text(table).len()
    }

    fn text<'a>(&'a self, table: &'a DynamicTable) -> &'a [u8] {
        match self {
            Self::Static(index) => STATIC_TABLE[*index as usize - 1].0.as_bytes(),
            Self::Dynamic(index) => table.field(*index).map_or(&[], |(name, _)| name),
            Self::Text(name) => name,
        }
    }
}

impl Summary {
    /// Counts a field; false once it is beyond the limits.
    #[inline]
    fn add(&mut self, kind: FieldKind, length: usize, limits: FieldLimits) -> bool {
        self.fields += 1;
        self.bytes += length + ENTRY_OVERHEAD;
        match kind {
            FieldKind::Regular => self.regular_seen = true,
            FieldKind::Status(_) if self.status.is_some() => {
                self.complain(MessageError::Status);
            }
            FieldKind::Status(_) if self.regular_seen => self.complain(MessageError::PseudoField),
            FieldKind::Status(status) => self.status = Some(status),
            FieldKind::ContentLength(length) => {
                self.regular_seen = true;
                if self.content_length.is_some_and(|earlier| earlier != length) {
                    self.complain(MessageError::ContentLength);
                }
                self.content_length = Some(length);
            }
            FieldKind::Malformed(error) => self.complain(error),
        }
        if self.fields > limits.count {
            self.complain(MessageError::TooManyHeaders {
                limit: limits.count,
            });
            return false;
        }
        if self.bytes > limits.bytes {
            self.complain(MessageError::HeadersTooLarge {
                limit: limits.bytes,
            });
            return false;
        }
        true
    }

    fn complain(&mut self, error: MessageError) {
        self.malformed.get_or_insert(error);
    }

    /// Whether the block had a pseudo-header field, which trailers may not have.
    pub(crate) fn has_status(&self) -> bool {
        self.status.is_some()
    }
}

/// The position in the dynamic table that `index` on the wire means.
fn dynamic_index(index: u32) -> Option<usize> {
    index
        .checked_sub(STATIC_ENTRIES + 1)
        .map(|index| index as usize)
}

/// Passes over a literal with a static name and a value that nothing depends on: most of what servers
/// send again and again. Returns the length of both, and what comes after.
#[inline]
fn pass_over(input: &[u8]) -> Result<Option<(usize, &[u8])>, HpackError> {
    let mut rest = input;
    let index = integer::read_integer(&mut rest, 4)?;
    if index == 0
        || index > STATIC_ENTRIES
        || !matches!(NameKind::of_static(index), NameKind::Regular)
    {
        return Ok(None);
    }
    let value = raw_string(&mut rest)?;
    let length = STATIC_TABLE[index as usize - 1].0.len() + value.len();
    Ok(Some((length, rest)))
}

/// Takes a string (RFC 7541, section 5.2), from the block itself or decoded into `scratch`.
#[inline]
fn string<'a, 'b: 'a>(
    input: &mut &'b [u8],
    scratch: &'a mut Vec<u8>,
) -> Result<&'a [u8], HpackError> {
    let is_huffman = input.first().is_some_and(|first| first & 0x80 != 0);
    let text = raw_string(input)?;
    if !is_huffman {
        return Ok(text);
    }
    scratch.clear();
    huffman::decode(text, scratch).map_err(|huffman::Malformed| HpackError::Huffman)?;
    Ok(scratch)
}

/// Takes a string as it is on the wire.
#[inline]
fn raw_string<'a>(input: &mut &'a [u8]) -> Result<&'a [u8], HpackError> {
    let length = integer::read_integer(input, 7)? as usize;
    let Some((text, rest)) = input.split_at_checked(length) else {
        return Err(HpackError::Truncated);
    };
    *input = rest;
    Ok(text)
}
