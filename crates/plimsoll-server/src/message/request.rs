//! A request as actions see it, over whatever protocol it came.

use std::any::Any;
use std::cell::{Cell, OnceCell, RefCell};
use std::fmt;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use http_body::Body;
use plimsoll_wire::http::FieldList;

use crate::counters::RouteTag;
use crate::message::body::{BodySender, RequestBody, TrailerNames, WithheldTrailers};
use crate::message::connection::ConnectionInfo;
use crate::message::fields::{EditedFields, FieldEdits, Fields, KeptFields};
use crate::message::interim::{InterimSender, Interims};
use crate::version::Version;

/// One request, borrowed from the connection that it came on.
///
/// An action that answers later takes out of it what it needs, the content by [`take_body`](Self::take_body), or keeps
/// all of it by [`into_owned`](Self::into_owned). Copies are the same request: its content can be taken once.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// A token, in the case it was sent in.
    pub method: &'a str,
    /// Protocol version.
    pub scheme: Scheme,
    /// `host` or `host:port`; empty only over HTTP/1.0.
    pub authority: &'a str,
    /// From the first slash to the question mark, percent-escapes untouched; `*` for `OPTIONS *`, empty
    /// for CONNECT.
    pub path: &'a str,
    /// The query, without the question mark.
    pub query: Option<&'a str>,
    /// The version of HTTP.
    pub version: Version,
    /// The client: that of [`connection`](Self::connection), or the one that a trusted proxy names.
    pub peer: SocketAddr,
    /// The protocol that the client asks to switch to: over HTTP/1.1 by `upgrade`, over HTTP/2 by the protocol of an
    /// extended CONNECT (RFC 8441).
    pub upgrade: Option<&'a [u8]>,
    fields: EditedFields<'a>,
    connection: &'a Rc<ConnectionInfo>,
    content: &'a Content,
}

/// Whether a request was encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// In the clear.
    Http,
    /// Over TLS.
    Https,
}

/// The content of a request until an action takes it, and what is noted about the request.
#[derive(Debug, Default)]
pub(crate) struct Content {
    pub(crate) source: RefCell<ContentSource>,
    /// Its announced length in bytes; 0 without content.
    length: Option<u64>,
    notes: RefCell<Notes>,
    /// That of the same request, kept to be answered later: what is noted there holds.
    kept: OnceCell<Rc<Content>>,
    interims: OnceCell<Rc<Interims>>,
    /// Trailers that no reader of the content gets.
    withheld: RefCell<WithheldTrailers>,
    pub(crate) held: RefCell<Held>,
}

/// Values that are kept until the response to a request is sent or its client is gone.
pub(crate) type Held = Vec<Box<dyn Any>>;

/// Notes about a request by the actions that handle it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Notes {
    /// The route that answers.
    pub(crate) route: Option<Rc<RouteTag>>,
    /// The request's name in logs.
    pub(crate) request_id: Option<Rc<str>>,
    /// The trace that it is a part of.
    pub(crate) trace: Option<TraceNote>,
    /// The user, by its credentials.
    pub(crate) user: Option<Rc<str>>,
    /// What is proved about the user.
    pub(crate) claims: Option<Rc<dyn ProvedClaims>>,
    /// Upstream of the request.
    pub(crate) upstream: Option<UpstreamNote>,
    /// Path and query as the client sent them, where another path has been put in their place.
    pub(crate) sent_target: Option<Rc<str>>,
    /// Routes and paths that it was led to after the first.
    pub(crate) led: Vec<Arc<str>>,
    /// Its content, where a layer has read it ahead.
    pub(crate) content: Option<Bytes>,
    /// Its content, while guards check the request of which one is enough.
    pub(crate) apart: Option<Rc<ContentApart>>,
}

/// The content of a request whose guards each get it without, since one of several is to let it pass.
#[derive(Debug)]
pub(crate) struct ContentApart {
    source: RefCell<ContentSource>,
    is_admitted: Cell<bool>,
}

