//! The answers of the API.

use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue, WWW_AUTHENTICATE};
use plimsoll_server::{Action, Answer, Refusal, Request, Response, ResponseBody};
use plimsoll_wire::http::names_loopback;
use serde::Serialize;
use serde_json::json;
use url::form_urlencoded;

use crate::server::description;
use crate::server::open_targets::{NoFigures, OpenTargets};
use crate::server::stream::{self, IntervalProblem, Streams};
use crate::server::token::BearerToken;
use crate::target_name::{TargetKind, TargetName, TargetNameError};

/// Targets of one request.
const MOST_TARGETS: usize = 16;

/// Answers requests for samples.
pub(super) struct Respond {
    shared: Arc<(OpenTargets, Option<BearerToken>)>,
    streams: Streams,
}

impl Respond {
    pub(super) fn new(shared: Arc<(OpenTargets, Option<BearerToken>)>) -> Self {
        Self {
            shared,
            streams: Streams::default(),
        }
    }

    fn samples(&self, request: &Request<'_>, is_stream: bool) -> Answer {
        let wanted = match Wanted::parse(request.query.unwrap_or_default(), is_stream) {
            Ok(wanted) => wanted,
            Err(detail) => {
                return Answer::now(problem(StatusCode::BAD_REQUEST, &detail.to_string()));
            }
        };
        let (targets, _) = &*self.shared;
        if let Some(other) = wanted.targets.iter().find(|it| !targets.allows(it)) {
            let detail = format!("{other} is not among the allowed targets");
            return Answer::now(problem(StatusCode::FORBIDDEN, &detail));
        }
        if is_stream {
            let shared = Arc::clone(&self.shared);
            return match self.streams.begin(shared, wanted.targets, wanted.every) {
                Some(events) => Answer::now(answer("text/event-stream", events)),
                None => Answer::now(problem(
                    StatusCode::TOO_MANY_REQUESTS,
                    "too many event streams are open",
                )),
            };
        }
        let shared = Arc::clone(&self.shared);
        blocking(move || match shared.0.sample(&wanted.targets) {
            Ok(document) => json_of(StatusCode::OK, &document),
            Err(error @ NoFigures::Missing(_)) => problem(StatusCode::NOT_FOUND, &error.text()),
            Err(error @ NoFigures::TooMany) => {
                problem(StatusCode::TOO_MANY_REQUESTS, &error.text())
            }
        })
    }
}

impl Action for Respond {
    fn handle(&self, request: &Request<'_>) -> Answer {
        let is_head = request.method == "HEAD";
        if request.method != "GET" && !is_head {
            let response = problem(
                StatusCode::METHOD_NOT_ALLOWED,
                "samples are only read: use GET",
            );
            let methods = HeaderValue::from_static("GET, HEAD");
            return Answer::now(response.with_field(ALLOW, methods));
        }
        if request.path == "/openapi.json" {
            return Answer::now(json_of(StatusCode::OK, description::document()));
        }
        match &self.shared.1 {
            Some(token) if !token.is_in(request.header("authorization")) => {
                let detail = "send the token: `authorization: Bearer TOKEN`";
                let challenge = HeaderValue::from_static("Bearer realm=\"plimsoll observe\"");
                let response = problem(StatusCode::UNAUTHORIZED, detail);
                return Answer::now(response.with_field(WWW_AUTHENTICATE, challenge));
            }
            // Without a token it listens on the loopback, which pages of other sites reach by a name of theirs.
            None if !names_loopback(request.authority) => {
                let detail = "without a token it is served under the names of the loopback alone";
                return Answer::now(problem(StatusCode::MISDIRECTED_REQUEST, detail));
            }
            Some(_) | None => {}
        }
        match request.path {
            "/v1/targets" => {
                let shared = Arc::clone(&self.shared);
                blocking(move || json_of(StatusCode::OK, &shared.0.list()))
            }
            "/v1/sample" => self.samples(request, false),
            // There is no end of it, and so no length to announce.
            "/v1/samples" if is_head => {
                Answer::now(answer("text/event-stream", ResponseBody::Empty))
            }
            "/v1/samples" => self.samples(request, true),
            _ => Answer::now(problem(
                StatusCode::NOT_FOUND,
                "there are /v1/targets, /v1/sample, /v1/samples and /openapi.json",
            )),
        }
    }
}

/// Why a request asks for nothing that is known.
#[derive(Debug, thiserror::Error)]
enum WantedProblem {
    #[error(transparent)]
    Name(#[from] TargetNameError),
    #[error(transparent)]
    Interval(#[from] IntervalProblem),
    #[error("there is no parameter `{}`", .0.escape_default())]
    Parameter(String),
    #[error(
        "name 1 to {MOST_TARGETS} targets, such as ?unit=postgresql; kinds are {}",
        TargetKind::ALL.map(TargetKind::name).join(", ")
    )]
    Targets,
}

