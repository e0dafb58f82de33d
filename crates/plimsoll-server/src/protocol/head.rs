//! The rules of HTTP/1 for heads that HTTP/2 and HTTP/3 requests must meet too.

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, COOKIE, EXPECT, HOST, HeaderMap, HeaderValue};
use http::request::Parts;
use http::uri::Scheme;
use http::{Method, StatusCode};
use plimsoll_wire::h1::{RequestError, RequestLimits, Target, authority_of};

use crate::message::response::Response;

/// The head of a valid request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Checked<'a> {
    /// `host` or `host:port`.
    pub(crate) authority: &'a str,
    /// Bytes of the content, where they are announced.
    pub(crate) length: Option<u64>,
}

/// Refuses what HTTP/1 refuses while decoding.
pub(crate) fn checked<'a>(
    parts: &'a Parts,
    limits: &RequestLimits,
) -> Result<Checked<'a>, RequestError> {
    if parts.headers.len() > limits.headers {
        return Err(RequestError::TooManyFields);
    }
    if parts.headers.values().any(has_blank_end) {
        return Err(RequestError::FieldValue);
    }
    let target = parts.uri.path_and_query().map_or("", |path| path.as_str());
    if target.len() > limits.target_bytes {
        return Err(RequestError::TargetTooLong);
    }
    if !target.is_empty() {
        // CONNECT has a path only where it opens another protocol (RFC 8441, section 4).
        let method = match &parts.method {
            &Method::CONNECT => "GET",
            method => method.as_str(),
        };
        if !target.starts_with('/') && target != "*" {
            return Err(RequestError::Target);
        }
        Target::parse(method, target)?;
    }
    let length = announced(&parts.headers)?;
    if length.is_some_and(|length| length > limits.body_bytes) {
        return Err(RequestError::BodyTooLarge);
    }
    if target.is_empty() && parts.method == Method::CONNECT {
        // The rules of authority-form: a host and a port (RFC 9113, section 8.5).
        let authority = parts.uri.authority().map_or("", |it| it.as_str());
        Target::parse("CONNECT", authority)?;
    }
    let mut hosts = parts.headers.get_all(HOST).iter();
    let host = hosts.next();
    if hosts.next().is_some() {
        return Err(RequestError::HostRepeated);
    }
    let host = host
        .map(|host| host.to_str().map_err(|_| RequestError::HostInvalid))
        .transpose()?;
    let default_port = if parts.uri.scheme() == Some(&Scheme::HTTP) {
        "80"
    } else {
        "443"
    };
    let named = parts.uri.authority().map(http::uri::Authority::as_str);
    let authority = authority_of(named, host, default_port)?;
    Ok(Checked { authority, length })
}

/// Whether a value begins or ends with a blank (RFC 9113, section 8.2.1; RFC 9114, section 4.2): servers behind, which speak
/// HTTP/1, would read another value than conditions here.
fn has_blank_end(value: &HeaderValue) -> bool {
    let is_blank = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
    let bytes = value.as_bytes();
    is_blank(bytes.first()) || is_blank(bytes.last())
}

/// The length that the head announces (RFC 9110, section 8.6).
pub(crate) fn announced(fields: &HeaderMap) -> Result<Option<u64>, RequestError> {
    let mut values = fields.get_all(CONTENT_LENGTH).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    if values.next().is_some() {
        return Err(RequestError::ContentLengthRepeated);
    }
    let is_number = !value.is_empty() && value.as_bytes().iter().all(u8::is_ascii_digit);
    let length = value.to_str().ok().filter(|_| is_number);
    let length = length.and_then(|text| text.parse().ok());
    length.map(Some).ok_or(RequestError::ContentLength)
}

/// Makes one `cookie` field of several, as everything that is not HTTP/2 or HTTP/3 expects (RFC 9113, section 8.2.3;
/// RFC 9114, section 4.2.1).
pub(crate) fn join_cookies(fields: &mut HeaderMap) {
    let mut crumbs = fields.get_all(COOKIE).iter();
    if crumbs.nth(1).is_none() {
        return;
    }
    let crumbs: Vec<_> = fields.get_all(COOKIE).iter().collect();
    let crumbs: Vec<_> = crumbs.into_iter().map(HeaderValue::as_bytes).collect();
    if let Ok(joined) = HeaderValue::from_maybe_shared(Bytes::from(crumbs.join(&b"; "[..]))) {
        fields.insert(COOKIE, joined);
    }
}

