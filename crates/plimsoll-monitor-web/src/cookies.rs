//! Cookies that hold credentials.
//!
//! Over TLS their names begin with `__Host-` (draft-ietf-httpbis-rfc6265bis, section 4.1.3.2): browsers take such a cookie from
//! this host alone, over TLS, for all paths, so that no other host of the domain can set one. Over plain HTTP, such as on
//! loopback, browsers refuse that prefix, and the names are plain.

use std::borrow::Cow;
use std::time::Duration;

use axum::response::Response;
use http::HeaderMap;
use http::header::{COOKIE, HeaderValue, SET_COOKIE};

/// The value of a cookie (RFC 6265, section 4.2).
pub(crate) fn cookie<'f>(fields: &'f HeaderMap, name: &str) -> Option<&'f str> {
    let all = fields.get_all(COOKIE).iter();
    let pairs = all.filter_map(|value| value.to_str().ok());
    let mut pairs = pairs.flat_map(|value| value.split(';'));
    pairs.find_map(|pair| pair.trim().strip_prefix(name)?.strip_prefix('='))
}

/// The cookie of a browser that keeps a credential.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cookie<'a> {
    /// Its name without a prefix.
    pub(crate) name: &'a str,
    /// Where a browser sends it over plain HTTP; over TLS that is everywhere on this host.
    pub(crate) path: &'a str,
    /// How long a browser keeps it.
    pub(crate) age: Duration,
}

impl Cookie<'_> {
    fn name_over(&self, is_tls: bool) -> Cow<'_, str> {
        if is_tls {
            Cow::Owned(format!("__Host-{}", self.name))
        } else {
            Cow::Borrowed(self.name)
        }
    }

    /// The value that a request brings.
    ///
    /// - `is_tls`: whether the client came by TLS.
    pub(crate) fn read<'f>(&self, fields: &'f HeaderMap, is_tls: bool) -> Option<&'f str> {
        cookie(fields, &self.name_over(is_tls))
    }

    /// Has the browser keep a value; an empty one ends the cookie.
    ///
    /// - `value`: of the characters that a cookie may have.
    pub(crate) fn set(&self, response: &mut Response, value: &str, is_tls: bool) {
        let name = self.name_over(is_tls);
        let age = if value.is_empty() {
            0
        } else {
            self.age.as_secs()
        };
        let (path, secure) = if is_tls {
            ("/", "; Secure")
        } else {
            (self.path, "")
        };
        let cookie =
            format!("{name}={value}; Path={path}; Max-Age={age}; HttpOnly; SameSite=Lax{secure}");
        if let Ok(cookie) = HeaderValue::from_str(&cookie) {
            response.headers_mut().append(SET_COOKIE, cookie);
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use http::header::COOKIE;

    use super::*;

    const SESSION: Cookie<'static> = Cookie {
        name: "session",
        path: "/admin",
        age: Duration::from_mins(1),
    };

    #[test]
    fn over_tls_a_cookie_is_of_this_host_alone() {
        for (is_tls, value, expected) in [
            (
                true,
                "a",
                "__Host-session=a; Path=/; Max-Age=60; HttpOnly; SameSite=Lax; Secure",
            ),
            (
                false,
                "a",
                "session=a; Path=/admin; Max-Age=60; HttpOnly; SameSite=Lax",
            ),
            (
                false,
                "",
                "session=; Path=/admin; Max-Age=0; HttpOnly; SameSite=Lax",
            ),
        ] {
            let mut response = Response::new(Body::empty());
            SESSION.set(&mut response, value, is_tls);
            assert_eq!(response.headers()[SET_COOKIE], expected);
        }
    }

    #[test]
    fn a_plain_cookie_is_none_over_tls() {
        let mut fields = HeaderMap::new();
        fields.insert(COOKIE, "session=x; __Host-session=y".parse().unwrap());
        assert_eq!(SESSION.read(&fields, true), Some("y"));
        assert_eq!(SESSION.read(&fields, false), Some("x"));
        fields.insert(COOKIE, "session=x".parse().unwrap());
        assert_eq!(SESSION.read(&fields, true), None);
    }
}
