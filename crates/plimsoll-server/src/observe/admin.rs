//! The admin port: metrics, health and readiness of a running server.
//!
//! A browser reaches the loopback for any page that it shows, and the owner of a name can make it resolve to the
//! loopback (DNS rebinding). Without a token, requests are therefore rejected if their `host` is a name other than
//! `localhost` or their `origin` is another one.

mod api;

mod changing;

mod configuration;

mod page;

use std::fmt;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderValue, WWW_AUTHENTICATE};
use http::{HeaderName, StatusCode};
use plimsoll_model::{MetricsText, Secret};

use crate::action::{Action, Answer, Outcome};
use crate::counters::{Counters, RouteTag};
use crate::message::request::Request;
use crate::message::response::{Response, ResponseBody};
use crate::observe::audit::AuditLog;
use crate::observe::metrics::metrics;

pub use self::api::{AdminApi, AdminApis, AnswerApi};
pub use self::changing::{ChangeQueue, ChangeReply, ChangeRequest, ChangeRequests, WantedChange};
pub(crate) use self::configuration::ServedConfig;
pub use self::page::AdminPage;

/// Answers `/metrics` (Prometheus, text format 0.0.4), `/healthz`, `/readyz` and what others bring.
#[derive(Debug)]
pub struct Admin {
    counters: Arc<Counters>,
    token: Option<Secret>,
    paths: Vec<AdminPath>,
    apis: Vec<AdminApi>,
    audit: AuditLog,
    tag: Rc<RouteTag>,
    /// The prefix of other crates' metrics, if it is not the usual one.
    prefix: Option<String>,
    /// Requests of web pages are rejected.
    is_guarded: bool,
}

/// A path of the admin port that another crate answers, to clients that have the token.
#[derive(Clone)]
pub struct AdminPath {
    /// The path.
    pub path: &'static str,
    /// The method it is called with.
    pub method: AdminMethod,
    /// Answers a request for it.
    pub answer: Arc<AnswerAdmin>,
}

/// The method of a path of the admin port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AdminMethod {
    /// GET or HEAD: nothing changes.
    Get,
    /// POST: something is done. Pages of browsers are turned away, since any page can have its reader's browser send it.
    Post,
}

/// Answers requests of one path of the admin port.
pub type AnswerAdmin = dyn Fn(&Request<'_>) -> Answer + Send + Sync;

impl AdminMethod {
    /// The refusal of a request with another method, or one that is not allowed.
    fn refusal(self, request: &Request<'_>) -> Option<Response> {
        let (methods, allowed): (&[&str], _) = match self {
            Self::Get => (&["GET", "HEAD"], "GET, HEAD"),
            Self::Post => (&["POST"], "POST"),
        };
        if !methods.contains(&request.method) {
            let text = format!("only {allowed} is answered\n");
            let refusal = Response::text(StatusCode::METHOD_NOT_ALLOWED, text);
            return Some(refusal.with_field(ALLOW, HeaderValue::from_static(allowed)));
        }
        let is_by_page = ["origin", "sec-fetch-site"]
            .iter()
            .any(|field| request.header(field).is_some());
        (self == Self::Post && is_by_page).then(|| {
            let text = "this is not for pages in browsers\n";
            Response::text(StatusCode::FORBIDDEN, text)
        })
    }
}

impl fmt::Debug for AdminPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AdminPath").field(&self.path).finish()
    }
}

impl Admin {
    /// Shows `counters`.
    ///
    /// - `token`: what `authorization: Bearer` must give; absent for anybody.
    pub fn new(counters: Arc<Counters>, token: Option<Secret>) -> Self {
        Self {
            tag: Rc::new(counters.route("admin")),
            counters,
            is_guarded: token.is_none(),
            token,
            paths: Vec::new(),
            apis: Vec::new(),
            audit: AuditLog::default(),
            prefix: None,
        }
    }

