//! A request as it is passed on.

use std::borrow::Cow;

use bytes::Bytes;
use http::StatusCode;
use http::header::{HeaderName, HeaderValue};
use plimsoll_client::forward::{Head, NotForwarded, ReceivedFields};
use plimsoll_client::is_idempotent;
use plimsoll_model::Protocol;
use plimsoll_wire::http::FieldList;

use super::Upstream;
use super::exchange::Refusal;
use crate::request::RequestView;

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
    /// As the server gets them.
    pub(crate) fields: FieldList,
    pub(crate) body: Bytes,
    /// Whether it may be sent a second time (RFC 9110, section 9.2.2).
    pub(crate) is_idempotent: bool,
}

impl Outgoing {
    /// The request for a server; the response if it is not sent: it goes round, or asks for a tunnel.
    pub(crate) fn new(request: &RequestView<'_>, upstream: &Upstream) -> Result<Self, Refusal> {
        if request.method == "CONNECT" {
            let text = "no tunnel leads through this server\n".to_owned();
            return Err((StatusCode::NOT_IMPLEMENTED, text));
        }
        let fields = request.headers();
        let limits = fields
            .iter()
            .filter(|(name, _)| name.eq_ignore_ascii_case("max-forwards"));
        match NotForwarded::check(request.method, limits.map(|(_, value)| *value)) {
            Some(NotForwarded::Echoed) => {
                let text = "requests of this method are not forwarded\n".to_owned();
                return Err((StatusCode::METHOD_NOT_ALLOWED, text));
            }
            Some(NotForwarded::LastHop) => return Err((StatusCode::NO_CONTENT, String::new())),
            None => {}
        }
        let texts = |wanted: &str| {
            let values = fields
                .iter()
                .filter(|(name, _)| name.eq_ignore_ascii_case(wanted));
            let values = values.map(|(_, value)| String::from_utf8_lossy(value).into_owned());
            values.collect::<Vec<_>>().join(", ")
        };
        let via = texts("via");
        if via.matches(PSEUDONYM).count() >= MOST_HOPS {
            let text = format!("requests for {upstream} come back here\n");
            return Err((StatusCode::LOOP_DETECTED, text));
        }
        let layers = request.layer_names();
        let is_of_layer = |name: &str| layers.iter().any(|it| it.eq_ignore_ascii_case(name));
        let left = fields.iter().filter(|(name, value)| {
            let is_left_out = |it: &HeaderName| name.eq_ignore_ascii_case(it.as_str());
            // Trailers are not passed on. Fields that came by HTTP/2 were checked by other rules.
            !["te", "trailer"]
                .iter()
                .any(|it| name.eq_ignore_ascii_case(it))
                && !upstream.without.iter().any(is_left_out)
                && HeaderName::from_bytes(name.as_bytes()).is_ok()
                && HeaderValue::from_bytes(value).is_ok()
        });
        let (of_layers, sent): (Vec<_>, Vec<_>) = left.partition(|(name, _)| is_of_layer(name));
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
        // Each name has one source: the rule before what every request gets, that before layers.
        let mut own = OwnFields::default();
        for (name, value) in &upstream.fields {
            own.0.push((name.as_str(), value.as_bytes()));
        }
        for (name, value) in added.iter().filter(|(_, value)| !value.is_empty()) {
            own.add(name, value.as_bytes());
        }
        let before = own.0.len();
        for (name, value) in of_layers {
            if !own
                .0
                .iter()
                .take(before)
                .any(|it| it.0.eq_ignore_ascii_case(name))
            {
                own.0.push((name, value));
            }
        }
        // Servers may read other spellings as the same field.
        let sent: Vec<_> = sent
            .into_iter()
            .filter(|(name, _)| !own.is_collision(name))
            .collect();
        let received = ReceivedFields::new(&sent);
        let head = Head::forwarded(request.method, "/", &received, &own.0);
        let host = if upstream.keeps_host && !request.authority.is_empty() {
            request.authority
        } else {
            upstream.endpoint.authority()
        };
        Ok(Self {
            method: request.method.to_owned(),
            target: target(request, upstream),
            authority: host.to_owned(),
            fields: head.field_list(Protocol::Http1),
            body: Bytes::copy_from_slice(request.body),
            is_idempotent: is_idempotent(request.method),
        })
    }
}

/// The fields that are not the client's.
#[derive(Default)]
struct OwnFields<'a>(Vec<(&'a str, &'a [u8])>);

impl<'a> OwnFields<'a> {
    /// Adds a field unless there is one of its name.
    fn add(&mut self, name: &'a str, value: &'a [u8]) {
        if !self.0.iter().any(|it| it.0.eq_ignore_ascii_case(name)) {
            self.0.push((name, value));
        }
    }

    /// Whether `name` is that of one of these once `_` is read as `-`, in another spelling.
    fn is_collision(&self, name: &str) -> bool {
        let folded = |name: &str| name.to_ascii_lowercase().replace('_', "-");
        let (name, spelled) = (folded(name), name);
        let mut own = self.0.iter();
        own.any(|it| !spelled.eq_ignore_ascii_case(it.0) && folded(it.0) == name)
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
        let outgoing = Outgoing::new(&request.view(), &upstream).ok()?;
        Some(shown(&outgoing))
    }

    fn shown(outgoing: &Outgoing) -> String {
        let mut text = format!("{} {}\n", outgoing.method, outgoing.target);
        let host = (&b"host"[..], outgoing.authority.as_bytes());
        for (name, value) in std::iter::once(host).chain(outgoing.fields.iter()) {
            let line = [name, b": ", value, b"\n"].concat();
            text += std::str::from_utf8(&line).unwrap();
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
    fn what_is_set_here_cannot_be_removed_or_doubled_by_the_client() {
        let mut request = KeptRequest::made("GET", "/");
        request.layer_names.push("x-request-id".to_owned());
        for (name, value) in [
            (
                "Connection",
                "authorization, via, x-forwarded-for, x-request-id",
            ),
            ("Authorization", "Bearer client"),
            ("X_Forwarded_Host", "evil"),
            ("x-request-id", "7"),
            ("Cookie", "a=1"),
            ("Cookie", "b=2"),
            ("X_Other", "1"),
        ] {
            request.fields.push((name.to_owned(), value.into()));
        }
        let expected = "GET /\n\
             host: a\n\
             Cookie: a=1; b=2\n\
             X_Other: 1\n\
             authorization: Bearer own\n\
             x-forwarded-for: 127.0.0.1\n\
             x-forwarded-host: localhost\n\
             x-forwarded-proto: http\n\
             via: 1.1 plimsoll\n\
             x-request-id: 7\n";
        assert_eq!(passed_on(&request, "http://a").unwrap(), expected);
        let tunnel = KeptRequest::made("CONNECT", "/");
        assert_eq!(passed_on(&tunnel, "http://a"), None);
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
            let outgoing = Outgoing::new(&request.view(), &upstream).unwrap();
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
