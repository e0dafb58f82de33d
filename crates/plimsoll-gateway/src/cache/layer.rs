//! The cache before the action of a route: what is stored is sent, the rest is fetched, validated and stored.

mod lookup;

use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::StatusCode;
use http::header::{
    CONTENT_LOCATION, HeaderValue, IF_MODIFIED_SINCE, IF_NONE_MATCH, LOCATION, RANGE,
};
use http_body::Body as _;
use plimsoll_model::Clock as _;
use plimsoll_server::{
    Action, Answer, FieldEdits, Outcome, OwnedRequest, Request, Response, ResponseBody,
};
use plimsoll_wire::SystemClock;
use plimsoll_wire::http::FieldList;

use self::lookup::{Excepted, Lookup};
use super::body::Kept;
use super::content::Content;
use super::directives::Directives;
use super::disk::{Disk, OnDisk};
use super::entry::{self, CACHE_STATUS, Entry, Use};
use super::freshness::Times;
use super::plan::CachePlan;
use super::store::{Counts, Flight, Found, Turn};
use super::url_key::{key, origin, same_origin, with_own};
use crate::forward::Forward;

/// How long a request waits for another one that fetches the same response.
const PATIENCE: Duration = Duration::from_secs(10);

/// Sends stored responses in place of forwarding; made for each worker, over a store that they share.
#[derive(Clone)]
pub(crate) struct Cached(Rc<Layer>);

struct Layer {
    plan: CachePlan,
    inner: Rc<Forward>,
}

impl Cached {
    pub(crate) fn new(plan: CachePlan, inner: Rc<Forward>) -> Self {
        plan.store.start();
        Self(Rc::new(Layer { plan, inner }))
    }
}

impl Action for Cached {
    fn handle(&self, request: &Request<'_>) -> Answer {
        self.respond(request, None)
    }

    fn methods(&self) -> Option<&'static str> {
        self.0.inner.methods()
    }
}

impl Cached {
    /// - `loaded`: what was on disk, once that was looked for.
    fn respond(&self, request: &Request<'_>, loaded: Option<Loaded>) -> Answer {
        let layer = &self.0;
        let is_read = matches!(request.method, "GET" | "HEAD");
        if !is_read {
            return layer.change(request);
        }
        if request.upgrade.is_some() {
            return layer.inner.handle(request);
        }
        if request.content_length() != Some(0) {
            return passed(layer.inner.handle(request), "fwd=bypass");
        }
        if layer.plan.skip.hold_for(request) {
            return passed(layer.inner.handle(request), "fwd=bypass");
        }
        let lookup = Lookup::new(request, layer);
        let now = SystemClock.wall();
        let counts = &layer.plan.store.counts;
        let seen = || lookup.seen(&layer.inner, request);
        let mut found = if lookup.excepted.bypasses {
            Found::Nothing
        } else {
            layer.plan.store.find(&lookup.key, &seen, now)
        };
        if !lookup.excepted.bypasses && matches!(found, Found::Nothing | Found::OtherVariants) {
            match loaded {
                None => match layer.plan.store.on_disk(&lookup.key, &seen) {
                    OnDisk::Nothing => {}
                    OnDisk::Entry(entry) => {
                        layer.plan.store.restore(&lookup.key, &seen, &entry);
                        found = Found::Entry(entry);
                    }
                    OnDisk::Elsewhere(disk) => {
                        seen();
                        return Answer::Later(Box::pin(self.load(disk, lookup, request)));
                    }
                },
                Some(Loaded(Some(entry))) => found = Found::Entry(entry),
                Some(Loaded(None)) => {}
            }
        }
        if let Found::Entry(entry) = &found {
            match entry.usage(&lookup.directives, layer.plan.staleness, now) {
                Use::Fresh => {
                    Counts::count(&counts.hits);
                    return Answer::now(lookup.response(entry, now, "hit"));
                }
                Use::StaleWhileRevalidate => {
                    Counts::count(&counts.stale);
                    layer.validate_later(request, &lookup, entry);
                    return Answer::now(lookup.response(entry, now, "hit; detail=stale"));
                }
                Use::Validate => {}
            }
        }
        if lookup.directives.flags.only_if_cached {
            let text = "the response is not in the cache\n";
            return Answer::now(Response::text(StatusCode::GATEWAY_TIMEOUT, text));
        }
        if lookup.directives.flags.no_store {
            return passed(layer.inner.handle(request), "fwd=request");
        }
        if matches!(found, Found::NotStored) {
            return passed(layer.inner.handle(request), "fwd=uri-miss");
        }
        if !lookup.excepted.bypasses {
            Counts::count(&counts.misses);
        }
        seen();
        let fetching = Fetching {
            layer: Rc::clone(layer),
            lookup,
            request: request.into_owned(),
        };
        match found {
            Found::Entry(entry) => Answer::Later(Box::pin(fetching.validate(entry))),
            _ => Answer::Later(Box::pin(fetching.fetch())),
        }
    }