    /// Shows metrics, health and readiness alone, which may be read where the rest must not be.
    ///
    /// - `prefix`: what the names of figures begin with that other crates count; absent for the usual one.
    /// - `is_local`: it listens on the loopback, where other names than `localhost` are rejected without a token.
    ///   Elsewhere Prometheus may use any name.
    pub fn metrics(
        counters: Arc<Counters>,
        token: Option<Secret>,
        prefix: Option<String>,
        is_local: bool,
    ) -> Self {
        Self {
            tag: Rc::new(counters.route("metrics")),
            counters,
            is_guarded: is_local && token.is_none(),
            token,
            paths: Vec::new(),
            apis: Vec::new(),
            audit: AuditLog::default(),
            prefix,
        }
    }

    /// The same with more paths.
    #[must_use]
    pub fn with_paths(mut self, paths: &[AdminPath]) -> Self {
        self.paths.extend_from_slice(paths);
        self
    }

    /// The same with what actions answer.
    #[must_use]
    pub fn with_apis(mut self, apis: &[AdminApi]) -> Self {
        self.apis.extend_from_slice(apis);
        self
    }

    /// The same with a line of this log for each change by [`AdminPath`], and for each request that is not permitted to change
    /// anything. APIs write their own.
    #[must_use]
    pub fn with_audit(mut self, audit: AuditLog) -> Self {
        self.audit = audit;
        self
    }

    /// A request that is not permitted.
    fn rejected(&self, request: &Request<'_>, response: Response) -> Answer {
        if changes(request.method) {
            self.audit.rejected(request, response.status());
        }
        Answer::now(response)
    }

    fn is_allowed(&self, request: &Request<'_>) -> bool {
        let Some(token) = &self.token else {
            return true;
        };
        let token = token.expose().as_bytes();
        let given = request.header("authorization").unwrap_or_default();
        if let Some(given) = given.strip_prefix(b"Basic ") {
            // Browsers send these by themselves, whichever page a request comes from.
            return is_own_page(request) && is_equal(&password(given), token);
        }
        is_equal(given.strip_prefix(b"Bearer ").unwrap_or_default(), token)
    }
}

/// The password of Basic authentication (RFC 7617); empty if there is none.
fn password(given: &[u8]) -> Vec<u8> {
    let decoded = BASE64_STANDARD.decode(given).unwrap_or_default();
    let colon = decoded.iter().position(|byte| *byte == b':');
    colon.map_or_else(Vec::new, |colon| decoded[colon + 1..].to_vec())
}

/// Whether a request comes from a page of the admin port itself, or from none.
fn is_own_page(request: &Request<'_>) -> bool {
    let site = request.header("sec-fetch-site");
    request
        .header("origin")
        .is_none_or(|it| is_own_origin(request, it))
        && site.is_none_or(|it| [&b"same-origin"[..], b"none"].contains(&it))
}

/// Asks for the token: programs get a challenge for `Bearer`, browsers that open a page one that they can respond to.
fn challenge(request: &Request<'_>) -> Response {
    let accept = request.header("accept").unwrap_or_default();
    // Pages, and the events that keep one current.
    let is_page = [&b"text/html"[..], b"text/event-stream"]
        .iter()
        .any(|kind| accept.windows(kind.len()).any(|it| it == *kind));
    let scheme = if is_page {
        "Basic realm=\"plimsoll: any user, the token as password\""
    } else {
        "Bearer"
    };
    Response::text(StatusCode::UNAUTHORIZED, "a token is needed\n")
        .with_field(WWW_AUTHENTICATE, HeaderValue::from_static(scheme))
}

/// Takes as long wherever the first difference is.
fn is_equal(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len()
        && one
            .iter()
            .zip(other)
            .fold(0, |difference, (one, other)| difference | (one ^ other))
            == 0
}

