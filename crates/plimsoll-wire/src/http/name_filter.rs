//! A filter of field names that skips look-ups of absent fields.

/// The names that a list of fields may contain. A request is searched for some ten fields, most of them absent: the filter
/// rejects those without a search.
///
/// A Bloom filter with one hash function and 64 bits: it has every name that was added, and some others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NameFilter(u64);

impl NameFilter {
    /// Contains no name.
    pub const NONE: Self = Self(0);

    /// Contains every name, for lists whose fields are unknown.
    pub const ANY: Self = Self(u64::MAX);

    /// Adds a name.
    #[inline]
    pub fn add(&mut self, name: &[u8]) {
        self.0 |= bit(name);
    }

    /// Whether a field may have that name, in any case.
    #[inline]
    pub fn may_have(self, name: &[u8]) -> bool {
        self.0 & bit(name) != 0
    }
}

/// The bit of a name, by its length, first and last byte: common names differ in them.
#[inline]
fn bit(name: &[u8]) -> u64 {
    // Both cases of a letter are one.
    let folded = |byte: Option<&u8>| u64::from(byte.map_or(0, |byte| byte | 0x20));
    let ends = folded(name.first()) * 3 + folded(name.last());
    1 << ((name.len() as u64 * 5 + ends) % 64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_was_added_may_be_there_in_any_case(
            names in prop::collection::vec("[!-~]{0,20}", 0..20),
        ) {
            let mut filter = NameFilter::NONE;
            for name in &names {
                filter.add(name.as_bytes());
            }
            for name in &names {
                prop_assert!(filter.may_have(name.to_ascii_uppercase().as_bytes()));
                prop_assert!(filter.may_have(name.to_ascii_lowercase().as_bytes()));
                prop_assert!(NameFilter::ANY.may_have(name.as_bytes()));
                prop_assert!(!NameFilter::NONE.may_have(name.as_bytes()));
            }
        }
    }

    /// The fields of browsers do not look like those that gateways ask for.
    #[test]
    fn most_requests_lack_what_is_asked_for() {
        let mut filter = NameFilter::NONE;
        for name in ["Host", "User-Agent", "Accept", "Accept-Encoding"] {
            filter.add(name.as_bytes());
        }
        let asked = [
            "expect",
            "via",
            "te",
            "max-forwards",
            "x-forwarded-for",
            "x-forwarded-proto",
            "x-forwarded-host",
            "forwarded",
            "cookie",
            "upgrade",
            "trailer",
            "authorization",
            "range",
            "if-none-match",
            "origin",
            "sec-websocket-key",
        ];
        let found = asked.iter().filter(|name| filter.may_have(name.as_bytes()));
        let found: Vec<_> = found.collect();
        assert!(found.is_empty(), "{found:?}");
    }
}