impl ContentApart {
    /// Whether the request has got it back.
    pub(crate) fn is_admitted(&self) -> bool {
        self.is_admitted.get()
    }
}

/// What a token or a session proves about the sender of a request, by the names of its claims.
pub trait ProvedClaims: fmt::Debug {
    /// Appends the value of a claim as it may stand in a header field; false if there is none.
    fn write(&self, name: &str, out: &mut Vec<u8>) -> bool;
}

/// So often a request is led on to another route.
const MOST_LEADS: usize = 10;

/// The trace that a request is a part of (W3C Trace Context).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceNote {
    /// The trace.
    pub trace: u128,
    /// The span of this server, which is the parent of those further in.
    pub span: u64,
    /// The span of the client, if the trace is the client's.
    pub parent: Option<u64>,
    /// Whether it is to be recorded.
    pub is_sampled: bool,
}

/// Upstream and server of a forwarded request, for the access log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpstreamNote {
    /// The name of the upstream.
    pub upstream: Arc<str>,
    /// The server that was tried last.
    pub server: Arc<str>,
    /// Number of attempts.
    pub attempts: u32,
    /// Name lookup, connection and handshake, if a connection was opened for the last attempt.
    pub connect: Option<Duration>,
    /// From the start of the last attempt to the head of its response, if there was one.
    pub head: Option<Duration>,
}

impl Content {
    /// That of a request without any.
    pub(crate) fn none() -> Self {
        Self {
            length: Some(0),
            ..Self::default()
        }
    }

    /// Content that is still on the connection.
    ///
    /// - `length`: bytes of it, if that is announced.
    pub(crate) fn unread(length: Option<u64>) -> Self {
        Self {
            source: RefCell::new(ContentSource::Unread(length)),
            length,
            ..Self::default()
        }
    }

    /// That of the same request where it was kept last: what is noted there holds.
    #[inline]
    fn latest(&self) -> &Self {
        let mut latest = self;
        while let Some(kept) = latest.kept.get() {
            latest = kept;
        }
        latest
    }

    /// Queue of interim responses, if the action may send some.
    #[inline]
    pub(crate) fn interims(&self) -> Option<&Rc<Interims>> {
        self.latest().interims.get()
    }

    /// The same, made on first use.
    pub(crate) fn make_interims(&self) -> &Rc<Interims> {
        self.latest().interims.get_or_init(Rc::default)
    }

    /// The notes so far.
    pub(crate) fn notes(&self) -> Notes {
        self.latest().notes.borrow().clone()
    }

    /// The name of the route that answers; can be taken once.
    #[inline]
    pub(crate) fn take_route(&self) -> Option<Rc<RouteTag>> {
        self.latest().notes.borrow_mut().route.take()
    }

    /// None, for the same request: with what is noted about it.
    fn continued(&self) -> Self {
        Self {
            source: RefCell::default(),
            length: Some(0),
            notes: self.notes.clone(),
            kept: OnceCell::new(),
            interims: self.interims.clone(),
            withheld: RefCell::default(),
            held: RefCell::default(),
        }
    }

    /// That of the same request, if it is kept to be answered later.
    pub(crate) fn kept(&self) -> Option<Rc<Self>> {
        self.kept.get().cloned()
    }
}

/// A request that outlives the bytes that it was read from, to be answered later; made by
/// [`Request::into_owned`].
#[derive(Debug)]
pub struct OwnedRequest {
    /// Method, authority, path, and the query with its question mark, behind one another.
    text: Box<str>,
    /// Ends of method, authority and path.
    ends: [usize; 3],
    scheme: Scheme,
    version: Version,
    upgrade: Option<Box<[u8]>>,
    fields: OwnedFields,
    peer: SocketAddr,
    connection: Rc<ConnectionInfo>,
    content: Rc<Content>,
}

#[derive(Debug)]
enum OwnedFields {
    Map(HeaderMap),
    Kept(KeptFields),
}

impl OwnedRequest {
    /// Path and query as they were sent.
    pub fn path_and_query(&self) -> &str {
        self.text.get(self.ends[1]..).unwrap_or_default()
    }

