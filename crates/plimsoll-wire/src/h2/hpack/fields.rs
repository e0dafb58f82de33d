//! Header fields as they come out of a block, and what a response's field can mean.

use crate::h2::MessageError;
use crate::http::FieldClass;
use crate::http::decimal::decimal;

/// The header fields of one block, in the order they came; kept in one piece and used again.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fields {
    bytes: Vec<u8>,
    /// Ends of the name and the value of each field.
    ends: Vec<(usize, usize)>,
}

impl Fields {
    /// Number of fields.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Names and values; the names are lowercase, `:status` is among them.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> + Clone {
        let mut start = 0;
        self.ends.iter().map(move |&(name_end, end)| {
            let field = (&self.bytes[start..name_end], &self.bytes[name_end..end]);
            start = end;
            field
        })
    }

    /// The value of the first field of that lowercase name.
    pub fn field(&self, name: &str) -> Option<&[u8]> {
        self.iter()
            .find(|(candidate, _)| *candidate == name.as_bytes())
            .map(|(_, value)| value)
    }

    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    pub(crate) fn push(&mut self, name: &[u8], value: &[u8]) {
        self.bytes.extend_from_slice(name);
        let name_end = self.bytes.len();
        self.bytes.extend_from_slice(value);
        self.ends.push((name_end, self.bytes.len()));
    }
}

/// The purpose of a field, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NameKind {
    Status,
    ContentLength,
    Regular,
    Malformed(MessageError),
}

/// The content of a field, as far as the codec needs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FieldKind {
    Status(u16),
    ContentLength(u64),
    Regular,
    Malformed(MessageError),
}

impl NameKind {
    /// RFC 9113, sections 8.2.1, 8.2.2 and 8.3.
    pub(crate) fn from_name(name: &[u8]) -> Self {
        if name.first() == Some(&b':') {
            return match name {
                b":status" => Self::Status,
                _ => Self::Malformed(MessageError::PseudoField),
            };
        }
        if name.is_empty() || name.iter().any(|byte| is_forbidden_in_names(*byte)) {
            return Self::Malformed(MessageError::FieldName);
        }
        match FieldClass::from_name(name) {
            FieldClass::ContentLength => Self::ContentLength,
            class if class.is_connection_specific() => {
                Self::Malformed(MessageError::ConnectionSpecific)
            }
            _ => Self::Regular,
        }
    }

    /// The kind of the static table's name at `index`, 1–61.
    pub(crate) const fn of_static(index: u32) -> Self {
        match index {
            1..=7 => Self::Malformed(MessageError::PseudoField),
            8..=14 => Self::Status,
            28 => Self::ContentLength,
            57 => Self::Malformed(MessageError::ConnectionSpecific),
            _ => Self::Regular,
        }
    }

    /// Whether the codec has to look at the value itself.
    pub(crate) const fn needs_value(self) -> bool {
        matches!(self, Self::Status | Self::ContentLength)
    }
}

impl FieldKind {
    pub(crate) fn from_field(name: NameKind, value: &[u8]) -> Self {
        let kind = match name {
            NameKind::Status => status(value).map_or(MessageError::Status.into(), Self::Status),
            NameKind::ContentLength => content_length(value)
                .map_or(MessageError::ContentLength.into(), Self::ContentLength),
            NameKind::Regular => Self::Regular,
            NameKind::Malformed(error) => error.into(),
        };
        if kind == Self::Regular && !is_value(value) {
            return MessageError::FieldValue.into();
        }
        kind
    }

    /// The kind of the static table's entry at `index`, 1–61.
    pub(crate) const fn of_static(index: u32) -> Self {
        match NameKind::of_static(index) {
            NameKind::Status => Self::Status(match index {
                8 => 200,
                9 => 204,
                10 => 206,
                11 => 304,
                12 => 400,
                13 => 404,
                _ => 500,
            }),
            // The table has no value for it.
            NameKind::ContentLength => Self::Malformed(MessageError::ContentLength),
            NameKind::Regular => Self::Regular,
            NameKind::Malformed(error) => Self::Malformed(error),
        }
    }
}

impl From<MessageError> for FieldKind {
    fn from(error: MessageError) -> Self {
        Self::Malformed(error)
    }
}

const fn is_forbidden_in_names(byte: u8) -> bool {
    matches!(byte, 0..=b' ' | b'A'..=b'Z' | b':' | 0x7f..)
}

/// No NUL, no line break, no blank at either end.
fn is_value(value: &[u8]) -> bool {
    let is_blank = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
    !is_blank(value.first())
        && !is_blank(value.last())
        && !value.iter().any(|byte| matches!(byte, 0 | b'\n' | b'\r'))
}

/// Three digits, 100 or more.
fn status(value: &[u8]) -> Option<u16> {
    let &[
        hundreds @ b'1'..=b'9',
        tens @ b'0'..=b'9',
        ones @ b'0'..=b'9',
    ] = value
    else {
        return None;
    };
    let digit = |byte: u8| u16::from(byte - b'0');
    Some(digit(hundreds) * 100 + digit(tens) * 10 + digit(ones))
}

/// One number, or the same one several times (RFC 9110, section 8.6).
fn content_length(value: &[u8]) -> Option<u64> {
    if !value.contains(&b',') {
        return decimal(value);
    }
    let mut numbers = value
        .split(|byte| *byte == b',')
        .map(|number| decimal(number.trim_ascii()));
    let first = numbers.next()??;
    numbers.all(|number| number == Some(first)).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::h2::hpack::static_table::STATIC_TABLE;

    #[test]
    fn the_static_table_is_classified_as_its_text_is() {
        for (index, (name, value)) in (1..).zip(STATIC_TABLE) {
            let name = NameKind::from_name(name.as_bytes());
            assert_eq!(NameKind::of_static(index), name);
            assert_eq!(
                FieldKind::of_static(index),
                FieldKind::from_field(name, value.as_bytes())
            );
        }
    }

    #[test]
    fn names_and_values_are_judged() {
        for bad in ["", "Accept", "a b", "a:b", "a\u{7f}", "a\0"] {
            assert_eq!(
                NameKind::from_name(bad.as_bytes()),
                NameKind::Malformed(MessageError::FieldName),
                "{bad:?}"
            );
        }
        let value = |value: &str| FieldKind::from_field(NameKind::Regular, value.as_bytes());
        for bad in [" a", "a\t", "a\r\nb", "a\0"] {
            assert_eq!(value(bad), MessageError::FieldValue.into(), "{bad:?}");
        }
        assert_eq!(value("a b\tc"), FieldKind::Regular);
        assert_eq!(value(""), FieldKind::Regular);
    }

    #[test]
    fn statuses_and_lengths_are_digits_and_nothing_else() {
        assert_eq!(status(b"200"), Some(200));
        for bad in ["", "20", "2000", "099", "+20", "2 0"] {
            assert_eq!(status(bad.as_bytes()), None, "{bad:?}");
        }
        assert_eq!(content_length(b"12"), Some(12));
        assert_eq!(content_length(b"12, 12"), Some(12));
        for bad in ["", "12, 13", "+1", "1 2", "18446744073709551616", ","] {
            assert_eq!(content_length(bad.as_bytes()), None, "{bad:?}");
        }
    }
}
