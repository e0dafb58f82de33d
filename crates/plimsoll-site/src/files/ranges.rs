//! Ranges of bytes (RFC 9110, section 14). Pure.

use std::ops::Range;

/// Ranges in one request; with more the content is sent whole. Readers of PDF files request some ten, and each range
/// costs a part header.
const MOST: usize = 64;

/// The ranges of a `range` field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RequestedRanges {
    /// The whole: there is no such field, or none that is understood.
    Whole,
    /// These parts, none of them empty; those that touch are one, the others in the order of the request.
    Parts(Vec<Range<u64>>),
    /// Nothing that there is.
    Nothing,
}

impl RequestedRanges {
    /// - `field`: its value.
    /// - `length`: of the content.
    pub(crate) fn parse(field: &[u8], length: u64) -> Self {
        let Some(specs) = specs(field) else {
            return Self::Whole;
        };
        let is_one = specs.len() == 1;
        let parts: Vec<_> = specs
            .into_iter()
            .filter_map(|spec| spec.within(length))
            .collect();
        if parts.is_empty() {
            return if length == 0 {
                Self::Whole
            } else {
                Self::Nothing
            };
        }
        let parts = joined(parts);
        // One that happens to have everything is answered as any other: players ask like this whether ranges work. Several that
        // come to everything are not worth the trouble.
        if !is_one && parts.len() == 1 && parts[0] == (0..length) {
            return Self::Whole;
        }
        Self::Parts(parts)
    }
}

#[derive(Debug, Clone, Copy)]
enum Spec {
    From(u64, Option<u64>),
    Last(u64),
}

impl Spec {
    fn within(self, length: u64) -> Option<Range<u64>> {
        let range = match self {
            Self::From(first, last) => {
                first..last.map_or(length, |last| last.saturating_add(1).min(length))
            }
            Self::Last(count) => length.saturating_sub(count)..length,
        };
        (range.start < range.end).then_some(range)
    }
}

/// `None` for what is not understood.
fn specs(field: &[u8]) -> Option<Vec<Spec>> {
    let text = std::str::from_utf8(field).ok()?;
    let (unit, set) = text.split_once('=')?;
    // No blank stands between the unit and the sign (RFC 9110, section 14.2).
    if !unit.eq_ignore_ascii_case("bytes") {
        return None;
    }
    let mut specs = Vec::new();
    for spec in set
        .split(',')
        .map(str::trim)
        .filter(|spec| !spec.is_empty())
    {
        if specs.len() == MOST {
            return None;
        }
        let (first, last) = spec.split_once('-')?;
        if ![first, last].iter().all(|text| is_number(text)) {
            return None;
        }
        specs.push(match (number(first), number(last)) {
            (Some(first), Some(last)) if first > last => return None,
            (Some(first), last) => Spec::From(first, last),
            (None, Some(count)) => Spec::Last(count),
            (None, None) => return None,
        });
    }
    (!specs.is_empty()).then_some(specs)
}

/// Digits, or nothing at all.
fn is_number(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

/// A number beyond any content need not be exact.
fn number(digits: &str) -> Option<u64> {
    (!digits.is_empty()).then(|| digits.parse().unwrap_or(u64::MAX))
}

/// Joins parts that overlap or touch, each at the place of the first of them.
fn joined(parts: Vec<Range<u64>>) -> Vec<Range<u64>> {
    let mut sorted: Vec<_> = parts.into_iter().enumerate().collect();
    sorted.sort_by_key(|(_, part)| part.start);
    let mut joined: Vec<(usize, Range<u64>)> = Vec::new();
    for (place, part) in sorted {
        match joined.last_mut() {
            Some((first, last)) if part.start <= last.end => {
                last.end = last.end.max(part.end);
                *first = place.min(*first);
            }
            _ => joined.push((place, part)),
        }
    }
    joined.sort_by_key(|(place, _)| *place);
    joined.into_iter().map(|(_, part)| part).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_requested() {
        use RequestedRanges::{Nothing, Parts, Whole};

        let part = |from, to| {
            Parts(Vec::from([Range {
                start: from,
                end: to,
            }]))
        };
        for (field, expected) in [
            ("bytes=0-499", part(0, 500)),
            ("bytes=9500-", part(9500, 10000)),
            ("bytes=-500", part(9500, 10000)),
            ("Bytes=9999-20000", part(9999, 10000)),
            ("bytes=-20000", part(0, 10000)),
            ("bytes=0-", part(0, 10000)),
            ("bytes=10000-", Nothing),
            ("bytes=-0", Nothing),
            ("bytes=500-400", Whole),
            ("bytes=x", Whole),
            ("bytes=", Whole),
            ("bytes=-", Whole),
            ("bytes=1-2-3", Whole),
            ("bytes=+1-2", Whole),
            ("lines=0-5", Whole),
            ("bytes=0-0,-1", Parts(vec![0..1, 9999..10000])),
            ("bytes=-1, 0-0", Parts(vec![9999..10000, 0..1])),
            ("bytes=0-9,20000-", part(0, 10)),
            ("bytes=0-,0-,0-", Whole),
            ("bytes=5-9,0-4", part(0, 10)),
            ("bytes=0-99999999999999999999999", part(0, 10000)),
            ("bytes=99999999999999999999999-", Nothing),
        ] {
            assert_eq!(
                RequestedRanges::parse(field.as_bytes(), 10000),
                expected,
                "{field}"
            );
        }
        assert_eq!(RequestedRanges::parse(b"bytes=0-5", 0), Whole);
        let many = format!("bytes={}", vec!["1-2"; 1000].join(","));
        assert_eq!(RequestedRanges::parse(many.as_bytes(), 10000), Whole);
    }

    proptest! {
        #[test]
        fn parts_lie_within_and_apart(
            pairs in proptest::collection::vec((0_u64..120, 0_u64..120), 1..10),
            length in 1_u64..100,
        ) {
            let specs: Vec<_> = pairs.iter().map(|(a, b)| format!("{}-{}", a.min(b), a.max(b))).collect();
            let field = format!("bytes={}", specs.join(","));
            let wanted = |byte: u64| pairs.iter().any(|(a, b)| (a.min(b)..=a.max(b)).contains(&&byte));
            match RequestedRanges::parse(field.as_bytes(), length) {
                RequestedRanges::Whole => prop_assert!((0..length).all(wanted)),
                RequestedRanges::Nothing => prop_assert!(!(0..length).any(wanted)),
                RequestedRanges::Parts(parts) => {
                    for byte in 0..length {
                        let holding = parts.iter().filter(|part| part.contains(&byte)).count();
                        prop_assert_eq!(holding, usize::from(wanted(byte)));
                    }
                    prop_assert!(parts.iter().all(|part| part.end <= length));
                }
            }
        }

        #[test]
        fn nothing_panics(field in proptest::collection::vec(any::<u8>(), 0..40), length in any::<u64>()) {
            RequestedRanges::parse(&field, length);
        }
    }
}
