//! A request as it is passed on.

use std::borrow::Cow;

use bytes::Bytes;
use http::header::{HeaderName, HeaderValue};
use plimsoll_client::is_idempotent;
use plimsoll_wire::http::FieldClass;

use super::Upstream;
use crate::request::RequestView;

/// Fields that are written anew.
const WRITTEN_ANEW: [&str; 4] = ["expect", "host", "x-forwarded-proto", "x-forwarded-host"];

/// How many mock servers may forward one request before it is treated as a loop; chains of real set-ups have two or
/// three.
const MOST_HOPS: usize = 10;

/// Name of this program in `via`.
const PSEUDONYM: &str = "plimsoll";

/// A request as it is sent, and what is to be known of it.
#[derive(Debug)]
pub(crate) struct Outgoing {
    pub(crate) method: String,
    pub(crate) target: String,
    pub(crate) authority: String,
    /// Without those of the connection it came by.
    pub(crate) fields: Vec<(String, Vec<u8>)>,
    pub(crate) body: Bytes,
    /// Whether it may be sent a second time (RFC 9110, section 9.2.2).
    pub(crate) is_idempotent: bool,
}

impl Outgoing {
    /// The request for a server; nothing if it goes round.
    pub(crate) fn of(request: &RequestView<'_>, upstream: &Upstream) -> Option<Self> {
        let given = &upstream.fields;
        let fields = request.headers();
        let texts = |wanted: &str| {
            let values = fields
                .iter()
                .filter(|(name, _)| name.eq_ignore_ascii_case(wanted));
            let values = values.map(|(_, value)| String::from_utf8_lossy(value).into_owned());
            values.collect::<Vec<_>>().join(", ")
        };
        let via = texts("via");
        if via.matches(PSEUDONYM).count() >= MOST_HOPS {
            return None;
        }
        let named = texts("connection");
        let is_given = |name: &str| {
            given
                .iter()
                .any(|(it, _)| name.eq_ignore_ascii_case(it.as_str()))
        };
        let mut written = Vec::new();
        let mut field = |name: &str, value: &[u8]| {
            // Fields that came by HTTP/2 were checked by other rules.
            if HeaderName::from_bytes(name.as_bytes()).is_ok()
                && HeaderValue::from_bytes(value).is_ok()
            {
                written.push((name.to_owned(), value.to_vec()));
            }
        };
        let own = upstream.endpoint.authority();
        let host = if upstream.keeps_host && !request.authority.is_empty() {
            request.authority
        } else {
            own
        };
        for (name, value) in &fields {
            let is_any = |names: &[&str]| names.iter().any(|it| it.eq_ignore_ascii_case(name));
            let is_left_out = is_of_connection(name, &named)
                || is_any(&WRITTEN_ANEW)
                || is_any(&["via", "x-forwarded-for"])
                || upstream
                    .without
                    .iter()
                    .any(|it| name.eq_ignore_ascii_case(it.as_str()))
                || is_given(name);
            if !is_left_out {
                field(name, value);
            }
        }
        for (name, value) in given {
            field(name.as_str(), value.as_bytes());
        }
        let peer = request.peer.ip().to_string();
        let added = [
            ("x-forwarded-for", joined(texts("x-forwarded-for"), &peer)),
            ("x-forwarded-host", request.authority.to_owned()),
            (
                "x-forwarded-proto",
                if request.is_tls { "https" } else { "http" }.to_owned(),
            ),
            ("via", joined(via, &format!("1.1 {PSEUDONYM}"))),
        ];
        for (name, value) in added {
            if !is_given(name) && !value.is_empty() {
                field(name, value.as_bytes());
            }
        }
        Some(Self {
            method: request.method.to_owned(),
            target: target(request, upstream),
            authority: host.to_owned(),
            fields: written,
            body: Bytes::copy_from_slice(request.body),
            is_idempotent: is_idempotent(request.method),
        })
    }
}

/// The path of the server's URL, then path and query of the request as they were sent.
fn target(request: &RequestView<'_>, upstream: &Upstream) -> String {
    let base = upstream.endpoint.path_and_query().trim_end_matches('/');
    let path = request.own_path();
    let stripped = upstream.strip.as_deref();
    let stripped = stripped.and_then(|prefix| path.strip_prefix(prefix));
    let path = match stripped.unwrap_or(path) {
        path if path.starts_with('/') => Cow::Borrowed(path),
        rest if stripped.is_some() => Cow::Owned(format!("/{rest}")),
        _ => Cow::Borrowed("/"),
    };
    match request.query {
        None => format!("{base}{path}"),
        Some(query) => format!("{base}{path}?{query}"),
    }
}

