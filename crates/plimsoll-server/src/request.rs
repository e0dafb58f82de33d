//! A request as actions see it, over whatever protocol it came.

use std::cell::{OnceCell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;

use http::header::{HeaderMap, HeaderName, HeaderValue};
use http_body::Body;
use plimsoll_wire::h1::Header;

use crate::body::{BodySender, RequestBody};
use crate::counters::RouteTag;

/// One request, borrowed from the connection that it came on.
///
/// Whoever answers later takes out of it what it needs, the content by
/// [`take_body`](Self::take_body).
#[derive(Debug)]
pub struct Request<'a> {
    /// A token, in the case it was sent in.
    pub method: &'a str,
    /// How it came.
    pub scheme: Scheme,
    /// `host` or `host:port`; empty only over HTTP/1.0.
    pub authority: &'a str,
    /// From the first slash to the question mark, percent-escapes untouched; `*` for `OPTIONS *`, empty
    /// for CONNECT.
    pub path: &'a str,
    /// What follows the question mark.
    pub query: Option<&'a str>,
    /// The version of HTTP.
    pub version: Version,
    /// Who sent it.
    pub peer: SocketAddr,
    /// What the client would like to speak instead: over HTTP/1.1 by `upgrade`, over HTTP/2 by the protocol of an
    /// extended CONNECT (RFC 8441).
    pub upgrade: Option<&'a [u8]>,
    fields: Fields<'a>,
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

/// The versions of HTTP that are served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// HTTP/1.0
    Http10,
    /// HTTP/1.1
    Http11,
    /// HTTP/2
    Http2,
    /// HTTP/3
    Http3,
}

impl Version {
    /// As a log writes it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Http10 => "HTTP/1.0",
            Self::Http11 => "HTTP/1.1",
            Self::Http2 => "HTTP/2.0",
            Self::Http3 => "HTTP/3.0",
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum Fields<'a> {
    Http1(&'a [Header<'a>]),
    /// Of HTTP/2 and HTTP/3, or changed by a layer.
    Map(&'a HeaderMap),
}

/// The content of a request, as long as nobody took it, and what is noted about the request.
#[derive(Debug, Default)]
pub(crate) struct Content {
    pub(crate) source: RefCell<ContentSource>,
    notes: RefCell<Notes>,
    /// That of the same request, kept to be answered later: what is noted there holds.
    kept: OnceCell<Rc<Content>>,
}

/// What those who answer a request say about it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Notes {
    /// The route that answers.
    pub(crate) route: Option<Rc<RouteTag>>,
    /// What the request is called in logs.
    pub(crate) request_id: Option<Rc<str>>,
    /// The trace that it is a part of.
    pub(crate) trace: Option<u128>,
    /// Who it is from, by its credentials.
    pub(crate) user: Option<Rc<str>>,
}

impl Content {
    /// What was noted so far.
    pub(crate) fn notes(&self) -> Notes {
        let mut notes = self.notes.borrow().clone();
        if let Some(kept) = self.kept.get() {
            let later = kept.notes();
            notes.route = later.route.or(notes.route);
            notes.request_id = later.request_id.or(notes.request_id);
            notes.trace = later.trace.or(notes.trace);
            notes.user = later.user.or(notes.user);
        }
        notes
    }

    /// The route that answers; asked for once.
    #[inline]
    pub(crate) fn take_route(&self) -> Option<Rc<RouteTag>> {
        match self.kept.get() {
            None => self.notes.borrow_mut().route.take(),
            Some(kept) => kept.take_route(),
        }
    }

    /// That of the same request, if it is kept to be answered later.
    pub(crate) fn kept(&self) -> Option<Rc<Self>> {
        self.kept.get().cloned()
    }
}

/// A request that outlives the bytes that it was read from, to be answered later.
#[derive(Debug)]
pub(crate) struct KeptRequest {
    method: String,
    scheme: Scheme,
    authority: String,
    path: String,
    query: Option<String>,
    version: Version,
    peer: SocketAddr,
    upgrade: Option<Vec<u8>>,
    fields: HeaderMap,
    content: Rc<Content>,
}

impl KeptRequest {
    pub(crate) fn request(&self) -> Request<'_> {
        Request {
            method: &self.method,
            scheme: self.scheme,
            authority: &self.authority,
            path: &self.path,
            query: self.query.as_deref(),
            version: self.version,
            peer: self.peer,
            upgrade: self.upgrade.as_deref(),
            fields: Fields::Map(&self.fields),
            content: &self.content,
        }
    }
}

#[derive(Debug, Default)]
pub(crate) enum ContentSource {
    /// There is none, or it was taken.
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
    pub(crate) fn new(start: Start<'a>, peer: SocketAddr, content: &'a Content) -> Self {
        Self {
            method: start.method,
            scheme: start.scheme,
            authority: start.authority,
            path: start.path,
            query: start.query,
            version: start.version,
            peer,
            upgrade: start.upgrade,
            fields: start.fields.0,
            content,
        }
    }

