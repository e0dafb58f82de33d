//! Redirects: where they lead, and what the next request is (RFC 9110, section 15.4).
//!
//! Pure: nothing here sends anything.

use plimsoll_model::is_secret_field;
use url::Url;

/// Counts the redirects of one chain, and says what each one asks for.
#[derive(Debug, Clone)]
pub struct Redirects {
    limit: u32,
    followed: u32,
}

/// The request that follows a redirect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redirect {
    /// Target URL. The fragment is that of the redirect, or else that of the request.
    pub url: Url,
    /// The method: POST becomes GET behind 301 and 302, anything but HEAD becomes GET behind 303.
    pub method: String,
    /// Whether the body is sent again.
    pub keeps_body: bool,
    /// Whether scheme, host or port differ, so that credentials must not follow.
    pub is_cross_origin: bool,
}

/// Why a redirect is not followed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RedirectError {
    /// The chain is longer than the limit.
    #[error("redirected more than {0} times")]
    TooMany(u32),
    /// `location` is no URL.
    #[error("redirected to `{location}`, which is not a URL: {source}")]
    Location {
        /// The value of the field.
        location: String,
        /// The error of the URL parser.
        source: url::ParseError,
    },
    /// The URL is neither `http` nor `https`.
    #[error("redirected to a URL of scheme `{0}`")]
    Scheme(String),
}

impl Redirects {
    /// - `limit`: redirects that are followed.
    pub fn new(limit: u32) -> Self {
        Self { limit, followed: 0 }
    }

    /// The request that follows a response; `None` if it does not redirect.
    ///
    /// - `method`, `url`: of the request.
    /// - `location`: the value of the field of that name; without one, a response is no redirect.
    pub fn follow(
        &mut self,
        method: &str,
        url: &Url,
        status: u16,
        location: Option<&[u8]>,
    ) -> Result<Option<Redirect>, RedirectError> {
        let Some(location) = location.filter(|_| matches!(status, 301 | 302 | 303 | 307 | 308))
        else {
            return Ok(None);
        };
        if self.followed == self.limit {
            return Err(RedirectError::TooMany(self.limit));
        }
        self.followed += 1;
        let location = String::from_utf8_lossy(location);
        let mut target = url
            .join(&location)
            .map_err(|source| RedirectError::Location {
                location: location.into_owned(),
                source,
            })?;
        if !matches!(target.scheme(), "http" | "https") {
            return Err(RedirectError::Scheme(target.scheme().to_owned()));
        }
        if target.fragment().is_none() {
            target.set_fragment(url.fragment());
        }
        let becomes_get = match status {
            301 | 302 => method == "POST",
            303 => !matches!(method, "GET" | "HEAD"),
            _ => false,
        };
        Ok(Some(Redirect {
            is_cross_origin: target.origin() != url.origin(),
            url: target,
            method: if becomes_get { "GET" } else { method }.to_owned(),
            keeps_body: !becomes_get,
        }))
    }
}

impl Redirect {
    /// Whether a field of the first request is sent with this one: fields about the body only with it, `host` and every
    /// field that masking treats as a credential only to the same origin.
    pub fn keeps_field(&self, name: &str) -> bool {
        let is_private = name.eq_ignore_ascii_case("host") || is_secret_field(name);
        !(is_private && self.is_cross_origin || is_of_body(name) && !self.keeps_body)
    }
}

/// Whether a field is about the content of its request.
fn is_of_body(name: &str) -> bool {
    let names = [
        "content-encoding",
        "content-language",
        "content-length",
        "content-location",
        "content-type",
        "digest",
        "expect",
        "transfer-encoding",
    ];
    names.iter().any(|known| known.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn follow(method: &str, status: u16, location: &str) -> Option<Redirect> {
        let url = Url::parse("http://a.example/x/y?z#part").unwrap();
        Redirects::new(1)
            .follow(method, &url, status, Some(location.as_bytes()))
            .unwrap()
    }

    #[test]
    fn methods_follow_the_status() {
        for (method, status, next, keeps_body) in [
            ("GET", 301, "GET", true),
            ("POST", 301, "GET", false),
            ("POST", 302, "GET", false),
            ("PUT", 302, "PUT", true),
            ("POST", 303, "GET", false),
            ("DELETE", 303, "GET", false),
            ("HEAD", 303, "HEAD", true),
            ("POST", 307, "POST", true),
            ("POST", 308, "POST", true),
        ] {
            let redirect = follow(method, status, "/").unwrap();
            let found = (&*redirect.method, redirect.keeps_body);
            assert_eq!(found, (next, keeps_body), "{method} {status}");
        }
        for status in [200, 300, 304, 305, 400] {
            assert_eq!(follow("GET", status, "/"), None);
        }
        let url = Url::parse("http://a").unwrap();
        let without = Redirects::new(1).follow("GET", &url, 302, None);
        assert_eq!(without, Ok(None));
    }

    #[test]
    fn locations_are_relative_to_the_request() {
        for (location, url) in [
            ("b", "http://a.example/x/b#part"),
            ("/b#c", "http://a.example/b#c"),
            ("//b.example/c", "http://b.example/c#part"),
            ("?q", "http://a.example/x/y?q#part"),
        ] {
            assert_eq!(follow("GET", 302, location).unwrap().url.as_str(), url);
        }
    }

    #[test]
    fn credentials_stay_with_their_origin() {
        for (location, is_cross_origin) in [
            ("/b", false),
            ("http://a.example:80/", false),
            ("https://a.example/", true),
            ("http://a.example:81/", true),
            ("http://b.a.example/", true),
        ] {
            let redirect = follow("GET", 307, location).unwrap();
            assert_eq!(redirect.is_cross_origin, is_cross_origin, "{location}");
            for name in [
                "Authorization",
                "cookie",
                "X-Api-Key",
                "x-vault-token",
                "X-Auth",
            ] {
                assert_eq!(redirect.keeps_field(name), !is_cross_origin, "{name}");
            }
            assert!(redirect.keeps_field("accept"));
        }
        let redirect = follow("POST", 303, "/").unwrap();
        assert!(!redirect.keeps_field("Content-Type"));
        assert!(
            follow("POST", 307, "/")
                .unwrap()
                .keeps_field("Content-Type")
        );
    }

    #[test]
    fn chains_and_schemes_are_bounded() {
        let url = Url::parse("http://a").unwrap();
        let mut redirects = Redirects::new(2);
        for _ in 0..2 {
            let followed = redirects.follow("GET", &url, 302, Some(b"/"));
            assert!(followed.unwrap().is_some());
        }
        let third = redirects.follow("GET", &url, 302, Some(b"/"));
        assert_eq!(third, Err(RedirectError::TooMany(2)));
        let mut redirects = Redirects::new(9);
        let file = redirects.follow("GET", &url, 302, Some(b"file:///etc/passwd"));
        assert_eq!(file, Err(RedirectError::Scheme("file".to_owned())));
        let broken = redirects.follow("GET", &url, 302, Some(b"http://["));
        assert!(matches!(broken, Err(RedirectError::Location { .. })));
    }
}
