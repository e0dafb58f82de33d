//! Places: what a request, its connection and its response have, by names that stand in texts of a configuration.
//!
//! A [`Template`] such as `{host}/{header:x-tenant}` is compiled once and filled for each request. A place that depends on the
//! response is an error where there is none yet: [`Moment`] has the order. A text without places costs nothing more than
//! before, since it is no template.

mod captured;

mod client_certificate;

pub(crate) mod location;

mod map;

mod name;

mod of_connection;

mod of_request;

mod of_response;

mod template;

mod time;

pub(crate) use self::captured::{Captured, CapturedValues, places_of};
pub(crate) use self::map::{Affixes, Map};
pub use self::name::UnknownPlace;
pub(crate) use self::of_response::{EndValues, ResponseValues};
pub(crate) use self::template::Piece;
pub use self::template::{Maps, Template};

use std::borrow::Cow;
use std::sync::Arc;

use http::header::HeaderName;

pub(crate) use self::client_certificate::CertificatePart;
pub(crate) use self::time::TimeForm;

/// A part of a request, its connection or its response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    /// The IP address of the client.
    Client,
    /// The address of the client with its port.
    Peer,
    /// The port of the client.
    ClientPort,
    /// The host without its port.
    Host,
    /// The host with its port, as the client sent it.
    Authority,
    /// `http` or `https`.
    Scheme,
    /// The address that the client connected to.
    ServerAddress,
    /// The port that the client connected to.
    Port,
    /// The method.
    Method,
    /// The path as it was sent.
    Path,
    /// One segment of the path, counted from 1.
    Segment(usize),
    /// The query with its question mark, if there is one.
    Query,
    /// The query without its question mark.
    QueryString,
    /// The first parameter of that name in the query, as it was sent.
    Parameter(Box<str>),
    /// Path and query; of CONNECT the authority.
    Target,
    /// Method, target and protocol.
    RequestLine,
    /// `HTTP/1.1` and the like.
    Protocol,
    /// All values of a field of the request, joined by commas.
    Header(HeaderName),
    /// The cookie of that name.
    Cookie(Box<str>),
    /// Bytes of the request's content, if its length is announced.
    RequestBytes,
    /// The content of the request, where `read_content` reads it.
    Content,
    /// The number of the connection.
    Connection,
    /// The name that the client requested by TLS.
    ServerName,
    /// The version of TLS.
    TlsVersion,
    /// A part of the certificate that the client showed.
    ClientCertificate(CertificatePart),
    /// When the request came.
    Time(TimeForm),
    /// The value that a map has for the request.
    Map(Arc<Map>),
    /// The id of the request.
    RequestId,
    /// The trace that the request is a part of.
    Trace,
    /// The user, by its credentials.
    User,
    /// A claim of the token that the sender has shown.
    Claim(Cow<'static, str>),
    /// The route that responds.
    Route,
    /// The upstream of the request.
    Upstream,
    /// The server of the upstream that was tried last.
    UpstreamServer,
    /// Its host and port, or the path of its socket.
    UpstreamAddress,
    /// Servers that were tried.
    Attempts,
    /// From the start of the last attempt to the head of its response.
    UpstreamTime(Unit),
    /// Time to open the connection for the last attempt, if one was opened.
    ConnectTime(Unit),
    /// The status of the response.
    Status,
    /// All values of a field of the response, joined by commas.
    ResponseHeader(HeaderName),
    ResponseCookie(Box<str>),
    /// What the cache did, in the words of nginx: `HIT`, `MISS`, `EXPIRED`, `STALE`, `REVALIDATED` or `BYPASS`.
    CacheStatus,
    /// Bytes of the response's content.
    Bytes,
    /// From the request's head to the end of its response.
    Duration(Unit),
    /// Whether the whole response was handed to the connection.
    Complete,
    /// Why the request was refused before it was read.
    Refused,
}

/// How a time is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Seconds with three decimals, as in logs of nginx.
    Seconds,
    /// Whole milliseconds.
    Milliseconds,
    /// Whole microseconds.
    Microseconds,
}

/// When a template is filled; each has the places of those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Moment {
    /// Once the connection is there, of whatever protocol.
    Connection,
    /// Before the action responds.
    Request,
    /// Once there is the head of the response.
    Response,
    /// Once the response has ended.
    End,
}

/// Where the value of a place is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// From the request, which is gone once its response is there.
    Request,
    /// From the notes of layers and actions about the request, and its time.
    Notes,
    /// From the head of the response.
    Response,
    /// From the end of the response.
    End,
}

/// Where the values of places come from.
pub(crate) trait Values {
    /// Appends the value of `place`; false if there is none.
    fn write(&self, place: &Place, out: &mut Vec<u8>) -> bool;
}

impl Place {
    /// Where its value is read.
    pub(crate) fn source(&self) -> Source {
        match self {
            Self::RequestId
            | Self::Trace
            | Self::User
            | Self::Claim(_)
            | Self::Route
            | Self::Content
            | Self::Upstream
            | Self::UpstreamServer
            | Self::UpstreamAddress
            | Self::Attempts
            | Self::UpstreamTime(_)
            | Self::ConnectTime(_)
            | Self::Time(_) => Source::Notes,
            Self::Status
            | Self::ResponseHeader(_)
            | Self::ResponseCookie(_)
            | Self::CacheStatus => Source::Response,
            Self::Bytes | Self::Duration(_) | Self::Complete | Self::Refused => Source::End,
            Self::Map(map) => map.source(),
            _ => Source::Request,
        }
    }

    /// When its value is there at first.
    pub(crate) fn moment(&self) -> Moment {
        match self {
            Self::Map(map) => map.moment(),
            Self::Client
            | Self::Peer
            | Self::ClientPort
            | Self::ServerAddress
            | Self::Port
            | Self::Connection
            | Self::ServerName
            | Self::TlsVersion
            | Self::ClientCertificate(_)
            | Self::Time(_) => Moment::Connection,
            Self::Upstream
            | Self::UpstreamServer
            | Self::UpstreamAddress
            | Self::Attempts
            | Self::UpstreamTime(_)
            | Self::ConnectTime(_) => Moment::Response,
            it => match it.source() {
                Source::Request | Source::Notes => Moment::Request,
                Source::Response => Moment::Response,
                Source::End => Moment::End,
            },
        }
    }

    /// Whether its value is known once credentials have been checked.
    pub(crate) fn is_of_user(&self) -> bool {
        match self {
            Self::User | Self::Claim(_) => true,
            Self::Map(map) => map.templates().any(Template::is_of_user),
            _ => false,
        }
    }

    /// Whether its value is a number, or true or false, in JSON.
    pub(crate) fn is_literal(&self) -> bool {
        matches!(
            self,
            Self::ClientPort
                | Self::Port
                | Self::RequestBytes
                | Self::Connection
                | Self::Time(TimeForm::Unix)
                | Self::Attempts
                | Self::UpstreamTime(_)
                | Self::ConnectTime(_)
                | Self::Status
                | Self::Bytes
                | Self::Duration(_)
                | Self::Complete
        )
    }
}
