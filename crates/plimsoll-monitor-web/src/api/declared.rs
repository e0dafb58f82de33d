//! `/api/v1/declared-incidents`: incidents that operators declare and update.
//!
//! A request may be repeated with its `Idempotency-Key`; a change with `If-Match` is made only to the version that the
//! client has seen.

use axum::body::{Body, to_bytes};
use axum::extract::{Extension, Path, RawQuery, State};
use axum::response::Response;
use http::header::{ETAG, HeaderValue};
use http::{HeaderMap, StatusCode};
use plimsoll_model::Clock;
use plimsoll_monitor::config::ApiToken;
use plimsoll_monitor::manage::Actor;
use plimsoll_monitor::store::{
    Declared, DeclaredEdit, DeclaredId, Impact, MonitorId, NewDeclared, PublicPhase, StoreError,
};
use plimsoll_monitor::time::Timestamp;
use serde_json::{Map, Value, json};

use crate::answer::{Answer, ApiError, json_of};
use crate::api::query::Query;
use crate::state::Api;

/// Bytes of a body.
const MOST_BODY: usize = 64 * 1024;

/// Characters.
const MOST_TITLE: usize = 200;
const MOST_TEXT: usize = 5_000;
const MOST_KEY: usize = 200;

/// Incidents of one answer.
const MOST: usize = 200;

pub(super) async fn list(State(api): State<Api>, RawQuery(query): RawQuery) -> Answer {
    let mut query = Query::parse(query.as_deref());
    let limit = query.count("limit", 50, MOST)?;
    let state = query.take_text("state");
    let before = match query.take_text("cursor") {
        None => None,
        Some(text) => {
            let number = text.parse().ok().map(DeclaredId);
            Some(number.ok_or_else(|| ApiError::invalid("cursor", "is not one of this API"))?)
        }
    };
    query.finish()?;
    let since = match state.as_deref() {
        None => Timestamp(i64::MIN),
        Some("open") => Timestamp(i64::MAX),
        Some(_) => return Err(ApiError::invalid("state", "must be `open`, or be left out")),
    };
    let handle = &api.handle;
    let mut found = handle
        .store
        .declared(handle.org, since, before, limit + 1)
        .await?;
    let has_more = found.len() > limit;
    found.truncate(limit);
    let next = found.last().filter(|_| has_more).map(|one| one.id.0);
    let incidents: Vec<_> = found.iter().map(|one| shown(&api, one)).collect();
    Ok(json_of(&json!({
        "declared_incidents": incidents,
        "has_more": has_more,
        "next_cursor": next.map(|id| id.to_string()),
    })))
}

pub(super) async fn one(State(api): State<Api>, Path(id): Path<String>) -> Answer {
    let handle = &api.handle;
    let found = match number(&id) {
        Some(id) => handle.store.declared_one(handle.org, id).await?,
        None => None,
    };
    let found = found.ok_or_else(|| ApiError::not_found("declared incident"))?;
    Ok(answer(&api, &found, StatusCode::OK))
}

pub(super) async fn declare(
    State(api): State<Api>,
    Extension(actor): Extension<Actor>,
    fields: HeaderMap,
    body: Body,
) -> Answer {
    let (content, mut body) = Fields::read(body).await?;
    let now = Timestamp::from_system(api.clock.wall());
    let title = body
        .text("title", MOST_TITLE)?
        .filter(|title| !title.trim().is_empty());
    let title = title.ok_or_else(|| ApiError::invalid("title", "is missing"))?;
    let text = body.text("body", MOST_TEXT)?.unwrap_or_default();
    let phase = body.phase()?.unwrap_or(PublicPhase::Investigating);
    let impact = body.impact()?.unwrap_or(Impact::Minor);
    let counts = body.boolean("counts_as_downtime")?.unwrap_or(false);
    let started = match body.text("started_at", 64)? {
        None => now,
        Some(text) => Timestamp::parse(&text)
            .filter(|at| *at <= now)
            .ok_or_else(|| {
                ApiError::invalid("started_at", "must be a date of RFC 3339 that is not ahead")
            })?,
    };
    let monitors = body.monitors(&api)?.unwrap_or_default();
    body.finish()?;
    let idempotency = match fields.get("idempotency-key") {
        None => None,
        Some(key) => {
            let key = key.to_str().ok().filter(|key| {
                let length = key.len();
                (1..=MOST_KEY).contains(&length)
            });
            let key = key.ok_or_else(|| {
                ApiError::invalid("idempotency-key", "must have 1 to 200 visible characters")
            })?;
            Some((key.to_owned(), ApiToken::hash_of(&content)))
        }
    };
    let new = NewDeclared {
        title,
        phase,
        impact,
        counts_as_downtime: counts,
        started,
        monitors,
        body: text,
        actor: Some(actor.name.clone()),
        idempotency,
    };
    let handle = &api.handle;
    let declared = handle.store.declare(handle.org, new, now).await?;
    let object = declared.id.0.to_string();
    handle
        .note(&actor, "incident.declare", &object, now)
        .await?;
    handle.board.touch();
    Ok(answer(&api, &declared, StatusCode::CREATED))
}

