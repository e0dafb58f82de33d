//! Conditional requests (RFC 9110, section 13): whether what a client has still holds. Pure.

use std::time::{Duration, SystemTime};

use crate::files::tree::Tag;

/// The conditions of a request, as they came.
#[expect(
    clippy::struct_field_names,
    reason = "they are named as their header fields"
)]
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Conditions<'a> {
    pub(crate) if_match: Option<&'a [u8]>,
    pub(crate) if_none_match: Option<&'a [u8]>,
    pub(crate) if_modified_since: Option<&'a [u8]>,
    pub(crate) if_unmodified_since: Option<&'a [u8]>,
    pub(crate) if_range: Option<&'a [u8]>,
}

/// The outcome of the conditions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConditionOutcome {
    /// The answer is what it would be without them.
    Holds,
    /// 304
    NotModified,
    /// 412
    Failed,
}

/// The validators of the content that would be sent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Validators<'a> {
    pub(crate) tag: &'a Tag,
    /// Seconds since 1970.
    pub(crate) modified: Option<u64>,
    /// The content did not change within the second of its date.
    pub(crate) is_date_strong: bool,
}

impl Conditions<'_> {
    pub(crate) fn is_empty(&self) -> bool {
        self.if_match.is_none()
            && self.if_none_match.is_none()
            && self.if_modified_since.is_none()
            && self.if_unmodified_since.is_none()
    }

    /// In the order of section 13.2.2, for GET and HEAD.
    pub(crate) fn judge(&self, content: Validators<'_>) -> ConditionOutcome {
        if let Some(list) = self.if_match {
            if !lists(list, content.tag, Comparison::Strong) {
                return ConditionOutcome::Failed;
            }
        } else if let Some(date) = self.if_unmodified_since
            && let (Some(date), Some(modified)) = (seconds(date), content.modified)
            && modified > date
        {
            return ConditionOutcome::Failed;
        }
        if let Some(list) = self.if_none_match {
            if lists(list, content.tag, Comparison::Weak) {
                return ConditionOutcome::NotModified;
            }
        } else if let Some(date) = self.if_modified_since
            && let (Some(date), Some(modified)) = (seconds(date), content.modified)
            && modified <= date
        {
            return ConditionOutcome::NotModified;
        }
        ConditionOutcome::Holds
    }

    /// Whether a range may be sent (section 13.1.5).
    pub(crate) fn range_holds(&self, content: Validators<'_>) -> bool {
        let Some(value) = self.if_range else {
            return true;
        };
        if value.starts_with(b"\"") || value.starts_with(b"W/") {
            return parse_tag(value).is_some_and(|(tag, rest)| {
                rest.is_empty() && tag.is_same(content.tag, Comparison::Strong)
            });
        }
        content.is_date_strong && seconds(value).is_some() && seconds(value) == content.modified
    }
}

/// Comparison of entity tags (RFC 9110, section 8.8.3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Strong,
    Weak,
}

/// A tag as it came.
#[derive(Debug, Clone, Copy)]
struct SentTag<'a> {
    is_weak: bool,
    opaque: &'a [u8],
}

impl SentTag<'_> {
    fn is_same(self, tag: &Tag, comparison: Comparison) -> bool {
        self.opaque == tag.opaque.as_bytes()
            && (comparison == Comparison::Weak || !(self.is_weak || tag.is_weak))
    }
}

/// Whether a list of tags, or `*`, has `tag`; what is malformed ends it.
fn lists(list: &[u8], tag: &Tag, comparison: Comparison) -> bool {
    if list.trim_ascii() == b"*" {
        return true;
    }
    let mut rest = list;
    loop {
        rest = rest.trim_ascii_start();
        while let Some(after) = rest.strip_prefix(b",") {
            rest = after.trim_ascii_start();
        }
        let Some((sent, after)) = parse_tag(rest) else {
            return false;
        };
        if sent.is_same(tag, comparison) {
            return true;
        }
        rest = after.trim_ascii_start();
        if !rest.is_empty() && !rest.starts_with(b",") {
            return false;
        }
    }
}

/// The tag at the beginning, and what follows.
fn parse_tag(value: &[u8]) -> Option<(SentTag<'_>, &[u8])> {
    let (is_weak, quoted) = match value.strip_prefix(b"W/") {
        Some(rest) => (true, rest),
        None => (false, value),
    };
    let inner = quoted.strip_prefix(b"\"")?;
    let end = inner.iter().position(|byte| *byte == b'"')?;
    let sent = SentTag {
        is_weak,
        opaque: &inner[..end],
    };
    Some((sent, &inner[end + 1..]))
}

/// A date in any of the three forms (section 5.6.7), in seconds since 1970.
fn seconds(value: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(value).ok()?;
    let date = httpdate::parse_http_date(text.trim()).ok()?;
    let since = date.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    Some(since.as_secs())
}