    /// The host without its port; brackets of an IPv6 address stay.
    pub fn host(&self) -> &'a str {
        let authority = self.authority.as_bytes();
        let end = match authority.iter().rposition(|byte| *byte == b']') {
            Some(bracket) => Some(bracket + 1),
            None => authority.iter().position(|byte| *byte == b':'),
        };
        end.and_then(|end| self.authority.get(..end))
            .unwrap_or(self.authority)
    }

    /// The value of the first field of that name, whatever its case.
    pub fn header(&self, name: &str) -> Option<&'a [u8]> {
        match self.fields {
            Fields::Http1(headers) => headers
                .iter()
                .find(|header| header.name.eq_ignore_ascii_case(name))
                .map(|header| header.value),
            Fields::Map(headers) => headers.get(name).map(HeaderValue::as_bytes),
        }
    }

    /// Every field in the order it came; over HTTP/2 those of one name together.
    pub fn headers(&self) -> impl Iterator<Item = (&'a str, &'a [u8])> + use<'a> {
        let (http1, http2) = match self.fields {
            Fields::Http1(headers) => (Some(headers), None),
            Fields::Map(headers) => (None, Some(headers)),
        };
        let http1 = http1.into_iter().flatten();
        let http2 = http2.into_iter().flatten();
        http1
            .map(|header| (header.name, header.value))
            .chain(http2.map(|(name, value)| (name.as_str(), value.as_bytes())))
    }

    /// The content, the first time it is asked for; nothing afterwards.
    ///
    /// Content that nobody takes is thrown away, up to a limit beyond which the connection ends.
    pub fn take_body(&self) -> RequestBody {
        let mut source = self.content.source.borrow_mut();
        match std::mem::take(&mut *source) {
            ContentSource::None => RequestBody::empty(),
            ContentSource::Unread(length) => {
                let (sender, body) = RequestBody::channel(length);
                *source = ContentSource::Taken(sender);
                body
            }
            taken @ ContentSource::Taken(_) => {
                *source = taken;
                RequestBody::empty()
            }
            ContentSource::Kept(body) => body,
        }
    }

    /// Every field in a map of its own; names and values that `http` does not know are left out.
    pub(crate) fn to_fields(&self) -> HeaderMap {
        match self.fields {
            Fields::Map(fields) => fields.clone(),
            Fields::Http1(_) => self
                .headers()
                .filter_map(|(name, value)| {
                    let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
                    Some((name, HeaderValue::from_bytes(value).ok()?))
                })
                .collect(),
        }
    }

    /// The same request with other fields.
    pub(crate) fn with_fields<'b>(&'b self, fields: &'b HeaderMap) -> Request<'b> {
        Request {
            fields: Fields::Map(fields),
            ..*self
        }
    }

    /// Keeps the request with its content, to be answered later.
    pub(crate) fn keep(&self) -> KeptRequest {
        let body = self.take_body();
        let content = Rc::new(Content {
            source: RefCell::new(if body.is_end_stream() {
                ContentSource::None
            } else {
                ContentSource::Kept(body)
            }),
            notes: self.content.notes.clone(),
            kept: OnceCell::new(),
        });
        // Whoever keeps a request a second time answers that one.
        self.content.kept.set(Rc::clone(&content)).ok();
        KeptRequest {
            method: self.method.to_owned(),
            scheme: self.scheme,
            authority: self.authority.to_owned(),
            path: self.path.to_owned(),
            query: self.query.map(str::to_owned),
            version: self.version,
            peer: self.peer,
            upgrade: self.upgrade.map(<[u8]>::to_owned),
            fields: self.to_fields(),
            content,
        }
    }

    /// Notes for the log and the counters which route answers.
    pub fn answered_by(&self, route: &Rc<RouteTag>) {
        self.content.notes.borrow_mut().route = Some(Rc::clone(route));
    }

    /// Notes for the log what the request is called.
    pub fn called(&self, id: Rc<str>) {
        self.content.notes.borrow_mut().request_id = Some(id);
    }

    /// What the request is called, once that is noted.
    pub fn request_id(&self) -> Option<Rc<str>> {
        self.content.notes.borrow().request_id.clone()
    }

    /// Notes for the log which trace the request is a part of.
    pub(crate) fn traced(&self, trace: u128) {
        self.content.notes.borrow_mut().trace = Some(trace);
    }

    /// Notes for the log who has proved to have sent the request.
    pub fn sent_by(&self, user: Rc<str>) {
        self.content.notes.borrow_mut().user = Some(user);
    }

    /// Everything that is noted about it.
    pub(crate) fn content(&self) -> &'a Content {
        self.content
    }
}

/// What a connection knows of a request.
#[derive(Clone, Copy)]
pub(crate) struct Start<'a> {
    pub(crate) method: &'a str,
    pub(crate) scheme: Scheme,
    pub(crate) authority: &'a str,
    pub(crate) path: &'a str,
    pub(crate) query: Option<&'a str>,
    pub(crate) version: Version,
    pub(crate) upgrade: Option<&'a [u8]>,
    pub(crate) fields: StartFields<'a>,
}

#[derive(Clone, Copy)]
pub(crate) struct StartFields<'a>(Fields<'a>);

impl<'a> StartFields<'a> {
    pub(crate) fn http1(headers: &'a [Header<'a>]) -> Self {
        Self(Fields::Http1(headers))
    }

    pub(crate) fn http2(headers: &'a HeaderMap) -> Self {
        Self(Fields::Map(headers))
    }
}
