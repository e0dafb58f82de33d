//! Routes of Gatus, with its shapes.

use std::time::Duration;

use axum::extract::{Path, RawQuery, State};
use axum::response::{IntoResponse, Response};
use http::HeaderMap;
use http::StatusCode;
use http::header::AUTHORIZATION;
use plimsoll_model::Clock;
use plimsoll_monitor::config::What;
use plimsoll_monitor::detect::status::{Health, Status};
use plimsoll_monitor::engine::{PushedResult, View};
use plimsoll_monitor::probe::reading::Expectation;
use plimsoll_monitor::store::{Resolution, ResultRow, Rollup};
use plimsoll_monitor::time::{Timestamp, go_duration};
use serde_json::{Value, json};

use crate::access::gatus::settings;
use crate::answer::{Answer, ApiError, json_of, svg, text};
use crate::api::ping::is_same;
use crate::api::query::Query;
use crate::badge::{self, Badge};
use crate::state::Api;

/// Results of one page unless the query says otherwise.
const PAGE: usize = 50;

const HOUR: Duration = Duration::from_hours(1);

pub(super) async fn health(State(api): State<Api>) -> Response {
    let mut health = json!({ "status": "UP" });
    // The reason goes to the operator's log: it may name a host.
    if api.handle.store.trouble().is_some() {
        health["message"] = "results wait, since they cannot be written".into();
    }
    json_of(&health)
}

pub(super) async fn config(State(api): State<Api>) -> Answer {
    let settings = settings(&api).ok_or_else(|| ApiError::not_found("path"))?;
    Ok(json_of(&json!({
        "oidc": false,
        "authenticated": settings.basic.is_none(),
        "announcements": settings.announcements,
    })))
}

pub(super) async fn suites() -> Response {
    json_of(&json!([]))
}

/// `page` and `pageSize`; what is no number is the default, as in Gatus.
fn page(query: Option<&str>, most: usize) -> (usize, usize) {
    let mut query = Query::parse(query);
    let mut number = |name, default| {
        let given: Option<usize> = query.take_text(name).and_then(|text| text.parse().ok());
        given.filter(|number| *number > 0).unwrap_or(default)
    };
    let page = number("page", 1);
    (page, number("pageSize", PAGE).min(most))
}

pub(super) async fn statuses(State(api): State<Api>, RawQuery(query): RawQuery) -> Answer {
    let settings = settings(&api);
    let most = settings.map_or(100, |settings| settings.most_results);
    let page = page(query.as_deref(), most);
    let mut all = Vec::new();
    for view in api.handle.board.views() {
        all.push(endpoint(&api, &view, page).await?);
    }
    Ok(json_of(&Value::Array(all)))
}

pub(super) async fn one(
    State(api): State<Api>,
    Path(key): Path<String>,
    RawQuery(query): RawQuery,
) -> Answer {
    let settings = settings(&api);
    let (most, most_events) = settings.map_or((100, 50), |it| (it.most_results, it.most_events));
    let page = page(query.as_deref(), most);
    let view = found(&api, &key)?;
    let mut shown = endpoint(&api, &view, page).await?;
    shown["events"] = events(&api, &view, most_events).await?;
    Ok(json_of(&shown))
}

fn found(api: &Api, key: &str) -> Result<View, ApiError> {
    api.handle
        .board
        .view(key)
        .ok_or_else(|| ApiError::not_found("endpoint"))
}

async fn endpoint(api: &Api, view: &View, (page, size): (usize, usize)) -> Result<Value, ApiError> {
    let handle = &api.handle;
    let end = page.saturating_mul(size);
    let rows = handle
        .store
        .results(handle.org, view.id, Timestamp(i64::MAX), end.min(10_000))
        .await?;
    let rows = rows.iter().skip(end - size).take(size);
    let mut results: Vec<_> = rows.map(|row| result(view, row)).collect();
    results.reverse();
    let mut shown = json!({
        "name": view.plan.name,
        "key": view.plan.key,
        "results": results,
    });
    if !view.plan.group.is_empty() {
        shown["group"] = view.plan.group.clone().into();
    }
    Ok(shown)
}

