//! Elements of DER (X.690) with the bytes that they are made of, which is what signatures are over.

use x509_parser::asn1_rs::{Any, FromDer};

/// The input is not DER.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Malformed;

/// One element, with everything that it is made of.
#[derive(Debug, Clone, Copy)]
pub(super) struct Element<'a> {
    /// Its first byte.
    pub(super) tag: u8,
    pub(super) content: &'a [u8],
    /// With tag and length.
    pub(super) raw: &'a [u8],
}

impl<'a> Element<'a> {
    /// The contents, as elements.
    pub(super) fn inside(&self) -> Reader<'a> {
        Reader(self.content)
    }
}

/// Elements, one after the other.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn next(&mut self) -> Result<Element<'a>, Malformed> {
        let (rest, any) = Any::from_der(self.0).map_err(|_| Malformed)?;
        let raw = self.0.get(..self.0.len() - rest.len()).ok_or(Malformed)?;
        let tag = *raw.first().ok_or(Malformed)?;
        self.0 = rest;
        Ok(Element {
            tag,
            content: any.data,
            raw,
        })
    }

    pub(super) fn expect(&mut self, tag: u8) -> Result<Element<'a>, Malformed> {
        let element = self.next()?;
        if element.tag == tag {
            Ok(element)
        } else {
            Err(Malformed)
        }
    }

    /// The next one if it has this tag.
    pub(super) fn optional(&mut self, tag: u8) -> Result<Option<Element<'a>>, Malformed> {
        if self.0.first() == Some(&tag) {
            self.next().map(Some)
        } else {
            Ok(None)
        }
    }
}

/// An element with these pieces; together less than 64 KiB.
pub(super) fn element(tag: u8, pieces: &[&[u8]]) -> Vec<u8> {
    let content = pieces.concat();
    let [high, low] = u16::try_from(content.len())
        .unwrap_or(u16::MAX)
        .to_be_bytes();
    let mut element = match (high, low) {
        (0, 0..=0x7f) => vec![tag, low],
        (0, _) => vec![tag, 0x81, low],
        _ => vec![tag, 0x82, high, low],
    };
    element.extend(content);
    element
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_written_is_read(contents in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..400), 0..4)) {
            let all = contents.iter().flat_map(|it| element(4, &[it])).collect::<Vec<_>>();
            let mut reader = Reader::new(&all);
            for content in &contents {
                let read = reader.expect(4).unwrap();
                prop_assert_eq!(read.content, &content[..]);
                prop_assert_eq!(read.raw, &element(4, &[content])[..]);
            }
            prop_assert!(reader.is_at_end());
        }

        #[test]
        fn anything_can_be_read(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let mut reader = Reader::new(&bytes);
            while reader.next().is_ok() {}
        }
    }
}
