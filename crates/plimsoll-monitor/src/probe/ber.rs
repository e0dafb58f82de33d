//! BER as SNMP and LDAP use it: tags of one byte, definite lengths.
//!
//! Source: ITU-T X.690, section 8; RFC 3417, section 8; RFC 4511, section 5.1.

/// Tags of both protocols.
pub(super) mod tag {
    pub(in crate::probe) const BOOLEAN: u8 = 0x01;
    pub(in crate::probe) const INTEGER: u8 = 0x02;
    pub(in crate::probe) const OCTETS: u8 = 0x04;
    pub(in crate::probe) const NULL: u8 = 0x05;
    pub(in crate::probe) const OID: u8 = 0x06;
    pub(in crate::probe) const ENUMERATED: u8 = 0x0a;
    pub(in crate::probe) const SEQUENCE: u8 = 0x30;
}

/// An element with its content.
pub(super) fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len().to_be_bytes();
    let leading = length.iter().take_while(|byte| **byte == 0).count();
    let length = &length[leading..];
    let mut written = vec![tag];
    match length {
        [] => written.push(0),
        [short @ 0..0x80] => written.push(*short),
        // As many as a `usize` has.
        long => {
            written.push(0x80 | u8::try_from(long.len()).unwrap_or(0));
            written.extend_from_slice(long);
        }
    }
    written.extend_from_slice(content);
    written
}

/// A number, in as few bytes as it needs.
pub(super) fn integer(tag: u8, number: i64) -> Vec<u8> {
    let bytes = number.to_be_bytes();
    let is_needless = |at: usize| {
        let (byte, next) = (bytes[at], bytes[at + 1] & 0x80 != 0);
        (byte == 0 && !next) || (byte == 0xff && next)
    };
    let from = (0..7).find(|at| !is_needless(*at)).unwrap_or(7);
    element(tag, &bytes[from..])
}

/// Elements one after another.
#[derive(Debug)]
pub(super) struct Elements<'a>(pub(super) &'a [u8]);

impl<'a> Elements<'a> {
    /// The content of the next element, which must have that tag.
    pub(super) fn expect(&mut self, tag: u8) -> Option<&'a [u8]> {
        let (found, content) = self.next()?;
        (found == tag).then_some(content)
    }

    /// The next element, which must be a number.
    pub(super) fn number(&mut self, tag: u8) -> Option<i64> {
        number(self.expect(tag)?)
    }
}

impl<'a> Iterator for Elements<'a> {
    type Item = (u8, &'a [u8]);

    /// `None` at the end, and if an element is cut off.
    fn next(&mut self) -> Option<Self::Item> {
        let (tag, length, head) = head(self.0)?;
        let content = self.0.get(head..head.checked_add(length)?)?;
        self.0 = &self.0[head + length..];
        Some((tag, content))
    }
}

/// Tag and length of the first element, and how many bytes these are; `None` if they are cut off, or not supported.
pub(super) fn head(input: &[u8]) -> Option<(u8, usize, usize)> {
    let (tag, first) = (*input.first()?, *input.get(1)?);
    // Tags of several bytes are not used, nor are lengths that are open.
    if tag & 0x1f == 0x1f || first == 0x80 {
        return None;
    }
    if first < 0x80 {
        return Some((tag, usize::from(first), 2));
    }
    let count = usize::from(first & 0x7f);
    let mut length = 0_usize;
    for byte in input.get(2..2 + count)? {
        length = length.checked_mul(256)?.checked_add(usize::from(*byte))?;
    }
    Some((tag, length, 2 + count))
}

/// A signed number of up to eight bytes.
pub(super) fn number(content: &[u8]) -> Option<i64> {
    let first = *content.first()?;
    if content.len() > 8 {
        return None;
    }
    let start = if first & 0x80 == 0 { 0 } else { -1 };
    let add = |number: i64, byte: &u8| (number << 8) | i64::from(*byte);
    Some(content.iter().fold(start, add))
}

/// A number without a sign, of up to 64 bits.
pub(super) fn unsigned(content: &[u8]) -> Option<u64> {
    let content = match content {
        [0, rest @ ..] if !rest.is_empty() => rest,
        content => content,
    };
    if content.is_empty() || content.len() > 8 {
        return None;
    }
    let add = |number: u64, byte: &u8| (number << 8) | u64::from(*byte);
    Some(content.iter().fold(0, add))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn elements_are_read_as_they_are_written(
            first in proptest::collection::vec(any::<u8>(), 0..400), second in any::<i64>(), rest in any::<u64>(),
        ) {
            let mut written = element(tag::OCTETS, &first);
            written.extend(integer(tag::INTEGER, second));
            written.extend(element(0x46, &rest.to_be_bytes()));
            let mut read = Elements(&written);
            prop_assert_eq!(read.expect(tag::OCTETS), Some(&first[..]));
            prop_assert_eq!(read.number(tag::INTEGER), Some(second));
            prop_assert_eq!(read.expect(0x46).and_then(unsigned), Some(rest));
            prop_assert_eq!(read.next(), None);
        }

        #[test]
        fn any_bytes_end(input in proptest::collection::vec(any::<u8>(), 0..200)) {
            let count = Elements(&input).count();
            prop_assert!(count <= input.len());
        }
    }

    #[test]
    fn numbers_have_no_needless_bytes() {
        for (number, expected) in [
            (0, &[2, 1, 0][..]),
            (127, &[2, 1, 127]),
            (128, &[2, 2, 0, 128]),
            (-1, &[2, 1, 255]),
            (-128, &[2, 1, 128]),
            (-129, &[2, 2, 255, 127]),
        ] {
            assert_eq!(integer(tag::INTEGER, number), expected, "{number}");
        }
        assert_eq!(unsigned(&[0, 255]), Some(255));
        assert_eq!(number(&[]), None);
        assert_eq!(number(&[1; 9]), None);
    }
}
