//! The page of a mock: its requests, why each was answered as it was, and rules to change and try.
//!
//! One document without anything from elsewhere. It asks the admin API like everybody, so what is secret is not in it.

use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::StatusCode;
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue, LOCATION,
    REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use plimsoll_model::look::STYLE as LOOK;
use plimsoll_server::{Answer, Request, Response, ResponseBody};
use sha2::{Digest, Sha256};

const HTML: &str = include_str!("page/page.html");
const STYLE: &str = include_str!("page/page.css");
const SCRIPT: &str = include_str!("page/page.js");

/// Where it is, below the root of the API; without the slash at its end browsers are sent there.
pub(crate) const PATHS: &[&str] = &["", "/"];

/// The page, and what a browser may load and run in it.
struct Page {
    html: Bytes,
    policy: HeaderValue,
}

static PAGE: LazyLock<Page> = LazyLock::new(|| {
    let style = format!("{LOOK}{STYLE}");
    let html = HTML
        .replace("{{STYLE}}", &style)
        .replace("{{SCRIPT}}", SCRIPT);
    let hash = |text: &str| format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text)));
    // Only this style and this script (W3C Content Security Policy, level 3).
    let policy = format!(
        "default-src 'none'; connect-src 'self'; style-src {}; script-src {}; base-uri 'none'; \
         form-action 'none'; frame-ancestors 'none'",
        hash(&style),
        hash(SCRIPT)
    );
    Page {
        html: Bytes::from(html),
        policy: HeaderValue::from_str(&policy).expect("hashes are written in base64"),
    }
});

/// The answer to a request for it; nothing for other paths.
pub(crate) fn answer(request: &Request<'_>, rest: &str) -> Option<Answer> {
    if !["GET", "HEAD"].contains(&request.method) || !PATHS.contains(&rest) {
        return None;
    }
    if rest.is_empty() {
        // What it asks for lies below it.
        let place = HeaderValue::from_str(&format!("{}/", request.path)).ok()?;
        let response = Response::new(StatusCode::PERMANENT_REDIRECT).with_field(LOCATION, place);
        return Some(Answer::now(response));
    }
    let fields: [(HeaderName, HeaderValue); 5] = [
        (
            CONTENT_TYPE,
            HeaderValue::from_static("text/html; charset=utf-8"),
        ),
        (CONTENT_SECURITY_POLICY, PAGE.policy.clone()),
        (CACHE_CONTROL, HeaderValue::from_static("no-store")),
        (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    ];
    let mut response = Response::new(StatusCode::OK);
    for (name, value) in fields {
        response = response.with_field(name, value);
    }
    let body = ResponseBody::Bytes(PAGE.html.clone());
    Some(Answer::now(response.with_body(body)))
}