/// The response to an extended CONNECT for a protocol other than `websocket` (RFC 8441, section 4; RFC 9220, section 3).
pub(crate) fn unknown_protocol() -> Response {
    let text = "of the protocols for extended CONNECT only websocket is supported\n";
    Response::text(StatusCode::NOT_IMPLEMENTED, text)
}

/// Whether the client waits for 100 (Continue) before it sends its content.
pub(crate) fn is_expected(parts: &Parts) -> bool {
    parts
        .headers
        .get(EXPECT)
        .is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"100-continue"))
}

#[cfg(test)]
mod tests {
    use http::Request;
    use http::uri::{PathAndQuery, Uri};

    use super::*;

    fn authority_of(
        method: &str,
        authority: Option<&str>,
        path: &str,
        host: Option<&str>,
    ) -> Result<String, RequestError> {
        let mut uri = Uri::builder().scheme("https");
        uri = uri.path_and_query(path.parse::<PathAndQuery>().unwrap());
        uri = uri.authority(authority.unwrap_or("a"));
        let mut parts = uri.build().unwrap().into_parts();
        if authority.is_none() {
            parts.authority = None;
            parts.scheme = None;
        }
        let mut request = Request::builder()
            .method(method)
            .uri(Uri::from_parts(parts).unwrap());
        if let Some(host) = host {
            request = request.header(HOST, host);
        }
        let (parts, ()) = request.body(()).unwrap().into_parts();
        let checked = checked(&parts, &RequestLimits::default());
        checked.map(|checked| checked.authority.to_owned())
    }

    #[test]
    fn cookies_that_came_apart_are_joined() {
        let mut fields = HeaderMap::new();
        join_cookies(&mut fields);
        assert!(fields.is_empty());
        for (crumb, expected) in [
            ("a=1", "a=1"),
            ("b=2", "a=1; b=2"),
            ("c=3", "a=1; b=2; c=3"),
        ] {
            fields.append(COOKIE, HeaderValue::from_static(crumb));
            join_cookies(&mut fields);
            let joined: Vec<_> = fields.get_all(COOKIE).iter().collect();
            assert_eq!(joined, [expected]);
        }
    }

    #[test]
    fn values_neither_begin_nor_end_with_a_blank() {
        for (value, is_refused) in [
            ("1", false),
            ("", false),
            ("a b", false),
            (" 1", true),
            ("1 ", true),
            ("\t1", true),
            ("1\t", true),
            (" ", true),
        ] {
            let request = Request::get("https://a/").header("x-debug", value);
            let (parts, ()) = request.body(()).unwrap().into_parts();
            let found = checked(&parts, &RequestLimits::default()).err();
            let expected = is_refused.then_some(RequestError::FieldValue);
            assert_eq!(found, expected, "{value:?}");
        }
    }

    #[test]
    fn heads_keep_the_rules_of_http_1() {
        for (authority, path, host, expected) in [
            (Some("a"), "/", None, Ok("a")),
            (Some("a:443"), "/x?y", Some("a"), Ok("a:443")),
            (None, "/", Some("a:1"), Ok("a:1")),
            (
                Some("user:pw@evil"),
                "/",
                None,
                Err(RequestError::HostInvalid),
            ),
            (Some("a:99999"), "/", None, Err(RequestError::HostInvalid)),
            (Some("a..b"), "/", None, Err(RequestError::HostInvalid)),
            (None, "/", Some(""), Err(RequestError::HostInvalid)),
            (None, "/", Some("u@a"), Err(RequestError::HostInvalid)),
            (None, "/", None, Err(RequestError::HostMissing)),
            (Some("a"), "/", Some("b"), Err(RequestError::HostMismatch)),
            (Some("a"), "/r/\\evil.com", None, Err(RequestError::Target)),
            (Some("a"), "/r/a%zz", None, Err(RequestError::Target)),
            (Some("a"), "/r/a\"b", None, Err(RequestError::Target)),
            (Some("a"), "*", None, Err(RequestError::Target)),
        ] {
            let found = authority_of("GET", authority, path, host);
            let found = found.as_deref().map_err(|error| *error);
            assert_eq!(found, expected, "{authority:?} {path} {host:?}");
        }
        assert_eq!(
            authority_of("OPTIONS", Some("a"), "*", None),
            Ok("a".to_owned())
        );
        assert_eq!(
            authority_of("CONNECT", Some("a"), "/chat", None),
            Ok("a".to_owned())
        );
    }
}
