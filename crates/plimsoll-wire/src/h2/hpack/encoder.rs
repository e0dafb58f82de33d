//! From request heads to header blocks.
//!
//! The first request of a kind on a connection inserts its fields in the peer's table; from the second
//! on its block is a byte for each field, kept here whole and copied. Nothing that is in the table is
//! ever evicted, except where the peer makes the table smaller: what does not fit goes as a literal, so
//! a list of many targets cannot push out the fields that all requests share.

use crate::h2::EncodedRequest;
use crate::h2::hpack::dynamic_table::ENTRY_OVERHEAD;
use crate::h2::hpack::static_table::{self, STATIC_ENTRIES};
use crate::h2::hpack::{DEFAULT_TABLE_SIZE, huffman, integer};

/// A header field of a request, encoded as far as no connection matters.
#[derive(Debug)]
pub(crate) struct RequestField {
    name: Box<[u8]>,
    value: Vec<u8>,
    /// Distinguishes most fields at once.
    hash: u64,
    representation: Representation,
}

#[derive(Debug, Clone)]
enum Representation {
    /// Entirely in the static table.
    Static(u32),
    /// A literal: the static index of its name or 0, and what follows that index.
    Literal {
        name_index: u32,
        text: Vec<u8>,
        indexing: Indexing,
    },
}

/// Indexing of a literal (RFC 7541, section 6.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Indexing {
    /// Inserted where there is room.
    Incremental,
    /// Left out: the value will hardly come again.
    Without,
    /// Kept out of every table, here and in intermediaries (RFC 7541, section 7.1.3).
    Never,
}

impl Clone for RequestField {
    fn clone(&self) -> Self {
        Self {
            name: self.name.clone(),
            value: self.value.clone(),
            hash: self.hash,
            representation: self.representation.clone(),
        }
    }

    /// Uses the memory again.
    fn clone_from(&mut self, source: &Self) {
        self.name.clone_from(&source.name);
        self.value.clone_from(&source.value);
        self.hash = source.hash;
        match (&mut self.representation, &source.representation) {
            (
                Representation::Literal {
                    name_index,
                    text,
                    indexing,
                },
                Representation::Literal {
                    name_index: source_index,
                    text: source_text,
                    indexing: source_indexing,
                },
            ) => {
                *name_index = *source_index;
                text.clone_from(source_text);
                *indexing = *source_indexing;
            }
            (representation, source) => *representation = source.clone(),
        }
    }
}

impl RequestField {
    /// - `name`: lowercase.
    pub(crate) fn new(name: &[u8], value: &[u8]) -> Self {
        let representation = match static_table::find(name, value) {
            (Some(index), _) => Representation::Static(index),
            (None, name_index) => {
                let mut text = Vec::new();
                if name_index.is_none() {
                    put_string(&mut text, name);
                }
                put_string(&mut text, value);
                Representation::Literal {
                    name_index: name_index.unwrap_or(0),
                    text,
                    indexing: if is_secret(name, value) {
                        Indexing::Never
                    } else {
                        Indexing::Incremental
                    },
                }
            }
        };
        Self {
            name: name.into(),
            value: value.into(),
            hash: hash(name, value),
            representation,
        }
    }

    /// Takes another value, which will hardly come again.
    pub(crate) fn rewrite(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let Self {
            name,
            value,
            hash: _,
            representation,
        } = self;
        value.clear();
        write(value);
        let blank = |byte: &u8| matches!(byte, b' ' | b'\t');
        let leading = value.iter().take_while(|byte| blank(byte)).count();
        value.drain(..leading);
        while value.last().is_some_and(blank) {
            value.pop();
        }
        if let Representation::Static(index) = representation {
            *representation = Representation::Literal {
                name_index: *index,
                text: Vec::new(),
                indexing: Indexing::Without,
            };
        }
        if let Representation::Literal {
            name_index,
            text,
            indexing,
        } = representation
        {
            text.clear();
            if *name_index == 0 {
                put_string(text, name);
            }
            put_string(text, value);
            *indexing = if is_secret(name, value) {
                Indexing::Never
            } else {
                Indexing::Without
            };
        }
    }

    /// Name and value.
    pub(crate) fn text(&self) -> (&[u8], &[u8]) {
        (&self.name, &self.value)
    }

    fn table_size(&self) -> usize {
        self.name.len() + self.value.len() + ENTRY_OVERHEAD
    }
}

/// Encodes the header blocks of one connection, in their order.
#[derive(Debug)]
pub struct Encoder {
    /// Our copy of the peer's dynamic table, oldest first.
    entries: Vec<Entry>,
    /// Those of the entries, side by side to be searched fast.
    hashes: Vec<u64>,
    size: usize,
    limit: usize,
    /// The smallest limit since the last block, where a change has to be announced.
    announced_low: Option<usize>,
    /// Blocks that can be copied as they are until the table changes.
    blocks: Vec<Block>,
    /// The block that the next new kind of request replaces.
    next_replaced: usize,
    /// Holds a block that changes the table.
    scratch: Vec<u8>,
    /// A name in lowercase.
    name: Vec<u8>,
}

