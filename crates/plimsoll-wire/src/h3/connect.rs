//! The `:protocol` field of extended CONNECT in a compressed head (RFC 9220; QPACK is RFC 9204).
//!
//! The `h3` crate parses and writes only the protocols that it has constants for, and `websocket` is not among them. So
//! the frame is rewritten on its way: the value is replaced, everything else stays as it is.

use super::{DATA, HEADERS, integer};
use crate::h2::hpack::{HpackError, huffman, integer as prefixed};

const NAME: &[u8] = b":protocol";

/// The first bytes of a stream, rewritten.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rewritten {
    /// The head is not whole yet.
    Partial,
    /// They stay as they are: the head does not have the field with that value, or there is no head.
    Same,
    /// The same bytes with another value.
    Changed(Vec<u8>),
    /// The head is malformed in its pseudo-fields (RFC 9114, section 4.3).
    Malformed,
}

/// Replaces the value `from` of `:protocol` by `to` in the head that a stream begins with.
///
/// A head that QPACK without a dynamic table cannot have stays as it is: its decoder reports what is wrong.
pub fn with_protocol(bytes: &[u8], from: &[u8], to: &[u8]) -> Rewritten {
    let mut input = bytes;
    loop {
        let start = bytes.len() - input.len();
        let Some((kind, rest)) = integer(input) else {
            return Rewritten::Partial;
        };
        if kind == DATA {
            return Rewritten::Same;
        }
        let Some((length, rest)) = integer(rest) else {
            return Rewritten::Partial;
        };
        let length = usize::try_from(length).ok();
        let Some((content, rest)) = length.and_then(|length| rest.split_at_checked(length)) else {
            return Rewritten::Partial;
        };
        if kind == HEADERS {
            let Ok(section) = section(content, from) else {
                return Rewritten::Same;
            };
            if section.is_malformed {
                return Rewritten::Malformed;
            }
            let frame = section
                .protocol
                .and_then(|range| changed(content, range, to));
            return match frame {
                Some(frame) => Rewritten::Changed([&bytes[..start], &frame, rest].concat()),
                None => Rewritten::Same,
            };
        }
        // Frames of unknown types may come first (RFC 9114, section 9).
        input = rest;
    }
}

/// Whether trailer fields have a pseudo-field among them, which makes the message malformed (RFC 9114, section 4.3).
pub(super) fn has_pseudo_fields(section_of_trailers: &[u8]) -> bool {
    section(section_of_trailers, b"").is_ok_and(|section| section.pseudo_fields > 0)
}

/// The frame of the same head with the other value in place of the line of `:protocol`.
fn changed(section: &[u8], (start, end): (usize, usize), to: &[u8]) -> Option<Vec<u8>> {
    let mut line = Vec::with_capacity(NAME.len() + to.len() + 4);
    // A literal with a literal name, neither of them Huffman coded (RFC 9204, section 4.5.6).
    prefixed::put(&mut line, 0x20, 3, NAME.len());
    line.extend_from_slice(NAME);
    prefixed::put(&mut line, 0x00, 7, to.len());
    line.extend_from_slice(to);
    let length = section.len() - (end - start) + line.len();
    let mut frame = Vec::with_capacity(length + 9);
    frame.push(1);
    put_integer(&mut frame, length);
    frame.extend_from_slice(section.get(..start)?);
    frame.extend_from_slice(&line);
    frame.extend_from_slice(section.get(end..)?);
    Some(frame)
}

/// What the lines of a section show of its pseudo-fields.
#[derive(Default)]
struct Section {
    /// Range of the line of `:protocol`, if it has the value that is looked for.
    protocol: Option<(usize, usize)>,
    pseudo_fields: u32,
    /// A pseudo-field is there twice, behind another field or none of requests, or the path has a fragment.
    is_malformed: bool,
    seen: u8,
    has_others: bool,
}

/// The pseudo-fields of requests; others have no number.
const PSEUDO: [&[u8]; 5] = [b":authority", b":path", b":method", b":scheme", NAME];

const PATH: usize = 1;

impl Section {
    /// - `number`: which of the pseudo-fields of requests it is.
    fn pseudo(&mut self, number: Option<usize>) {
        self.pseudo_fields += 1;
        self.is_malformed |= self.has_others;
        let Some(number) = number else {
            self.is_malformed = true;
            return;
        };
        let bit = 1 << number;
        self.is_malformed |= self.seen & bit != 0;
        self.seen |= bit;
    }

    /// An entry of the static table (RFC 9204, appendix A), as far as its name tells.
    fn entry(&mut self, index: u32) -> Option<usize> {
        let number = match index {
            0 => Some(0),
            1 => Some(PATH),
            15..=21 => Some(2),
            22 | 23 => Some(3),
            24..=28 | 63..=71 => None,
            _ => {
                self.has_others = true;
                return None;
            }
        };
        self.pseudo(number);
        number
    }
}