    /// Reads a response from disk on a thread that may wait, and responds then.
    fn load(
        &self,
        disk: Arc<Disk>,
        lookup: Lookup,
        request: &Request<'_>,
    ) -> impl Future<Output = Outcome> + 'static {
        let (cached, request) = (self.clone(), request.into_owned());
        async move {
            let key = Arc::clone(&lookup.key);
            let seen = lookup.seen.into_inner().unwrap_or_default();
            let reading = {
                let (key, seen) = (Arc::clone(&key), seen.clone());
                tokio::task::spawn_blocking(move || disk.load(&key, &seen))
            };
            let entry = reading.await.ok().flatten();
            if let Some(entry) = &entry {
                cached.0.plan.store.restore(&key, &|| &seen, entry);
            }
            match cached.respond(&request.request(), Some(Loaded(entry))) {
                Answer::Now(outcome) => outcome,
                Answer::Later(later) => later.await,
            }
        }
    }
}

/// What was on disk for a request.
struct Loaded(Option<Arc<Entry>>);

impl Layer {
    /// A request that may change what is stored (RFC 9111, section 4.4).
    fn change(&self, request: &Request<'_>) -> Answer {
        if matches!(request.method, "OPTIONS" | "TRACE") {
            return passed(self.inner.handle(request), "fwd=method");
        }
        let store = Arc::clone(&self.plan.store);
        let own = self.own_key(request);
        let key = key(request, own.as_deref());
        let origin = origin(request);
        let answer = passed(self.inner.handle(request), "fwd=method");
        answer.map(move |mut response| {
            let status = response.status();
            if status.is_success() || status.is_redirection() {
                store.remove(&key);
                for name in [LOCATION, CONTENT_LOCATION] {
                    let named = response.fields().get(&name);
                    let named = named.and_then(|value| value.to_str().ok());
                    if let Some(key) = named.and_then(|value| same_origin(&origin, value)) {
                        store.remove(&with_own(key, own.as_deref()));
                    }
                }
            }
            response
        })
    }

    /// The part of the key that the configuration adds.
    fn own_key(&self, request: &Request<'_>) -> Option<String> {
        let template = self.plan.key.as_ref()?;
        let mut text = Vec::new();
        template.fill(request, &mut text);
        Some(String::from_utf8_lossy(&text).into_owned())
    }

    /// Validates a stored response while it is sent; one request at a time does.
    fn validate_later(self: &Rc<Self>, request: &Request<'_>, lookup: &Lookup, entry: &Arc<Entry>) {
        let Turn::Fetch(flight) = self.plan.store.turn(&lookup.key) else {
            return;
        };
        let fetching = Fetching {
            layer: Rc::clone(self),
            lookup: Lookup {
                key: Arc::clone(&lookup.key),
                fields: lookup.fields.clone(),
                seen: lookup.seen(&self.inner, request).clone().into(),
                directives: Directives::default(),
                is_head: false,
                is_relaying: lookup.is_relaying,
                excepted: Excepted {
                    bypasses: false,
                    ..lookup.excepted
                },
            },
            request: request.into_owned(),
        };
        let entry = Arc::clone(entry);
        tokio::task::spawn_local(async move {
            let _flight = flight;
            let outcome = fetching.validate_entry(&entry).await;
            // A new response is stored as it is read.
            if let Outcome::Respond(mut response) = outcome
                && let ResponseBody::Stream(mut body) = response.take_body()
            {
                while let Some(frame) = next_frame(&mut body).await {
                    if frame.is_err() {
                        return;
                    }
                }
            }
        });
    }
}

type Stream =
    std::pin::Pin<Box<dyn http_body::Body<Data = Bytes, Error = plimsoll_server::StreamError>>>;

