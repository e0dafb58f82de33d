//! `Cache-Control`, read as recipients should (RFC 9111, section 5.2).

use std::time::{Duration, SystemTime};

use http::HeaderMap;
use http::header::{CACHE_CONTROL, HeaderName, HeaderValue, PRAGMA};

/// The directives of a message. Unknown ones are ignored; of repeated ones the first holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Directives {
    pub(super) max_age: Option<Duration>,
    pub(super) s_maxage: Option<Duration>,
    /// Without a value any staleness is accepted, which is the longest time there is.
    pub(super) max_stale: Option<Duration>,
    pub(super) min_fresh: Option<Duration>,
    pub(super) stale_while_revalidate: Option<Duration>,
    pub(super) stale_if_error: Option<Duration>,
    pub(super) flags: Flags,
    /// There is a `Cache-Control` field.
    pub(super) is_given: bool,
    /// They come from a field for this cache, so `Expires` does not count.
    pub(super) is_targeted: bool,
    /// `X-Accel-Expires` as an instant.
    pub(super) fresh_until: Option<SystemTime>,
}

/// RFC 9213.
const CDN_CACHE_CONTROL: HeaderName = HeaderName::from_static("cdn-cache-control");

/// As nginx has it: seconds, of which none is not to keep the response, or `@` with those since 1970.
const ACCEL_EXPIRES: HeaderName = HeaderName::from_static("x-accel-expires");

/// The directives without a number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a directive of its own"
)]
pub(super) struct Flags {
    pub(super) no_store: bool,
    pub(super) no_cache: bool,
    pub(super) private: bool,
    pub(super) public: bool,
    pub(super) must_revalidate: bool,
    pub(super) proxy_revalidate: bool,
    pub(super) must_understand: bool,
    pub(super) immutable: bool,
    pub(super) only_if_cached: bool,
    /// A lifetime was given that is not a number: the response counts as stale (section 4.2.1).
    pub(super) is_invalid: bool,
}

/// The longest age that is kept apart from longer ones (section 1.2.2).
const MOST_SECONDS: u64 = 1 << 31;

impl Directives {
    /// Those of a request; `Pragma: no-cache` counts without `Cache-Control` (section 5.4).
    pub(super) fn of_request(fields: &HeaderMap) -> Self {
        let mut directives = Self::from_fields(fields, &CACHE_CONTROL);
        if !directives.is_given {
            let pragmas = fields.get_all(PRAGMA).iter();
            let mut names = pragmas.flat_map(|value| value.as_bytes().split(|it| *it == b','));
            directives.flags.no_cache =
                names.any(|name| name.trim_ascii().eq_ignore_ascii_case(b"no-cache"));
        }
        directives
    }

    /// Those of a response: of `X-Accel-Expires`, which is for this cache alone, then of `CDN-Cache-Control`, which is for
    /// caches on the side of the origin (RFC 9213), if one is there and valid.
    pub(super) fn of_response(fields: &HeaderMap) -> Self {
        if let Some(own) = Self::of_accelerator(fields) {
            return own;
        }
        if is_targeted(fields) {
            return Self {
                is_targeted: true,
                ..Self::from_fields(fields, &CDN_CACHE_CONTROL)
            };
        }
        Self::from_fields(fields, &CACHE_CONTROL)
    }

    fn of_accelerator(fields: &HeaderMap) -> Option<Self> {
        let mut values = fields.get_all(ACCEL_EXPIRES).iter();
        let value = values.next().filter(|_| values.next().is_none())?;
        let text = value.to_str().ok()?.trim();
        let (is_instant, digits) = match text.strip_prefix('@') {
            Some(digits) => (true, digits),
            None => (false, text),
        };
        let seconds = seconds(Some(digits))?;
        let mut own = Self {
            is_given: true,
            is_targeted: true,
            ..Self::default()
        };
        if is_instant {
            own.fresh_until = Some(SystemTime::UNIX_EPOCH + seconds);
        } else {
            own.flags.no_store = seconds.is_zero();
            own.max_age = Some(seconds);
        }
        Some(own)
    }

    fn from_fields(fields: &HeaderMap, field: &HeaderName) -> Self {
        let mut directives = Self::default();
        for value in fields.get_all(field) {
            directives.is_given = true;
            for (name, value) in parts(value) {
                directives.add_directive(&name, value.as_deref());
            }
        }
        directives
    }

