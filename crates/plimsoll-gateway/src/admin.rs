//! Upstreams and caches on the admin port: their state as JSON and as a page, weights that are set at run time, and responses that
//! caches forget.

mod caches;

mod page;

use std::sync::Arc;

use http::StatusCode;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use plimsoll_model::Clock as _;
use plimsoll_server::config::Difference;
use plimsoll_server::{Answer, AnswerApi, AuditLog, Request, Response, ResponseBody};
use plimsoll_wire::SystemClock;
use serde::Serialize;

pub(crate) use self::caches::answer as caches;
pub(crate) use self::page::answer as page;

use crate::upstream::{Event, ServerStatus, SourceStatus, UpstreamFigures};

/// The heaviest weight.
const MOST: u32 = 1000;

#[derive(Serialize)]
struct Document {
    upstreams: Vec<UpstreamDocument>,
}

#[derive(Serialize)]
struct UpstreamDocument {
    name: String,
    retries: u64,
    retries_refused: u64,
    limited: u64,
    /// `closed`, `open` or `half-open`.
    #[serde(skip_serializing_if = "Option::is_none")]
    breaker: Option<&'static str>,
    /// What lists the servers, unless they are in the configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<SourceStatus>,
    servers: Vec<ServerStatus>,
}

/// Answers `GET /upstreams`, and `PUT /upstreams/NAME?server=URL&weight=N`.
pub(crate) fn answer(figures: Arc<UpstreamFigures>, audit: AuditLog) -> Arc<AnswerApi> {
    Arc::new(move |request, rest| {
        let response = match (request.method, rest.trim_matches('/')) {
            ("GET" | "HEAD", "") => list(&figures),
            ("PUT", name) if !name.is_empty() => {
                let mut changes = Vec::new();
                let response = set_weight(&figures, name, request, &mut changes);
                audit.handled(request, &changes, response.status());
                response
            }
            _ => Response::text(
                StatusCode::NOT_FOUND,
                "there are GET /upstreams and PUT /upstreams/NAME?server=URL&weight=N\n",
            ),
        };
        Answer::now(response)
    })
}

fn list(figures: &UpstreamFigures) -> Response {
    let now = SystemClock.now();
    let upstreams = figures.all().into_iter().map(|status| UpstreamDocument {
        name: status.name.clone(),
        retries: status.counted(Event::Retry),
        retries_refused: status.counted(Event::RefusedRetry),
        limited: status.counted(Event::Limited),
        breaker: status.breaker(now),
        source: status.source(now),
        servers: status.servers(now),
    });
    json(&Document {
        upstreams: upstreams.collect(),
    })
}

fn json(document: &impl Serialize) -> Response {
    let text = serde_json::to_vec_pretty(document).unwrap_or_default();
    Response::new(StatusCode::OK)
        .with_field(CONTENT_TYPE, HeaderValue::from_static("application/json"))
        .with_field(CACHE_CONTROL, HeaderValue::from_static("no-store"))
        .with_body(ResponseBody::Bytes(text.into()))
}

/// - `changes`: gets what was changed.
fn set_weight(
    figures: &UpstreamFigures,
    name: &str,
    request: &Request<'_>,
    changes: &mut Vec<Difference>,
) -> Response {
    let wrong = |status, text: String| Response::text(status, text);
    let mut server = None;
    let mut weight = None;
    let query = request.query.unwrap_or_default();
    for (key, value) in url::form_urlencoded::parse(query.as_bytes()) {
        match &*key {
            "server" => server = Some(value.into_owned()),
            "weight" => weight = value.parse().ok().filter(|it: &u32| *it <= MOST),
            other => {
                let text = format!("unknown parameter `{other}`; there are server and weight\n");
                return wrong(StatusCode::BAD_REQUEST, text);
            }
        }
    }
    let (Some(server), Some(weight)) = (server, weight) else {
        let text = format!("give ?server=URL&weight=N, N from 0 to {MOST}\n");
        return wrong(StatusCode::BAD_REQUEST, text);
    };
    let mut named = figures.all();
    named.retain(|status| status.name == name);
    if named.is_empty() {
        return wrong(
            StatusCode::NOT_FOUND,
            format!("there is no upstream `{name}`\n"),
        );
    }
    // During a reload there may be two of the name.
    let before = named.iter().filter_map(|it| it.set_weight(&server, weight));
    let Some(before) = before.reduce(|first, _| first) else {
        let text = format!("`{name}` has no server `{server}`\n");
        return wrong(StatusCode::NOT_FOUND, text);
    };
    changes.push(Difference {
        path: format!("upstream.{name}.servers[{server}].weight"),
        before: Some(before.to_string()),
        after: Some(weight.to_string()),
    });
    Response::new(StatusCode::NO_CONTENT)
}
