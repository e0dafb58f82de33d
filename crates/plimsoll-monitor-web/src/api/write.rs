//! `POST`, `PUT`, `PATCH` and `DELETE` of `/api/v1/monitors`: monitors that are kept in the store.

use axum::body::Body;
use axum::extract::{Extension, Path, RawQuery, State};
use axum::response::Response;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, HeaderValue, LOCATION};
use http::{HeaderMap, Method, StatusCode};
use plimsoll_model::Clock;
use plimsoll_monitor::config::{Source, key_of, mask};
use plimsoll_monitor::engine::View;
use plimsoll_monitor::manage::{Actor, ChangeError, Put, json_of_table, patched, table_of};
use plimsoll_monitor::store::{Definition, DefinitionKind, Replay, Scope, StoreError};
use plimsoll_monitor::time::Timestamp;
use serde_json::{Value, json};

use crate::access::Held;
use crate::answer::{Answer, ApiError, json_of, with_type};
use crate::api::body;
use crate::api::monitors::{found, monitor};
use crate::api::query::Query;
use crate::state::Api;

/// Bytes of one definition, and of many.
const MOST_BODY: usize = 64 * 1024;
const MOST_BULK: usize = 16 * 1024 * 1024;

/// Changes of one request.
const MOST_CHANGES: usize = 10_000;

const PATH: &str = "/api/v1/monitors";

/// Adds a monitor.
pub(super) async fn create(
    State(api): State<Api>,
    Extension(actor): Extension<Actor>,
    fields: HeaderMap,
    body: Body,
) -> Answer {
    let (content, value) = body::json(body, MOST_BODY).await?;
    let mut replay = body::replay(&Method::POST, PATH, &fields, &content)?;
    if let Some(known) = repeated(&api, replay.as_ref()).await? {
        let key = known["key"].as_str().unwrap_or_default();
        let view = found(&api, key)?;
        return shown(&api, &view, StatusCode::CREATED).await;
    }
    let table = table_of(&value).map_err(|error| ApiError::invalid("body", error.to_string()))?;
    let text = |key: &str| {
        table
            .get(key)
            .and_then(toml::Value::as_str)
            .unwrap_or_default()
    };
    let key = key_of(text("group"), text("name"));
    if let Some(replay) = &mut replay {
        replay.answer = json!({ "key": key }).to_string();
    }
    let put = Put {
        id: None,
        was: None,
        version: None,
        table,
    };
    let now = Timestamp::from_system(api.clock.wall());
    api.handle
        .change_monitors(&actor, vec![put], Vec::new(), replay, now)
        .await?;
    let view = found(&api, &key)?;
    let mut response = shown(&api, &view, StatusCode::CREATED).await?;
    if let Ok(location) = HeaderValue::from_str(&format!("{PATH}/{}", encoded(&key))) {
        response.headers_mut().insert(LOCATION, location);
    }
    Ok(response)
}

/// A key as it stands in a path.
pub(crate) fn encoded(key: &str) -> String {
    percent_encoding::utf8_percent_encode(key, percent_encoding::NON_ALPHANUMERIC).to_string()
}

/// The response to an earlier request with this key; a conflict if it was another request.
async fn repeated(api: &Api, replay: Option<&Replay>) -> Result<Option<Value>, ApiError> {
    let Some(replay) = replay else {
        return Ok(None);
    };
    let handle = &api.handle;
    match handle.store.replay(handle.org, &replay.key).await? {
        None => Ok(None),
        Some(known) if known.request == replay.request => Ok(Some(
            serde_json::from_str(&known.answer).unwrap_or_default(),
        )),
        Some(_) => Err(ApiError::conflict(
            "the Idempotency-Key was used for another request",
        )),
    }
}

