//! Pages of the admin port: one document each, which loads nothing from elsewhere.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use http::StatusCode;
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue, LOCATION,
    REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use ring::digest::{SHA256, digest};

use crate::message::request::Request;
use crate::message::response::{Response, ResponseBody};

/// The style sheet and the script of a page, and the policy that permits a browser these two alone.
#[derive(Debug)]
pub struct AdminPage {
    style: String,
    script: &'static str,
    policy: HeaderValue,
}

impl AdminPage {
    /// - `style`: content of the page's `style` element.
    /// - `script`: content of its `script` element.
    pub fn new(style: String, script: &'static str) -> Self {
        let hash = |text: &str| {
            let digest = digest(&SHA256, text.as_bytes());
            format!("'sha256-{}'", BASE64_STANDARD.encode(digest))
        };
        // W3C Content Security Policy, level 3.
        let policy = format!(
            "default-src 'none'; connect-src 'self'; style-src {}; script-src {}; base-uri 'none'; \
             form-action 'none'; frame-ancestors 'none'",
            hash(&style),
            hash(script)
        );
        Self {
            policy: HeaderValue::from_str(&policy).expect("hashes are written in base64"),
            style,
            script,
        }
    }

    /// The content of the page's `style` element.
    pub fn style(&self) -> &str {
        &self.style
    }

    /// The content of the page's `script` element.
    pub const fn script(&self) -> &'static str {
        self.script
    }

    /// The page.
    pub fn response(&self, html: Bytes) -> Response {
        let fields: [(HeaderName, HeaderValue); 5] = [
            (
                CONTENT_TYPE,
                HeaderValue::from_static("text/html; charset=utf-8"),
            ),
            (CONTENT_SECURITY_POLICY, self.policy.clone()),
            (CACHE_CONTROL, HeaderValue::from_static("no-store")),
            (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
            (REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
        ];
        let response = Response::new(StatusCode::OK).with_body(ResponseBody::Bytes(html));
        fields
            .into_iter()
            .fold(response, |response, (name, value)| {
                response.with_field(name, value)
            })
    }

    /// Redirects a request without the slash at its end, so that relative links of the page work.
    pub fn redirect(request: &Request<'_>) -> Option<Response> {
        let place = HeaderValue::from_str(&format!("{}/", request.path)).ok()?;
        Some(Response::new(StatusCode::PERMANENT_REDIRECT).with_field(LOCATION, place))
    }
}
