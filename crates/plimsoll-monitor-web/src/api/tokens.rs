//! `/api/v1/tokens` and `/api/v1/audit`: who may use the API, and what was changed.

use axum::body::Body;
use axum::extract::{Extension, Path, RawQuery, State};
use axum::response::Response;
use http::header::{CACHE_CONTROL, HeaderValue};
use http::{HeaderMap, StatusCode};
use plimsoll_model::Clock;
use plimsoll_monitor::config::ApiToken;
use plimsoll_monitor::manage::Actor;
use plimsoll_monitor::store::{NewToken, Scope, StoredToken};
use plimsoll_monitor::time::Timestamp;
use serde_json::{Value, json};

use crate::answer::{Answer, ApiError, json_of};
use crate::api::body;
use crate::api::query::Query;
use crate::state::Api;

const MOST_BODY: usize = 16 * 1024;
const MOST_NAME: usize = 100;
const MOST: usize = 500;

pub(super) async fn list(State(api): State<Api>, RawQuery(query): RawQuery) -> Answer {
    Query::parse(query.as_deref()).finish()?;
    let handle = &api.handle;
    let now = Timestamp::from_system(api.clock.wall());
    let tokens = handle.store.tokens(handle.org).await?;
    let stored = tokens.iter().map(|token| shown(token, now));
    let of_file = handle.board.tokens();
    let of_file = of_file.iter().map(|token| {
        json!({ "name": token.name, "scope": token.scope.name(), "source": "file", "valid": true })
    });
    let all: Vec<_> = of_file.chain(stored).collect();
    Ok(json_of(&json!({ "tokens": all })))
}

fn shown(stored: &StoredToken, now: Timestamp) -> Value {
    json!({
        "id": stored.id,
        "name": stored.token.name,
        "scope": stored.token.scope.name(),
        "source": "store",
        "valid": stored.is_valid(now),
        "created_at": stored.created.to_string(),
        "created_by": stored.token.creator,
        "expires_at": stored.token.until.map(|at| at.to_string()),
        "revoked_at": stored.revoked.map(|at| at.to_string()),
    })
}

/// `{"name", "scope", "expires_at"}`; the response is the only one that has the token.
pub(super) async fn create(
    State(api): State<Api>,
    Extension(actor): Extension<Actor>,
    fields: HeaderMap,
    body: Body,
) -> Answer {
    if fields.contains_key("idempotency-key") {
        return Err(ApiError::invalid(
            "idempotency-key",
            "is not for tokens: their responses are kept nowhere",
        ));
    }
    let (_, value) = body::json(body, MOST_BODY).await?;
    let Value::Object(mut entries) = value else {
        return Err(ApiError::invalid("body", "must be an object"));
    };
    let name = match entries.remove("name") {
        Some(Value::String(name)) if is_name(&name) => name,
        _ => {
            return Err(ApiError::invalid(
                "name",
                "must be a text of 1 to 100 characters",
            ));
        }
    };
    let scope = match entries.remove("scope") {
        None => Scope::Read,
        Some(value) => value
            .as_str()
            .and_then(Scope::named)
            .ok_or_else(|| ApiError::invalid("scope", "must be one of read, write, admin"))?,
    };
    let now = Timestamp::from_system(api.clock.wall());
    let until = match entries.remove("expires_at") {
        None | Some(Value::Null) => None,
        Some(value) => {
            let until = value.as_str().and_then(Timestamp::parse);
            let until = until.filter(|until| *until > now);
            Some(until.ok_or_else(|| {
                ApiError::invalid("expires_at", "must be a date of RFC 3339 that is ahead")
            })?)
        }
    };
    if let Some(unknown) = entries.keys().next() {
        return Err(ApiError::invalid(
            "body",
            format!("unknown key `{unknown}`; known are name, scope, expires_at"),
        ));
    }
    let (token, stored) = add(&api, &actor, name, scope, until).await?;
    let mut answer = shown(&stored, now);
    answer["token"] = token.into();
    let mut response = json_of(&answer);
    *response.status_mut() = StatusCode::CREATED;
    let fields = response.headers_mut();
    fields.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

/// Whether a text can be the name of a token or a user.
pub(crate) fn is_name(name: &str) -> bool {
    !name.trim().is_empty() && name.chars().count() <= MOST_NAME && !name.contains(char::is_control)
}

/// Makes a token, which is returned once and kept as a hash.
pub(crate) async fn add(
    api: &Api,
    actor: &Actor,
    name: String,
    scope: Scope,
    until: Option<Timestamp>,
) -> Result<(String, StoredToken), ApiError> {
    let now = Timestamp::from_system(api.clock.wall());
    let token = ApiToken::generate().map_err(|_| ApiError::no_random())?;
    let new = NewToken {
        name,
        hash: ApiToken::hash_of(&token),
        scope,
        until,
        creator: actor.name.clone(),
    };
    let handle = &api.handle;
    let id = handle.store.add_token(handle.org, new.clone(), now).await?;
    handle.note(actor, "token.create", &new.name, now).await?;
    handle.refresh_access().await?;
    let stored = StoredToken {
        id,
        token: new,
        created: now,
        revoked: None,
    };
    Ok((token, stored))
}

pub(super) async fn remove(
    State(api): State<Api>,
    Extension(actor): Extension<Actor>,
    Path(id): Path<String>,
) -> Answer {
    let id = id.parse().map_err(|_| ApiError::not_found("token"))?;
    if !revoke(&api, &actor, id).await? {
        return Err(ApiError::not_found("token"));
    }
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    Ok(response)
}

/// Revokes a token; false if there is none that is valid.
pub(crate) async fn revoke(api: &Api, actor: &Actor, id: i64) -> Result<bool, ApiError> {
    let handle = &api.handle;
    let now = Timestamp::from_system(api.clock.wall());
    let was_there = handle.store.revoke_token(handle.org, id, now).await?;
    if was_there {
        let object = id.to_string();
        handle.note(actor, "token.revoke", &object, now).await?;
        handle.refresh_access().await?;
    }
    Ok(was_there)
}

pub(super) async fn audit(State(api): State<Api>, RawQuery(query): RawQuery) -> Answer {
    let mut query = Query::parse(query.as_deref());
    let limit = query.count("limit", 100, MOST)?;
    let before = match query.take_text("cursor") {
        None => None,
        Some(text) => {
            let number = text.parse().ok();
            Some(number.ok_or_else(|| ApiError::invalid("cursor", "is not one of this API"))?)
        }
    };
    query.finish()?;
    let handle = &api.handle;
    let mut found = handle.store.audit(handle.org, before, limit + 1).await?;
    let has_more = found.len() > limit;
    found.truncate(limit);
    let next = found
        .last()
        .filter(|_| has_more)
        .map(|one| one.id.to_string());
    let entries: Vec<_> = found
        .iter()
        .map(|one| {
            json!({
                "id": one.id,
                "at": one.at.to_string(),
                "actor": one.entry.actor,
                "address": one.entry.address,
                "action": one.entry.action,
                "object": one.entry.object,
                "detail": one.entry.detail,
            })
        })
        .collect();
    Ok(json_of(
        &json!({ "entries": entries, "has_more": has_more, "next_cursor": next }),
    ))
}