    /// The method.
    pub fn method(&self) -> &str {
        self.text.get(..self.ends[0]).unwrap_or_default()
    }

    /// Bytes of its content, as [`Request::content_length`].
    pub fn content_length(&self) -> Option<u64> {
        self.content.length
    }

    /// Buffers content of at most `most` bytes for places. The reader of the content still receives all of it.
    pub(crate) async fn read_ahead(&self, most: usize) {
        let source = self.content.source.take();
        let ContentSource::Kept(mut body) = source else {
            self.content.source.replace(source);
            return;
        };
        let read = body.read_ahead(most).await;
        self.content.source.replace(ContentSource::Kept(body));
        self.content.latest().notes.borrow_mut().content = read;
    }

    /// Notes for the log where the request was forwarded to.
    pub fn forwarded_to(&self, note: UpstreamNote) {
        self.content.latest().notes.borrow_mut().upstream = Some(note);
    }

    /// Notes that the request is led on to a route or a path; false if it was there before, or was led on too often.
    pub(crate) fn lead_to(&self, target: &Arc<str>) -> bool {
        let mut notes = self.content.latest().notes.borrow_mut();
        let goes_on = notes.led.len() < MOST_LEADS && !notes.led.contains(target);
        if goes_on {
            notes.led.push(Arc::clone(target));
        }
        goes_on
    }

    /// The same request for another path.
    pub(crate) fn with_target(mut self, path_and_query: &str) -> Self {
        self.note_sent_target();
        let [method_end, authority_end, _] = self.ends;
        let before = self.text.get(..authority_end).unwrap_or_default();
        let path = path_and_query.split('?').next().unwrap_or_default();
        self.ends = [method_end, authority_end, authority_end + path.len()];
        self.text = [before, path_and_query].concat().into_boxed_str();
        self
    }

    /// Keeps what the client sent, the first time that another path comes in its place.
    fn note_sent_target(&self) {
        let mut notes = self.content.latest().notes.borrow_mut();
        let sent = || Rc::from(self.path_and_query());
        notes.sent_target.get_or_insert_with(sent);
    }

    /// The same as a GET, or a HEAD if it is one, of another path, without content.
    pub(crate) fn for_path(self, path_and_query: &str) -> Self {
        self.note_sent_target();
        let method = if self.method() == "HEAD" {
            "HEAD"
        } else {
            "GET"
        };
        let [method_end, authority_end, _] = self.ends;
        let authority = self.text.get(method_end..authority_end);
        let authority = authority.unwrap_or_default();
        let path = path_and_query.split('?').next().unwrap_or_default();
        // The rest of the content is not read, so the client is not waited for.
        drop(self.content.source.take());
        let content = Rc::new(self.content.latest().continued());
        self.content.latest().kept.set(Rc::clone(&content)).ok();
        let authority_end = method.len() + authority.len();
        Self {
            text: [method, authority, path_and_query]
                .concat()
                .into_boxed_str(),
            ends: [method.len(), authority_end, authority_end + path.len()],
            upgrade: None,
            content,
            ..self
        }
    }

    /// The request, as an action takes it. Its content is that of the first: it can be taken once.
    pub fn request(&self) -> Request<'_> {
        let [method, authority, path] = self.ends;
        let text = |from: usize, end: usize| self.text.get(from..end).unwrap_or_default();
        Request {
            method: text(0, method),
            scheme: self.scheme,
            authority: text(method, authority),
            path: text(authority, path),
            query: text(path, self.text.len()).strip_prefix('?'),
            version: self.version,
            peer: self.peer,
            upgrade: self.upgrade.as_deref(),
            fields: EditedFields::new(match &self.fields {
                OwnedFields::Map(map) => Fields::Map(map),
                OwnedFields::Kept(kept) => Fields::Kept(kept),
            }),
            connection: &self.connection,
            content: &self.content,
        }
    }
}

