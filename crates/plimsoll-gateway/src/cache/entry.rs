//! A stored response, and what may be done with it for a request (RFC 9111, sections 3 and 4). Pure.

use std::time::{Duration, SystemTime};

use http::header::{AGE, AUTHORIZATION, HeaderName, HeaderValue, SET_COOKIE, TRAILER, VARY};
use http::{HeaderMap, StatusCode};
use plimsoll_wire::http::FieldList;

use super::content::Content;
use super::directives::Directives;
use super::freshness::{self, Times};
use super::lifetimes::Lifetimes;
use super::stored_fields::StoredFields;

/// What a cache has done (RFC 9211).
pub(super) const CACHE_STATUS: HeaderName = HeaderName::from_static("cache-status");

/// A response that is kept for later requests.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) head: Head,
    pub(super) content: Content,
}

/// A stored response without its content, with what was made of its fields when it was stored.
#[derive(Debug)]
pub(super) struct Head {
    pub(super) status: StatusCode,
    pub(super) fields: StoredFields,
    pub(super) times: Times,
    pub(super) reuse: Reuse,
    /// How long it is fresh.
    pub(super) lifetime: Duration,
    /// Its age when it was received.
    pub(super) initial_age: Duration,
    /// The fields that `Vary` names, as the server saw them.
    pub(super) selecting: Selecting,
}

/// What a response says about its use once it is stored, but for its lifetime.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Reuse {
    /// It is validated each time.
    pub(super) no_cache: bool,
    /// It is never used beyond its lifetime, whatever the client accepts (section 4.2.4).
    pub(super) must_revalidate: bool,
    /// RFC 5861; the configuration says it where the response does not.
    pub(super) stale_while_revalidate: Option<Duration>,
    pub(super) stale_if_error: Option<Duration>,
}

impl Reuse {
    fn new(directives: &Directives) -> Self {
        let flags = directives.flags;
        Self {
            no_cache: flags.no_cache,
            must_revalidate: flags.must_revalidate
                || flags.proxy_revalidate
                || directives.s_maxage.is_some(),
            stale_while_revalidate: directives.stale_while_revalidate,
            stale_if_error: directives.stale_if_error,
        }
    }
}

/// The fields by which a response is selected, with their values in normal form.
pub(super) type Selecting = Vec<(HeaderName, Vec<Vec<u8>>)>;

/// How long a stored response may be used beyond its lifetime.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Staleness {
    /// While it is validated, unless the response gives a time.
    pub(crate) while_revalidate: Duration,
    /// If the server fails, unless the response gives a time.
    pub(crate) if_error: Duration,
}

/// Permitted use of a stored response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    /// It is the response.
    Fresh,
    /// It is the response, and is to be validated meanwhile.
    StaleWhileRevalidate,
    /// It has to be validated first.
    Validate,
}

impl Entry {
    /// The response as it is stored; `None` if it may not be.
    ///
    /// - `request`: the fields of the request, as the client sent them and as the server saw them.
    /// - `defaults`: lifetimes of responses that give none.
    pub(super) fn new(
        (request, seen): (&HeaderMap, &FieldList),
        status: StatusCode,
        fields: &HeaderMap,
        content: Content,
        times: Times,
        defaults: &Lifetimes,
    ) -> Option<Self> {
        let directives = Directives::of_response(fields);
        if !may_store(request, status, fields, &directives) {
            return None;
        }
        let received = times.received;
        let given = freshness::given_lifetime(status, fields, &directives, received, defaults);
        let has_validator = validators(fields).next().is_some();
        let lifetime = match given {
            // A response that can neither be fresh nor be validated is useless.
            Some(given) if given.is_zero() && !has_validator && !may_be_stale(&directives) => {
                return None;
            }
            Some(given) => given,
            None if !has_validator => return None,
            None => freshness::guessed_lifetime(status, fields, &directives, received)
                .unwrap_or_default(),
        };
        let selecting = selecting(seen, fields)?;
        let head = Head {
            status,
            initial_age: freshness::initial_age(fields, times),
            fields: StoredFields::new(fields),
            times,
            reuse: Reuse::new(&directives),
            lifetime,
            selecting,
        };
        Some(Self { head, content })
    }