/// As a header field has it.
pub(crate) fn http_date(seconds: u64) -> Option<String> {
    // The year 9999 is the last that has a form.
    (seconds < 253_402_300_800)
        .then(|| httpdate::fmt_http_date(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATE: u64 = 784_111_777;
    const SAME: &[u8] = b"Sun, 06 Nov 1994 08:49:37 GMT";
    const OLDER: &[u8] = b"Sun, 06 Nov 1994 08:49:36 GMT";

    fn judge(conditions: Conditions<'_>, is_weak: bool) -> ConditionOutcome {
        let tag = Tag {
            is_weak,
            opaque: "a,b".to_owned(),
            changed: 0,
        };
        conditions.judge(Validators {
            tag: &tag,
            modified: Some(DATE),
            is_date_strong: true,
        })
    }

    #[test]
    fn lists_of_tags_are_compared_weakly_for_none_and_strongly_for_any() {
        for (list, strong, weak) in [
            (&b"\"a,b\""[..], true, true),
            (b"W/\"a,b\"", false, true),
            (b"*", true, true),
            (b" * ", true, true),
            (b"\"x\", \"a,b\"", true, true),
            (b", ,\"x\" ,W/\"a,b\"", false, true),
            (b"\"x\"", false, false),
            (b"a,b", false, false),
            (b"\"a,b", false, false),
            (b"\"x\" \"a,b\"", false, false),
            (b"", false, false),
            (b"w/\"a,b\"", false, false),
        ] {
            let none = Conditions {
                if_none_match: Some(list),
                ..Conditions::default()
            };
            let expected = if weak {
                ConditionOutcome::NotModified
            } else {
                ConditionOutcome::Holds
            };
            assert_eq!(judge(none, false), expected, "{list:?}");
            let any = Conditions {
                if_match: Some(list),
                ..Conditions::default()
            };
            let expected = if strong {
                ConditionOutcome::Holds
            } else {
                ConditionOutcome::Failed
            };
            assert_eq!(judge(any, false), expected, "{list:?}");
        }
        let any = Conditions {
            if_match: Some(b"\"a,b\""),
            ..Conditions::default()
        };
        assert_eq!(judge(any, true), ConditionOutcome::Failed);
    }

    #[test]
    fn dates_count_where_there_is_no_tag() {
        let since = |value| Conditions {
            if_modified_since: Some(value),
            ..Conditions::default()
        };
        for (value, expected) in [
            (SAME, ConditionOutcome::NotModified),
            (
                b"Sunday, 06-Nov-94 08:49:37 GMT",
                ConditionOutcome::NotModified,
            ),
            (b"Sun Nov  6 08:49:37 1994", ConditionOutcome::NotModified),
            (OLDER, ConditionOutcome::Holds),
            (b"yesterday", ConditionOutcome::Holds),
            (b"\xff", ConditionOutcome::Holds),
        ] {
            assert_eq!(judge(since(value), true), expected, "{value:?}");
        }
        // A tag that does not match counts even where the date would.
        let both = Conditions {
            if_none_match: Some(b"\"x\""),
            ..since(SAME)
        };
        assert_eq!(judge(both, true), ConditionOutcome::Holds);
        let until = |value| Conditions {
            if_unmodified_since: Some(value),
            ..Conditions::default()
        };
        assert_eq!(judge(until(SAME), true), ConditionOutcome::Holds);
        assert_eq!(judge(until(OLDER), true), ConditionOutcome::Failed);
        assert_eq!(judge(until(b"x"), true), ConditionOutcome::Holds);
        let both = Conditions {
            if_match: Some(b"*"),
            ..until(OLDER)
        };
        assert_eq!(judge(both, true), ConditionOutcome::Holds);
    }

    #[test]
    fn ranges_hold_for_what_is_surely_the_same() {
        for (value, is_weak, is_date_strong, holds) in [
            (&b"\"a\""[..], false, false, true),
            (b"\"a\"", true, false, false),
            (b"W/\"a\"", false, false, false),
            (b"\"b\"", false, false, false),
            (b"\"a\", \"a\"", false, false, false),
            (SAME, true, true, true),
            (SAME, true, false, false),
            (OLDER, true, true, false),
            (b"x", true, true, false),
        ] {
            let conditions = Conditions {
                if_range: Some(value),
                ..Conditions::default()
            };
            let tag = Tag {
                is_weak,
                opaque: "a".to_owned(),
                changed: 0,
            };
            let content = Validators {
                tag: &tag,
                modified: Some(DATE),
                is_date_strong,
            };
            assert_eq!(conditions.range_holds(content), holds, "{value:?}");
        }
    }

    #[test]
    fn dates_are_written_as_far_as_they_go() {
        assert_eq!(http_date(DATE).unwrap().as_bytes(), SAME);
        assert_eq!(http_date(u64::MAX), None);
    }
}