#[derive(Debug, Default)]
pub(crate) enum ContentSource {
    /// No content, or it was taken.
    #[default]
    None,
    /// It is still on the connection; so many bytes, if that is known.
    Unread(Option<u64>),
    /// It was taken, and the connection must hand it over.
    Taken(BodySender),
    /// That of a request that is kept.
    Kept(RequestBody),
}

impl<'a> Request<'a> {
    pub(crate) fn new(
        start: Start<'a>,
        connection: &'a Rc<ConnectionInfo>,
        content: &'a Content,
    ) -> Self {
        Self {
            method: start.method,
            scheme: start.scheme,
            authority: start.authority,
            path: start.path,
            query: start.query,
            version: start.version,
            peer: connection.peer,
            upgrade: start.upgrade,
            fields: EditedFields::new(start.fields),
            connection,
            content,
        }
    }

    /// The host without its port and without the dot of a fully qualified name; brackets of an IPv6 address stay.
    ///
    /// `a.test.` and `a.test` are one host, so a condition on one holds for the other.
    pub fn host(&self) -> &'a str {
        let authority = self.authority.as_bytes();
        let end = match authority.iter().rposition(|byte| *byte == b']') {
            Some(bracket) => Some(bracket + 1),
            None => authority.iter().position(|byte| *byte == b':'),
        };
        let host = end.and_then(|end| self.authority.get(..end));
        without_root(host.unwrap_or(self.authority))
    }

    /// The connection that it came on.
    pub fn connection(&self) -> &'a ConnectionInfo {
        self.connection
    }

    /// Bytes of its content, over every version: 0 without content, `None` if the length is not announced.
    pub fn content_length(&self) -> Option<u64> {
        self.content.length
    }

    /// The value of the first field of that name, whatever its case.
    pub fn header(&self, name: &str) -> Option<&'a [u8]> {
        self.fields.get(name)
    }

    /// The value of the first cookie of that name.
    pub fn cookie(&self, name: &str) -> Option<&'a str> {
        let fields = self.headers();
        let fields = fields.filter(|(field, _)| field.eq_ignore_ascii_case("cookie"));
        fields
            .filter_map(|(_, value)| std::str::from_utf8(value).ok())
            .flat_map(|value| value.split(';'))
            .filter_map(|pair| pair.trim().split_once('='))
            .find(|(known, _)| *known == name)
            .map(|(_, value)| value)
    }

    /// Every field in the order it came, names as they were written; over HTTP/2 and HTTP/3 those of one name together.
    pub fn headers(&self) -> impl Iterator<Item = (&'a str, &'a [u8])> + use<'a> {
        self.fields.iter()
    }

    /// Sends interim responses, such as `103 Early Hints`, before the answer.
    pub fn interims(&self) -> InterimSender {
        InterimSender(Rc::clone(self.content.make_interims()))
    }

    /// The content on the first call; nothing afterwards.
    ///
    /// Content that is not taken is discarded, up to a limit beyond which the connection ends.
    pub fn take_body(&self) -> RequestBody {
        let mut source = self.content.source.borrow_mut();
        match std::mem::take(&mut *source) {
            ContentSource::None => RequestBody::empty(),
            ContentSource::Unread(length) => {
                let (sender, body) = RequestBody::channel(length);
                *source = ContentSource::Taken(sender);
                body.withholding(self.withheld_trailers())
            }
            taken @ ContentSource::Taken(_) => {
                *source = taken;
                RequestBody::empty()
            }
            ContentSource::Kept(body) => body.withholding(self.withheld_trailers()),
        }
    }

    /// Every field in a new map; names and values that `http` does not accept are left out.
    pub(crate) fn to_fields(self) -> HeaderMap {
        if let Some(map) = self.fields.as_map() {
            return map.clone();
        }
        self.headers()
            .filter_map(|(name, value)| {
                let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
                Some((name, HeaderValue::from_bytes(value).ok()?))
            })
            .collect()
    }

    /// Calls `then` with the same request, its fields changed by `edits`. Nothing is copied.
    pub fn edited<T>(&self, edits: &FieldEdits, then: impl FnOnce(&Request<'_>) -> T) -> T {
        let overlay = self.fields.overlay(edits);
        then(&Request {
            fields: self.fields.beneath(&overlay),
            ..*self
        })
    }

    /// Withholds trailers by name from the reader of the content.
    pub(crate) fn withhold_trailers(&self, rule: &Rc<TrailerNames>) {
        if matches!(*self.content.source.borrow(), ContentSource::Unread(_)) {
            self.content.withheld.borrow_mut().rule = Some(Rc::clone(rule));
        }
    }

    fn withheld_trailers(&self) -> WithheldTrailers {
        let mut withheld = self.content.withheld.take();
        withheld.names = self.fields.edited_names();
        withheld
    }

    /// Keeps the request with its content, to be answered later: fields keep their order and case.
    pub fn into_owned(self) -> OwnedRequest {
        let body = self.take_body();
        let content = Rc::new(Content {
            source: RefCell::new(if body.is_end_stream() {
                ContentSource::None
            } else {
                ContentSource::Kept(body)
            }),
            length: self.content.length,
            ..self.content.latest().continued()
        });
        self.content.latest().kept.set(Rc::clone(&content)).ok();
        let mark = if self.query.is_some() { "?" } else { "" };
        let texts = [
            self.method,
            self.authority,
            self.path,
            mark,
            self.query.unwrap_or_default(),
        ];
        let mut ends = [0; 3];
        let mut end = 0;
        for (slot, text) in ends.iter_mut().zip(texts) {
            end += text.len();
            *slot = end;
        }
        OwnedRequest {
            text: texts.concat().into_boxed_str(),
            ends,
            scheme: self.scheme,
            version: self.version,
            upgrade: self.upgrade.map(Box::from),
            fields: match self.fields.as_map() {
                Some(map) => OwnedFields::Map(map.clone()),
                None => OwnedFields::Kept(self.fields.keep()),
            },
            peer: self.peer,
            connection: Rc::clone(self.connection),
            content,
        }
    }

    /// The same as [`into_owned`](Self::into_owned) with its content apart: a guard may keep the request, and does not
    /// consume the content. [`with_content_back`](Self::with_content_back) ends that.
    pub(crate) fn with_content_apart(self) -> (OwnedRequest, Rc<ContentApart>) {
        let request = self.into_owned();
        let apart = Rc::new(ContentApart {
            source: RefCell::new(request.content.source.take()),
            is_admitted: Cell::new(false),
        });
        let notes = &request.content.notes;
        notes.borrow_mut().apart = Some(Rc::clone(&apart));
        (request, apart)
    }

    /// The same with the content that was kept apart.
    pub(crate) fn with_content_back(self) -> OwnedRequest {
        let withheld = self.withheld_trailers();
        let apart = self.content.latest().notes.borrow_mut().apart.take();
        let request = self.into_owned();
        if let Some(apart) = apart {
            apart.is_admitted.set(true);
            let source = match apart.source.take() {
                ContentSource::Kept(body) => ContentSource::Kept(body.withholding(withheld)),
                other => other,
            };
            request.content.source.replace(source);
        }
        request
    }

    /// Every field, in memory of its own.
    pub fn field_list(&self) -> FieldList {
        let fields = self.fields.marked();
        let fields = fields.map(|field| (field.name.as_bytes(), field.value));
        fields.collect()
    }

    /// Copies of the fields with one of these names, in their order. Values that HTTP does not allow are left out.
    ///
    /// For callers that need a few fields which most requests lack: nothing is allocated then.
    pub fn fields_named(&self, names: &[HeaderName]) -> HeaderMap {
        let mut found = HeaderMap::new();
        for field in self.fields.marked() {
            let own = field.name.as_bytes();
            let name = names
                .iter()
                .find(|name| own.eq_ignore_ascii_case(name.as_str().as_bytes()));
            if let Some(name) = name
                && let Ok(value) = HeaderValue::from_bytes(field.value)
            {
                found.append(name.clone(), value);
            }
        }
        found
    }

    /// The values of the fields of that name, whatever its case, in their order.
    pub fn values(&self, name: &str) -> impl Iterator<Item = &'a [u8]> {
        self.fields.values(name)
    }

    /// The fields that the client sent, as far as layers have left them.
    pub fn sent_fields(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + use<'a> {
        let sent = self.fields.marked().filter(|field| !field.is_layered);
        sent.map(|field| (field.name.as_bytes(), field.value))
    }

    /// Whether all names and values of its fields are valid, so that they can be sent on without another check.
    pub fn has_valid_fields(&self) -> bool {
        self.fields.are_valid()
    }

    /// Whether there may be [`layer_fields`](Self::layer_fields).
    pub fn may_have_layer_fields(&self) -> bool {
        self.fields.have_layered()
    }

    /// The fields that layers have set, with those of the client that they added to: nothing else that it sent removes or
    /// doubles them when the request is forwarded.
    pub fn layer_fields(&self) -> impl Iterator<Item = (&'a str, &'a [u8])> + use<'a> {
        let set = self.fields.layered().filter(|field| field.is_layered);
        set.map(|field| (field.name.as_str(), field.value))
    }

    /// Notes for the log and the counters which route answers.
    pub fn answered_by(&self, route: &Rc<RouteTag>) {
        self.content.latest().notes.borrow_mut().route = Some(Rc::clone(route));
    }

    /// Notes for the log what the request is called.
    pub fn called(&self, id: Rc<str>) {
        self.content.latest().notes.borrow_mut().request_id = Some(id);
    }

    /// The request's name, once it is noted.
    pub fn request_id(&self) -> Option<Rc<str>> {
        self.content.latest().notes.borrow().request_id.clone()
    }

    /// Keeps a value until the response is sent or the client is gone.
    pub(crate) fn hold(&self, value: impl Any) {
        self.content.held.borrow_mut().push(Box::new(value));
    }

    /// Notes for the log which trace the request is a part of.
    pub(crate) fn traced(&self, trace: TraceNote) {
        self.content.latest().notes.borrow_mut().trace = Some(trace);
    }

    /// Notes for the log who has proved to have sent the request.
    pub fn sent_by(&self, user: Rc<str>) {
        self.content.latest().notes.borrow_mut().user = Some(user);
    }

    /// Notes what is proved about the sender, for places.
    pub fn proves(&self, claims: Rc<dyn ProvedClaims>) {
        self.content.latest().notes.borrow_mut().claims = Some(claims);
    }

    /// What is [proved](Self::proves) about the sender so far.
    pub fn claims(&self) -> Option<Rc<dyn ProvedClaims>> {
        self.content.latest().notes.borrow().claims.clone()
    }

    /// Path and query as the client sent them, if another path has been put in their place.
    pub fn sent_target(&self) -> Option<Rc<str>> {
        self.content.latest().notes.borrow().sent_target.clone()
    }

    /// Whether anything is [proved](Self::proves) about the sender: a response may be for it alone, although the request
    /// has no `authorization` any more.
    pub fn has_claims(&self) -> bool {
        self.content.latest().notes.borrow().claims.is_some()
    }

    /// The trace that the request is a part of, if a layer has noted one.
    pub fn trace(&self) -> Option<TraceNote> {
        self.content.latest().notes.borrow().trace
    }

    /// Everything that is noted about it.
    pub(crate) fn content(&self) -> &'a Content {
        self.content
    }
}

/// A host without the dot for the root of the domain names (RFC 1034, section 3.1).
pub(crate) fn without_root(host: &str) -> &str {
    host.strip_suffix('.').unwrap_or(host)
}

/// The properties of a request that its connection knows.
#[derive(Clone, Copy)]
pub(crate) struct Start<'a> {
    pub(crate) method: &'a str,
    pub(crate) scheme: Scheme,
    pub(crate) authority: &'a str,
    pub(crate) path: &'a str,
    pub(crate) query: Option<&'a str>,
    pub(crate) version: Version,
    pub(crate) upgrade: Option<&'a [u8]>,
    pub(crate) fields: Fields<'a>,
}