    /// Whether it was stored for a request with the same selecting fields (section 4.1).
    ///
    /// - `seen`: yields the fields of the request as a server sees them.
    pub(super) fn is_selected_by<'s>(&self, seen: &dyn Fn() -> &'s FieldList) -> bool {
        is_selected_by(&self.head.selecting, seen)
    }

    /// Its age at `now` (section 4.2.3).
    pub(super) fn age(&self, now: SystemTime) -> Duration {
        let resident = now
            .duration_since(self.head.times.received)
            .unwrap_or_default();
        self.head.initial_age.saturating_add(resident)
    }

    /// Permitted use for a request.
    pub(super) fn usage(&self, request: &Directives, staleness: Staleness, now: SystemTime) -> Use {
        let reuse = self.head.reuse;
        if request.flags.no_cache || reuse.no_cache {
            return Use::Validate;
        }
        let age = self.age(now);
        if request.max_age.is_some_and(|limit| age > limit) {
            return Use::Validate;
        }
        let wanted = age.saturating_add(request.min_fresh.unwrap_or_default());
        if self.head.lifetime > wanted {
            return Use::Fresh;
        }
        if reuse.must_revalidate {
            return Use::Validate;
        }
        let stale = age.saturating_sub(self.head.lifetime);
        if request.max_stale.is_some_and(|limit| stale <= limit) {
            return Use::Fresh;
        }
        let limit = reuse.stale_while_revalidate;
        if stale < limit.unwrap_or(staleness.while_revalidate) && request.min_fresh.is_none() {
            return Use::StaleWhileRevalidate;
        }
        Use::Validate
    }

    /// Whether it may stand in for a response with an error (RFC 5861, section 4).
    pub(super) fn may_replace_error(
        &self,
        request: &Directives,
        staleness: Staleness,
        now: SystemTime,
    ) -> bool {
        let stale = self.age(now).saturating_sub(self.head.lifetime);
        let limit = request.stale_if_error.or(self.head.reuse.stale_if_error);
        let limit = limit.unwrap_or(staleness.if_error);
        let reuse = self.head.reuse;
        let may_be_used = !reuse.must_revalidate && !reuse.no_cache;
        may_be_used && !self.head.status.is_server_error() && stale < limit
    }

    /// The same response with what a 304 says (section 3.2); `None` if it may not be stored any more.
    pub(super) fn freshened(
        &self,
        request: (&HeaderMap, &FieldList),
        update: &HeaderMap,
        times: Times,
        defaults: &Lifetimes,
    ) -> Option<Self> {
        let mut fields = self.head.fields.map().clone();
        for name in update.keys() {
            if is_updated(name) {
                fields.remove(name);
                for value in update.get_all(name) {
                    fields.append(name.clone(), value.clone());
                }
            }
        }
        if !update.contains_key(AGE) {
            fields.remove(AGE);
        }
        let content = self.content.clone();
        Self::new(request, self.head.status, &fields, content, times, defaults)
    }

    /// Bytes that it takes.
    pub(super) fn size(&self) -> usize {
        const FIELD: usize = 64;
        let selecting: usize = self
            .head
            .selecting
            .iter()
            .flat_map(|(_, values)| values)
            .map(|it| it.len() + FIELD)
            .sum();
        size_of::<Self>() + self.head.fields.size() + selecting + self.content.in_memory()
    }
}

/// The same by the fields alone.
pub(super) fn is_selected_by<'s>(selecting: &Selecting, seen: &dyn Fn() -> &'s FieldList) -> bool {
    let mut selecting = selecting.iter();
    selecting.all(|(name, values)| normal_values(seen(), name) == *values)
}

/// The fields of the content stay as they were, and those of the connection do not come here.
fn is_updated(name: &HeaderName) -> bool {
    ![
        "content-length",
        "content-encoding",
        "content-type",
        "content-range",
    ]
    .contains(&name.as_str())
}

