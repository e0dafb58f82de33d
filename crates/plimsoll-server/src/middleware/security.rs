//! The header fields that browsers are kept safe by, as the OWASP Secure Headers Project lists them and Mozilla's HTTP
//! Observatory asks for them.

use std::rc::Rc;
use std::sync::Arc;

use http::HeaderMap;
use http::header::{HeaderName, HeaderValue};

use crate::action::{Action, Answer};
use crate::message::request::{Request, Scheme};

/// Fields that responses have unless they say otherwise themselves.
#[derive(Debug, Clone)]
pub struct SecurityHeaders(Vec<Field>);

#[derive(Debug, Clone)]
struct Field {
    name: HeaderName,
    value: HeaderValue,
    over: Over,
}

/// By which connections a field is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Over {
    Any,
    /// Only where the content cannot have been read or changed on its way.
    Tls,
}

/// Pages load only what is of their own origin, and are shown in no frame.
const POLICY: &str = "default-src 'self'; base-uri 'self'; form-action 'self'; frame-ancestors 'none'; object-src 'none'";

/// Features of a device that pages may use; all are off.
const PERMISSIONS: &str = "accelerometer=(), autoplay=(), camera=(), display-capture=(), fullscreen=(self), geolocation=(), \
                           gyroscope=(), magnetometer=(), microphone=(), midi=(), payment=(), usb=()";

/// Two years, as browsers' own lists of such hosts want it; one (31536000) is the least for these.
const TRANSPORT: &str = "max-age=63072000; includeSubDomains";

/// Names and values, and whether they are for TLS alone (RFC 6797, section 7.2, forbids the first elsewhere).
const PRESET: [(&str, &str, Over); 10] = [
    ("strict-transport-security", TRANSPORT, Over::Tls),
    ("content-security-policy", POLICY, Over::Any),
    ("x-content-type-options", "nosniff", Over::Any),
    ("x-frame-options", "DENY", Over::Any),
    (
        "referrer-policy",
        "strict-origin-when-cross-origin",
        Over::Any,
    ),
    ("permissions-policy", PERMISSIONS, Over::Any),
    ("cross-origin-opener-policy", "same-origin", Over::Any),
    ("cross-origin-embedder-policy", "require-corp", Over::Any),
    ("cross-origin-resource-policy", "same-origin", Over::Any),
    ("x-permitted-cross-domain-policies", "none", Over::Any),
];

impl Default for SecurityHeaders {
    fn default() -> Self {
        let fields = PRESET.map(|(name, value, over)| Field {
            name: HeaderName::from_static(name),
            value: HeaderValue::from_static(value),
            over,
        });
        Self(fields.into())
    }
}

impl SecurityHeaders {
    /// The names of all fields.
    pub fn names() -> impl Iterator<Item = &'static str> {
        PRESET.into_iter().map(|(name, _, _)| name)
    }

    /// The same with another value, or without the field.
    ///
    /// - `name`: one of [`names`](Self::names); others change nothing.
    #[must_use]
    pub fn with(mut self, name: &str, value: Option<HeaderValue>) -> Self {
        match value {
            None => self.0.retain(|field| field.name.as_str() != name),
            Some(value) => {
                for field in &mut self.0 {
                    if field.name.as_str() == name {
                        field.value = value.clone();
                    }
                }
            }
        }
        self
    }

    /// Adds what `fields` do not have.
    fn apply(&self, fields: &mut HeaderMap, scheme: Scheme) {
        for field in &self.0 {
            if field.over == Over::Any || scheme == Scheme::Https {
                let entry = fields.entry(field.name.clone());
                entry.or_insert_with(|| field.value.clone());
            }
        }
    }
}

/// Adds them to responses.
pub(super) struct Secured {
    headers: Arc<SecurityHeaders>,
    inner: Rc<dyn Action>,
}

impl Secured {
    pub(super) fn new(headers: Arc<SecurityHeaders>, inner: Rc<dyn Action>) -> Self {
        Self { headers, inner }
    }
}

impl Action for Secured {
    fn handle(&self, request: &Request<'_>) -> Answer {
        let (headers, scheme) = (Arc::clone(&self.headers), request.scheme);
        self.inner.handle(request).map(move |mut response| {
            headers.apply(response.fields_mut(), scheme);
            response
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_response_says_itself_stays_and_the_rest_is_overridable() {
        let mine = HeaderValue::from_static("DENY, mine");
        let headers = SecurityHeaders::default()
            .with(
                "referrer-policy",
                Some(HeaderValue::from_static("no-referrer")),
            )
            .with("permissions-policy", None);
        let mut fields = HeaderMap::new();
        fields.insert("x-frame-options", mine.clone());
        headers.apply(&mut fields, Scheme::Http);
        assert_eq!(fields["x-frame-options"], mine);
        assert_eq!(fields["referrer-policy"], "no-referrer");
        assert!(!fields.contains_key("permissions-policy"));
        assert!(!fields.contains_key("strict-transport-security"));
        headers.apply(&mut fields, Scheme::Https);
        assert_eq!(fields["strict-transport-security"], TRANSPORT);
        assert_eq!(fields.len(), PRESET.len() - 1);
    }
}