fn result(view: &View, row: &ResultRow) -> Value {
    let display = view.plan.display;
    let success = matches!(row.status, Status::Up | Status::Degraded);
    let nanos = row.took_us.saturating_mul(1000);
    let mut shown =
        json!({ "duration": nanos, "success": success, "timestamp": row.at.to_string() });
    if let Some(code) = row.code {
        shown["status"] = code.into();
    }
    if let (What::Probe(probe), false) = (&view.plan.what, display.hide_hostname) {
        let host = probe.host();
        let host = host
            .as_deref()
            .and_then(|host| host.rsplit_once(':').map(|(name, _)| name).or(Some(host)));
        shown["hostname"] = host.into();
    }
    let detail = row.detail.as_ref();
    if let Some(detail) = detail
        && let Some(reason) = &detail.reason
    {
        // Otherwise it repeats a condition.
        let unmet = detail.conditions.iter().find(|one| !one.met);
        let is_condition =
            unmet.is_some_and(|one| *reason == format!("{} is not met", one.condition));
        if !is_condition && !display.hide_errors {
            shown["errors"] = json!([reason]);
        }
    }
    if !display.hide_conditions {
        let judged: Vec<_> = match (detail, &view.plan.expectation) {
            (Some(detail), _) => detail
                .conditions
                .iter()
                .map(|one| json!({ "condition": one.condition, "success": one.met }))
                .collect(),
            (None, Expectation::Gatus { conditions, .. }) => conditions
                .iter()
                .map(|condition| json!({ "condition": condition.text(), "success": true }))
                .collect(),
            (None, Expectation::Conditions { expect, .. }) => expect
                .iter()
                .map(|condition| json!({ "condition": condition.text(), "success": true }))
                .collect(),
            (None, Expectation::OfProbe { conditions }) => conditions
                .iter()
                .map(|condition| json!({ "condition": condition, "success": true }))
                .collect(),
            (None, Expectation::UpsideDown(_)) => Vec::new(),
        };
        if !judged.is_empty() {
            shown["conditionResults"] = judged.into();
        }
    }
    shown
}

/// Changes of health, as events of Gatus.
async fn events(api: &Api, view: &View, most: usize) -> Result<Value, ApiError> {
    let handle = &api.handle;
    let all = handle
        .store
        .health(
            handle.org,
            view.id,
            Timestamp(i64::MIN),
            Timestamp(i64::MAX),
        )
        .await?;
    let mut events = Vec::new();
    for (change, _) in &all {
        let kind = match change.health {
            Health::Up | Health::Degraded => "HEALTHY",
            Health::Down => "UNHEALTHY",
            Health::Pending | Health::NoData | Health::Paused => continue,
        };
        if events.is_empty() {
            events.push(json!({ "type": "START", "timestamp": change.at.to_string() }));
        }
        events.push(json!({ "type": kind, "timestamp": change.at.to_string() }));
    }
    let surplus = events.len().saturating_sub(most);
    Ok(events.split_off(surplus).into())
}

pub(super) async fn external(
    State(api): State<Api>,
    Path(key): Path<String>,
    RawQuery(query): RawQuery,
    fields: HeaderMap,
) -> Response {
    let refuse = |status, message: &str| (status, text(message)).into_response();
    let mut query = Query::parse(query.as_deref());
    let is_up = match query.take_text("success").as_deref() {
        Some("true") => true,
        Some("false") => false,
        _ => {
            return refuse(
                StatusCode::BAD_REQUEST,
                "missing or invalid success query parameter",
            );
        }
    };
    let Some(view) = api.handle.board.view(&key) else {
        return refuse(StatusCode::NOT_FOUND, "not found");
    };
    let What::Pushed { token, .. } = &view.plan.what else {
        return refuse(StatusCode::NOT_FOUND, "not found");
    };
    let given = fields
        .get(AUTHORIZATION)
        .and_then(|value| value.to_str().ok());
    let given = given
        .and_then(|text| text.strip_prefix("Bearer "))
        .unwrap_or_default();
    if given.trim().is_empty() || !is_same(token.expose(), given.trim()) {
        return refuse(StatusCode::UNAUTHORIZED, "invalid token");
    }
    let took = match query.take_text("duration").filter(|text| !text.is_empty()) {
        None => Duration::ZERO,
        Some(text) => match go_duration::parse(&text).and_then(|nanos| u64::try_from(nanos).ok()) {
            Some(nanos) => Duration::from_nanos(nanos),
            None => return refuse(StatusCode::BAD_REQUEST, "invalid duration"),
        },
    };
    let reason = query
        .take_text("error")
        .filter(|text| !text.is_empty() && !is_up);
    let pushed = PushedResult {
        is_up,
        reason,
        took,
    };
    match api.handle.push(&key, pushed).await {
        Ok(()) => StatusCode::OK.into_response(),
        Err(error) => ApiError::from(error).into_response(),
    }
}

pub(super) async fn health_badge(State(api): State<Api>, Path(key): Path<String>) -> Answer {
    let (message, color) = health_of(&found(&api, &key)?);
    Ok(svg(Badge::new("health", message, color).svg()))
}