/// Looks at the lines of a section.
///
/// - `value`: of `:protocol`.
fn section(section: &[u8], value: &[u8]) -> Result<Section, HpackError> {
    let mut found = Section::default();
    let mut input = section;
    // Required Insert Count and Base (RFC 9204, section 4.5.1).
    prefixed::read_integer(&mut input, 8)?;
    prefixed::read_integer(&mut input, 7)?;
    while let Some(first) = input.first() {
        let start = section.len() - input.len();
        match first {
            // An indexed field, of the static table or, which is empty here, the dynamic one (section 4.5.2).
            0x80.. => {
                let is_static = first & 0x40 != 0;
                let index = prefixed::read_integer(&mut input, 6)?;
                if is_static {
                    found.entry(index);
                }
            }
            // With a post-base index (section 4.5.3).
            0x10..0x20 => drop(prefixed::read_integer(&mut input, 4)?),
            // A literal with the name of an entry (section 4.5.4).
            0x40..0x80 => {
                let is_static = first & 0x10 != 0;
                let index = prefixed::read_integer(&mut input, 4)?;
                let value = string(&mut input, 7)?;
                if is_static && found.entry(index) == Some(PATH) {
                    found.is_malformed |= value.has_fragment();
                }
            }
            // With a post-base index (section 4.5.5).
            0x00..0x10 => {
                prefixed::read_integer(&mut input, 3)?;
                string(&mut input, 7)?;
            }
            0x20..0x40 => {
                let name = string(&mut input, 3)?;
                let text = string(&mut input, 7)?;
                if !name.begins_with_colon() {
                    found.has_others = true;
                    continue;
                }
                let number = PSEUDO.iter().position(|known| name.is(known));
                found.pseudo(number);
                found.is_malformed |= number == Some(PATH) && text.has_fragment();
                if name.is(NAME) && text.is(value) {
                    found.protocol = Some((start, section.len() - input.len()));
                }
            }
        }
    }
    Ok(found)
}

/// A string as it is sent.
struct Coded<'a> {
    bytes: &'a [u8],
    is_huffman: bool,
}

impl Coded<'_> {
    fn begins_with_colon(&self) -> bool {
        // The Huffman code of `:` is 1011100 (RFC 7541, appendix B).
        let first = self.bytes.first();
        first.is_some_and(|first| {
            if self.is_huffman {
                first >> 1 == 0b101_1100
            } else {
                *first == b':'
            }
        })
    }

    fn has_fragment(&self) -> bool {
        if !self.is_huffman {
            return self.bytes.contains(&b'#');
        }
        let mut decoded = Vec::new();
        huffman::decode(self.bytes, &mut decoded).is_ok() && decoded.contains(&b'#')
    }

    fn is(&self, text: &[u8]) -> bool {
        if !self.is_huffman {
            return self.bytes == text;
        }
        // The code is canonical, so one text has one encoding.
        if self.bytes.len() != huffman::encoded_len(text) {
            return false;
        }
        let mut decoded = Vec::new();
        huffman::decode(self.bytes, &mut decoded).is_ok() && decoded == text
    }
}

/// Takes a string whose length has a prefix of so many bits; the bit above them marks the Huffman code.
fn string<'a>(input: &mut &'a [u8], prefix: u32) -> Result<Coded<'a>, HpackError> {
    let is_huffman = input.first().is_some_and(|first| first >> prefix & 1 == 1);
    let length = prefixed::read_integer(input, prefix)?;
    let split = usize::try_from(length).ok();
    let split = split.and_then(|length| input.split_at_checked(length));
    let (bytes, rest) = split.ok_or(HpackError::Truncated)?;
    *input = rest;
    Ok(Coded { bytes, is_huffman })
}

