//! `/api/v1/notices`: what waits to be sent, and what became of the rest.

use axum::extract::{Extension, RawQuery, State};
use plimsoll_monitor::notify::Message;
use plimsoll_monitor::store::{NoticeState, Scope, StoredNotice};
use serde_json::{Value, json};

use crate::access::Held;
use crate::answer::{Answer, ApiError, json_of};
use crate::api::query::Query;
use crate::page::subscribe;
use crate::state::Api;

/// Notices of one answer.
const MOST: usize = 500;

pub(super) async fn list(
    State(api): State<Api>,
    Extension(held): Extension<Held>,
    RawQuery(query): RawQuery,
) -> Answer {
    let mut query = Query::parse(query.as_deref());
    let limit = query.count("limit", 100, MOST)?;
    let state = match query.take_text("state") {
        None => None,
        Some(name) => {
            let known = NoticeState::ALL
                .into_iter()
                .find(|state| state.name() == name);
            Some(known.ok_or_else(|| {
                let names = NoticeState::ALL.map(NoticeState::name).join(", ");
                ApiError::invalid("state", format!("must be one of {names}"))
            })?)
        }
    };
    query.finish()?;
    let handle = &api.handle;
    let found = handle.store.notices(handle.org, state, limit).await?;
    let sees_readers = held.0 >= Scope::Admin;
    let shown = |notice| shown(notice, sees_readers);
    let notices: Vec<_> = found.iter().map(shown).collect();
    Ok(json_of(&json!({ "notices": notices })))
}

/// - `sees_readers`: whether it may have addresses of subscribers, which mail servers repeat in their errors.
fn shown(notice: &StoredNotice, sees_readers: bool) -> Value {
    let is_shown = sees_readers || notice.channel != subscribe::CHANNEL;
    let error = notice.error.as_deref().map(|error| {
        if is_shown {
            error
        } else {
            "a token with the scope `admin` sees why"
        }
    });
    let message = match Message::of_notice(notice) {
        Some(message) => message.to_json(),
        None => serde_json::from_str(&notice.message).unwrap_or_default(),
    };
    json!({
        "id": notice.id.0,
        "channel": notice.channel,
        "state": notice.state.name(),
        "created_at": notice.created.to_string(),
        "due_at": notice.due.to_string(),
        "attempts": notice.attempts,
        "error": error,
        "message": message,
    })
}
