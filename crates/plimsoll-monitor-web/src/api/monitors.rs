//! `/api/v1/monitors`.

use std::time::Duration;

use axum::extract::{Extension, Path, RawQuery, State};
use http::StatusCode;
use plimsoll_model::Clock;
use plimsoll_monitor::detect::budget::Slo;
use plimsoll_monitor::detect::excluded::excluded;
use plimsoll_monitor::detect::status::Health;
use plimsoll_monitor::detect::uptime::{Span, Uptime, uptime as uptime_of};
use plimsoll_monitor::engine::View;
use plimsoll_monitor::engine::budget::History;
use plimsoll_monitor::store::{Resolution, ResultRow, declared_downtime};
use plimsoll_monitor::time::Timestamp;
use serde_json::{Value, json};

use crate::access::Sees;
use crate::answer::{Answer, ApiError, json_of, svg};
use crate::api::query::Query;
use crate::api::write;
use crate::badge::{self, Badge, Look};
use crate::state::Api;

const DAY: Duration = Duration::from_hours(24);

/// Declared incidents that are looked at.
const MOST_DECLARED: usize = 5_000;

/// Monitors and results of one answer.
const MOST: usize = 500;

pub(super) async fn list(State(api): State<Api>, RawQuery(query): RawQuery) -> Answer {
    let mut query = Query::parse(query.as_deref());
    let limit = query.count("limit", 100, MOST)?;
    let cursor = query.take_text("cursor");
    let group = query.take_text("group");
    let tag = query.take_text("tag");
    let health =
        match query.take_text("health") {
            None => None,
            Some(name) => {
                let known = Health::ALL.into_iter().find(|health| health.name() == name);
                Some(known.ok_or_else(|| {
                    ApiError::invalid("health", format!("`{name}` is not a health"))
                })?)
            }
        };
    query.finish()?;
    let views = api.handle.board.views();
    let mut chosen: Vec<_> = views
        .iter()
        .filter(|view| cursor.as_ref().is_none_or(|cursor| view.plan.key > *cursor))
        .filter(|view| group.as_ref().is_none_or(|group| view.plan.group == *group))
        .filter(|view| health.is_none_or(|health| view.health == health))
        .filter(|view| tag.as_ref().is_none_or(|tag| view.plan.tags.contains(tag)))
        .take(limit + 1)
        .collect();
    let has_more = chosen.len() > limit;
    chosen.truncate(limit);
    let next = chosen
        .last()
        .filter(|_| has_more)
        .map(|view| view.plan.key.clone());
    let monitors: Vec<_> = chosen.into_iter().map(monitor).collect();
    Ok(json_of(
        &json!({ "monitors": monitors, "has_more": has_more, "next_cursor": next }),
    ))
}

pub(super) async fn one(
    State(api): State<Api>,
    Extension(Sees(sees)): Extension<Sees>,
    Path(key): Path<String>,
) -> Answer {
    let view = found(&api, &key)?;
    if sees {
        return write::shown(&api, &view, StatusCode::OK).await;
    }
    Ok(json_of(&monitor(&view)))
}

pub(super) fn found(api: &Api, key: &str) -> Result<View, ApiError> {
    api.handle
        .board
        .view(key)
        .ok_or_else(|| ApiError::not_found("monitor"))
}

