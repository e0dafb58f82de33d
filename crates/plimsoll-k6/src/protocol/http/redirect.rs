//! Redirects as k6 follows them, which are those of Go's `net/http`.

use std::rc::Rc;

use super::address::{Address, AddressError};

/// Counts the redirects of a request, and makes the request that follows each.
#[derive(Debug)]
pub(super) struct Redirects {
    limit: u32,
    followed: u32,
    first: Rc<Address>,
    has_left_domain: bool,
}

/// The request that follows a redirect.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Redirect {
    pub(super) address: Address,
    pub(super) method: String,
    /// False once a redirect has made it a GET.
    pub(super) keeps_body: bool,
    /// Whether the location names no host.
    is_relative: bool,
}

/// A field `Location` that is no URL, in k6's words.
#[derive(Debug, thiserror::Error)]
#[error("failed to parse Location header {location:?}: {cause}")]
pub(super) struct LocationError {
    location: String,
    cause: AddressError,
}

impl Redirects {
    /// - `limit`: redirects that are followed.
    /// - `first`: where the request was sent.
    pub(super) fn new(limit: u32, first: Rc<Address>) -> Self {
        Self {
            limit,
            followed: 0,
            first,
            has_left_domain: false,
        }
    }

    /// The request that follows a response; `None` if it does not redirect, or beyond the limit.
    ///
    /// Fails if the location is no URL.
    pub(super) fn follow(
        &mut self,
        method: &str,
        from: &Address,
        status: u16,
        location: Option<&str>,
    ) -> Result<Option<Redirect>, LocationError> {
        let keeps_body = match status {
            301..=303 => false,
            307 | 308 => true,
            _ => return Ok(None),
        };
        let Some(location) = location.filter(|it| !it.is_empty()) else {
            return Ok(None);
        };
        let address = from.join(location).map_err(|cause| LocationError {
            location: location.to_owned(),
            cause,
        })?;
        if self.followed == self.limit {
            return Ok(None);
        }
        self.followed += 1;
        let (first, next) = (self.first.host_name(), address.host_name());
        self.has_left_domain |= !is_within(next, first);
        let becomes_get = !keeps_body && !matches!(method, "GET" | "HEAD");
        let is_relative = Address::parse(location).is_ok_and(|it| it.scheme().is_empty());
        Ok(Some(Redirect {
            address,
            method: if becomes_get { "GET" } else { method }.to_owned(),
            keeps_body,
            is_relative,
        }))
    }

    /// Whether a redirect has led to another host, which is no subdomain of the first one: credentials are not sent from there on.
    pub(super) fn has_left_domain(&self) -> bool {
        self.has_left_domain
    }

    /// Whether a field that the script has set is sent behind a redirect. Cookies are those of the jar and of the parameters only.
    pub(super) fn keeps_field(&self, name: &str, redirect: &Redirect) -> bool {
        match name.to_ascii_lowercase().as_str() {
            "cookie" | "cookie2" => false,
            "authorization" | "www-authenticate" | "proxy-authorization" | "proxy-authenticate" => {
                !self.has_left_domain
            }
            "content-encoding" | "content-language" | "content-location" | "content-type" => {
                redirect.keeps_body
            }
            "host" => redirect.is_relative,
            _ => true,
        }
    }
}

/// Whether a host is another one or below it.
fn is_within(host: &str, parent: &str) -> bool {
    let (host, parent) = (host.to_ascii_lowercase(), parent.to_ascii_lowercase());
    if host == parent {
        return true;
    }
    let above = host.strip_suffix(&parent);
    !host.starts_with('[') && !parent.is_empty() && above.is_some_and(|above| above.ends_with('.'))
}

/// The field `Referer` of a request that a redirect leads to; none from TLS to a connection without it.
pub(super) fn referer(from: &Address, to: &Address) -> Option<String> {
    let is_kept = !(from.scheme() == "https" && to.scheme() == "http");
    is_kept.then(|| from.without_user())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> Address {
        Address::parse(text).unwrap()
    }

    fn follow(method: &str, status: u16, location: &str) -> Option<Redirect> {
        let from = address("http://a.test/x/y?q");
        let mut redirects = Redirects::new(1, Rc::new(from.clone()));
        redirects
            .follow(method, &from, status, Some(location))
            .unwrap()
    }

    #[test]
    fn every_method_but_head_becomes_get() {
        for (method, status, next, keeps_body) in [
            ("GET", 301, "GET", false),
            ("PUT", 302, "GET", false),
            ("DELETE", 303, "GET", false),
            ("HEAD", 302, "HEAD", false),
            ("POST", 307, "POST", true),
            ("PATCH", 308, "PATCH", true),
        ] {
            let redirect = follow(method, status, "z").unwrap();
            assert_eq!(
                (redirect.method.as_str(), redirect.keeps_body),
                (next, keeps_body)
            );
            assert_eq!(redirect.address.to_string(), "http://a.test/x/z");
        }
        for status in [200, 300, 304, 305] {
            assert_eq!(follow("GET", status, "z"), None);
        }
        assert_eq!(follow("GET", 302, ""), None);
    }

    #[test]
    fn chains_are_limited() {
        let from = address("http://a.test/");
        let mut redirects = Redirects::new(1, Rc::new(from.clone()));
        let mut follow = |location| redirects.follow("GET", &from, 302, Some(location));
        assert!(follow("/b").unwrap().is_some());
        assert!(matches!(follow("/c"), Ok(None)));
        let error = follow("http://a/%zz").unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("failed to parse Location header"),
            "{error}"
        );
    }

    #[test]
    fn credentials_stay_within_their_domain() {
        for (location, keeps) in [
            ("/b", true),
            ("https://a.test:8443/", true),
            ("http://sub.A.test/", true),
            ("http://b.test/", false),
            ("http://nota.test/", false),
            ("http://[::1]/", false),
        ] {
            let from = address("http://a.test/");
            let mut redirects = Redirects::new(9, Rc::new(from.clone()));
            let redirect = redirects.follow("GET", &from, 307, Some(location));
            let redirect = redirect.unwrap().unwrap();
            assert_eq!(
                redirects.keeps_field("Authorization", &redirect),
                keeps,
                "{location}"
            );
            assert_eq!(redirects.keeps_field("host", &redirect), location == "/b");
            assert!(!redirects.keeps_field("Cookie", &redirect));
            assert!(redirects.keeps_field("X-Api-Key", &redirect));
            assert!(redirects.keeps_field("Content-Type", &redirect));
            // Nor do they come back.
            let back = redirects.follow("GET", &redirect.address, 302, Some("http://a.test/"));
            let back = back.unwrap().unwrap();
            assert_eq!(redirects.keeps_field("authorization", &back), keeps);
            assert!(!redirects.keeps_field("content-type", &back));
        }
    }

    #[test]
    fn the_referer_has_no_credentials() {
        let from = address("https://ann:secret@a.test/x");
        let to = |text: &str| referer(&from, &address(text));
        assert_eq!(to("https://b.test/").as_deref(), Some("https://a.test/x"));
        assert_eq!(to("http://b.test/"), None);
    }
}