pub(super) async fn edit(
    State(api): State<Api>,
    Extension(actor): Extension<Actor>,
    Path(id): Path<String>,
    fields: HeaderMap,
    body: Body,
) -> Answer {
    let id = number(&id).ok_or_else(|| ApiError::not_found("declared incident"))?;
    let (_, mut body) = Fields::read(body).await?;
    let version = crate::api::body::version(&fields)?;
    let edit = DeclaredEdit {
        title: body.text("title", MOST_TITLE)?,
        phase: body.phase()?,
        impact: body.impact()?,
        counts_as_downtime: body.boolean("counts_as_downtime")?,
        monitors: body.monitors(&api)?,
        body: body.text("body", MOST_TEXT)?,
        actor: Some(actor.name.clone()),
        version,
    };
    body.finish()?;
    if edit.title.as_ref().is_some_and(|it| it.trim().is_empty()) {
        return Err(ApiError::invalid("title", "must not be empty"));
    }
    let now = Timestamp::from_system(api.clock.wall());
    let handle = &api.handle;
    let edited = handle.store.edit_declared(handle.org, id, edit, now).await;
    let edited = edited.map_err(|error| match error {
        StoreError::Conflict => ApiError::stale(),
        error => error.into(),
    })?;
    let object = id.0.to_string();
    handle.note(&actor, "incident.update", &object, now).await?;
    handle.board.touch();
    Ok(answer(&api, &edited, StatusCode::OK))
}

fn number(text: &str) -> Option<DeclaredId> {
    text.parse().ok().map(DeclaredId)
}

fn answer(api: &Api, declared: &Declared, status: StatusCode) -> Response {
    let mut response = json_of(&shown(api, declared));
    *response.status_mut() = status;
    if let Ok(tag) = HeaderValue::from_str(&format!("\"{}\"", declared.version)) {
        response.headers_mut().insert(ETAG, tag);
    }
    response
}

fn shown(api: &Api, declared: &Declared) -> Value {
    let monitors = declared.monitors.iter();
    let monitors: Vec<_> = monitors
        .filter_map(|monitor| api.handle.board.key(*monitor))
        .collect();
    let updates: Vec<_> = declared
        .updates
        .iter()
        .map(|update| {
            json!({
                "at": update.at.to_string(),
                "phase": update.phase.name(),
                "body": update.body,
                "actor": update.actor,
            })
        })
        .collect();
    json!({
        "id": declared.id.0,
        "version": declared.version,
        "title": declared.title,
        "phase": declared.phase.name(),
        "impact": declared.impact.name(),
        "counts_as_downtime": declared.counts_as_downtime,
        "started_at": declared.started.to_string(),
        "resolved_at": declared.resolved.map(|at| at.to_string()),
        "changed_at": declared.changed.to_string(),
        "monitors": monitors,
        "updates": updates,
    })
}

/// The fields of a body, which are taken.
struct Fields(Map<String, Value>);

impl Fields {
    /// The content as it came, and its fields.
    async fn read(body: Body) -> Result<(String, Self), ApiError> {
        let content = to_bytes(body, MOST_BODY).await;
        let content = content.map_err(|_| ApiError::invalid("body", "is longer than 64 KiB"))?;
        let parsed: Value = serde_json::from_slice(&content)
            .map_err(|error| ApiError::invalid("body", format!("is not JSON: {error}")))?;
        match parsed {
            Value::Object(fields) => {
                let content = String::from_utf8_lossy(&content).into_owned();
                Ok((content, Self(fields)))
            }
            _ => Err(ApiError::invalid("body", "must be an object")),
        }
    }

    fn text(&mut self, name: &'static str, most: usize) -> Result<Option<String>, ApiError> {
        match self.0.remove(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) if text.chars().count() <= most => Ok(Some(text)),
            Some(_) => Err(ApiError::invalid(
                name,
                format!("must be a text of at most {most} characters"),
            )),
        }
    }

    fn boolean(&mut self, name: &'static str) -> Result<Option<bool>, ApiError> {
        match self.0.remove(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Bool(is_set)) => Ok(Some(is_set)),
            Some(_) => Err(ApiError::invalid(name, "must be true or false")),
        }
    }

    fn phase(&mut self) -> Result<Option<PublicPhase>, ApiError> {
        let names = PublicPhase::ALL.map(PublicPhase::name);
        let text = self.text("phase", 64)?;
        text.map(|text| PublicPhase::named(&text).ok_or_else(|| one_of("phase", &names)))
            .transpose()
    }

    fn impact(&mut self) -> Result<Option<Impact>, ApiError> {
        let names = Impact::ALL.map(Impact::name);
        let text = self.text("impact", 64)?;
        text.map(|text| Impact::named(&text).ok_or_else(|| one_of("impact", &names)))
            .transpose()
    }

    /// Keys of monitors.
    fn monitors(&mut self, api: &Api) -> Result<Option<Vec<MonitorId>>, ApiError> {
        let keys = match self.0.remove("monitors") {
            None | Some(Value::Null) => return Ok(None),
            Some(Value::Array(keys)) => keys,
            Some(_) => return Err(ApiError::invalid("monitors", "must be a list of keys")),
        };
        let find = |key: &Value| {
            let key = key
                .as_str()
                .ok_or_else(|| ApiError::invalid("monitors", "must be a list of keys"))?;
            let view = api.handle.board.view(key);
            view.map(|view| view.id)
                .ok_or_else(|| ApiError::invalid("monitors", format!("there is no `{key}`")))
        };
        keys.iter().map(find).collect::<Result<_, _>>().map(Some)
    }

    /// Refuses what was not taken.
    fn finish(self) -> Result<(), ApiError> {
        match self.0.keys().next() {
            None => Ok(()),
            Some(name) => Err(ApiError::invalid("body", format!("unknown key `{name}`"))),
        }
    }
}

fn one_of(field: &'static str, names: &[&str]) -> ApiError {
    ApiError::invalid(field, format!("must be one of {}", names.join(", ")))
}