async fn next_frame(
    body: &mut Stream,
) -> Option<Result<http_body::Frame<Bytes>, plimsoll_server::StreamError>> {
    std::future::poll_fn(|context| body.as_mut().poll_frame(context)).await
}

/// A request that is sent on, and whose response may be stored.
struct Fetching {
    layer: Rc<Layer>,
    lookup: Lookup,
    request: OwnedRequest,
}

impl Fetching {
    /// Fetches a response of which nothing is stored, or waits for one that is being fetched.
    async fn fetch(self) -> Outcome {
        let store = &self.layer.plan.store;
        // Parts are not stored, and HEAD fetches no content, so no request need wait for those.
        let is_part = self.lookup.fields.contains_key(RANGE);
        if self.lookup.is_head || is_part || !self.lookup.excepted.may_store {
            return match self.send(&FieldEdits::new()).await {
                Outcome::Respond(response) => {
                    let status = cache_status(self.lookup.why_forwarded(), false);
                    Outcome::Respond(response.with_field_set(CACHE_STATUS, status))
                }
                other => other,
            };
        }
        if self.lookup.excepted.bypasses {
            return self.fetch_first(None).await;
        }
        let patience = tokio::time::sleep(PATIENCE);
        tokio::pin!(patience);
        loop {
            let mut waiting = match store.turn(&self.lookup.key) {
                Turn::Fetch(flight) => return self.fetch_first(Some(flight)).await,
                Turn::Wait(waiting) => waiting,
            };
            let is_late = tokio::select! {
                // An error is the end of the other request, which drops the sender.
                _ = waiting.changed() => false,
                () = &mut patience => true,
            };
            let now = SystemClock.wall();
            match store.find(&self.lookup.key, &|| self.seen(), now) {
                Found::Entry(entry) => {
                    let staleness = self.layer.plan.staleness;
                    if entry.usage(&self.lookup.directives, staleness, now) != Use::Validate {
                        Counts::count(&store.counts.hits);
                        let response = self.lookup.response(&entry, now, "hit; collapsed");
                        return Outcome::Respond(response);
                    }
                }
                // The other request broke off, for example because its client left: one of those that waited is the next.
                Found::Nothing if !is_late => continue,
                Found::Nothing | Found::OtherVariants | Found::NotStored => {}
            }
            return self.fetch_first(None).await;
        }
    }

    async fn fetch_first(self, flight: Option<Flight>) -> Outcome {
        let requested = SystemClock.wall();
        let outcome = self.send(&FieldEdits::new()).await;
        self.keep(outcome, requested, self.lookup.why_forwarded(), flight)
    }

    async fn validate(self, entry: Arc<Entry>) -> Outcome {
        self.validate_entry(&entry).await
    }

    /// Asks the server whether a stored response still holds (RFC 9111, section 4.3).
    async fn validate_entry(&self, entry: &Arc<Entry>) -> Outcome {
        let plan = &self.layer.plan;
        let conditions = [IF_NONE_MATCH, IF_MODIFIED_SINCE, RANGE];
        let mut edits = conditions
            .into_iter()
            .fold(FieldEdits::new(), FieldEdits::remove);
        for (name, value) in entry::validators(entry.head.fields.map()) {
            edits = edits.set(name, value.clone());
        }
        let requested = SystemClock.wall();
        let outcome = self.send(&edits).await;
        let now = SystemClock.wall();
        let Outcome::Respond(response) = &outcome else {
            return outcome;
        };
        let is_error = matches!(response.status().as_u16(), 500 | 502 | 503 | 504);
        if is_error && entry.may_replace_error(&self.lookup.directives, plan.staleness, now) {
            Counts::count(&plan.store.counts.stale);
            let response = self.lookup.response(entry, now, "hit; detail=error");
            return Outcome::Respond(response);
        }
        if response.status() != StatusCode::NOT_MODIFIED {
            return self.keep(outcome, requested, "fwd=stale", None);
        }
        let Outcome::Respond(mut response) = outcome else {
            return outcome;
        };
        let times = Times {
            requested,
            received: now,
        };
        Counts::count(&plan.store.counts.validated);
        let Lookup { key, fields, .. } = &self.lookup;
        let status = "hit; fwd=stale; fwd-status=304";
        let request = (fields, self.seen());
        let fresh = entry.freshened(request, response.fields(), times, &plan.lifetimes);
        let sent = self
            .lookup
            .response(fresh.as_ref().unwrap_or(entry), now, status);
        match fresh {
            _ if !self.lookup.excepted.may_store => {}
            Some(fresh) => plan.store.insert(key, self.seen(), fresh),
            None => plan.store.remove(key),
        }
        Outcome::Respond(sent)
    }

