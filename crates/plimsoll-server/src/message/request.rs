//! A request as actions see it, over whatever protocol it came.

mod content;

mod owned;

use std::any::Any;
use std::net::SocketAddr;
use std::rc::Rc;

use http::header::{HeaderMap, HeaderName, HeaderValue};
use plimsoll_wire::http::FieldList;

use crate::counters::RouteTag;
use crate::message::body::{RequestBody, TrailerNames, WithheldTrailers};
use crate::message::connection::ConnectionInfo;
use crate::message::fields::{EditedFields, FieldEdits, Fields};
use crate::message::interim::InterimSender;
use crate::version::Version;

pub(crate) use self::content::{Content, ContentSource, Held, Notes};
pub use self::content::{ProvedClaims, TraceNote, UpstreamNote};
pub use self::owned::OwnedRequest;

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
