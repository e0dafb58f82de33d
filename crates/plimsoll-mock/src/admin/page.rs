//! The page of a mock: its requests, why each was answered as it was, and rules to change and try.
//!
//! One document without anything from elsewhere. It asks the admin API like everybody, so what is secret is not in it.

use std::sync::LazyLock;

use bytes::Bytes;
use plimsoll_model::look::STYLE as LOOK;
use plimsoll_server::{AdminPage, Answer, Request};

const HTML: &str = include_str!("page/page.html");
const STYLE: &str = include_str!("page/page.css");
const SCRIPT: &str = include_str!("page/page.js");

/// Where it is, below the root of the API; without the slash at its end browsers are sent there.
pub(crate) const PATHS: &[&str] = &["", "/"];

static PAGE: LazyLock<(AdminPage, Bytes)> = LazyLock::new(|| {
    let page = AdminPage::new(format!("{LOOK}{STYLE}"), SCRIPT);
    let html = HTML
        .replace("{{STYLE}}", page.style())
        .replace("{{SCRIPT}}", page.script());
    (page, Bytes::from(html))
});

/// The answer to a request for it; nothing for other paths.
pub(crate) fn answer(request: &Request<'_>, rest: &str) -> Option<Answer> {
    if !["GET", "HEAD"].contains(&request.method) || !PATHS.contains(&rest) {
        return None;
    }
    if rest.is_empty() {
        return AdminPage::redirect(request).map(Answer::now);
    }
    let (page, html) = &*PAGE;
    Some(Answer::now(page.response(html.clone())))
}