/// Section 3.
fn may_store(
    request: &HeaderMap,
    status: StatusCode,
    fields: &HeaderMap,
    directives: &Directives,
) -> bool {
    let flags = directives.flags;
    // Parts are not put together, so one is not kept either; 304 updates what is stored.
    let is_final = !status.is_informational()
        && status != StatusCode::PARTIAL_CONTENT
        && status != StatusCode::NOT_MODIFIED;
    let is_understood = !flags.must_understand || is_known(status);
    let no_store = flags.no_store && !(flags.must_understand && is_known(status));
    let is_authorized = !request.contains_key(AUTHORIZATION)
        || flags.public
        || flags.must_revalidate
        || directives.s_maxage.is_some();
    // A cookie is for one client, unless the response says that it is for all.
    let is_personal =
        fields.contains_key(SET_COOKIE) && !flags.public && directives.s_maxage.is_none();
    is_final
        && is_understood
        && !no_store
        && !flags.private
        && is_authorized
        && !is_personal
        && !fields.contains_key(TRAILER)
}

/// Statuses whose rules for caches are known here.
fn is_known(status: StatusCode) -> bool {
    [
        200, 203, 204, 300, 301, 302, 303, 307, 308, 404, 405, 410, 414, 501,
    ]
    .contains(&status.as_u16())
}

fn may_be_stale(directives: &Directives) -> bool {
    directives.stale_while_revalidate.is_some() || directives.stale_if_error.is_some()
}

/// `ETag` and `Last-Modified`.
pub(super) fn validators(fields: &HeaderMap) -> impl Iterator<Item = (HeaderName, &HeaderValue)> {
    use http::header::{ETAG, IF_MODIFIED_SINCE, IF_NONE_MATCH, LAST_MODIFIED};
    let pairs = [(ETAG, IF_NONE_MATCH), (LAST_MODIFIED, IF_MODIFIED_SINCE)];
    pairs
        .into_iter()
        .filter_map(|(name, condition)| Some((condition, fields.get(name)?)))
}

/// The fields that `Vary` names, with the values that the server saw; `None` for `*`, which nothing matches.
fn selecting(seen: &FieldList, fields: &HeaderMap) -> Option<Selecting> {
    let mut selecting = Vec::new();
    for value in fields.get_all(VARY) {
        for name in value.as_bytes().split(|it| *it == b',') {
            let name = name.trim_ascii();
            if name == b"*" {
                return None;
            }
            if name.is_empty() {
                continue;
            }
            let name = HeaderName::from_bytes(name).ok()?;
            let values = normal_values(seen, &name);
            selecting.push((name, values));
        }
    }
    Some(selecting)
}

/// The values of a field with the blanks around commas removed, since those have no meaning (section 4.1).
fn normal_values(seen: &FieldList, name: &HeaderName) -> Vec<Vec<u8>> {
    let fields = seen.iter();
    let values = fields.filter(|(known, _)| known.eq_ignore_ascii_case(name.as_str().as_bytes()));
    let parts = values.flat_map(|(_, value)| value.split(|it| *it == b','));
    parts
        .map(<[u8]>::trim_ascii)
        .filter(|part| !part.is_empty())
        .map(<[u8]>::to_vec)
        .collect()
}

#[cfg(test)]
mod tests {
    use http::header::{CACHE_CONTROL, ETAG, EXPIRES, LAST_MODIFIED};

    use super::*;

