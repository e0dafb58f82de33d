//! `/api/v1/incidents`.

use axum::extract::{Path, RawQuery, State};
use plimsoll_monitor::store::{Incident, IncidentEvent, IncidentFilter, IncidentId};
use serde_json::{Value, json};

use crate::answer::{Answer, ApiError, json_of};
use crate::api::monitors::found;
use crate::api::query::Query;
use crate::state::Api;

const MOST: usize = 200;

pub(super) async fn list(State(api): State<Api>, RawQuery(query): RawQuery) -> Answer {
    let mut query = Query::parse(query.as_deref());
    let limit = query.count("limit", 50, MOST)?;
    let number = |text: String| text.parse().ok().map(IncidentId);
    let after = match query.take_text("cursor") {
        None => None,
        Some(text) => {
            let after = number(text);
            Some(after.ok_or_else(|| ApiError::invalid("cursor", "is not one of this API"))?)
        }
    };
    let mut filter = IncidentFilter::default();
    match query.take_text("state").as_deref() {
        None => {}
        Some("open") => filter.open = Some(true),
        Some("resolved") => filter.open = Some(false),
        Some(_) => return Err(ApiError::invalid("state", "is `open` or `resolved`")),
    }
    if let Some(key) = query.take_text("monitor") {
        filter.monitor = Some(found(&api, &key)?.id);
    }
    query.finish()?;
    let handle = &api.handle;
    let mut incidents = handle
        .store
        .incidents(handle.org, filter, after, limit + 1)
        .await?;
    let has_more = incidents.len() > limit;
    incidents.truncate(limit);
    let next = incidents
        .last()
        .filter(|_| has_more)
        .map(|last| last.id.0.to_string());
    let incidents: Vec<_> = incidents.iter().map(|one| incident(&api, one)).collect();
    Ok(json_of(
        &json!({ "incidents": incidents, "has_more": has_more, "next_cursor": next }),
    ))
}

pub(super) async fn one(State(api): State<Api>, Path(id): Path<String>) -> Answer {
    let missing = || ApiError::not_found("incident");
    let id = IncidentId(id.parse().map_err(|_| missing())?);
    let handle = &api.handle;
    let found = handle.store.incident(handle.org, id).await?;
    let (found, events) = found.ok_or_else(missing)?;
    let mut shown = incident(&api, &found);
    shown["timeline"] = events.iter().map(event).collect();
    Ok(json_of(&shown))
}

fn incident(api: &Api, incident: &Incident) -> Value {
    let seconds = incident
        .resolved
        .map(|resolved| incident.lasted(resolved).as_secs_f64());
    json!({
        "id": incident.id.0,
        // Absent once the monitor is retired.
        "monitor": api.handle.board.key(incident.monitor),
        "state": match (incident.resolved, incident.acknowledged) {
            (Some(_), _) => "resolved",
            (None, Some(_)) => "acknowledged",
            (None, None) => "open",
        },
        "opened_at": incident.opened.to_string(),
        "acknowledged_at": incident.acknowledged.map(|at| at.to_string()),
        "resolved_at": incident.resolved.map(|at| at.to_string()),
        "duration_s": seconds,
        "reason": incident.reason,
    })
}

fn event(event: &IncidentEvent) -> Value {
    json!({
        "at": event.at.to_string(),
        "kind": event.kind.name(),
        "actor": event.actor,
        "text": event.text,
    })
}
