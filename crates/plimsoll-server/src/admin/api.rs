//! What the actions of a configuration answer on its admin port, by any method.
//!
//! Such an API may change what is served, and a browser on the same machine reaches the loopback for whatever page it
//! shows. Without a token, requests of other pages are therefore refused.

use std::cell::RefCell;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use http::StatusCode;

use crate::action::Answer;
use crate::request::Request;
use crate::response::Response;

/// An API of one action.
#[derive(Clone)]
pub struct AdminApi {
    /// It is asked for this path and all below it; begins with a slash, and ends with none.
    root: String,
    /// What is answered to everybody, since there is nothing in it that needs a token: paths below the root.
    open: &'static [&'static str],
    answer: Arc<AnswerApi>,
}

/// Answers requests of an API, by what their path has behind its root.
pub type AnswerApi = dyn Fn(&Request<'_>, &str) -> Answer + Send + Sync;

/// The APIs of one configuration, as its actions bring them.
#[derive(Debug, Default)]
pub struct AdminApis(RefCell<Vec<AdminApi>>);

impl fmt::Debug for AdminApi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AdminApi").field(&self.root).finish()
    }
}

impl AdminApis {
    /// Adds one.
    ///
    /// - `root`: such as `/mock`; with a number behind it, from 2, if another action took it before.
    /// - `open`: paths behind the root that GET is answered for without the token.
    pub fn add(&self, root: &str, open: &'static [&'static str], answer: Arc<AnswerApi>) {
        let mut apis = self.0.borrow_mut();
        let is_taken = |wanted: &str| apis.iter().any(|api| api.root == wanted);
        let numbered = |number| match number {
            1 => root.to_owned(),
            _ => format!("{root}{number}"),
        };
        // One more than there are, so one is free.
        let root = (1..=apis.len() + 1)
            .map(numbered)
            .find(|root| !is_taken(root))
            .unwrap_or_default();
        apis.push(AdminApi { root, open, answer });
    }

    pub(crate) fn into_all(self) -> Vec<AdminApi> {
        self.0.into_inner()
    }
}

impl AdminApi {
    pub(crate) fn root(&self) -> &str {
        &self.root
    }

    /// What a path has behind the root; nothing if it lies elsewhere.
    pub(crate) fn rest<'p>(&self, path: &'p str) -> Option<&'p str> {
        let rest = path.strip_prefix(&self.root)?;
        (rest.is_empty() || rest.starts_with('/')).then_some(rest)
    }

    /// Whether everybody may have what lies there.
    pub(crate) fn is_open(&self, method: &str, rest: &str) -> bool {
        ["GET", "HEAD"].contains(&method) && self.open.contains(&rest)
    }

    /// - `has_token`: whether the request has proved that it may.
    pub(crate) fn answer(&self, request: &Request<'_>, rest: &str, has_token: bool) -> Answer {
        if !has_token && let Some(reason) = foreign(request) {
            let text = format!("{reason}; give [admin] a `token` to be asked by other names\n");
            return Answer::now(Response::text(StatusCode::FORBIDDEN, text));
        }
        (self.answer)(request, rest)
    }
}

/// Why a request may be that of a page that has no business here, if it may be.
fn foreign(request: &Request<'_>) -> Option<&'static str> {
    let host = request.host();
    let is_address = host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok();
    // A name may be made to mean the loopback by whoever owns it.
    if !is_address && !host.eq_ignore_ascii_case("localhost") {
        return Some("only an address or localhost is answered");
    }
    let is_own = |origin: &[u8]| {
        let origin = std::str::from_utf8(origin).unwrap_or_default();
        let authority = origin.split_once("://").map(|(_, authority)| authority);
        authority.is_some_and(|it| it.eq_ignore_ascii_case(request.authority))
    };
    match request.header("origin") {
        Some(origin) if !is_own(origin) => Some("pages of other origins are not answered"),
        _ => None,
    }
}
