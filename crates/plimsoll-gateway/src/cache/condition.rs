//! Conditions and ranges of requests, evaluated on a stored response (RFC 9110, sections 13 and 14).

use std::ops::Range;

use http::HeaderMap;
use http::header::{DATE, ETAG, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, LAST_MODIFIED, RANGE};

use super::freshness::date;

/// Whether the client has the same response already: 304 is to be sent (RFC 9111, section 4.3.2).
pub(super) fn is_not_modified(request: &HeaderMap, stored: &HeaderMap) -> bool {
    if request.contains_key(IF_NONE_MATCH) {
        let stored = stored.get(ETAG).map(|tag| opaque(tag.as_bytes()));
        let values = request.get_all(IF_NONE_MATCH).iter();
        let mut tags = values.flat_map(|value| tags(value.as_bytes()));
        return tags.any(|tag| tag == b"*" || Some(opaque(tag)) == stored);
    }
    let Some(since) = date(request, &IF_MODIFIED_SINCE) else {
        return false;
    };
    let modified = date(stored, &LAST_MODIFIED).or_else(|| date(stored, &DATE));
    modified.is_some_and(|modified| modified <= since)
}

/// The part that a request for one range of bytes is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part {
    /// The whole: without a range, with several, or with one that does not hold for this response.
    Whole,
    Bytes(Range<usize>),
    /// 416 is to be sent.
    Unsatisfiable,
}

/// - `length`: of the stored content.
pub(super) fn part(request: &HeaderMap, stored: &HeaderMap, length: usize) -> Part {
    let Some(range) = request.get(RANGE).and_then(|value| value.to_str().ok()) else {
        return Part::Whole;
    };
    if let Some(condition) = request.get(IF_RANGE) {
        let is_tag = condition.as_bytes().starts_with(b"\"");
        let is_same = if is_tag {
            stored.get(ETAG) == Some(condition)
        } else {
            date(request, &IF_RANGE).is_some()
                && date(request, &IF_RANGE) == date(stored, &LAST_MODIFIED)
        };
        if !is_same {
            return Part::Whole;
        }
    }
    let Some((unit, range)) = range.split_once('=') else {
        return Part::Whole;
    };
    let Some((first, last)) = range.trim().split_once('-') else {
        return Part::Whole;
    };
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return Part::Whole;
    }
    let (first, last) = (first.trim(), last.trim());
    let number = |text: &str| text.parse::<usize>().ok();
    let range = match (first.is_empty(), last.is_empty()) {
        (false, true) => number(first).map(|first| first..length),
        (false, false) => number(first)
            .zip(number(last))
            .filter(|(first, last)| first <= last)
            .map(|(first, last)| first..last.saturating_add(1).min(length)),
        (true, false) => number(last).map(|count| length.saturating_sub(count)..length),
        (true, true) => None,
    };
    match range {
        None => Part::Whole,
        Some(range) if range.start >= length => Part::Unsatisfiable,
        Some(range) => Part::Bytes(range),
    }
}

/// A tag for weak comparison (section 8.8.3.2).
fn opaque(tag: &[u8]) -> &[u8] {
    tag.strip_prefix(b"W/").unwrap_or(tag)
}

/// The tags of a list; commas within quotes do not separate.
fn tags(list: &[u8]) -> Vec<&[u8]> {
    let mut is_quoted = false;
    let tags = list.split(|byte| {
        is_quoted ^= *byte == b'"';
        *byte == b',' && !is_quoted
    });
    tags.map(<[u8]>::trim_ascii)
        .filter(|tag| !tag.is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use http::header::{HeaderName, HeaderValue};

    use super::*;

    fn fields(pairs: &[(HeaderName, &str)]) -> HeaderMap {
        let pairs = pairs.iter();
        pairs
            .map(|(name, value)| (name.clone(), HeaderValue::from_str(value).unwrap()))
            .collect()
    }

    const OLD: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
    const NEW: &str = "Sun, 06 Nov 1994 08:50:37 GMT";

    #[test]
    fn tags_are_compared_weakly_and_come_before_dates() {
        let stored = fields(&[(ETAG, "\"a,b\""), (LAST_MODIFIED, OLD)]);
        for (condition, expected) in [
            (fields(&[(IF_NONE_MATCH, "\"a,b\"")]), true),
            (fields(&[(IF_NONE_MATCH, "\"x\", W/\"a,b\"")]), true),
            (fields(&[(IF_NONE_MATCH, "*")]), true),
            (fields(&[(IF_NONE_MATCH, "\"a\"")]), false),
            (
                fields(&[(IF_NONE_MATCH, "\"a\""), (IF_MODIFIED_SINCE, NEW)]),
                false,
            ),
            (fields(&[(IF_MODIFIED_SINCE, OLD)]), true),
            (fields(&[(IF_MODIFIED_SINCE, NEW)]), true),
            (fields(&[]), false),
        ] {
            assert_eq!(
                is_not_modified(&condition, &stored),
                expected,
                "{condition:?}"
            );
        }
        let undated = fields(&[(DATE, OLD)]);
        assert!(is_not_modified(
            &fields(&[(IF_MODIFIED_SINCE, NEW)]),
            &undated
        ));
        let newer = fields(&[(LAST_MODIFIED, NEW)]);
        assert!(!is_not_modified(
            &fields(&[(IF_MODIFIED_SINCE, OLD)]),
            &newer
        ));
    }

    #[test]
    fn one_range_is_a_part_and_others_are_the_whole() {
        let stored = fields(&[(ETAG, "\"a\"")]);
        for (range, expected) in [
            ("bytes=0-4", Part::Bytes(0..5)),
            ("bytes=5-", Part::Bytes(5..10)),
            ("bytes=-3", Part::Bytes(7..10)),
            ("bytes=-99", Part::Bytes(0..10)),
            ("bytes=8-99", Part::Bytes(8..10)),
            ("bytes=10-", Part::Unsatisfiable),
            ("bytes=-0", Part::Unsatisfiable),
            ("bytes=3-1", Part::Whole),
            ("bytes=0-1,3-4", Part::Whole),
            ("lines=0-1", Part::Whole),
            ("bytes=x-", Part::Whole),
            ("bytes", Part::Whole),
        ] {
            let request = fields(&[(RANGE, range)]);
            assert_eq!(part(&request, &stored, 10), expected, "{range}");
        }
        let with = |tag| fields(&[(RANGE, "bytes=0-4"), (IF_RANGE, tag)]);
        assert_eq!(part(&with("\"a\""), &stored, 10), Part::Bytes(0..5));
        assert_eq!(part(&with("\"b\""), &stored, 10), Part::Whole);
        assert_eq!(part(&with("W/\"a\""), &stored, 10), Part::Whole);
    }
}
