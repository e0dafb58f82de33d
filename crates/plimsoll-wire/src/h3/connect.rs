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
            return match changed(content, from, to) {
                Some(frame) => Rewritten::Changed([&bytes[..start], &frame, rest].concat()),
                None => Rewritten::Same,
            };
        }
        // Frames of unknown types may come first (RFC 9114, section 9).
        input = rest;
    }
}

/// The frame of the same head with the other value, if the head has the field.
fn changed(section: &[u8], from: &[u8], to: &[u8]) -> Option<Vec<u8>> {
    let (start, end) = protocol(section, from).ok().flatten()?;
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

/// Range of the line of `:protocol`, if its value is `value`.
fn protocol(section: &[u8], value: &[u8]) -> Result<Option<(usize, usize)>, HpackError> {
    let mut input = section;
    // Required Insert Count and Base (RFC 9204, section 4.5.1).
    prefixed::take(&mut input, 8)?;
    prefixed::take(&mut input, 7)?;
    while let Some(first) = input.first() {
        let start = section.len() - input.len();
        match first {
            // An indexed field, with a post-base index below (sections 4.5.2 and 4.5.3).
            0x80.. => drop(prefixed::take(&mut input, 6)?),
            0x10..0x20 => drop(prefixed::take(&mut input, 4)?),
            // A literal with the name of an entry (sections 4.5.4 and 4.5.5).
            0x40..0x80 => {
                prefixed::take(&mut input, 4)?;
                string(&mut input, 7)?;
            }
            0x00..0x10 => {
                prefixed::take(&mut input, 3)?;
                string(&mut input, 7)?;
            }
            0x20..0x40 => {
                let name = string(&mut input, 3)?;
                let found = string(&mut input, 7)?;
                if name.is(NAME) && found.is(value) {
                    return Ok(Some((start, section.len() - input.len())));
                }
            }
        }
    }
    Ok(None)
}

/// A string as it is sent.
struct Coded<'a> {
    bytes: &'a [u8],
    is_huffman: bool,
}

impl Coded<'_> {
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
    let length = prefixed::take(input, prefix)?;
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

    proptest! {
        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            with_protocol(&bytes, b"websocket", b"connect-udp");
            let length = u8::try_from(bytes.len()).unwrap_or(0x3f).min(0x3f);
            with_protocol(&[&[1, length], &bytes[..]].concat(), b"websocket", b"connect-udp");
        }
    }
}