pub(super) async fn health_shields(State(api): State<Api>, Path(key): Path<String>) -> Answer {
    let (message, _) = health_of(&found(&api, &key)?);
    let color = match message {
        "up" => "brightgreen",
        "down" => "red",
        _ => "yellow",
    };
    Ok(json_of(&json!({
        "schemaVersion": 1,
        "label": "gatus",
        "message": message,
        "color": color,
    })))
}

/// By the last result, as in Gatus.
fn health_of(view: &View) -> (&'static str, &'static str) {
    match view.last.as_ref().map(|last| last.status) {
        Some(Status::Up | Status::Degraded) => ("up", badge::GREEN),
        Some(Status::Down | Status::Error) => ("down", badge::RED),
        None => ("?", badge::YELLOW),
    }
}

/// The results within one of the durations that Gatus has, together.
async fn within(api: &Api, view: &View, duration: &str) -> Result<Vec<Rollup>, ApiError> {
    let (window, resolution) = match duration {
        "1h" => (HOUR, Resolution::Minute),
        "24h" => (24 * HOUR, Resolution::Hour),
        "7d" => (7 * 24 * HOUR, Resolution::Hour),
        "30d" => (30 * 24 * HOUR, Resolution::Hour),
        _ => {
            return Err(ApiError::invalid(
                "duration",
                "Durations supported: 30d, 7d, 24h, 1h",
            ));
        }
    };
    let now = Timestamp::from_system(api.clock.wall());
    let to = Timestamp(now.0 + 1);
    let handle = &api.handle;
    let all = handle
        .store
        .rollups(handle.org, view.id, resolution, now.minus(window), to)
        .await?;
    Ok(all)
}

fn together(all: &[Rollup]) -> Rollup {
    let mut sum = Rollup::default();
    for bucket in all {
        sum.merge(bucket);
    }
    sum
}

/// Successes over executions, as in Gatus; 0 without any.
fn ratio(sum: &Rollup) -> f64 {
    let [up, degraded, ..] = sum.counts;
    match sum.total() {
        0 => 0.0,
        total => (up + degraded) as f64 / total as f64,
    }
}

pub(super) async fn uptime(
    State(api): State<Api>,
    Path((key, duration)): Path<(String, String)>,
) -> Answer {
    let view = found(&api, &key)?;
    let sum = together(&within(&api, &view, &duration).await?);
    Ok(text(format!("{:.6}", ratio(&sum))))
}

pub(super) async fn uptime_badge(
    State(api): State<Api>,
    Path((key, duration)): Path<(String, String)>,
) -> Answer {
    let view = found(&api, &key)?;
    let ratio = ratio(&together(&within(&api, &view, &duration).await?));
    let label = format!("uptime {duration}");
    Ok(svg(Badge::new(
        &label,
        &badge::percent(ratio),
        badge::of_uptime(ratio),
    )
    .svg()))
}

pub(super) async fn response_time(
    State(api): State<Api>,
    Path((key, duration)): Path<(String, String)>,
) -> Answer {
    let view = found(&api, &key)?;
    let sum = together(&within(&api, &view, &duration).await?);
    Ok(text(format!("{:.0}", millis(&sum))))
}

fn millis(sum: &Rollup) -> f64 {
    (sum.took.mean().unwrap_or(0.0) / 1000.0).floor()
}

pub(super) async fn response_time_badge(
    State(api): State<Api>,
    Path((key, duration)): Path<(String, String)>,
) -> Answer {
    let view = found(&api, &key)?;
    let millis = millis(&together(&within(&api, &view, &duration).await?));
    let label = format!("response time {duration}");
    let color = badge::of_response_time(millis, &view.plan.badge_millis);
    Ok(svg(
        Badge::new(&label, &format!("{millis:.0}ms"), color).svg()
    ))
}

pub(super) async fn history(
    State(api): State<Api>,
    Path((key, duration)): Path<(String, String)>,
) -> Answer {
    let view = found(&api, &key)?;
    if duration == "1h" {
        return Err(ApiError::invalid(
            "duration",
            "Durations supported: 30d, 7d, 24h",
        ));
    }
    let all = within(&api, &view, &duration).await?;
    let measured = all.iter().filter(|bucket| bucket.took.count() > 0);
    let (timestamps, values): (Vec<_>, Vec<_>) = measured
        .map(|bucket| (bucket.start.0, millis(bucket)))
        .unzip();
    Ok(json_of(
        &json!({ "timestamps": timestamps, "values": values }),
    ))
}
