//! A request as the cache sees it, and what it gets of a stored response.

use std::cell::OnceCell;
use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use http::header::{
    AGE, AUTHORIZATION, CACHE_CONTROL, CONTENT_LOCATION, CONTENT_RANGE, DATE, ETAG, EXPIRES,
    HeaderName, HeaderValue, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, LAST_MODIFIED, PRAGMA,
    RANGE, VARY,
};
use http::{HeaderMap, StatusCode};
use plimsoll_server::{Request, Response, ResponseBody};
use plimsoll_wire::http::{Decimal, FieldList};

use super::super::condition::{self, Part};
use super::super::content::Content;
use super::super::directives::Directives;
use super::super::entry::{CACHE_STATUS, Entry};
use super::super::store::Key;
use super::super::url_key::key;
use super::{Layer, cache_status};
use crate::forward::Forward;

/// A request as the cache sees it.
pub(super) struct Lookup {
    pub(super) key: Key,
    /// As the client sent them, and layers have changed them.
    pub(super) fields: HeaderMap,
    /// As a server sees them, once that matters: responses depend on these.
    pub(super) seen: OnceCell<FieldList>,
    pub(super) directives: Directives,
    pub(super) is_head: bool,
    /// No other route takes over because of the status of a stored response.
    pub(super) is_relaying: bool,
    pub(super) excepted: Excepted,
}

/// How the configuration excepts a request from the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Excepted {
    /// It gets no stored response.
    pub(super) bypasses: bool,
    /// The response of the server to it may be stored.
    pub(super) may_store: bool,
}

/// Fields of requests that a cache goes by.
const READ: [HeaderName; 7] = [
    AUTHORIZATION,
    CACHE_CONTROL,
    IF_MODIFIED_SINCE,
    IF_NONE_MATCH,
    IF_RANGE,
    PRAGMA,
    RANGE,
];

impl Lookup {
    pub(super) fn new(request: &Request<'_>, layer: &Layer) -> Self {
        let mut fields = request.fields_named(&READ);
        if request.has_claims() {
            // A token that the server does not get is credentials all the same (RFC 9111, section 3.5).
            let entry = fields.entry(AUTHORIZATION);
            entry.or_insert(HeaderValue::from_static("Bearer"));
        }
        Self {
            key: Key::from(key(request, layer.own_key(request).as_deref())),
            directives: Directives::of_request(&fields),
            fields,
            seen: OnceCell::new(),
            is_head: request.method == "HEAD",
            is_relaying: layer.inner.is_relaying(),
            excepted: Excepted {
                bypasses: layer.plan.bypass.hold_for(request),
                may_store: !layer.plan.no_store.hold_for(request),
            },
        }
    }

    /// Why it goes to the server, if nothing is stored for it or that does not count.
    pub(super) fn why_forwarded(&self) -> &'static str {
        if self.excepted.bypasses {
            "fwd=bypass"
        } else {
            "fwd=uri-miss"
        }
    }

    /// The fields of its request as a server sees them.
    pub(super) fn seen(&self, forward: &Forward, request: &Request<'_>) -> &FieldList {
        self.seen.get_or_init(|| forward.seen_fields(request))
    }

    /// A stored response as this request gets it: whole, in part, or 304.
    pub(super) fn response(
        &self,
        entry: &Entry,
        now: SystemTime,
        status: &'static str,
    ) -> Response {
        let age = entry.age(now).as_secs();
        let cache_status = cache_status(status, false);
        let is_ok = entry.head.status == StatusCode::OK;
        // Most requests have no conditions, and then the fields need not be looked at.
        let response = if is_ok && self.is_answered_by_304(entry) {
            let response =
                Response::new(StatusCode::NOT_MODIFIED).with_field_map(validating(entry));
            response
                .with_field(AGE, HeaderValue::from(age))
                .with_field(CACHE_STATUS, cache_status)
        } else {
            let (status, content, range) = self.part(entry);
            let body = if self.is_head {
                ResponseBody::Announced(entry.content.len() as u64)
            } else {
                content.into_body()
            };
            let mut own = FieldList::with_capacity(3, 96);
            own.push_valid(AGE.as_str().as_bytes(), Decimal::new(age).as_bytes());
            own.push_valid(CACHE_STATUS.as_str().as_bytes(), cache_status.as_bytes());
            let response = Response::new(status)
                .with_shared_fields(Arc::clone(entry.head.fields.sent()), own)
                .with_body(body);
            match range.and_then(|text| HeaderValue::from_str(&text).ok()) {
                Some(range) => response.with_field_set(CONTENT_RANGE, range),
                None => response,
            }
        };
        if self.is_relaying {
            response.relayed()
        } else {
            response
        }
    }

    fn is_answered_by_304(&self, entry: &Entry) -> bool {
        let conditions = [IF_NONE_MATCH, IF_MODIFIED_SINCE];
        conditions.iter().any(|it| self.fields.contains_key(it))
            && condition::is_not_modified(&self.fields, entry.head.fields.map())
    }

    /// Status and content for the range that the request has, if it has one, and the value of `Content-Range`.
    fn part(&self, entry: &Entry) -> (StatusCode, Content, Option<String>) {
        let status = entry.head.status;
        if status != StatusCode::OK || self.is_head || !self.fields.contains_key(RANGE) {
            return (status, entry.content.clone(), None);
        }
        let length = entry.content.len();
        match condition::part(&self.fields, entry.head.fields.map(), length) {
            Part::Whole => (status, entry.content.clone(), None),
            Part::Bytes(range) => {
                let last = range.end.saturating_sub(1);
                let text = format!("bytes {}-{last}/{length}", range.start);
                let content = entry.content.slice(range);
                (StatusCode::PARTIAL_CONTENT, content, Some(text))
            }
            Part::Unsatisfiable => {
                let text = format!("bytes */{length}");
                let content = Content::Memory(Bytes::new());
                (StatusCode::RANGE_NOT_SATISFIABLE, content, Some(text))
            }
        }
    }
}

/// The fields that a 304 has of a stored response (RFC 9110, section 15.4.5).
fn validating(entry: &Entry) -> HeaderMap {
    let kept = [
        CACHE_CONTROL,
        CONTENT_LOCATION,
        DATE,
        ETAG,
        EXPIRES,
        LAST_MODIFIED,
        VARY,
    ];
    let kept = kept.into_iter().flat_map(|name| {
        let values = entry.head.fields.map().get_all(&name).iter();
        values.map(move |value| (name.clone(), value.clone()))
    });
    kept.collect()
}