/// What a request asks for.
#[derive(Debug, PartialEq, Eq)]
struct Wanted {
    targets: Vec<TargetName>,
    every: std::time::Duration,
}

impl Wanted {
    /// - `is_stream`: it may say how often.
    fn parse(query: &str, is_stream: bool) -> Result<Self, WantedProblem> {
        let mut targets = Vec::new();
        let mut every = stream::USUAL;
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            if let Some(kind) = TargetKind::named(&name) {
                targets.push(TargetName::new(kind, &value)?);
            } else if name == "every" && is_stream {
                every = stream::interval(&value)?;
            } else {
                return Err(WantedProblem::Parameter(name.into_owned()));
            }
        }
        if targets.is_empty() || targets.len() > MOST_TARGETS {
            return Err(WantedProblem::Targets);
        }
        Ok(Self { targets, every })
    }
}

/// Runs what may block apart from the worker.
fn blocking(work: impl FnOnce() -> Made + Send + 'static) -> Answer {
    Answer::later(async move {
        let made = tokio::task::spawn_blocking(work).await;
        match made {
            Ok(made) => made.into(),
            Err(_) => problem(StatusCode::INTERNAL_SERVER_ERROR, "sampling failed").into(),
        }
    })
}

/// A response that can be made on any thread.
#[derive(Debug)]
pub(super) struct Made {
    status: StatusCode,
    kind: &'static str,
    fields: Vec<(HeaderName, HeaderValue)>,
    content: Bytes,
}

impl Made {
    fn with_field(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.fields.push((name, value));
        self
    }
}

impl From<Made> for Response {
    fn from(made: Made) -> Self {
        let response =
            answer(made.kind, ResponseBody::Bytes(made.content)).with_status(made.status);
        let fields = made.fields.into_iter();
        fields.fold(response, |response, (name, value)| {
            response.with_field(name, value)
        })
    }
}

fn answer(kind: &'static str, content: ResponseBody) -> Response {
    Response::new(StatusCode::OK)
        .with_field(CONTENT_TYPE, HeaderValue::from_static(kind))
        .with_field(CACHE_CONTROL, HeaderValue::from_static("no-store"))
        .with_field(
            http::header::X_CONTENT_TYPE_OPTIONS,
            HeaderValue::from_static("nosniff"),
        )
        .with_body(content)
}

fn json_of(status: StatusCode, document: &impl Serialize) -> Made {
    let content = serde_json::to_vec(document).expect("documents have text as keys");
    Made {
        status,
        kind: "application/json",
        fields: Vec::new(),
        content: content.into(),
    }
}

/// A problem of RFC 9457.
fn problem(status: StatusCode, detail: &str) -> Made {
    let document = json!({
        "title": status.canonical_reason().unwrap_or_default(),
        "status": status.as_u16(),
        "detail": detail,
    });
    Made {
        kind: "application/problem+json",
        ..json_of(status, &document)
    }
}

/// Gives the refusals of the layers below the form of all others.
pub(super) struct AsProblems(pub(super) Rc<dyn Action>);

impl Action for AsProblems {
    fn handle(&self, request: &Request<'_>) -> Answer {
        self.0.handle(request).map(|mut response| {
            let is_problem = |response: &mut Response| {
                let kind = response.fields().get(CONTENT_TYPE);
                kind.is_some_and(|kind| kind == "application/problem+json")
            };
            if response.status() != StatusCode::TOO_MANY_REQUESTS || is_problem(&mut response) {
                return response;
            }
            let detail = "more requests than this address may send; see `retry-after`";
            let made = problem(StatusCode::TOO_MANY_REQUESTS, detail);
            response
                .with_field_set(CONTENT_TYPE, HeaderValue::from_static(made.kind))
                .with_body(ResponseBody::Bytes(made.content))
        })
    }

    fn refused(&self, refusal: &Refusal) {
        self.0.refused(refusal);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn queries_name_targets_and_nothing_else() {
        let wanted = Wanted::parse("unit=a&pod=x%2Fy&every=250ms", true).unwrap();
        let names: Vec<_> = wanted.targets.iter().map(ToString::to_string).collect();
        assert_eq!(names, ["unit:a", "pod:x/y"]);
        assert_eq!(wanted.every, Duration::from_millis(250));
        for (query, is_stream) in [
            ("", false),
            ("unit=", false),
            ("host=a", false),
            ("unit=a&every=1s", false),
            ("unit=a&every=1ms", true),
            ("unit=a&every=2h", true),
            (&"unit=a&".repeat(17), true),
        ] {
            assert!(Wanted::parse(query, is_stream).is_err(), "{query}");
        }
    }
}
