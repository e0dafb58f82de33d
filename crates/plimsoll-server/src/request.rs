//! A request as actions see it, over whatever protocol it came.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;

use h2::RecvStream;
use http::HeaderMap;
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
    /// What the client would like to speak instead; only over HTTP/1.1.
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
}

impl Version {
    /// As a log writes it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Http10 => "HTTP/1.0",
            Self::Http11 => "HTTP/1.1",
            Self::Http2 => "HTTP/2.0",
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum Fields<'a> {
    Http1(&'a [Header<'a>]),
    Http2(&'a HeaderMap),
}

/// The content of a request, as long as nobody took it, and what is noted about the request.
#[derive(Debug, Default)]
pub(crate) struct Content {
    pub(crate) source: RefCell<ContentSource>,
    /// The route that answers.
    pub(crate) route: RefCell<Option<Rc<RouteTag>>>,
}

#[derive(Debug, Default)]
pub(crate) enum ContentSource {
    /// There is none, or it was taken.
    #[default]
    None,
    /// It is still on the connection; so many bytes, if that is known.
    Http1(Option<u64>),
    /// It was taken, and the connection must hand it over.
    Taken(BodySender),
    /// A stream, and how much may come by it.
    Http2(RecvStream, u64),
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
        let end = match self.authority.rfind(']') {
            Some(bracket) => bracket + 1,
            None => self.authority.find(':').unwrap_or(self.authority.len()),
        };
        self.authority.get(..end).unwrap_or(self.authority)
    }

    /// The value of the first field of that name, whatever its case.
    pub fn header(&self, name: &str) -> Option<&'a [u8]> {
        match self.fields {
            Fields::Http1(headers) => headers
                .iter()
                .find(|header| header.name.eq_ignore_ascii_case(name))
                .map(|header| header.value),
            Fields::Http2(headers) => headers.get(name).map(http::HeaderValue::as_bytes),
        }
    }

    /// Every field in the order it came; over HTTP/2 those of one name together.
    pub fn headers(&self) -> impl Iterator<Item = (&'a str, &'a [u8])> + use<'a> {
        let (http1, http2) = match self.fields {
            Fields::Http1(headers) => (Some(headers), None),
            Fields::Http2(headers) => (None, Some(headers)),
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
            ContentSource::Http1(length) => {
                let (sender, body) = RequestBody::channel(length);
                *source = ContentSource::Taken(sender);
                body
            }
            taken @ ContentSource::Taken(_) => {
                *source = taken;
                RequestBody::empty()
            }
            ContentSource::Http2(stream, limit) => RequestBody::http2(stream, limit),
        }
    }

    /// Notes for the log and the counters which route answers.
    pub fn answered_by(&self, route: &Rc<RouteTag>) {
        self.content.route.replace(Some(Rc::clone(route)));
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
        Self(Fields::Http2(headers))
    }
}