fn joined(before: String, last: &str) -> String {
    if before.is_empty() {
        last.to_owned()
    } else {
        before + ", " + last
    }
}

/// Whether a field stays on its connection, is framing, or is nominated by the `connection` field beside it. Trailers
/// are not passed on, so `trailer` is not either.
fn is_of_connection(name: &str, connection: &str) -> bool {
    let name = name.as_bytes();
    let class = FieldClass::of(name);
    class.is_hop_by_hop()
        || class.is_framing()
        || name.eq_ignore_ascii_case(b"trailer")
        || FieldClass::is_nominated(name, connection.as_bytes())
}

/// Whether a field of a response is passed on, besides those of the connection, which are gone already.
pub(super) fn is_passed_back(name: &HeaderName) -> bool {
    // The server says when it sends. Trailers are announced by those who send them.
    !["date", "alt-svc", "trailer"].contains(&name.as_str())
}

#[cfg(test)]
mod tests {
    use super::super::UpstreamOptions;
    use super::*;
    use crate::request::KeptRequest;

    fn passed_on(request: &KeptRequest, url: &str) -> Option<String> {
        let options = UpstreamOptions {
            fields: vec![(
                HeaderName::from_static("authorization"),
                HeaderValue::from_static("Bearer own"),
            )],
            ..UpstreamOptions::default()
        };
        let upstream = Upstream::new(url, options).unwrap();
        let outgoing = Outgoing::of(&request.view(), &upstream)?;
        Some(shown(&outgoing))
    }

    fn shown(outgoing: &Outgoing) -> String {
        let mut text = format!("{} {}\n", outgoing.method, outgoing.target);
        let host = ("host".to_owned(), outgoing.authority.clone().into_bytes());
        for (name, value) in std::iter::once(&host).chain(&outgoing.fields) {
            let value = String::from_utf8(value.clone()).unwrap();
            text += &[name, ": ", &value, "\n"].concat();
        }
        text + std::str::from_utf8(&outgoing.body).unwrap()
    }

    #[test]
    fn what_is_of_the_connection_stays_there() {
        let mut request = KeptRequest::made("POST", "/a%20b/?x=%2F");
        for (name, value) in [
            ("Host", "mock"),
            ("Connection", "keep-alive, X-Hop"),
            ("X-Hop", "1"),
            ("Transfer-Encoding", "chunked"),
            ("Upgrade", "websocket"),
            ("TE", "trailers"),
            ("Accept", "*/*"),
            ("Authorization", "Bearer client"),
            ("X-Forwarded-For", "10.0.0.1"),
            ("Via", "1.0 a"),
        ] {
            request.fields.push((name.to_owned(), value.into()));
        }
        request.body = "hi".into();
        let bytes = passed_on(&request, "http://api.example:81/base/").unwrap();
        let expected = "POST /base/a%20b/?x=%2F\n\
             host: api.example:81\n\
             Accept: */*\n\
             authorization: Bearer own\n\
             x-forwarded-for: 10.0.0.1, 127.0.0.1\n\
             x-forwarded-host: localhost\n\
             x-forwarded-proto: http\n\
             via: 1.0 a, 1.1 plimsoll\n\
             hi";
        assert_eq!(bytes, expected);
    }

    #[test]
    fn the_beginning_of_the_path_is_taken_away_and_fields_are_left_out() {
        let options = UpstreamOptions {
            strip: Some("/api".to_owned()),
            without: vec![HeaderName::from_static("cookie")],
            ..UpstreamOptions::default()
        };
        let upstream = Upstream::new("http://a/v1", options).unwrap();
        for (path, expected) in [
            ("/api/b?c", "/v1/b?c"),
            ("/api", "/v1/"),
            ("/apis", "/v1/s"),
            ("/b/api", "/v1/b/api"),
        ] {
            let mut request = KeptRequest::made("GET", path);
            let cookie = ("Cookie".to_owned(), b"a=b".to_vec());
            request.fields.push(cookie);
            let outgoing = Outgoing::of(&request.view(), &upstream).unwrap();
            let text = shown(&outgoing);
            assert!(text.starts_with(&format!("GET {expected}\n")), "{text}");
            assert!(!text.contains("Cookie"), "{text}");
        }
    }

    #[test]
    fn what_goes_round_ends() {
        let mut request = KeptRequest::made("GET", "/");
        let via = ["1.1 plimsoll"; 10].join(", ");
        request.fields.push(("via".to_owned(), via.into_bytes()));
        assert_eq!(passed_on(&request, "http://a"), None);
    }
}