/// An entry that the peer's table holds, too.
#[derive(Debug)]
struct Entry {
    name: Box<[u8]>,
    value: Box<[u8]>,
}

#[derive(Debug)]
struct Block {
    request: EncodedRequest,
    bytes: Vec<u8>,
}

/// Kinds of requests that are remembered on each connection.
const REMEMBERED: usize = 8;

impl Default for Encoder {
    fn default() -> Self {
        Self::new()
    }
}

impl Encoder {
    /// An encoder for a new connection.
    pub fn new() -> Self {
        Self {
            entries: Vec::new(),
            hashes: Vec::new(),
            size: 0,
            limit: DEFAULT_TABLE_SIZE as usize,
            announced_low: None,
            blocks: Vec::new(),
            next_replaced: 0,
            scratch: Vec::new(),
            name: Vec::new(),
        }
    }

    /// Follows the peer's `SETTINGS_HEADER_TABLE_SIZE`, as far as 4096 bytes.
    pub fn resize(&mut self, peer_limit: u32) {
        let limit = peer_limit.min(DEFAULT_TABLE_SIZE) as usize;
        if limit == self.limit {
            return;
        }
        self.limit = limit;
        self.announced_low = Some(self.announced_low.map_or(limit, |low| low.min(limit)));
        self.blocks.clear();
        while self.size > limit {
            let Entry { name, value } = self.entries.remove(0);
            self.hashes.remove(0);
            self.size -= name.len() + value.len() + ENTRY_OVERHEAD;
        }
    }

    /// The header block of `request`, which has to be sent next.
    #[inline]
    pub fn encode(&mut self, request: &EncodedRequest) -> &[u8] {
        let known = self
            .blocks
            .iter()
            .position(|block| block.request.is_same(request));
        match known {
            Some(position) => &self.blocks[position].bytes,
            None => self.encode_anew(request),
        }
    }

    fn encode_anew(&mut self, request: &EncodedRequest) -> &[u8] {
        let mut is_lasting = self.announced_low.is_none();
        self.begin_block();
        let mut output = std::mem::take(&mut self.scratch);
        for field in request.fields() {
            is_lasting &= self.put(&mut output, field);
        }
        self.scratch = output;
        if is_lasting && !request.is_passing() {
            self.remember(request)
        } else {
            &self.scratch
        }
    }

    /// Begins a block whose fields come one by one.
    pub(crate) fn begin_block(&mut self) {
        self.scratch.clear();
        if let Some(low) = self.announced_low.take() {
            if low < self.limit {
                integer::put(&mut self.scratch, 0x20, 5, low);
            }
            integer::put(&mut self.scratch, 0x20, 5, self.limit);
        }
    }

    /// Adds a field to the block that was begun; its name is sent in lowercase.
    ///
    /// Values are sent as they are: a Huffman code would save bytes of a local network for time of a processor.
    pub(crate) fn put_text(&mut self, name: &[u8], value: &[u8]) {
        let mut lower = std::mem::take(&mut self.name);
        lower.clear();
        lower.extend_from_slice(name);
        lower.make_ascii_lowercase();
        let mut output = std::mem::take(&mut self.scratch);
        self.put_lowercase(&mut output, &lower, value);
        self.scratch = output;
        self.name = lower;
    }

    /// The block that was begun.
    pub(crate) fn block(&self) -> &[u8] {
        &self.scratch
    }

    fn put_lowercase(&mut self, output: &mut Vec<u8>, name: &[u8], value: &[u8]) {
        let indexing = indexing(name, value);
        let hash = match indexing {
            Indexing::Incremental => hash(name, value),
            Indexing::Without | Indexing::Never => 0,
        };
        if indexing == Indexing::Incremental
            && let Some(age) = self.find_text(hash, name, value)
        {
            integer::put(output, 0x80, 7, STATIC_ENTRIES as usize + 1 + age);
            return;
        }
        let (whole, name_index) = static_table::find(name, value);
        if let Some(index) = whole {
            integer::put(output, 0x80, 7, index as usize);
            return;
        }
        let size = name.len() + value.len() + ENTRY_OVERHEAD;
        let fits = indexing == Indexing::Incremental && self.size + size <= self.limit;
        let (pattern, prefix) = match indexing {
            _ if fits => (0x40, 6),
            Indexing::Never => (0x10, 4),
            Indexing::Incremental | Indexing::Without => (0x00, 4),
        };
        integer::put(output, pattern, prefix, name_index.unwrap_or(0) as usize);
        if name_index.is_none() {
            put_plain(output, name);
        }
        put_plain(output, value);
        if fits {
            self.insert(hash, name, value, size);
        }
    }

