//! Several conditions, and what must be kept of a response to judge them.

use std::time::Duration;

use plimsoll_wire::h1::{ResponseHead, ResponseSink};

use crate::check::Condition;

/// Conditions that every response of a run must meet.
#[derive(Debug, Clone, Default)]
pub struct Expectations {
    conditions: Vec<Condition>,
    needs_body: bool,
    headers: Vec<String>,
}

/// What conditions look at.
#[derive(Debug, Clone, Copy)]
pub struct Observed<'a> {
    /// The status.
    pub status: u16,
    /// How long the exchange took, from its actual start.
    pub time: Duration,
    /// Bytes of content.
    pub size: u64,
    /// The content, as far as [`Observer`] kept it.
    pub body: &'a [u8],
    /// Header fields, names in lower case.
    pub headers: &'a [(String, Vec<u8>)],
}

impl<'a> Observed<'a> {
    /// The first field of that lower-case name.
    pub fn header(&self, name: &str) -> Option<&'a [u8]> {
        self.headers
            .iter()
            .find(|(field, _)| field == name)
            .map(|(_, value)| value.as_slice())
    }
}

impl Expectations {
    /// All of `conditions`.
    pub fn new(conditions: Vec<Condition>) -> Self {
        let mut headers: Vec<_> = conditions
            .iter()
            .filter_map(|condition| condition.header().map(str::to_owned))
            .collect();
        headers.sort();
        headers.dedup();
        Self {
            needs_body: conditions.iter().any(Condition::needs_body),
            headers,
            conditions,
        }
    }

    /// Whether there is nothing to judge.
    pub fn is_empty(&self) -> bool {
        self.conditions.is_empty()
    }

    /// The conditions in the order they were given.
    pub fn conditions(&self) -> &[Condition] {
        &self.conditions
    }

    /// A sink that keeps what these conditions need.
    pub fn observer(&self) -> Observer {
        Observer {
            keep_body: self.needs_body,
            names: self.headers.clone(),
            headers: Vec::new(),
            spare: Vec::new(),
            body: Vec::new(),
            size: 0,
        }
    }

    /// The positions of the conditions that a response does not meet.
    pub fn unmet<'a>(
        &'a self,
        observer: &'a Observer,
        status: u16,
        time: Duration,
    ) -> impl Iterator<Item = usize> + 'a {
        let response = Observed {
            status,
            time,
            size: observer.size,
            body: &observer.body,
            headers: &observer.headers,
        };
        self.conditions
            .iter()
            .enumerate()
            .filter(move |(_, condition)| !condition.is_met(&response))
            .map(|(position, _)| position)
    }
}

/// Keeps of a response what the conditions look at, and its size.
#[derive(Debug, Clone)]
pub struct Observer {
    keep_body: bool,
    names: Vec<String>,
    headers: Vec<(String, Vec<u8>)>,
    /// Fields of earlier responses, for their memory.
    spare: Vec<(String, Vec<u8>)>,
    body: Vec<u8>,
    size: u64,
}

impl Observer {
    /// How much content is kept for conditions on it; the rest is counted only.
    pub const BODY_BYTES: usize = 1024 * 1024;
}

impl ResponseSink for Observer {
    fn head(&mut self, head: &ResponseHead<'_>) {
        self.size = 0;
        self.body.clear();
        self.spare.append(&mut self.headers);
        for name in &self.names {
            if let Some(value) = head.header(name) {
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
    fn unmet_conditions_are_named_by_position() {
        let expectations = Expectations::new(
            ["status == 200", "header.x exists", "body == 'ok'"]
                .map(|text| Condition::parse(text).unwrap())
                .to_vec(),
        );
        let mut observer = expectations.observer();
        let headers = [httparse::Header {
            name: "X",
            value: b"1",
        }];
        observer.head(&ResponseHead {
            status: 500,
            minor_version: 1,
            headers: &headers,
        });
        observer.content(b"o");
        observer.content(b"k");
        let unmet: Vec<_> = expectations.unmet(&observer, 500, Duration::ZERO).collect();
        assert_eq!(unmet, [0]);
    }

    #[test]
    fn fields_of_an_earlier_response_are_forgotten() {
        let texts = ["header.a == '1'", "header.b exists"];
        let expectations =
            Expectations::new(texts.map(|text| Condition::parse(text).unwrap()).to_vec());
        let mut observer = expectations.observer();
        for (fields, expected) in [
            (vec![("a", "1"), ("b", "long")], vec![]),
            (vec![("B", "2")], vec![0]),
            (vec![], vec![0, 1]),
            (vec![("a", "1")], vec![1]),
        ] {
            let headers: Vec<_> = fields
                .iter()
                .map(|(name, value)| httparse::Header {
                    name,
                    value: value.as_bytes(),
                })
                .collect();
            observer.head(&ResponseHead {
                status: 200,
                minor_version: 1,
                headers: &headers,
            });
            let unmet: Vec<_> = expectations.unmet(&observer, 200, Duration::ZERO).collect();
            assert_eq!(unmet, expected, "{fields:?}");
        }
    }

    #[test]
    fn a_long_body_is_kept_in_part_and_counted_whole() {
        let expectations = Expectations::new(vec![Condition::parse("body contains 'x'").unwrap()]);
        let mut observer = expectations.observer();
        for _ in 0..3 {
            observer.content(&vec![b'a'; Observer::BODY_BYTES / 2]);
        }
        assert_eq!(observer.body.len(), Observer::BODY_BYTES);
        assert_eq!(observer.size, 3 * Observer::BODY_BYTES as u64 / 2);
    }
}
