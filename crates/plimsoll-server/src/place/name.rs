//! Names of places.

use std::borrow::Cow;

use http::header::HeaderName;
use plimsoll_model::document::nearest;

use super::client_certificate::{CertificatePart, ForwardedParts};
use super::time::TimeForm;
use super::{Moment, Place, Unit};

/// Places with a fixed name, in the order of the documentation.
static FIXED: [(&str, Place); 55] = [
    ("client", Place::Client),
    ("client.port", Place::ClientPort),
    ("peer", Place::Peer),
    ("host", Place::Host),
    ("authority", Place::Authority),
    ("scheme", Place::Scheme),
    ("server.address", Place::ServerAddress),
    ("port", Place::Port),
    ("method", Place::Method),
    ("path", Place::Path),
    ("query", Place::Query),
    ("query.string", Place::QueryString),
    ("target", Place::Target),
    ("request.line", Place::RequestLine),
    ("protocol", Place::Protocol),
    ("request.bytes", Place::RequestBytes),
    ("content", Place::Content),
    ("connection", Place::Connection),
    ("tls.sni", Place::ServerName),
    ("tls.version", Place::TlsVersion),
    (
        "tls.client.subject",
        Place::ClientCertificate(CertificatePart::Subject),
    ),
    (
        "tls.client.issuer",
        Place::ClientCertificate(CertificatePart::Issuer),
    ),
    (
        "tls.client.serial",
        Place::ClientCertificate(CertificatePart::Serial),
    ),
    (
        "tls.client.san",
        Place::ClientCertificate(CertificatePart::AlternativeNames),
    ),
    (
        "tls.client.fingerprint",
        Place::ClientCertificate(CertificatePart::Fingerprint),
    ),
    (
        "tls.client.sha256",
        Place::ClientCertificate(CertificatePart::Sha256),
    ),
    (
        "tls.client.xfcc",
        Place::ClientCertificate(CertificatePart::Forwarded(ForwardedParts::USUAL)),
    ),
    (
        "tls.client.pem",
        Place::ClientCertificate(CertificatePart::EscapedPem),
    ),
    (
        "tls.client.verified",
        Place::ClientCertificate(CertificatePart::Verified),
    ),
    ("time", Place::Time(TimeForm::Iso)),
    ("time.clf", Place::Time(TimeForm::Clf)),
    ("time.unix", Place::Time(TimeForm::Unix)),
    ("request.id", Place::RequestId),
    ("trace.id", Place::Trace),
    ("user", Place::User),
    ("jwt.sub", Place::Claim(Cow::Borrowed("sub"))),
    ("jwt.iss", Place::Claim(Cow::Borrowed("iss"))),
    ("route", Place::Route),
    ("upstream", Place::Upstream),
    ("upstream.server", Place::UpstreamServer),
    ("upstream.address", Place::UpstreamAddress),
    ("upstream.attempts", Place::Attempts),
    ("upstream.time", Place::UpstreamTime(Unit::Seconds)),
    ("upstream.time.ms", Place::UpstreamTime(Unit::Milliseconds)),
    ("upstream.time.us", Place::UpstreamTime(Unit::Microseconds)),
    ("upstream.connect", Place::ConnectTime(Unit::Seconds)),
    (
        "upstream.connect.us",
        Place::ConnectTime(Unit::Microseconds),
    ),
    ("status", Place::Status),
    ("cache.status", Place::CacheStatus),
    ("bytes", Place::Bytes),
    ("duration", Place::Duration(Unit::Seconds)),
    ("duration.ms", Place::Duration(Unit::Milliseconds)),
    ("duration.us", Place::Duration(Unit::Microseconds)),
    ("complete", Place::Complete),
    ("refused", Place::Refused),
];

/// Places whose name has a name of the user's behind a colon, or a number in brackets.
const NAMED: [&str; 9] = [
    "header:NAME",
    "cookie:NAME",
    "query:NAME",
    "response:NAME",
    "response.cookie:NAME",
    "jwt.claim:NAME",
    "auth:NAME",
    "map:NAME",
    "path[1]",
];

/// A word in braces that is no place, or none at this moment.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnknownPlace {
    /// There is none of that name.
    #[error("`{{{0}}}` is no place, such as {{host}}, {{path}}, {{header:NAME}} or {{map:NAME}}")]
    Name(String),
    /// What is behind the colon is no name.
    #[error("`{{{0}}}` does not name a field")]
    Field(String),
    /// There is no `[map.NAME]` of that name.
    #[error("`{{map:{name}}}`: there is no map of that name{known}")]
    Map {
        /// The name.
        name: String,
        /// What there is, if anything.
        known: String,
    },
    /// The value is not there yet.
    #[error("`{{{name}}}` is not known {}", before(*.moment))]
    TooEarly {
        /// The place.
        name: String,
        /// When the text is filled.
        moment: Moment,
    },
}