impl Action for Admin {
    fn handle(&self, request: &Request<'_>) -> Answer {
        request.answered_by(&self.tag);
        let api = self
            .apis
            .iter()
            .find_map(|api| Some((api, api.rest(request.path)?)));
        let is_open = api.is_some_and(|(api, rest)| api.is_open(request.method, rest));
        if !is_open && !self.is_allowed(request) {
            return self.rejected(request, challenge(request));
        }
        if self.is_guarded
            && let Some(reason) = foreign(request)
        {
            let text = format!("{reason}; set a `token` to allow others\n");
            return self.rejected(request, Response::text(StatusCode::FORBIDDEN, text));
        }
        if let Some((api, rest)) = api {
            return api.answer(request, rest);
        }
        let path = self.paths.iter().find(|it| it.path == request.path);
        let method = path.map_or(AdminMethod::Get, |path| path.method);
        if let Some(refusal) = method.refusal(request) {
            return self.rejected(request, refusal);
        }
        if let Some(path) = path {
            let answer = (path.answer)(request);
            if let (AdminMethod::Post, Answer::Now(Outcome::Respond(response))) =
                (path.method, &answer)
            {
                self.audit.handled(request, &[], response.status());
            }
            return answer;
        }
        let (status, kind, text) = match request.path {
            "/metrics" => (
                StatusCode::OK,
                MetricsText::MEDIA_TYPE,
                metrics(&self.counters, self.prefix.as_deref()),
            ),
            "/readyz" if self.counters.is_draining() => (
                StatusCode::SERVICE_UNAVAILABLE,
                JSON,
                "{\"status\":\"draining\"}\n".to_owned(),
            ),
            "/healthz" | "/readyz" => (StatusCode::OK, JSON, "{\"status\":\"ok\"}\n".to_owned()),
            _ => {
                let apis = self.apis.iter().map(AdminApi::root);
                let more: String = self
                    .paths
                    .iter()
                    .map(|it| it.path)
                    .chain(apis)
                    .fold(String::new(), |more, path| more + ", " + path);
                let text = format!("there are /metrics, /healthz, /readyz{more}\n");
                return Answer::now(Response::text(StatusCode::NOT_FOUND, text));
            }
        };
        let field = |response: Response, name: HeaderName, value| {
            response.with_field(name, HeaderValue::from_static(value))
        };
        let response = Response::new(status).with_body(ResponseBody::Bytes(Bytes::from(text)));
        let response = field(response, CONTENT_TYPE, kind);
        Answer::now(field(response, CACHE_CONTROL, "no-store"))
    }
}

/// Whether a request of that method may change anything (RFC 9110, section 9.2.1).
fn changes(method: &str) -> bool {
    !["GET", "HEAD", "OPTIONS", "TRACE"].contains(&method)
}

/// Why a request may be that of a page that has no business here, if it may be.
fn foreign(request: &Request<'_>) -> Option<&'static str> {
    let host = request.host();
    let is_address = host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok();
    // The owner of a name can make it resolve to the loopback.
    if !is_address && !host.eq_ignore_ascii_case("localhost") {
        return Some("only an address or localhost is answered");
    }
    match request.header("origin") {
        Some(origin) if !is_own_origin(request, origin) => {
            Some("pages of other origins are not answered")
        }
        _ => None,
    }
}

/// Whether an origin is that of the request's own host.
fn is_own_origin(request: &Request<'_>, origin: &[u8]) -> bool {
    let origin = std::str::from_utf8(origin).unwrap_or_default();
    let authority = origin.split_once("://").map(|(_, authority)| authority);
    authority.is_some_and(|it| it.eq_ignore_ascii_case(request.authority))
}

const JSON: &str = "application/json";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_password_of_basic_authentication_is_what_follows_the_colon() {
        let encoded = |text: &str| password(BASE64_STANDARD.encode(text).as_bytes());
        assert_eq!(encoded("me:a:b"), b"a:b");
        assert_eq!(encoded("me"), b"");
        assert_eq!(password(b"no base64!"), b"");
    }

    #[test]
    fn tokens_are_equal_only_as_a_whole() {
        assert!(is_equal(b"abc", b"abc"));
        for other in [&b"abd"[..], b"ab", b"abcd", b""] {
            assert!(!is_equal(b"abc", other));
        }
    }
}
