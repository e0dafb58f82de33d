//! What operators and their machines ask a running server: metrics, health, readiness.

mod api;

use std::fmt::{self, Write};
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue, WWW_AUTHENTICATE};
use http::{HeaderName, StatusCode};
use plimsoll_model::Secret;
use plimsoll_wire::h1::RequestError;

use crate::action::{Action, Answer};
use crate::counters::{Counters, Cut, RouteTag, Snapshot};
use crate::request::Request;
use crate::response::{Response, ResponseBody};

pub use self::api::{AdminApi, AdminApis, AnswerApi};

/// Answers `/metrics` (Prometheus, text format 0.0.4), `/healthz`, `/readyz` and what others bring.
#[derive(Debug)]
pub struct Admin {
    counters: Arc<Counters>,
    token: Option<Secret>,
    paths: Vec<AdminPath>,
    apis: Vec<AdminApi>,
    tag: Rc<RouteTag>,
}

/// A path of the admin port that another crate answers, to GET and whoever has the token.
#[derive(Clone)]
pub struct AdminPath {
    /// The path.
    pub path: &'static str,
    /// Answers a request for it.
    pub answer: Arc<AnswerAdmin>,
}

/// Answers requests of one path of the admin port.
pub type AnswerAdmin = dyn Fn(&Request<'_>) -> Answer + Send + Sync;

impl fmt::Debug for AdminPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AdminPath").field(&self.path).finish()
    }
}

/// The classes of statuses, in the order that they are counted.
const CLASSES: [&str; 6] = ["1xx", "2xx", "3xx", "4xx", "5xx", "other"];

/// The versions of HTTP, in the order that they are counted.
const VERSIONS: [&str; 4] = ["1.0", "1.1", "2", "3"];

impl Admin {
    /// Shows `counters`.
    ///
    /// - `token`: what `authorization: Bearer` must give; absent for anybody.
    pub fn new(counters: Arc<Counters>, token: Option<Secret>) -> Self {
        Self {
            tag: Rc::new(counters.route("admin")),
            counters,
            token,
            paths: Vec::new(),
            apis: Vec::new(),
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

    fn is_allowed(&self, request: &Request<'_>) -> bool {
        let Some(token) = &self.token else {
            return true;
        };
        let given = request
            .header("authorization")
            .and_then(|value| value.strip_prefix(b"Bearer "))
            .unwrap_or_default();
        is_equal(given, token.expose().as_bytes())
    }
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
            return Answer::now(
                Response::text(StatusCode::UNAUTHORIZED, "a token is needed\n")
                    .with_field(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer")),
            );
        }
        if let Some((api, rest)) = api {
            return api.answer(request, rest, self.token.is_some());
        }
        if !["GET", "HEAD"].contains(&request.method) {
            return Answer::now(Response::text(
                StatusCode::METHOD_NOT_ALLOWED,
                "only GET is answered\n",
            ));
        }
        if let Some(path) = self.paths.iter().find(|it| it.path == request.path) {
            return (path.answer)(request);
        }
        let (status, kind, text) = match request.path {
            "/metrics" => (
                StatusCode::OK,
                "text/plain; version=0.0.4; charset=utf-8",
                metrics(&self.counters.snapshot()),
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

const JSON: &str = "application/json";

/// The figures as Prometheus reads them; labels have as many values as the file has routes.
fn metrics(snapshot: &Snapshot) -> String {
    let mut text = String::new();
    let mut family = |name: &str, kind: &str, help: &str, samples: &[(String, u64)]| {
        writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}")
            .expect("a String takes whatever is written");
        for (labels, value) in samples {
            writeln!(text, "{name}{labels} {value}").expect("a String takes whatever is written");
        }
    };
    let alone = |value| [(String::new(), value)];
    family(
        "plimsoll_connections_total",
        "counter",
        "Connections accepted.",
        &alone(snapshot.accepted),
    );
    family(
        "plimsoll_connections_open",
        "gauge",
        "Connections open now.",
        &alone(snapshot.open),
    );
    let requests = VERSIONS
        .iter()
        .zip(&snapshot.requests)
        .flat_map(|(version, counts)| {
            CLASSES.iter().zip(counts).map(move |(class, count)| {
                (
                    format!("{{version=\"{version}\",status=\"{class}\"}}"),
                    *count,
                )
            })
        });
    family(
        "plimsoll_requests_total",
        "counter",
        "Requests answered, by version of HTTP and class of status.",
        &requests.collect::<Vec<_>>(),
    );
    let routes = snapshot.routes.iter().flat_map(|(route, counts)| {
        CLASSES
            .iter()
            .zip(counts)
            .filter_map(move |(class, count)| {
                let labels = format!("{{route=\"{}\",status=\"{class}\"}}", escaped(route));
                (*count > 0).then_some((labels, *count))
            })
    });
    family(
        "plimsoll_route_requests_total",
        "counter",
        "Requests answered, by route and class of status.",
        &routes.collect::<Vec<_>>(),
    );
    let by_reason = |names: Vec<&'static str>, counts: &[u64]| -> Vec<(String, u64)> {
        let named = names.into_iter().zip(counts);
        named
            .map(|(name, count)| (format!("{{reason=\"{name}\"}}"), *count))
            .collect()
    };
    family(
        "plimsoll_refused_requests_total",
        "counter",
        "Requests refused while they were read, by reason.",
        &by_reason(
            RequestError::ALL.map(RequestError::name).into(),
            &snapshot.refused,
        ),
    );
    family(
        "plimsoll_cut_connections_total",
        "counter",
        "Connections cut or turned away, by reason.",
        &by_reason(Cut::ALL.map(Cut::name).into(), &snapshot.cut),
    );
    for (name, help, resets) in [
        (
            "plimsoll_http2_resets_total",
            "Streams reset by clients, and reset for their mistakes.",
            snapshot.resets,
        ),
        (
            "plimsoll_http3_resets_total",
            "Streams of HTTP/3 reset by clients, and reset for their mistakes.",
            snapshot.http3_resets,
        ),
    ] {
        let sides = ["received", "provoked"].into_iter().zip(resets);
        let resets = sides.map(|(side, count)| (format!("{{side=\"{side}\"}}"), count));
        family(name, "counter", help, &resets.collect::<Vec<_>>());
    }
    family(
        "plimsoll_log_lines_dropped_total",
        "counter",
        "Lines of the access log that found no room or could not be written.",
        &alone(snapshot.log_dropped),
    );
    family(
        "plimsoll_panics_total",
        "counter",
        "Connections that ended in a mistake of the server.",
        &alone(snapshot.panics),
    );
    text
}

/// A label's value (Prometheus, text format).
fn escaped(value: &str) -> String {
    value
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_equal_only_as_a_whole() {
        assert!(is_equal(b"abc", b"abc"));
        for other in [&b"abd"[..], b"ab", b"abcd", b""] {
            assert!(!is_equal(b"abc", other));
        }
    }

    #[test]
    fn labels_are_escaped() {
        let snapshot = Snapshot {
            routes: vec![("a\"b\\c\nd".to_owned(), [0, 3, 0, 0, 0, 0])],
            ..Snapshot::default()
        };
        let expected =
            "plimsoll_route_requests_total{route=\"a\\\"b\\\\c\\nd\",status=\"2xx\"} 3\n";
        assert!(metrics(&snapshot).contains(expected));
    }
}