/// Replaces a definition; the key changes with group and name, and the history stays.
pub(super) async fn replace(
    State(api): State<Api>,
    Extension(actor): Extension<Actor>,
    Path(key): Path<String>,
    fields: HeaderMap,
    body: Body,
) -> Answer {
    let (_, value) = body::json(body, MOST_BODY).await?;
    let version = body::version(&fields)?;
    found(&api, &key)?;
    let table = table_of(&value).map_err(|error| ApiError::invalid("body", error.to_string()))?;
    let put = Put {
        id: None,
        was: Some(key),
        version,
        table,
    };
    changed(&api, &actor, put, version.is_some()).await
}

/// Changes a definition by a JSON merge patch (RFC 7396).
pub(super) async fn patch(
    State(api): State<Api>,
    Extension(actor): Extension<Actor>,
    Path(key): Path<String>,
    fields: HeaderMap,
    body: Body,
) -> Answer {
    let (_, value) = body::json(body, MOST_BODY).await?;
    let given = body::version(&fields)?;
    let known = definition(&api, &key).await?;
    if given.is_some_and(|given| given != known.version) {
        return Err(ApiError::stale());
    }
    if !value.is_object() {
        return Err(ApiError::invalid("body", "must be an object"));
    }
    let table = patched(&known.text, &value)
        .map_err(|error| ApiError::invalid("body", error.to_string()))?;
    let put = Put {
        id: None,
        was: Some(key),
        // Another change since would be lost.
        version: Some(known.version),
        table,
    };
    changed(&api, &actor, put, given.is_some()).await
}

/// - `is_conditional`: whether the client names the version.
async fn changed(api: &Api, actor: &Actor, put: Put, is_conditional: bool) -> Answer {
    let now = Timestamp::from_system(api.clock.wall());
    let written = api
        .handle
        .change_monitors(actor, vec![put], Vec::new(), None, now)
        .await
        .map_err(|error| refusal(error, is_conditional))?;
    let key = written.first().map(|one| one.key.clone());
    let view = found(api, &key.unwrap_or_default())?;
    shown(api, &view, StatusCode::OK).await
}

/// A version that the client named is not the present one, which is an error of its condition.
pub(super) fn refusal(error: ChangeError, is_conditional: bool) -> ApiError {
    match error {
        ChangeError::Store(StoreError::Conflict) if is_conditional => ApiError::stale(),
        error => error.into(),
    }
}

async fn definition(api: &Api, key: &str) -> Result<Definition, ApiError> {
    let view = found(api, key)?;
    if view.source == Source::File {
        return Err(ApiError::read_only(key));
    }
    let found = api.handle.definition(DefinitionKind::Monitor, key).await?;
    found.ok_or_else(|| ApiError::not_found("monitor"))
}

/// Removes a monitor; its history stays in the store.
pub(super) async fn remove(
    State(api): State<Api>,
    Extension(actor): Extension<Actor>,
    Path(key): Path<String>,
    fields: HeaderMap,
) -> Answer {
    let version = body::version(&fields)?;
    found(&api, &key)?;
    let now = Timestamp::from_system(api.clock.wall());
    let removals = vec![(key, version)];
    api.handle
        .change_monitors(&actor, Vec::new(), removals, None, now)
        .await
        .map_err(|error| refusal(error, version.is_some()))?;
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    Ok(response)
}