    fn add_directive(&mut self, name: &str, value: Option<&str>) {
        let flags = &mut self.flags;
        match name {
            "no-store" => flags.no_store = true,
            // A list of fields would allow the rest to be used; it is rare, and the whole is safe.
            "no-cache" => flags.no_cache = true,
            "private" => flags.private = true,
            "public" => flags.public = true,
            "must-revalidate" => flags.must_revalidate = true,
            "proxy-revalidate" => flags.proxy_revalidate = true,
            "must-understand" => flags.must_understand = true,
            "immutable" => flags.immutable = true,
            "only-if-cached" => flags.only_if_cached = true,
            "max-age" => match seconds(value) {
                Some(seconds) => _ = self.max_age.get_or_insert(seconds),
                None => flags.is_invalid = true,
            },
            "s-maxage" => match seconds(value) {
                Some(seconds) => _ = self.s_maxage.get_or_insert(seconds),
                None => flags.is_invalid = true,
            },
            "max-stale" => {
                let limit = value.map(|value| seconds(Some(value)).unwrap_or_default());
                self.max_stale.get_or_insert(limit.unwrap_or(Duration::MAX));
            }
            "min-fresh" => self.min_fresh = self.min_fresh.or(seconds(value)),
            "stale-while-revalidate" => {
                self.stale_while_revalidate = self.stale_while_revalidate.or(seconds(value));
            }
            "stale-if-error" => self.stale_if_error = self.stale_if_error.or(seconds(value)),
            _ => {}
        }
    }
}

/// Whether there is a `CDN-Cache-Control` that is a dictionary of structured fields and not empty (RFC 9651, section 3.2).
fn is_targeted(fields: &HeaderMap) -> bool {
    let mut values = fields.get_all(CDN_CACHE_CONTROL).iter().peekable();
    values.peek().is_some()
        && values.all(|value| {
            let parts = value.to_str().unwrap_or(",").split(',');
            parts.map(str::trim).all(is_member)
        })
}

/// A key with a value that a directive may have.
fn is_member(text: &str) -> bool {
    let (key, value) = text
        .split_once('=')
        .map_or((text, None), |(key, value)| (key, Some(value)));
    let is_key = key.starts_with(|it: char| it.is_ascii_lowercase() || it == '*')
        && key
            .bytes()
            .all(|it| it.is_ascii_lowercase() || it.is_ascii_digit() || b"_-.*".contains(&it));
    let is_value = |value: &str| {
        let is_integer =
            !value.is_empty() && value.len() <= 15 && value.bytes().all(|it| it.is_ascii_digit());
        let is_text = value.len() >= 2 && value.starts_with('"') && value.ends_with('"');
        let is_token = value.starts_with(|it: char| it.is_ascii_alphabetic() || it == '*')
            && value.bytes().all(|it| it.is_ascii_graphic() && it != b'"');
        let is_numeric_directive = ["max-age", "s-maxage"].contains(&key);
        is_integer
            || (!is_numeric_directive && (is_text || is_token || ["?0", "?1"].contains(&value)))
    };
    is_key && value.is_none_or(is_value)
}

/// A number of seconds (RFC 9111, section 1.2.2), quoted or not; longer ones become the longest.
fn seconds(value: Option<&str>) -> Option<Duration> {
    let value = value?;
    let is_number = !value.is_empty() && value.bytes().all(|it| it.is_ascii_digit());
    if !is_number {
        return None;
    }
    let seconds = value.parse().unwrap_or(MOST_SECONDS);
    Some(Duration::from_secs(seconds.min(MOST_SECONDS)))
}

