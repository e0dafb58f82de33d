//! Fields that a message's `Connection` fields nominate as those of its connection (RFC 9110, section 7.6.1).

use plimsoll_model::is_proxy_field;

/// The names that `Connection` fields of a received head nominate: an intermediary does not forward those fields.
///
/// Fields that describe the client ([`is_proxy_field`]) are never nominated: those of a client that is not trusted are
/// removed anyway, and those of a trusted proxy must not be lost because the client behind it wishes so.
#[derive(Debug, Clone, Default)]
pub struct Nominated(Vec<u8>);

/// Options that name no field which would be forwarded otherwise.
const USUAL: [&[u8]; 3] = [b"keep-alive", b"close", b"upgrade"];

impl Nominated {
    /// Reads a field of the head; only `Connection` fields add names. Allocates nothing for the usual values.
    #[inline]
    pub fn note(&mut self, name: &[u8], value: &[u8]) {
        if name.len() == 10 && name.eq_ignore_ascii_case(b"connection") {
            self.add(value);
        }
    }

    fn add(&mut self, value: &[u8]) {
        if USUAL.iter().any(|usual| value.eq_ignore_ascii_case(usual)) {
            return;
        }
        self.0.extend_from_slice(value);
        self.0.push(b',');
    }

    /// Whether only the usual options were read, which nominate no field.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the field of that name, in any case, is nominated.
    pub fn contains(&self, name: &[u8]) -> bool {
        if self.0.is_empty() {
            return false;
        }
        let mut options = self.0.split(|byte| *byte == b',');
        options.any(|option| option.trim_ascii().eq_ignore_ascii_case(name))
            && !is_proxy_field(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connection_options_nominate_fields_but_none_that_describe_the_client() {
        let mut nominated = Nominated::default();
        for value in ["keep-alive", "Close", "upgrade"] {
            nominated.note(b"Connection", value.as_bytes());
        }
        nominated.note(b"x-other", b"x-a");
        assert!(nominated.is_empty());
        nominated.note(b"CONNECTION", b"close, X-Hop ,x-forwarded-for,");
        nominated.note(b"connection", b"x-late");
        for name in ["x-hop", "X-Late", "close"] {
            assert!(nominated.contains(name.as_bytes()), "{name}");
        }
        for name in ["x-hops", "x-a", "X-Forwarded-For", "x"] {
            assert!(!nominated.contains(name.as_bytes()), "{name}");
        }
    }
}
