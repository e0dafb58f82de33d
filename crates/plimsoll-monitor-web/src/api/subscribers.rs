//! `/api/v1/subscribers`: who receives messages of status pages.

use axum::extract::{Extension, Path, RawQuery, State};
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use plimsoll_model::Clock;
use plimsoll_monitor::manage::Actor;
use plimsoll_monitor::time::Timestamp;
use serde_json::{Value, json};

use crate::answer::{Answer, ApiError, json_of};
use crate::api::query::Query;
use crate::page::subscribe::{self, Subscriber};
use crate::state::Api;

/// Subscribers of one answer.
const MOST: usize = 500;

pub(super) async fn list(State(api): State<Api>, RawQuery(query): RawQuery) -> Answer {
    let mut query = Query::parse(query.as_deref());
    let limit = query.count("limit", 100, MOST)?;
    let cursor = query.take_text("cursor");
    let page = query.take_text("page");
    query.finish()?;
    let all = subscribe::list(&api.handle).await?;
    let mut found: Vec<_> = all
        .iter()
        .filter(|(id, _)| cursor.as_ref().is_none_or(|cursor| id > cursor))
        .filter(|(_, one)| page.as_ref().is_none_or(|page| one.page == *page))
        .take(limit + 1)
        .collect();
    let has_more = found.len() > limit;
    found.truncate(limit);
    let next = found.last().filter(|_| has_more).map(|(id, _)| id.clone());
    let found: Vec<_> = found.into_iter().map(|(id, one)| shown(id, one)).collect();
    Ok(json_of(
        &json!({ "subscribers": found, "has_more": has_more, "next_cursor": next }),
    ))
}

fn shown(id: &str, one: &Subscriber) -> Value {
    json!({
        "id": id,
        "page": one.page,
        "means": one.means.name(),
        "address": one.address,
        "language": one.language,
        "subscribed_at": one.confirmed.map(|at| Timestamp(at).to_string()),
    })
}

pub(super) async fn remove(
    State(api): State<Api>,
    Path(id): Path<String>,
    Extension(actor): Extension<Actor>,
) -> Result<Response, ApiError> {
    let _changing = api.handle.changing.lock().await;
    let now = Timestamp::from_system(api.clock.wall());
    let audit = actor.audit("subscriber.delete", &id);
    subscribe::remove(&api.handle, &id, Some(audit), now).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