    fn fields(pairs: &[(HeaderName, &str)]) -> HeaderMap {
        let pairs = pairs.iter();
        pairs
            .map(|(name, value)| (name.clone(), HeaderValue::from_str(value).unwrap()))
            .collect()
    }

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000 + seconds)
    }

    fn entry(
        request: &[(HeaderName, &str)],
        status: u16,
        response: &[(HeaderName, &str)],
    ) -> Option<Entry> {
        let times = Times {
            requested: at(0),
            received: at(0),
        };
        let status = StatusCode::from_u16(status).unwrap();
        Entry::new(
            (&fields(request), &FieldList::new()),
            status,
            &fields(response),
            Content::Memory(bytes::Bytes::new()),
            times,
            &Lifetimes::default(),
        )
    }

    #[test]
    fn what_may_be_stored() {
        let authorized = [(AUTHORIZATION, "Basic eA==")];
        let fresh = [(CACHE_CONTROL, "max-age=60")];
        for (request, status, response, expected) in [
            (&[][..], 200, &fresh[..], true),
            (&[], 404, &fresh, true),
            (&[], 206, &fresh, false),
            (&[], 304, &fresh, false),
            (&[], 200, &[], false),
            (&[], 200, &[(ETAG, "\"a\"")], true),
            (
                &[],
                200,
                &[(LAST_MODIFIED, "Sun, 06 Nov 1994 08:49:37 GMT")],
                true,
            ),
            (&[], 200, &[(EXPIRES, "0")], false),
            (&[], 200, &[(CACHE_CONTROL, "no-store, max-age=60")], false),
            (&[], 200, &[(CACHE_CONTROL, "private, max-age=60")], false),
            (
                &[],
                200,
                &[(CACHE_CONTROL, "max-age=60, no-store, must-understand")],
                true,
            ),
            (
                &[],
                299,
                &[(CACHE_CONTROL, "max-age=60, no-store, must-understand")],
                false,
            ),
            (
                &[],
                200,
                &[(CACHE_CONTROL, "max-age=60"), (VARY, "*")],
                false,
            ),
            (
                &[],
                200,
                &[(CACHE_CONTROL, "max-age=60"), (SET_COOKIE, "a=b")],
                false,
            ),
            (
                &[],
                200,
                &[(CACHE_CONTROL, "s-maxage=60"), (SET_COOKIE, "a=b")],
                true,
            ),
            (&authorized, 200, &fresh, false),
            (
                &authorized,
                200,
                &[(CACHE_CONTROL, "public, max-age=60")],
                true,
            ),
            (
                &authorized,
                200,
                &[(CACHE_CONTROL, "must-revalidate, max-age=60")],
                true,
            ),
        ] {
            let is_stored = entry(request, status, response).is_some();
            assert_eq!(is_stored, expected, "{request:?} {status} {response:?}");
        }
    }

    #[test]
    fn how_a_stored_response_may_be_used() {
        let staleness = Staleness {
            while_revalidate: Duration::from_secs(10),
            if_error: Duration::from_secs(100),
        };
        for (response, request, now, expected) in [
            ("max-age=60", "", 59, Use::Fresh),
            ("max-age=60", "", 60, Use::StaleWhileRevalidate),
            ("max-age=60", "", 70, Use::Validate),
            ("max-age=60", "max-age=5", 6, Use::Validate),
            ("max-age=60", "min-fresh=5", 56, Use::Validate),
            ("max-age=60", "max-stale", 9_999, Use::Fresh),
            ("max-age=60", "max-stale=20", 80, Use::Fresh),
            ("max-age=60", "max-stale=20", 81, Use::Validate),
            ("max-age=60", "no-cache", 1, Use::Validate),
            ("max-age=60, no-cache", "", 1, Use::Validate),
            (
                "max-age=60, must-revalidate",
                "max-stale",
                61,
                Use::Validate,
            ),
            ("s-maxage=60", "", 61, Use::Validate),
            (
                "max-age=60, stale-while-revalidate=30",
                "",
                89,
                Use::StaleWhileRevalidate,
            ),
            (
                "max-age=60, stale-while-revalidate=0",
                "",
                60,
                Use::Validate,
            ),
        ] {
            let stored = entry(&[], 200, &[(CACHE_CONTROL, response), (ETAG, "\"a\"")]).unwrap();
            let request = Directives::of_request(&fields(&[(CACHE_CONTROL, request)]));
            let found = stored.usage(&request, staleness, at(now));
            assert_eq!(found, expected, "{response} {request:?} {now}");
        }
        let stored = entry(&[], 200, &[(CACHE_CONTROL, "max-age=60")]).unwrap();
        let plain = Directives::default();
        assert!(stored.may_replace_error(&plain, staleness, at(159)));
        assert!(!stored.may_replace_error(&plain, staleness, at(160)));
    }
}