/// Names in lowercase with their values; commas within quotes do not separate.
fn parts(field: &HeaderValue) -> Vec<(String, Option<String>)> {
    let mut parts = Vec::new();
    let (mut name, mut value) = (String::new(), None::<String>);
    let (mut is_quoted, mut is_escaped) = (false, false);
    let mut put = |name: &mut String, value: &mut Option<String>| {
        let text = std::mem::take(name).trim().to_ascii_lowercase();
        let value = value.take().map(|value| value.trim().to_owned());
        if !text.is_empty() {
            parts.push((text, value));
        }
    };
    for byte in field.as_bytes() {
        let character = char::from(*byte);
        match character {
            _ if is_escaped => {
                is_escaped = false;
                value.get_or_insert_default().push(character);
            }
            '\\' if is_quoted => is_escaped = true,
            '"' if value.is_some() => is_quoted = !is_quoted,
            ',' if !is_quoted => put(&mut name, &mut value),
            '=' if value.is_none() => value = Some(String::new()),
            _ => match &mut value {
                Some(value) => value.push(character),
                None => name.push(character),
            },
        }
    }
    put(&mut name, &mut value);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Directives {
        let mut fields = HeaderMap::new();
        fields.insert(CACHE_CONTROL, HeaderValue::from_str(text).unwrap());
        Directives::of_response(&fields)
    }

    #[test]
    fn directives_are_read_leniently() {
        let seconds = |it| Some(Duration::from_secs(it));
        for (text, expected) in [
            ("max-age=5", seconds(5)),
            ("Max-Age=5", seconds(5)),
            ("max-age=\"5\"", seconds(5)),
            ("a=\"x, max-age=9\", max-age=5", seconds(5)),
            ("max-age=5, max-age=9", seconds(5)),
            ("max-age=99999999999999999999", seconds(MOST_SECONDS)),
            ("max-age = 5", seconds(5)),
            ("max-age=-5", None),
            ("max-age=1.5", None),
            ("max-age", None),
            ("max-ages=5", None),
        ] {
            assert_eq!(parsed(text).max_age, expected, "{text}");
        }
        assert!(parsed("max-age=x").flags.is_invalid);
        let flags = parsed("no-store, PRIVATE=\"a, b\" ,, public").flags;
        assert!(flags.no_store && flags.private && flags.public && !flags.no_cache);
        assert_eq!(parsed("max-stale").max_stale, Some(Duration::MAX));
        assert_eq!(parsed("max-stale=3").max_stale, seconds(3));
    }

    #[test]
    fn a_targeted_field_comes_first_if_it_is_valid() {
        for (targeted, expected) in [
            ("max-age=5", 5),
            ("max-age=5, no-cache", 5),
            ("max-age=5, extension=token", 5),
            ("max-age=\"5\"", 9),
            ("max-age = 5", 9),
            ("Max-Age=5", 9),
            ("max-age=5,", 9),
            ("", 9),
            ("&", 9),
        ] {
            let mut fields = HeaderMap::new();
            fields.insert(CACHE_CONTROL, HeaderValue::from_static("max-age=9"));
            fields.insert(CDN_CACHE_CONTROL, HeaderValue::from_str(targeted).unwrap());
            let seconds = Directives::of_response(&fields).max_age.unwrap().as_secs();
            assert_eq!(seconds, expected, "{targeted}");
        }
    }

    #[test]
    fn a_field_for_this_cache_comes_before_all_others() {
        let read = |values: &[&'static str]| {
            let mut fields = HeaderMap::new();
            fields.insert(
                CACHE_CONTROL,
                HeaderValue::from_static("private, max-age=9"),
            );
            fields.insert(CDN_CACHE_CONTROL, HeaderValue::from_static("max-age=8"));
            for value in values {
                fields.append(ACCEL_EXPIRES, HeaderValue::from_static(value));
            }
            Directives::of_response(&fields)
        };
        let seconds = |it: &Directives| it.max_age.map(|it| it.as_secs());
        let own = read(&["60"]);
        assert_eq!((seconds(&own), own.flags.private), (Some(60), false));
        assert!(read(&["0"]).flags.no_store);
        let until = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        assert_eq!(read(&["@784111777"]).fresh_until, Some(until));
        for other in [&["-1"][..], &["off"], &["@"], &[""], &["1", "2"]] {
            assert_eq!(seconds(&read(other)), Some(8), "{other:?}");
        }
    }

    #[test]
    fn pragma_counts_only_without_cache_control() {
        let mut fields = HeaderMap::new();
        fields.insert(PRAGMA, HeaderValue::from_static("x, No-Cache"));
        assert!(Directives::of_request(&fields).flags.no_cache);
        fields.insert(CACHE_CONTROL, HeaderValue::from_static("max-age=3"));
        assert!(!Directives::of_request(&fields).flags.no_cache);
    }
}