pub(super) fn monitor(view: &View) -> Value {
    let plan = &view.plan;
    let target = plan.what.target();
    let last = view.last.as_ref().map(|last| {
        json!({
            "at": last.at.to_string(),
            "status": last.status.name(),
            "took_us": micros(last.took),
            "code": last.code,
            "reason": last.reason,
        })
    });
    let regions: Vec<_> = view
        .regions
        .iter()
        .map(|region| {
            json!({
                "name": &*region.name,
                "health": region.health.name(),
                "since": region.since.to_string(),
                "reason": region.reason,
            })
        })
        .collect();
    let shown = if view.in_maintenance {
        "maintenance"
    } else {
        view.health.name()
    };
    json!({
        "key": plan.key,
        "name": plan.name,
        "group": plan.group,
        "kind": plan.kind,
        "source": view.source.name(),
        "tags": plan.tags,
        "target": target,
        "health": view.health.name(),
        "shown": shown,
        "since": view.since.to_string(),
        "in_maintenance": view.in_maintenance,
        "has_incident": view.has_incident,
        "paused": view.is_paused,
        "interval_ms": plan.timing.map(|timing| u64::try_from(timing.interval.as_millis()).unwrap_or(u64::MAX)),
        "regions": regions,
        "last": last,
    })
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

pub(super) async fn results(
    State(api): State<Api>,
    Path(key): Path<String>,
    RawQuery(query): RawQuery,
) -> Answer {
    let mut query = Query::parse(query.as_deref());
    let limit = query.count("limit", 100, MOST)?;
    let before = match query.take_text("before") {
        None => Timestamp(i64::MAX),
        Some(text) => Timestamp::parse(&text)
            .ok_or_else(|| ApiError::invalid("before", "must be a date of RFC 3339"))?,
    };
    query.finish()?;
    let view = found(&api, &key)?;
    let handle = &api.handle;
    let mut rows = handle
        .store
        .results(handle.org, view.id, before, limit + 1)
        .await?;
    let has_more = rows.len() > limit;
    rows.truncate(limit);
    let next = rows
        .last()
        .filter(|_| has_more)
        .map(|row| row.at.to_string());
    let rows: Vec<_> = rows.iter().map(|row| result(&api, row)).collect();
    Ok(json_of(
        &json!({ "results": rows, "has_more": has_more, "next_before": next }),
    ))
}

fn result(api: &Api, row: &ResultRow) -> Value {
    let phases = row.phases();
    let phases: serde_json::Map<_, _> = phases
        .iter()
        .map(|(phase, took)| (format!("{phase}_us"), micros(took).into()))
        .collect();
    let detail = row.detail.as_ref();
    let conditions = detail.map(|detail| {
        let conditions = detail.conditions.iter();
        let conditions =
            conditions.map(|one| json!({ "condition": one.condition, "met": one.met }));
        conditions.collect::<Vec<_>>()
    });
    json!({
        "at": row.at.to_string(),
        "region": &*api.handle.board.region_of(row.region),
        "status": row.status.name(),
        "took_us": row.took_us,
        "phases": phases,
        "code": row.code,
        "certificate_days": row.certificate_days,
        "reason": detail.and_then(|detail| detail.reason.clone()),
        "conditions": conditions,
    })
}

/// The uptime of a monitor within a window that ends now.
pub(crate) async fn measured(
    api: &Api,
    view: &View,
    window: Duration,
) -> Result<(Uptime, Span), ApiError> {
    let now = Timestamp::from_system(api.clock.wall());
    let span = (now.minus(window), now);
    let handle = &api.handle;
    let changes = handle
        .store
        .health(handle.org, view.id, span.0, span.1)
        .await?;
    let changes: Vec<_> = changes.into_iter().map(|(change, _)| change).collect();
    let declared = handle
        .store
        .declared(handle.org, span.0, None, MOST_DECLARED)
        .await?;
    let declared = declared_downtime(&declared, view.id, now);
    let excluded = excluded(&view.plan.windows, span);
    Ok((uptime_of(&changes, &declared, &excluded, span), span))
}

pub(super) async fn uptime(
    State(api): State<Api>,
    Path(key): Path<String>,
    RawQuery(query): RawQuery,
) -> Answer {
    let mut query = Query::parse(query.as_deref());
    let window = query.duration("window", 30 * DAY)?;
    query.finish()?;
    let view = found(&api, &key)?;
    let (measured, span) = measured(&api, &view, window).await?;
    Ok(json_of(&json!({
        "from": span.0.to_string(),
        "to": span.1.to_string(),
        "uptime": measured.ratio(),
        "probed_s": measured.probed.as_secs_f64(),
        "down_s": measured.down.as_secs_f64(),
        "outages": measured.outages,
        "coverage": measured.coverage(span),
        "budget": budget_of(&api, &view).await?,
        "formula": "1 - down / probed; maintenance and time without results are in neither",
    })))
}

/// The error budget of a monitor with an objective.
async fn budget_of(api: &Api, view: &View) -> Result<Value, ApiError> {
    let Some(slo) = view.plan.slo else {
        return Ok(Value::Null);
    };
    let (whole, _) = measured(api, view, slo.window).await?;
    let budget = slo.budget(whole);
    let now = Timestamp::from_system(api.clock.wall());
    let (org, store) = (api.handle.org, &*api.handle.store);
    let history = History::read(org, store, view, Slo::looks_back(), now).await?;
    let burning = history.burning(&slo, now);
    Ok(json!({
        "target": slo.target,
        "window_s": slo.window.as_secs(),
        "total_s": budget.total.as_secs_f64(),
        "spent_s": budget.spent.as_secs_f64(),
        "left": budget.left(),
        "burning": burning.map(|rule| json!({ "window_s": rule.long.as_secs(), "rate": rule.rate })),
    }))
}

/// The share of the error budget that is left, for people.
pub(crate) async fn budget_left(api: &Api, view: &View) -> Result<Option<f64>, ApiError> {
    let Some(slo) = view.plan.slo else {
        return Ok(None);
    };
    let (whole, _) = measured(api, view, slo.window).await?;
    Ok(Some(slo.budget(whole).left()))
}

pub(super) async fn latency(
    State(api): State<Api>,
    Path(key): Path<String>,
    RawQuery(query): RawQuery,
) -> Answer {
    let mut query = Query::parse(query.as_deref());
    let window = query.duration("window", DAY)?;
    query.finish()?;
    let view = found(&api, &key)?;
    let now = Timestamp::from_system(api.clock.wall());
    // About sixty to three hundred buckets.
    let resolution = if window <= Duration::from_hours(5) {
        Resolution::Minute
    } else if window <= 12 * DAY {
        Resolution::Hour
    } else {
        Resolution::Day
    };
    let handle = &api.handle;
    let to = Timestamp(now.0 + 1);
    let rollups = handle
        .store
        .rollups(handle.org, view.id, resolution, now.minus(window), to)
        .await?;
    let buckets: Vec<_> = rollups
        .iter()
        .map(|bucket| {
            let [up, degraded, down, error] = bucket.counts;
            let measured = up + degraded;
            let mean = |sum: u64| sum.checked_div(measured);
            let [dns, connect, tls, wait, receive] = bucket.phases_us.map(mean);
            json!({
                "at": bucket.start.to_string(),
                "up": up, "degraded": degraded, "down": down, "error": error,
                "p50_us": bucket.took.quantile(0.5),
                "p95_us": bucket.took.quantile(0.95),
                "p99_us": bucket.took.quantile(0.99),
                "mean_us": bucket.took.mean(),
                "phases": {
                    "dns_us": dns, "connect_us": connect, "tls_us": tls, "wait_us": wait, "receive_us": receive,
                },
            })
        })
        .collect();
    Ok(json_of(
        &json!({ "resolution": resolution.name(), "buckets": buckets }),
    ))
}

pub(super) async fn badge(
    State(api): State<Api>,
    Path(key): Path<String>,
    RawQuery(query): RawQuery,
) -> Answer {
    let mut query = Query::parse(query.as_deref());
    let window = query.take_text("uptime");
    let look = Look::from_query(|key| query.take_text(key));
    let look = look.map_err(|(key, message)| ApiError::invalid(key, message))?;
    query.finish()?;
    let view = found(&api, &key)?;
    let badge = match window {
        None => {
            let (message, color) = match view.health {
                _ if view.in_maintenance => ("maintenance", badge::BLUE),
                Health::Up => ("up", badge::GREEN),
                Health::Degraded => ("degraded", badge::YELLOW),
                Health::Down => ("down", badge::RED),
                Health::Pending | Health::NoData => ("no data", badge::GREY),
                Health::Paused => ("paused", badge::GREY),
            };
            Badge::new(&view.plan.name, message, color)
        }
        Some(text) => uptime_badge(&api, &[view], &text).await?,
    };
    Ok(svg(badge.with(look).svg()))
}

/// The badge of all monitors with a tag.
pub(super) async fn tag_badge(
    State(api): State<Api>,
    Path(tag): Path<String>,
    RawQuery(query): RawQuery,
) -> Answer {
    /// Monitors whose uptime one request may read: a badge is open to everyone.
    const MOST_READ: usize = 100;

    let mut query = Query::parse(query.as_deref());
    let window = query.take_text("uptime");
    let look = Look::from_query(|key| query.take_text(key));
    let look = look.map_err(|(key, message)| ApiError::invalid(key, message))?;
    query.finish()?;
    let mut views = api.handle.board.views();
    views.retain(|view| view.plan.tags.contains(&tag));
    if views.is_empty() {
        return Err(ApiError::not_found("tag"));
    }
    let badge = match window {
        None => {
            let (message, color) = together(&views);
            Badge::new(&tag, &message, color)
        }
        Some(_) if views.len() > MOST_READ => {
            let message = format!(
                "{} monitors have this tag, and the uptime of more than {MOST_READ} is not read",
                views.len()
            );
            return Err(ApiError::invalid("uptime", message));
        }
        Some(text) => uptime_badge(&api, &views, &text).await?,
    };
    Ok(svg(badge.with(look).svg()))
}

/// The state of monitors as one, with its colour: the worst, and how many have it. Those that are paused or in maintenance count
/// only where all are.
fn together(views: &[View]) -> (String, &'static str) {
    let active = views.iter().filter(|view| !view.in_maintenance);
    let active: Vec<_> = active
        .map(|view| view.health)
        .filter(|health| *health != Health::Paused)
        .collect();
    let message = |name: &str, count: usize| match active.len() {
        1 => name.to_owned(),
        all => format!("{count} of {all} {name}"),
    };
    for (health, color) in [
        (Health::Down, badge::RED),
        (Health::Degraded, badge::YELLOW),
    ] {
        let count = active.iter().filter(|it| **it == health).count();
        if count > 0 {
            return (message(health.name(), count), color);
        }
    }
    if active.contains(&Health::Up) {
        return ("up".to_owned(), badge::GREEN);
    }
    if !active.is_empty() {
        return ("no data".to_owned(), badge::GREY);
    }
    if views.iter().any(|view| view.in_maintenance) {
        return ("maintenance".to_owned(), badge::BLUE);
    }
    ("paused".to_owned(), badge::GREY)
}

/// The uptime of monitors together: the time that they were down, of all that was probed.
async fn uptime_badge(api: &Api, views: &[View], text: &str) -> Result<Badge, ApiError> {
    let mut window = Query::parse(Some(&format!("uptime={text}")));
    let window = window.duration("uptime", DAY)?;
    let mut all = Uptime::default();
    for view in views {
        let (measured, _) = measured(api, view, window).await?;
        all.probed += measured.probed;
        all.down += measured.down;
    }
    let label = format!("uptime {text}");
    Ok(match all.ratio() {
        None => Badge::new(&label, "no data", badge::GREY),
        Some(ratio) => Badge::new(&label, &badge::percent(ratio), badge::of_uptime(ratio)),
    })
}