/// Why it is not.
fn before(moment: Moment) -> &'static str {
    match moment {
        Moment::Connection => "of a connection, which has no requests",
        Moment::Request => "before there is a response",
        Moment::Response | Moment::End => "before the response has ended",
    }
}

impl UnknownPlace {
    /// The place that was probably meant.
    pub fn suggestion(&self) -> Option<String> {
        let Self::Name(name) = self else {
            return None;
        };
        let first = name.chars().next()?;
        if let Some((kind, rest)) = name.split_once(':') {
            let kinds = NAMED.map(|it| it.split([':', '[']).next().unwrap_or_default());
            let near = nearest(kind, &kinds).filter(|it| it.starts_with(first))?;
            return Some(format!("{near}:{rest}"));
        }
        let names: Vec<_> = FIXED.iter().map(|(name, _)| *name).collect();
        // Of short words others are near by chance.
        let near = nearest(name, &names).filter(|it| it.starts_with(first))?;
        Some(near.to_owned())
    }
}

/// A name in braces.
pub(super) enum Name<'a> {
    /// Of a place that is the same in every configuration.
    Place(Place),
    /// Of a map.
    Map(&'a str),
    /// Braces that are text, as in JSON.
    Text,
}

/// Reads what stands between braces.
pub(super) fn read(text: &str) -> Result<Name<'_>, UnknownPlace> {
    if !is_word(text) {
        return Ok(Name::Text);
    }
    let unknown = || UnknownPlace::Name(text.to_owned());
    if let Some((_, place)) = FIXED.iter().find(|(name, _)| *name == text) {
        return Ok(Name::Place(place.clone()));
    }
    if let Some(number) = text.strip_prefix("path[") {
        let number = number.strip_suffix(']').and_then(|it| it.parse().ok());
        let number = number.filter(|it| (1..=100).contains(it));
        return Ok(Name::Place(Place::Segment(number.ok_or_else(unknown)?)));
    }
    let (kind, name) = text.split_once(':').ok_or_else(unknown)?;
    let field = || {
        HeaderName::from_bytes(name.as_bytes()).map_err(|_| UnknownPlace::Field(text.to_owned()))
    };
    if name.is_empty() {
        return Err(unknown());
    }
    Ok(Name::Place(match kind {
        "header" => Place::Header(field()?),
        "response" => Place::ResponseHeader(field()?),
        "response.cookie" => Place::ResponseCookie(name.into()),
        "cookie" => Place::Cookie(name.into()),
        "query" => Place::Parameter(name.into()),
        "tls.client.xfcc" => {
            let parts = ForwardedParts::parse(name).ok_or_else(unknown)?;
            Place::ClientCertificate(CertificatePart::Forwarded(parts))
        }
        "jwt.claim" => Place::Claim(Cow::Owned(name.to_owned())),
        // Under the whole name, so that no claim of a token has it.
        "auth" => Place::Claim(Cow::Owned(format!("auth:{}", field()?))),
        "map" => return Ok(Name::Map(name)),
        _ => return Err(unknown()),
    }))
}

/// Whether a text in braces looks like the name of a place.
fn is_word(text: &str) -> bool {
    let (word, rest) = match text.find([':', '[']) {
        Some(at) => text.split_at(at),
        None => (text, ""),
    };
    let is_part = |it: u8| it.is_ascii_alphanumeric() || b"_-.".contains(&it);
    let is_named = |it: u8| it.is_ascii_graphic() && !b"\"'{}".contains(&it);
    word.starts_with(|it: char| it.is_ascii_alphabetic())
        && word.bytes().all(is_part)
        && rest.bytes().all(is_named)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_differ_and_mistakes_have_suggestions() {
        for (at, (name, place)) in FIXED.iter().enumerate() {
            let others = FIXED.iter().enumerate().filter(|(other, _)| *other != at);
            for (_, (other, another)) in others {
                assert!(name != other && place != another, "{name} {other}");
            }
        }
        for (text, suggestion) in [
            ("nonsense", None),
            ("clint", Some("client")),
            ("qery", Some("query")),
            ("tls.sin", Some("tls.sni")),
            ("heder:x-a", Some("header:x-a")),
            ("path[0]", Some("path")),
        ] {
            let Err(error) = read(text) else {
                panic!("{text}")
            };
            assert_eq!(error.suggestion().as_deref(), suggestion, "{text}");
        }
        for text in ["", "\"a\": 1", "0", "a b", " x", "color: red"] {
            assert!(matches!(read(text), Ok(Name::Text)), "{text}");
        }
    }
}
