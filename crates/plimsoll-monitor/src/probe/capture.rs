//! The kept part of an HTTP response.

use plimsoll_client::ResponseParts;
use plimsoll_wire::h1::{self, ResponseSink};
use plimsoll_wire::h2;
use plimsoll_wire::h2::hpack::Fields;

/// Keeps all fields, and the content up to a limit.
#[derive(Debug, Default)]
pub(super) struct Capture {
    pub(super) fields: Vec<(String, Vec<u8>)>,
    pub(super) body: Vec<u8>,
    pub(super) size: u64,
    /// Bytes of content that are kept.
    pub(super) most: usize,
}

impl Capture {
    pub(super) fn new(most: usize) -> Self {
        Self {
            most,
            ..Self::default()
        }
    }

    pub(super) fn field(&self, name: &str) -> Option<&[u8]> {
        let found = self.fields.iter().find(|(field, _)| field == name);
        found.map(|(_, value)| value.as_slice())
    }

    fn keep(&mut self, piece: &[u8]) {
        self.size += piece.len() as u64;
        let room = self.most - self.body.len();
        self.body.extend_from_slice(&piece[..piece.len().min(room)]);
    }

    fn add(&mut self, name: &[u8], value: &[u8]) {
        let name = String::from_utf8_lossy(name).to_ascii_lowercase();
        self.fields.push((name, value.to_vec()));
    }
}

impl ResponseSink for Capture {
    fn head(&mut self, head: &h1::ResponseHead<'_>) {
        for field in head.headers {
            self.add(field.name.as_bytes(), field.value);
        }
    }

    fn content(&mut self, piece: &[u8]) {
        self.keep(piece);
    }
}

impl ResponseParts for Capture {
    fn wants_fields(&self) -> bool {
        true
    }

    fn head(&mut self, head: &h2::ResponseHead<'_>) {
        for (name, value) in head.fields.iter() {
            if !name.starts_with(b":") {
                self.add(name, value);
            }
        }
    }

    fn content(&mut self, piece: &[u8]) {
        self.keep(piece);
    }

    fn trailers(&mut self, _fields: &Fields) {}
}
