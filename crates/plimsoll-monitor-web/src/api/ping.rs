//! Heartbeats, by the URLs of Healthchecks: `/ping/TOKEN`, `/start`, `/fail`, `/log`, `/EXIT-STATUS`.

use axum::body::{Body, to_bytes};
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use http::header::HeaderName;
use http::{HeaderValue, StatusCode};
use plimsoll_monitor::config::What;
use plimsoll_monitor::engine::HeartbeatSignal;

use crate::answer::text;
use crate::state::Api;

/// The message of a failed job is cut to this length.
const MOST_BODY: usize = 10_000;

pub(super) async fn success(
    State(api): State<Api>,
    Path(token): Path<String>,
    body: Body,
) -> Response {
    accept_signal(&api, &token, "success", body).await
}

pub(super) async fn signal(
    State(api): State<Api>,
    Path((token, signal)): Path<(String, String)>,
    body: Body,
) -> Response {
    accept_signal(&api, &token, &signal, body).await
}

async fn accept_signal(api: &Api, token: &str, signal: &str, body: Body) -> Response {
    let views = api.handle.board.views();
    let found = views.iter().find(|view| match &view.plan.what {
        What::Heartbeat(plan) => is_same(plan.token.expose(), token),
        _ => false,
    });
    let Some(view) = found else {
        return answer(StatusCode::NOT_FOUND, "not found");
    };
    let message = to_bytes(body, MOST_BODY).await.unwrap_or_default();
    let message = String::from_utf8_lossy(&message).trim().to_owned();
    let failed = |status: Option<u8>| {
        let what = match (status, message.is_empty()) {
            (Some(status), true) => format!("the job ended with exit status {status}"),
            (Some(status), false) => format!("the job ended with exit status {status}: {message}"),
            (None, true) => "the job reported a failure".to_owned(),
            (None, false) => message.clone(),
        };
        HeartbeatSignal::Fail(Some(what))
    };
    let signal = match signal {
        "success" => HeartbeatSignal::Success,
        "start" => HeartbeatSignal::Start,
        "fail" => failed(None),
        "log" => HeartbeatSignal::Log,
        status if !status.is_empty() && status.bytes().all(|byte| byte.is_ascii_digit()) => {
            match status.parse() {
                Ok(0) => HeartbeatSignal::Success,
                Ok(status) => failed(Some(status)),
                Err(_) => return answer(StatusCode::BAD_REQUEST, "invalid url format"),
            }
        }
        _ => return answer(StatusCode::NOT_FOUND, "not found"),
    };
    match api.handle.heartbeat(&view.plan.key, signal).await {
        Ok(()) => answer(StatusCode::OK, "OK"),
        Err(_) => answer(StatusCode::SERVICE_UNAVAILABLE, "the monitor is stopping"),
    }
}

fn answer(status: StatusCode, content: &str) -> Response {
    let mut response = (status, text(content)).into_response();
    let fields = response.headers_mut();
    fields.insert(
        HeaderName::from_static("ping-body-limit"),
        HeaderValue::from(MOST_BODY),
    );
    fields.insert(
        HeaderName::from_static("access-control-allow-origin"),
        HeaderValue::from_static("*"),
    );
    response
}

/// Takes as long for a token that differs at its end as for one that differs at its start.
pub(super) fn is_same(known: &str, given: &str) -> bool {
    let (known, given) = (known.as_bytes(), given.as_bytes());
    let differing = known
        .iter()
        .zip(given)
        .fold(0, |all, (one, other)| all | (one ^ other));
    known.len() == given.len() && differing == 0
}