    /// The fields as the server sees them.
    fn seen(&self) -> &FieldList {
        self.lookup.seen(&self.layer.inner, &self.request.request())
    }

    async fn send(&self, edits: &FieldEdits) -> Outcome {
        let request = self.request.request();
        let answer = request.edited(edits, |request| self.layer.inner.handle(request));
        match answer {
            Answer::Now(outcome) => outcome,
            Answer::Later(later) => later.await,
        }
    }

    /// Stores a response if it may be, as its content passes.
    ///
    /// - `flight`: what other requests wait for.
    fn keep(
        &self,
        outcome: Outcome,
        requested: SystemTime,
        detail: &'static str,
        flight: Option<Flight>,
    ) -> Outcome {
        let Outcome::Respond(mut response) = outcome else {
            return outcome;
        };
        let plan = &self.layer.plan;
        let Lookup { key, fields, .. } = &self.lookup;
        let times = Times {
            requested,
            received: SystemClock.wall(),
        };
        let status = response.status();
        let make = {
            let (sent, seen) = (fields.clone(), self.seen().clone());
            let response = response.fields().clone();
            let lifetimes = Arc::clone(&plan.lifetimes);
            move |content| {
                let request = (&sent, &seen);
                let content = Content::Memory(content);
                Entry::new(request, status, &response, content, times, &lifetimes)
            }
        };
        let is_short = response
            .length()
            .is_none_or(|it| it <= plan.most_content as u64);
        let may_store = self.lookup.excepted.may_store && !self.lookup.is_head;
        let is_stored = may_store && is_short && make.clone()(Bytes::new()).is_some();
        // Of one that is an exception others may get another response.
        let is_for_all = may_store && !self.lookup.excepted.bypasses;
        if !is_stored {
            if status != StatusCode::NOT_MODIFIED && is_for_all {
                plan.store.note_not_stored(key, times.received);
            }
            return Outcome::Respond(
                response.with_field_set(CACHE_STATUS, cache_status(detail, false)),
            );
        }
        let (store, key) = (Arc::clone(&plan.store), Arc::clone(key));
        let seen = self.seen().clone();
        let received = times.received;
        let put = move |content: Option<Bytes>| {
            match content.map(make) {
                Some(Some(entry)) => store.insert(&key, &seen, entry),
                // Those that wait for it need not do so again.
                None if is_for_all => store.note_not_stored(&key, received),
                Some(None) | None => {}
            }
            drop(flight);
        };
        let body = match response.take_body() {
            ResponseBody::Stream(body) if body.is_end_stream() => {
                put(Some(Bytes::new()));
                ResponseBody::Stream(body)
            }
            ResponseBody::Stream(body) => {
                ResponseBody::Stream(Box::pin(Kept::new(body, plan.most_content, put)))
            }
            ResponseBody::Bytes(content) => {
                put(Some(content.clone()));
                ResponseBody::Bytes(content)
            }
            body @ (ResponseBody::Empty | ResponseBody::Announced(_)) => {
                put(Some(Bytes::new()));
                body
            }
            body @ ResponseBody::File(_) => body,
        };
        let response = response.with_body(body);
        Outcome::Respond(response.with_field_set(CACHE_STATUS, cache_status(detail, true)))
    }
}

/// A response that the cache passes on, with the reason.
fn passed(answer: Answer, detail: &'static str) -> Answer {
    answer.map(move |response| response.with_field_set(CACHE_STATUS, cache_status(detail, false)))
}

fn cache_status(detail: &str, is_stored: bool) -> HeaderValue {
    if detail == "hit" && !is_stored {
        return HeaderValue::from_static("plimsoll; hit");
    }
    let stored = if is_stored { "; stored" } else { "" };
    HeaderValue::from_str(&format!("plimsoll; {detail}{stored}"))
        .unwrap_or(HeaderValue::from_static("plimsoll"))
}
