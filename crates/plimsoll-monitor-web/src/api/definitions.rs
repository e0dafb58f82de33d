//! `/api/v1/definitions/KIND/ID`: what the store defines, of every kind, by ids that stay.
//!
//! For tools that keep a description of everything and make it so, such as providers of Terraform: `PUT` adds or replaces,
//! the same again changes nothing, the response is what a later `GET` returns, and `If-Match` keeps a change from
//! overwriting another one.

use axum::body::Body;
use axum::extract::{Extension, Path, RawQuery, State};
use axum::response::Response;
use http::header::{ETAG, HeaderValue, IF_MATCH, IF_NONE_MATCH, LOCATION};
use http::{HeaderMap, Method, StatusCode};
use plimsoll_model::Clock;
use plimsoll_monitor::config::mask;
use plimsoll_monitor::manage::{Actor, ChangeError, Put, json_of_table, table_of};
use plimsoll_monitor::store::{Definition, DefinitionKind, Scope};
use plimsoll_monitor::time::Timestamp;
use serde_json::{Value, json};

use crate::access::Audience;
use crate::access::routes::Routes;
use crate::answer::{Answer, ApiError, json_of};
use crate::api::body;
use crate::api::query::Query;
use crate::api::write::{encoded, refusal};
use crate::page::share;
use crate::state::Api;

/// The kinds that clients define, with the scope that each needs: the same as the role in the admin pages.
pub(super) const KINDS: [(DefinitionKind, Scope); 6] = [
    (DefinitionKind::Monitor, Scope::Write),
    (DefinitionKind::Maintenance, Scope::Write),
    (DefinitionKind::Page, Scope::Write),
    (DefinitionKind::Channel, Scope::Admin),
    (DefinitionKind::OnCall, Scope::Admin),
    (DefinitionKind::Escalation, Scope::Admin),
];

/// Bytes of a definition: a page may have a logo and a style sheet in it.
const MOST_BODY: usize = 1024 * 1024;

/// Definitions of one response.
const MOST: usize = 500;

/// Characters of an id that a client chooses.
const MOST_ID: usize = 100;

/// The routes of each kind.
pub(super) fn routes(api: &Api) -> Routes {
    KINDS
        .into_iter()
        .fold(Routes::new(api), |routes, (kind, scope)| {
            let who = Audience::Scope(scope);
            let (all, one) = (path(kind), format!("{}/{{id}}", path(kind)));
            routes
                .get(
                    who,
                    &all,
                    move |State(api): State<Api>, RawQuery(query): RawQuery| list(api, kind, query),
                )
                .get(
                    who,
                    &one,
                    move |State(api): State<Api>, Path(id): Path<String>| get(api, kind, id),
                )
                .on(
                    Method::PUT,
                    who,
                    &one,
                    move |State(api): State<Api>,
                          Extension(actor): Extension<Actor>,
                          Path(id): Path<String>,
                          fields: HeaderMap,
                          body: Body| put(api, actor, (kind, id), fields, body),
                )
                .on(
                    Method::DELETE,
                    who,
                    &one,
                    move |State(api): State<Api>,
                          Extension(actor): Extension<Actor>,
                          Path(id): Path<String>,
                          fields: HeaderMap| {
                        remove(api, actor, (kind, id), fields)
                    },
                )
        })
}

fn path(kind: DefinitionKind) -> String {
    format!("/api/v1/definitions/{}", kind.name())
}

/// By id, so that a client can import existing definitions.
async fn list(api: Api, kind: DefinitionKind, query: Option<String>) -> Answer {
    let mut query = Query::parse(query.as_deref());
    let limit = query.count("limit", 100, MOST)?;
    let cursor = query.take_text("cursor");
    query.finish()?;
    let handle = &api.handle;
    let all = handle.store.definitions(handle.org, kind).await?;
    let all = all.into_iter().map(|(definition, _)| definition);
    let mut all: Vec<_> = all
        .filter(|one| cursor.as_ref().is_none_or(|cursor| one.id > *cursor))
        .collect();
    all.sort_by(|one, other| one.id.cmp(&other.id));
    let has_more = all.len() > limit;
    all.truncate(limit);
    let next = all.last().filter(|_| has_more).map(|one| one.id.clone());
    let definitions: Vec<_> = all.iter().map(|one| shown(&api, kind, one)).collect();
    Ok(json_of(&json!({
        "definitions": definitions,
        "has_more": has_more,
        "next_cursor": next,
    })))
}

async fn get(api: Api, kind: DefinitionKind, id: String) -> Answer {
    let handle = &api.handle;
    let found = handle.store.definition_by_id(handle.org, kind, &id).await?;
    let found = found.ok_or_else(|| ApiError::not_found("definition"))?;
    Ok(answer(&api, kind, &found, StatusCode::OK))
}