/// `{"put": [definitions], "delete": [keys]}`: monitors with the key of a definition are replaced, others added.
pub(super) async fn bulk(
    State(api): State<Api>,
    Extension(actor): Extension<Actor>,
    fields: HeaderMap,
    body: Body,
) -> Answer {
    let (content, value) = body::json(body, MOST_BULK).await?;
    let path = format!("{PATH}/bulk");
    let mut replay = body::replay(&Method::POST, &path, &fields, &content)?;
    if let Some(known) = repeated(&api, replay.as_ref()).await? {
        return Ok(json_of(&known));
    }
    let Value::Object(mut entries) = value else {
        return Err(ApiError::invalid("body", "must be an object"));
    };
    let mut list = |name: &'static str| match entries.remove(name) {
        None => Ok(Vec::new()),
        Some(Value::Array(all)) => Ok(all),
        Some(_) => Err(ApiError::invalid(name, "must be a list")),
    };
    let (puts, removals) = (list("put")?, list("delete")?);
    if let Some(unknown) = entries.keys().next() {
        return Err(ApiError::invalid(
            "body",
            format!("unknown key `{unknown}`; known are put, delete"),
        ));
    }
    if puts.len() + removals.len() > MOST_CHANGES {
        let message = format!("holds more than {MOST_CHANGES} changes; send several requests");
        return Err(ApiError::invalid("body", message));
    }
    let mut changes = Vec::with_capacity(puts.len());
    let mut created = 0_usize;
    for (index, value) in puts.iter().enumerate() {
        let table = table_of(value)
            .map_err(|why| ApiError::invalid("put", format!("number {}: {why}", index + 1)))?;
        let text = |key: &str| {
            table
                .get(key)
                .and_then(toml::Value::as_str)
                .unwrap_or_default()
        };
        let key = key_of(text("group"), text("name"));
        let known = api.handle.board.view(&key);
        created += usize::from(known.is_none());
        changes.push(Put {
            id: None,
            was: known.map(|_| key),
            version: None,
            table,
        });
    }
    let mut gone = Vec::with_capacity(removals.len());
    for key in &removals {
        let key = key
            .as_str()
            .ok_or_else(|| ApiError::invalid("delete", "must be a list of keys"))?;
        if api.handle.board.view(key).is_none() {
            return Err(ApiError::invalid("delete", format!("there is no `{key}`")));
        }
        gone.push((key.to_owned(), None));
    }
    let answer = json!({
        "created": created,
        "updated": changes.len() - created,
        "deleted": gone.len(),
    });
    if let Some(replay) = &mut replay {
        replay.answer = answer.to_string();
    }
    let now = Timestamp::from_system(api.clock.wall());
    api.handle
        .change_monitors(&actor, changes, gone, replay, now)
        .await?;
    Ok(json_of(&answer))
}

/// A monitor with its definition, for those that may write.
pub(super) async fn shown(api: &Api, view: &View, status: StatusCode) -> Answer {
    let mut value = monitor(view);
    let mut tag = None;
    if view.source == Source::Store
        && let Some(definition) = api
            .handle
            .definition(DefinitionKind::Monitor, &view.plan.key)
            .await?
    {
        let mut table: toml::Table = toml::from_str(&definition.text).unwrap_or_default();
        mask::mask(&mut table);
        value["definition"] = json_of_table(&table);
        value["id"] = definition.id.into();
        value["version"] = definition.version.into();
        tag = HeaderValue::from_str(&format!("\"{}\"", definition.version)).ok();
    }
    let mut response = json_of(&value);
    *response.status_mut() = status;
    if let Some(tag) = tag {
        response.headers_mut().insert(ETAG, tag);
    }
    Ok(response)
}

/// The monitors of the store as a configuration file.
///
/// Credentials are in it for the scope `admin` alone.
pub(super) async fn export(
    State(api): State<Api>,
    Extension(Held(scope)): Extension<Held>,
    RawQuery(query): RawQuery,
) -> Answer {
    Query::parse(query.as_deref()).finish()?;
    let handle = &api.handle;
    let all = handle
        .store
        .definitions(handle.org, DefinitionKind::Monitor)
        .await?;
    let tables = all.iter().map(|(definition, _)| {
        let mut table: toml::Table = toml::from_str(&definition.text).unwrap_or_default();
        if scope < Scope::Admin {
            mask::mask(&mut table);
        }
        toml::Value::Table(table)
    });
    let mut root = toml::Table::new();
    root.insert("monitor".to_owned(), toml::Value::Array(tables.collect()));
    let text = if all.is_empty() {
        String::new()
    } else {
        root.to_string()
    };
    let mut response = with_type(text, "application/toml");
    let fields = response.headers_mut();
    fields.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    debug_assert!(fields.contains_key(CONTENT_TYPE));
    Ok(response)
}
