//! Heartbeats, by the URLs of Healthchecks: `/ping/TOKEN` or `/ping/KEY/SLUG`, and behind it `/start`, `/fail`, `/log` or
//! `/EXIT-STATUS`.

use axum::body::{Body, to_bytes};
use axum::extract::{Path, RawQuery, State};
use axum::response::{IntoResponse, Response};
use http::header::HeaderName;
use http::{Extensions, HeaderValue, StatusCode};
use plimsoll_monitor::config::What;
use plimsoll_monitor::engine::HeartbeatSignal;

use crate::answer::text;
use crate::api::healthchecks;
use crate::request::{address_of, parameter};
use crate::state::Api;

/// The message of a failed job is cut to this length.
const MOST_BODY: usize = 10_000;

pub(super) async fn success(
    State(api): State<Api>,
    Path(token): Path<String>,
    body: Body,
) -> Response {
    match with_token(&api, &token) {
        Some(key) => accept_signal(&api, &key, "success", body).await,
        None => answer(StatusCode::NOT_FOUND, "not found"),
    }
}

/// Behind a token stands what it reports; behind the key of the organisation stands a slug.
pub(super) async fn signal(
    State(api): State<Api>,
    Path((token, signal)): Path<(String, String)>,
    RawQuery(query): RawQuery,
    extensions: Extensions,
    body: Body,
) -> Response {
    if let Some(key) = with_token(&api, &token) {
        return accept_signal(&api, &key, &signal, body).await;
    }
    let creates = creator(query.as_deref(), &extensions);
    by_slug(&api, (&token, &signal), "success", creates, body).await
}

pub(super) async fn signal_of_slug(
    State(api): State<Api>,
    Path((key, slug, signal)): Path<(String, String, String)>,
    RawQuery(query): RawQuery,
    extensions: Extensions,
    body: Body,
) -> Response {
    let creates = creator(query.as_deref(), &extensions);
    by_slug(&api, (&key, &slug), &signal, creates, body).await
}

/// The address of a client that wants a slug without a monitor to get one: `?create=1`.
fn creator(query: Option<&str>, extensions: &Extensions) -> Option<String> {
    let creates = parameter(query, "create").is_some_and(|text| text == "1");
    creates.then(|| address_of(extensions))
}

/// The key of the monitor whose heartbeat has that token.
fn with_token(api: &Api, token: &str) -> Option<String> {
    api.handle.board.with_views(|mut views| {
        let found = views.find(|view| match &view.plan.what {
            What::Heartbeat(plan) => is_same(plan.token.expose(), token),
            _ => false,
        });
        found.map(|view| view.plan.key.clone())
    })
}

/// - `creates`: the address of the client, if a slug without a monitor is to get one.
async fn by_slug(
    api: &Api,
    (key, slug): (&str, &str),
    signal: &str,
    creates: Option<String>,
    body: Body,
) -> Response {
    let known = api.handle.board.ping_key();
    if !known.is_some_and(|known| is_same(known.expose(), key)) {
        return answer(StatusCode::NOT_FOUND, "not found");
    }
    let found: Vec<_> = api.handle.board.with_views(|views| {
        let of_slug = views.filter(|view| match &view.plan.what {
            What::Heartbeat(plan) => match &plan.slug {
                Some(own) => own == slug,
                None => slug_of(&view.plan.name) == slug,
            },
            _ => false,
        });
        of_slug.map(|view| view.plan.key.clone()).collect()
    });
    match found.as_slice() {
        [] => match creates {
            None => answer(StatusCode::NOT_FOUND, "not found"),
            Some(address) => match healthchecks::create_by_slug(api, slug, address).await {
                Err((status, why)) => answer(status, &why),
                Ok(monitor) => {
                    let response = accept_signal(api, &monitor, signal, body).await;
                    if response.status() == StatusCode::OK {
                        return answer(StatusCode::CREATED, "Created");
                    }
                    response
                }
            },
        },
        [monitor] => accept_signal(api, monitor, signal, body).await,
        _ => answer(StatusCode::CONFLICT, "ambiguous slug"),
    }
}

/// A name in a URL, as Healthchecks makes it of that of a check: lower-case letters, digits and underscores, with hyphens
/// between them.
pub(super) fn slug_of(name: &str) -> String {
    let kept = name.to_lowercase();
    let kept = kept
        .chars()
        .map(|c| if c.is_whitespace() { '-' } else { c });
    let kept: String = kept
        .filter(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
        .collect();
    let parts: Vec<_> = kept.split('-').filter(|part| !part.is_empty()).collect();
    parts.join("-").trim_matches(['-', '_']).to_owned()
}

/// - `monitor`: its key.
async fn accept_signal(api: &Api, monitor: &str, signal: &str, body: Body) -> Response {
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
    let resumes = signal != HeartbeatSignal::Log && resumes(api, monitor);
    // A heartbeat of a paused monitor counts for nothing.
    if resumes && api.handle.pause(monitor, false).await.is_err() {
        return answer(StatusCode::SERVICE_UNAVAILABLE, "the monitor cannot resume");
    }
    match api.handle.heartbeat(monitor, signal).await {
        Ok(()) => answer(StatusCode::OK, "OK"),
        Err(_) => answer(StatusCode::SERVICE_UNAVAILABLE, "the monitor is stopping"),
    }
}

/// Whether a heartbeat resumes the monitor, which is paused.
fn resumes(api: &Api, monitor: &str) -> bool {
    let view = api.handle.board.view(monitor);
    view.is_some_and(|view| match &view.plan.what {
        What::Heartbeat(plan) => plan.resumes && view.is_paused,
        _ => false,
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slugs_are_those_of_healthchecks() {
        for (name, slug) in [
            ("Nightly Backup", "nightly-backup"),
            ("  db 1 --  dump!  ", "db-1-dump"),
            ("a_b.c", "a_bc"),
            ("_x_", "x"),
            ("夜間", ""),
        ] {
            assert_eq!(slug_of(name), slug, "{name}");
        }
    }
}