/// Appends an integer (RFC 9000, section 16).
fn put_integer(output: &mut Vec<u8>, value: usize) {
    // A head is bounded far below the largest of them.
    let value = value as u64;
    match value {
        0..0x40 => output.extend_from_slice(&value.to_be_bytes()[7..]),
        0x40..0x4000 => output.extend_from_slice(&(value | 0x4000).to_be_bytes()[6..]),
        0x4000..0x4000_0000 => output.extend_from_slice(&(value | 0x8000_0000).to_be_bytes()[4..]),
        _ => output.extend_from_slice(&(value | 0xc000_0000_0000_0000).to_be_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A frame whose head has CONNECT (index 15), then `:protocol`, then a literal with the name of an entry.
    fn frame(is_huffman: bool, value: &[u8], path: usize) -> Vec<u8> {
        let mut section = vec![0, 0, 0xcf];
        let mut put = |pattern: u8, prefix, text: &[u8]| {
            if is_huffman {
                let length = huffman::encoded_len(text);
                prefixed::put(&mut section, pattern | 1_u8 << prefix, prefix, length);
                huffman::encode(text, &mut section);
            } else {
                prefixed::put(&mut section, pattern, prefix, text.len());
                section.extend_from_slice(text);
            }
        };
        put(0x20, 3, NAME);
        put(0, 7, value);
        section.push(0x51);
        prefixed::put(&mut section, 0, 7, path);
        section.resize(section.len() + path, b'/');
        let mut frame = vec![1];
        put_integer(&mut frame, section.len());
        frame.extend_from_slice(&section);
        frame
    }

    #[test]
    fn the_value_is_replaced_in_either_coding_and_nothing_else() {
        for is_huffman in [false, true] {
            for path in [1, 100, 20_000, 2_000_000] {
                // An unknown frame before it, content behind it.
                let stream = |frame: &[u8]| [&[0x21, 1, 9], frame, &[0, 1, 7]].concat();
                let before = stream(&frame(is_huffman, b"websocket", path));
                let after = stream(&frame(false, b"connect-udp", path));
                let rewritten = with_protocol(&before, b"websocket", b"connect-udp");
                assert!(
                    rewritten == Rewritten::Changed(after),
                    "{is_huffman} {path}"
                );
                let other = with_protocol(&before, b"webtransport", b"connect-udp");
                assert!(other == Rewritten::Same, "{is_huffman} {path}");
            }
        }
    }

    #[test]
    fn a_head_is_looked_at_once_it_is_whole() {
        let whole = frame(true, b"websocket", 3);
        for cut in 0..whole.len() {
            let rewritten = with_protocol(&whole[..cut], b"websocket", b"x");
            assert_eq!(rewritten, Rewritten::Partial, "{cut}");
        }
        assert_eq!(
            with_protocol(&[0, 2, 0, 0], b"websocket", b"x"),
            Rewritten::Same
        );
        // A name in the dynamic table, which does not exist; a string that ends too late.
        for section in [&[0, 0, 0x10][..], &[0, 0, 0x27, 200, b':'], &[0]] {
            let length = u8::try_from(section.len()).unwrap();
            let bytes = [&[1, length], section].concat();
            assert_eq!(with_protocol(&bytes, b"websocket", b"x"), Rewritten::Same);
        }
    }

    /// A section of literals with literal names.
    fn literals(fields: &[(&str, &str)], is_huffman: bool) -> Vec<u8> {
        let mut section = vec![0, 0];
        for (name, value) in fields {
            for (text, pattern, prefix) in [(name, 0x20_u8, 3), (value, 0, 7)] {
                if is_huffman {
                    let length = huffman::encoded_len(text.as_bytes());
                    prefixed::put(&mut section, pattern | 1_u8 << prefix, prefix, length);
                    huffman::encode(text.as_bytes(), &mut section);
                } else {
                    prefixed::put(&mut section, pattern, prefix, text.len());
                    section.extend_from_slice(text.as_bytes());
                }
            }
        }
        section
    }

    #[test]
    fn malformed_pseudo_fields_are_found() {
        let good = [
            (":method", "GET"),
            (":scheme", "https"),
            (":authority", "a"),
            (":path", "/a?b"),
        ];
        for is_huffman in [false, true] {
            let is_malformed = |fields: &[(&str, &str)]| {
                let section = literals(fields, is_huffman);
                assert_eq!(
                    has_pseudo_fields(&section),
                    fields.iter().any(|(name, _)| name.starts_with(':'))
                );
                let mut frame = vec![1];
                put_integer(&mut frame, section.len());
                frame.extend_from_slice(&section);
                with_protocol(&frame, b"websocket", b"x") == Rewritten::Malformed
            };
            assert!(!is_malformed(&good));
            assert!(!is_malformed(&[]));
            assert!(!is_malformed(
                &[&good[..], &[("a", "#"), ("a", "b")]].concat()
            ));
            for more in [
                &[(":path", "/b")][..],
                &[(":method", "GET")],
                &[("a", "b"), (":protocol", "x")],
                &[("a", "b"), (":unknown", "x")],
            ] {
                assert!(is_malformed(&[&good[..], more].concat()), "{more:?}");
            }
            assert!(is_malformed(&[(":method", "GET"), (":path", "/a#b")]));
        }
        // Indexed: `:path` twice, `:path` behind `age`, and a literal with the name of an entry.
        let section_of = |lines: &[u8]| section(&[&[0, 0], lines].concat(), b"").unwrap();
        assert!(section_of(&[0xc1, 0xc1]).is_malformed);
        assert!(section_of(&[0xc2, 0xc1]).is_malformed);
        assert!(!section_of(&[0xc1, 0xc2]).is_malformed);
        assert!(section_of(&[0x51, 2, b'/', b'#']).is_malformed);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            with_protocol(&bytes, b"websocket", b"connect-udp");
            let length = u8::try_from(bytes.len()).unwrap_or(0x3f).min(0x3f);
            with_protocol(&[&[1, length], &bytes[..]].concat(), b"websocket", b"connect-udp");
        }
    }
}
