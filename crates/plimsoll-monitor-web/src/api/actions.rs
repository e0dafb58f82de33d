//! Actions on monitors: `POST /api/v1/monitors/KEY/…`.

use axum::body::{Body, to_bytes};
use axum::extract::{Extension, Path, State};
use plimsoll_model::Clock;
use plimsoll_monitor::engine::PushedResult;
use plimsoll_monitor::manage::Actor;
use plimsoll_monitor::time::Timestamp;
use serde_json::{Value, json};

use crate::answer::{Answer, ApiError, json_of};
use crate::api::monitors::{found, monitor};
use crate::state::Api;

/// Bytes of a body.
const MOST_BODY: usize = 64 * 1024;

pub(super) async fn check_now(State(api): State<Api>, Path(key): Path<String>) -> Answer {
    let result = api.handle.check_now(&key).await?;
    let conditions: Vec<_> = result
        .conditions
        .iter()
        .map(|one| json!({ "condition": one.condition, "met": one.met }))
        .collect();
    let took_us = u64::try_from(result.took.as_micros()).unwrap_or(u64::MAX);
    Ok(json_of(&json!({
        "at": result.at.to_string(),
        "status": result.status.name(),
        "took_us": took_us,
        "code": result.code,
        "reason": result.reason,
        "conditions": conditions,
    })))
}

/// Notes a change for the audit log.
async fn note(api: &Api, actor: &Actor, action: &str, key: &str) -> Result<(), ApiError> {
    let now = Timestamp::from_system(api.clock.wall());
    Ok(api.handle.note(actor, action, key, now).await?)
}

pub(super) async fn pause(
    State(api): State<Api>,
    Path(key): Path<String>,
    Extension(actor): Extension<Actor>,
) -> Answer {
    api.handle.pause(&key, true).await?;
    note(&api, &actor, "monitor.pause", &key).await?;
    Ok(json_of(&monitor(&found(&api, &key)?)))
}

pub(super) async fn resume(
    State(api): State<Api>,
    Path(key): Path<String>,
    Extension(actor): Extension<Actor>,
) -> Answer {
    api.handle.pause(&key, false).await?;
    note(&api, &actor, "monitor.resume", &key).await?;
    Ok(json_of(&monitor(&found(&api, &key)?)))
}

pub(super) async fn acknowledge(
    State(api): State<Api>,
    Path(key): Path<String>,
    Extension(actor): Extension<Actor>,
) -> Answer {
    api.handle
        .acknowledge(&key, Some(actor.name.clone()))
        .await?;
    note(&api, &actor, "incident.acknowledge", &key).await?;
    Ok(json_of(&monitor(&found(&api, &key)?)))
}

pub(super) async fn resolve(
    State(api): State<Api>,
    Path(key): Path<String>,
    Extension(actor): Extension<Actor>,
) -> Answer {
    api.handle.resolve(&key, Some(actor.name.clone())).await?;
    note(&api, &actor, "incident.resolve", &key).await?;
    Ok(json_of(&monitor(&found(&api, &key)?)))
}

/// `{"up": false, "reason": "…"}` for a manual monitor.
pub(super) async fn status(
    State(api): State<Api>,
    Path(key): Path<String>,
    Extension(actor): Extension<Actor>,
    body: Body,
) -> Answer {
    let content = to_bytes(body, MOST_BODY).await;
    let content = content.map_err(|_| ApiError::invalid("body", "is longer than 64 KiB"))?;
    let parsed: Value = serde_json::from_slice(&content)
        .map_err(|error| ApiError::invalid("body", format!("is not JSON: {error}")))?;
    let Value::Object(fields) = parsed else {
        return Err(ApiError::invalid("body", "must be an object"));
    };
    if let Some(unknown) = fields
        .keys()
        .find(|key| !["up", "reason"].contains(&key.as_str()))
    {
        return Err(ApiError::invalid(
            "body",
            format!("unknown key `{unknown}`; known are up, reason"),
        ));
    }
    let Some(is_up) = fields.get("up").and_then(Value::as_bool) else {
        return Err(ApiError::invalid("up", "must be true or false"));
    };
    let reason = match fields.get("reason") {
        None | Some(Value::Null) => None,
        Some(Value::String(text)) if text.chars().count() <= 200 => Some(text.clone()),
        Some(_) => {
            return Err(ApiError::invalid(
                "reason",
                "must be a text of at most 200 characters",
            ));
        }
    };
    let pushed = PushedResult {
        is_up,
        reason,
        took: std::time::Duration::ZERO,
    };
    api.handle.push(&key, pushed).await?;
    note(&api, &actor, "monitor.status", &key).await?;
    Ok(json_of(&monitor(&found(&api, &key)?)))
}
