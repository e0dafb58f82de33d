//! The parts of a response that conditions need.

use http::HeaderMap;
use plimsoll_wire::h1::{ResponseHead, ResponseSink};
use plimsoll_wire::h2;

use crate::check::{Facts, Observed};

/// Keeps of a response what conditions look at, and its size; by default nothing else.
#[derive(Debug, Clone)]
pub struct Observer {
    keep_body: bool,
    /// The fields to keep; `None` for all of them.
    names: Option<Vec<String>>,
    headers: Vec<(String, Vec<u8>)>,
    /// Fields of earlier responses, for their memory.
    spare: Vec<(String, Vec<u8>)>,
    body: Vec<u8>,
    size: u64,
}

impl Observer {
    /// Maximum content kept for conditions; the rest is only counted.
    pub const BODY_BYTES: usize = 1024 * 1024;

    pub(super) fn new(keep_body: bool, names: Vec<String>) -> Self {
        Self {
            keep_body,
            names: Some(names),
            headers: Vec::new(),
            spare: Vec::new(),
            body: Vec::new(),
            size: 0,
        }
    }

    /// The same, keeping all fields of the head, which costs memory for each response.
    #[must_use]
    pub fn with_all_fields(mut self) -> Self {
        self.names = None;
        self
    }

    /// The same, keeping the content.
    #[must_use]
    pub(super) fn with_body(mut self) -> Self {
        self.keep_body = true;
        self
    }

    /// The content, as far as it was kept.
    pub(super) fn body(&self) -> &[u8] {
        &self.body
    }

    /// Replaces the content that conditions see.
    pub(super) fn replace_body(&mut self, body: Vec<u8>) {
        self.body = body;
    }

    /// Bytes of content.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The fields that were kept, names in lower case, in the order they came or were configured.
    pub fn fields(&self) -> &[(String, Vec<u8>)] {
        &self.headers
    }

    /// Forgets the last response, so that one that never comes is not taken for it.
    pub(super) fn clear(&mut self) {
        self.size = 0;
        self.body.clear();
        self.spare.append(&mut self.headers);
    }

    /// The response, for conditions and extractions.
    pub fn observed(&self, facts: Facts) -> Observed<'_> {
        Observed::new(facts, &self.headers, &self.body, self.size)
    }
}

impl Default for Observer {
    fn default() -> Self {
        Self::new(false, Vec::new())
    }
}

impl Observer {
    /// Whether it looks at header fields at all.
    pub fn needs_fields(&self) -> bool {
        self.names.as_ref().is_none_or(|names| !names.is_empty())
    }

    /// Takes the head of a response of HTTP/2.
    pub fn http2_head(&mut self, head: &h2::ResponseHead<'_>) {
        let is_regular = |(name, _): &(&[u8], &[u8])| !name.starts_with(b":");
        self.keep(|| head.fields.iter().filter(is_regular));
    }

    /// Takes the head of a response of HTTP/3.
    pub fn http3_head(&mut self, fields: &HeaderMap) {
        self.keep(|| {
            let fields = fields.iter();
            fields.map(|(name, value)| (name.as_str().as_bytes(), value.as_bytes()))
        });
    }

    /// Keeps what is wanted of the fields that `all` goes through.
    fn keep<'a, I: Iterator<Item = (&'a [u8], &'a [u8])>>(&mut self, all: impl Fn() -> I) {
        self.clear();
        let Some(names) = &self.names else {
            self.spare.clear();
            self.headers.extend(all().map(|(name, value)| {
                let name = String::from_utf8_lossy(name).to_ascii_lowercase();
                (name, value.to_owned())
            }));
            return;
        };
        for name in names {
            let is_wanted = |(field, _): &(&[u8], _)| field.eq_ignore_ascii_case(name.as_bytes());
            if let Some((_, value)) = all().find(is_wanted) {
                let mut field = match self.spare.iter().position(|(spare, _)| spare == name) {
                    Some(position) => self.spare.swap_remove(position),
                    None => (name.clone(), Vec::new()),
                };
                field.1.clear();
                field.1.extend_from_slice(value);
                self.headers.push(field);
            }
        }
    }
}

impl ResponseSink for Observer {
    fn head(&mut self, head: &ResponseHead<'_>) {
        let fields = || head.headers.iter();
        self.keep(|| fields().map(|field| (field.name.as_bytes(), field.value)));
    }

    fn content(&mut self, piece: &[u8]) {
        self.size += piece.len() as u64;
        if self.keep_body {
            let room = Self::BODY_BYTES - self.body.len();
            self.body.extend_from_slice(&piece[..piece.len().min(room)]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_body_is_kept_in_part_and_counted_whole() {
        let mut observer = Observer::new(true, Vec::new());
        for _ in 0..3 {
            observer.content(&vec![b'a'; Observer::BODY_BYTES / 2]);
        }
        assert_eq!(observer.body.len(), Observer::BODY_BYTES);
        assert_eq!(observer.size(), 3 * Observer::BODY_BYTES as u64 / 2);
    }

    #[test]
    fn all_fields_are_kept_in_their_order() {
        let mut observer = Observer::new(false, vec!["b".to_owned()]).with_all_fields();
        let headers = [("B", "1"), ("a", "2"), ("B", "3")].map(|(name, value)| httparse::Header {
            name,
            value: value.as_bytes(),
        });
        for _ in 0..2 {
            observer.head(&ResponseHead {
                status: 200,
                reason: "",
                minor_version: 1,
                headers: &headers,
            });
            let names: Vec<_> = observer.fields().iter().map(|(name, _)| name).collect();
            assert_eq!(names, ["b", "a", "b"]);
        }
        assert_eq!(
            observer.observed(Facts::default()).header("b"),
            Some(&b"1"[..])
        );
    }
}