/// Adds the definition of an id, or replaces it.
async fn put(
    api: Api,
    actor: Actor,
    (kind, id): (DefinitionKind, String),
    fields: HeaderMap,
    body: Body,
) -> Answer {
    let (_, value) = body::json(body, MOST_BODY).await?;
    let conditions = Conditions::from_fields(&fields)?;
    let handle = &api.handle;
    let known = handle.store.definition_by_id(handle.org, kind, &id).await?;
    conditions.check(known.as_ref())?;
    if known.is_none() {
        check_id(&id)?;
    }
    let table = table_of(&value).map_err(|error| ApiError::invalid("body", error.to_string()))?;
    let put = Put {
        id: Some(id),
        was: known.as_ref().map(|known| known.key.clone()),
        version: conditions.version,
        table,
    };
    let now = Timestamp::from_system(api.clock.wall());
    let written = handle
        .put_definition(&actor, kind, put, known.as_ref(), now)
        .await
        .map_err(|error| conditions.refusal(error))?;
    if known.is_some() {
        return Ok(answer(&api, kind, &written, StatusCode::OK));
    }
    let mut response = answer(&api, kind, &written, StatusCode::CREATED);
    let location = format!("{}/{}", path(kind), encoded(&written.id));
    if let Ok(location) = HeaderValue::from_str(&location) {
        response.headers_mut().insert(LOCATION, location);
    }
    Ok(response)
}

async fn remove(
    api: Api,
    actor: Actor,
    (kind, id): (DefinitionKind, String),
    fields: HeaderMap,
) -> Answer {
    let conditions = Conditions::from_fields(&fields)?;
    let handle = &api.handle;
    let known = handle.store.definition_by_id(handle.org, kind, &id).await?;
    conditions.check(known.as_ref())?;
    let known = known.ok_or_else(|| ApiError::not_found("definition"))?;
    let now = Timestamp::from_system(api.clock.wall());
    handle
        .remove_definition(&actor, kind, (&known.key, conditions.version), now)
        .await
        .map_err(|error| conditions.refusal(error))?;
    if kind == DefinitionKind::Page {
        share::forget(handle, &actor, &known.key, now).await?;
    }
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    Ok(response)
}

/// The conditions of a change (RFC 9110, section 13.1).
struct Conditions {
    /// `If-Match`: there must be one.
    must_exist: bool,
    /// Of this version, unless it is `*`.
    version: Option<i64>,
    /// `If-None-Match: *`: there must be none.
    must_be_new: bool,
}

impl Conditions {
    fn from_fields(fields: &HeaderMap) -> Result<Self, ApiError> {
        let must_be_new = match fields.get(IF_NONE_MATCH) {
            None => false,
            Some(any) if any == "*" => true,
            Some(_) => {
                let why = "must be `*`, or be left out";
                return Err(ApiError::invalid("if-none-match", why));
            }
        };
        Ok(Self {
            must_exist: fields.contains_key(IF_MATCH),
            version: body::version(fields)?,
            must_be_new,
        })
    }

    fn check(&self, known: Option<&Definition>) -> Result<(), ApiError> {
        let is_met = match known {
            None => !self.must_exist,
            Some(known) => {
                !self.must_be_new && self.version.is_none_or(|version| version == known.version)
            }
        };
        if is_met {
            Ok(())
        } else {
            Err(ApiError::stale())
        }
    }

    /// Another change may have come between the look and the change.
    fn refusal(&self, error: ChangeError) -> ApiError {
        refusal(error, self.version.is_some() || self.must_be_new)
    }
}

/// Ids are parts of paths, and stand in the files of API clients.
fn check_id(id: &str) -> Result<(), ApiError> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '~');
    let begins = id.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
    if begins && id.len() <= MOST_ID && id.chars().all(is_plain) {
        return Ok(());
    }
    let why = format!(
        "must have 1 to {MOST_ID} letters, digits, `-`, `_`, `.` and `~`, and begin with a letter, a digit or `_`"
    );
    Err(ApiError::invalid("id", why))
}

fn answer(
    api: &Api,
    kind: DefinitionKind,
    definition: &Definition,
    status: StatusCode,
) -> Response {
    let mut response = json_of(&shown(api, kind, definition));
    *response.status_mut() = status;
    if let Ok(tag) = HeaderValue::from_str(&format!("\"{}\"", definition.version)) {
        response.headers_mut().insert(ETAG, tag);
    }
    response
}

/// A definition without its credentials, as `PUT` takes it, with what the store knows about it.
fn shown(api: &Api, kind: DefinitionKind, definition: &Definition) -> Value {
    let mut table: toml::Table = toml::from_str(&definition.text).unwrap_or_default();
    mask::mask_definition(kind, &mut table);
    let problems = api.handle.board.left_out(kind, &definition.key);
    json!({
        "id": definition.id,
        "kind": kind.name(),
        "key": definition.key,
        "version": definition.version,
        "created_at": definition.created.to_string(),
        "changed_at": definition.changed.to_string(),
        "in_force": problems.is_empty(),
        "problems": problems,
        "definition": json_of_table(&table),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_words_of_paths() {
        for good in ["shop", "_shop", "9e107d9d-372b-4f5c-8a1e", "a.b~c", "A"] {
            assert!(check_id(good).is_ok(), "{good}");
        }
        let long = "x".repeat(MOST_ID + 1);
        for wrong in ["", "..", "-a", "a b", "a/b", "ü", "a%20", long.as_str()] {
            assert!(check_id(wrong).is_err(), "{wrong}");
        }
    }
}