    fn insert(&mut self, hash: u64, name: &[u8], value: &[u8], size: usize) {
        self.size += size;
        self.hashes.push(hash);
        self.entries.push(Entry {
            name: name.into(),
            value: value.into(),
        });
        // Every index is one higher now.
        self.blocks.clear();
    }

    /// Appends one field; false if that changed the table.
    fn put(&mut self, output: &mut Vec<u8>, field: &RequestField) -> bool {
        let (name_index, text, indexing) = match &field.representation {
            Representation::Static(index) => {
                integer::put(output, 0x80, 7, *index as usize);
                return true;
            }
            Representation::Literal {
                name_index,
                text,
                indexing,
            } => (*name_index as usize, text, *indexing),
        };
        let left_out = match indexing {
            Indexing::Incremental => None,
            Indexing::Without => Some(0x00),
            Indexing::Never => Some(0x10),
        };
        if let Some(pattern) = left_out {
            integer::put(output, pattern, 4, name_index);
            output.extend_from_slice(text);
            return true;
        }
        if let Some(age) = self.find(field) {
            integer::put(output, 0x80, 7, STATIC_ENTRIES as usize + 1 + age);
            return true;
        }
        let fits = self.size + field.table_size() <= self.limit;
        let (pattern, prefix) = if fits { (0x40, 6) } else { (0x00, 4) };
        integer::put(output, pattern, prefix, name_index);
        output.extend_from_slice(text);
        if fits {
            self.insert(field.hash, &field.name, &field.value, field.table_size());
        }
        !fits
    }

    /// Number of entries inserted after the one that is `field`.
    fn find(&self, field: &RequestField) -> Option<usize> {
        self.find_text(field.hash, &field.name, &field.value)
    }

    fn find_text(&self, hash: u64, name: &[u8], value: &[u8]) -> Option<usize> {
        let position = self.hashes.iter().rposition(|known| *known == hash)?;
        let entry = &self.entries[position];
        let is_same = *entry.value == *value && *entry.name == *name;
        is_same.then(|| self.entries.len() - 1 - position)
    }

    /// Keeps the block in `scratch` for the next request of its kind.
    fn remember(&mut self, request: &EncodedRequest) -> &[u8] {
        let position = if self.blocks.len() < REMEMBERED {
            self.blocks.push(Block {
                request: request.clone(),
                bytes: self.scratch.clone(),
            });
            self.blocks.len() - 1
        } else {
            let position = self.next_replaced % REMEMBERED;
            self.next_replaced = position + 1;
            let block = &mut self.blocks[position];
            block.request = request.clone();
            block.bytes.clear();
            block.bytes.extend_from_slice(&self.scratch);
            position
        };
        &self.blocks[position].bytes
    }
}

/// Appends a string literal, Huffman coded where that is shorter.
fn put_string(output: &mut Vec<u8>, text: &[u8]) {
    let coded = huffman::encoded_len(text);
    if coded < text.len() {
        integer::put(output, 0x80, 7, coded);
        huffman::encode(text, output);
    } else {
        integer::put(output, 0x00, 7, text.len());
        output.extend_from_slice(text);
    }
}

/// Appends a string literal as it is.
fn put_plain(output: &mut Vec<u8>, text: &[u8]) {
    integer::put(output, 0x00, 7, text.len());
    output.extend_from_slice(text);
}

/// How a field of a request that is sent once is indexed: values that differ from request to request would only fill
/// the table.
fn indexing(name: &[u8], value: &[u8]) -> Indexing {
    match name {
        _ if is_secret(name, value) => Indexing::Never,
        b":path" | b"content-length" | b"cookie" | b"date" | b"if-modified-since"
        | b"if-none-match" | b"if-range" | b"range" | b"referer" | b"traceparent"
        | b"tracestate" | b"x-forwarded-for" | b"x-request-id" | b"x-b3-traceid"
        | b"x-b3-spanid" | b"x-b3-parentspanid" | b"forwarded" | b"grpc-timeout" => {
            Indexing::Without
        }
        _ => Indexing::Incremental,
    }
}

/// FNV-1a, with a separator that neither can contain.
fn hash(name: &[u8], value: &[u8]) -> u64 {
    name.iter()
        .chain(b"\0")
        .chain(value)
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        })
}

/// Fields that an attacker may want to guess: credentials, and cookies short enough for that.
fn is_secret(name: &[u8], value: &[u8]) -> bool {
    match name {
        b"authorization" | b"proxy-authorization" => true,
        b"cookie" => value.len() < 20,
        _ => false,
    }
}
