//! Cross-origin resource sharing: pages of other origins may read responses.
//!
//! Source: WHATWG Fetch, section 3.3 (the CORS protocol).

use std::rc::Rc;
use std::sync::Arc;

use http::StatusCode;
use http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE,
    HeaderValue, ORIGIN, VARY,
};

use crate::action::{Action, Answer};
use crate::message::request::Request;
use crate::message::response::Response;

/// The cross-origin permissions of a route.
#[derive(Debug, Clone)]
pub struct Cors {
    /// Whose pages may.
    pub origins: Origins,
    /// Methods beyond GET, HEAD and POST, as a list.
    pub methods: Option<HeaderValue>,
    /// Fields that requests may have, as a list; the requested ones if absent.
    pub headers: Option<HeaderValue>,
    /// Fields of responses that pages may see, as a list.
    pub expose: Option<HeaderValue>,
    /// Requests may carry cookies and passwords.
    pub credentials: bool,
    /// For how long browsers may remember all this, in seconds.
    pub max_age: Option<u64>,
}

/// Whose pages may read responses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origins {
    /// Anybody's.
    Any,
    /// Those of these origins.
    Only(Vec<OriginPattern>),
}

/// An origin, or all those below a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OriginPattern {
    /// Such as `https://example.org:8443`.
    Exact(String),
    /// `https://*.example.org`: the scheme with `://`, and the name with its dot and, if it has one, its port.
    Below(String, String),
}

impl OriginPattern {
    /// Parses an origin, in which `*.` may stand for one label or more; `None` if the text is not an origin.
    pub fn parse(text: &str) -> Option<Self> {
        let (scheme, name) = text.split_once("://")?;
        if scheme.is_empty() || name.is_empty() || name.contains('/') {
            return None;
        }
        match name.strip_prefix('*') {
            Some(end) if end.len() > 1 && end.starts_with('.') && !end.contains('*') => {
                Some(Self::Below(format!("{scheme}://"), end.to_owned()))
            }
            _ if name.contains('*') => None,
            _ => Some(Self::Exact(text.to_owned())),
        }
    }

    fn matches(&self, origin: &[u8]) -> bool {
        match self {
            Self::Exact(text) => text.as_bytes() == origin,
            Self::Below(scheme, end) => {
                let name = origin.strip_prefix(scheme.as_bytes());
                let labels = name.and_then(|it| it.strip_suffix(end.as_bytes()));
                let is_label = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
                labels.is_some_and(|it| !it.is_empty() && it.iter().all(is_label))
            }
        }
    }
}

/// Answers preflight requests, and allows origins to read the responses of the inner action.
pub(super) struct CorsLayer {
    cors: Arc<Cors>,
    inner: Rc<dyn Action>,
}

impl CorsLayer {
    pub(super) fn new(cors: Arc<Cors>, inner: Rc<dyn Action>) -> Self {
        Self { cors, inner }
    }

    /// The origin that the response allows; `None` for an origin that may not read it.
    fn allowed(&self, origin: Option<&[u8]>) -> Option<HeaderValue> {
        match &self.cors.origins {
            Origins::Any => Some(HeaderValue::from_static("*")),
            Origins::Only(origins) => {
                let origin = origin?;
                let is_allowed = origins.iter().any(|it| it.matches(origin));
                HeaderValue::from_bytes(origin).ok().filter(|_| is_allowed)
            }
        }
    }

    /// The answer to a question that a browser asks before the request itself.
    fn preflight(&self, request: &Request<'_>, allowed: Option<HeaderValue>) -> Response {
        let mut response = Response::new(StatusCode::NO_CONTENT);
        let fields = response.fields_mut();
        if allowed.is_some() {
            let requested = request
                .header("access-control-request-headers")
                .and_then(|value| HeaderValue::from_bytes(value).ok());
            let values = [
                (ACCESS_CONTROL_ALLOW_METHODS, self.cors.methods.clone()),
                (
                    ACCESS_CONTROL_ALLOW_HEADERS,
                    self.cors.headers.clone().or(requested),
                ),
                (
                    ACCESS_CONTROL_MAX_AGE,
                    self.cors.max_age.map(HeaderValue::from),
                ),
            ];
            for (name, value) in values {
                if let Some(value) = value {
                    fields.insert(name, value);
                }
            }
        }
        if self.cors.headers.is_none() {
            fields.append(
                VARY,
                HeaderValue::from_static("access-control-request-headers"),
            );
        }
        allow(&self.cors, response, allowed)
    }
}

/// Says in `response` that the origin may read it.
fn allow(cors: &Cors, mut response: Response, allowed: Option<HeaderValue>) -> Response {
    let fields = response.fields_mut();
    if cors.origins != Origins::Any {
        // Caches must not give one origin what was allowed to another.
        fields.append(VARY, HeaderValue::from_static("origin"));
    }
    if let Some(allowed) = allowed {
        fields.insert(ACCESS_CONTROL_ALLOW_ORIGIN, allowed);
        if cors.credentials {
            fields.insert(
                ACCESS_CONTROL_ALLOW_CREDENTIALS,
                HeaderValue::from_static("true"),
            );
        }
    }
    response
}

impl Action for CorsLayer {
    fn handle(&self, request: &Request<'_>) -> Answer {
        let origin = request.header(ORIGIN.as_str());
        let allowed = self.allowed(origin);
        let is_preflight = request.method == "OPTIONS"
            && origin.is_some()
            && request.header("access-control-request-method").is_some();
        if is_preflight {
            return Answer::now(self.preflight(request, allowed));
        }
        let cors = Arc::clone(&self.cors);
        self.inner.handle(request).map(move |mut response| {
            if let Some(expose) = &cors.expose
                && allowed.is_some()
            {
                let fields = response.fields_mut();
                fields.insert(ACCESS_CONTROL_EXPOSE_HEADERS, expose.clone());
            }
            allow(&cors, response, allowed)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_labels() {
        let matches = |pattern: &str, origin: &str| {
            let pattern = OriginPattern::parse(pattern).unwrap();
            pattern.matches(origin.as_bytes())
        };
        assert!(matches("https://*.a.test", "https://b.a.test"));
        assert!(matches("https://*.a.test:8443", "https://c.b.a.test:8443"));
        for other in [
            "https://a.test",
            "https://.a.test",
            "http://b.a.test",
            "https://ba.test",
            "https://b.a.test:8443",
            "https://evil.test/.a.test",
            "https://evil.test:1.a.test",
            "https://b@c.a.test",
            "null",
        ] {
            assert!(!matches("https://*.a.test", other), "{other}");
        }
        assert!(matches("https://a.test", "https://a.test"));
        assert!(!matches("https://a.test", "https://b.a.test"));
        for wrong in [
            "https://*",
            "https://*.",
            "https://a.*",
            "https://*.*.a",
            "a.test",
            "https://a/b",
            "*",
        ] {
            assert_eq!(OriginPattern::parse(wrong), None, "{wrong}");
        }
    }
}
