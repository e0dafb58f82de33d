//! `/api/v3/checks/`: heartbeats by the management API of Healthchecks, for its clients, scripts and Terraform provider.
//!
//! A check is a monitor with a heartbeat, its UUID the token in the address of its pings. Field names, statuses and the form of
//! errors are as Healthchecks documents them. Fields without a counterpart here are rejected by name.

mod check;

mod spec;

use axum::body::{Body, to_bytes};
use axum::extract::{Extension, Path, RawQuery, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::header::{AUTHORIZATION, HeaderName, HeaderValue};
use http::{Method, StatusCode};
use plimsoll_model::Clock;
use plimsoll_monitor::config::{Source, key_of};
use plimsoll_monitor::detect::status::{Health, Status};
use plimsoll_monitor::engine::{CommandError, is_late};
use plimsoll_monitor::manage::{Actor, ChangeError, Put};
use plimsoll_monitor::store::{DefinitionKind, Scope, StoreError};
use plimsoll_monitor::time::Timestamp;
use serde_json::{Value, json};

use crate::access::routes::Routes;
use crate::access::{Audience, Held};
use crate::answer::{ApiError, json_of};
use crate::api::healthchecks::check::{Check, channels_of, id_of, micros, seconds, uuid_of};
use crate::api::healthchecks::spec::Spec;
use crate::random;
use crate::request::{origin_of, parameter};
use crate::state::Api;

/// Bytes of a body.
const MOST_BODY: usize = 64 * 1024;

/// Pings of one response, and results that are looked at for them.
const MOST_PINGS: usize = 100;
const MOST_RESULTS: usize = 500;

/// Monitors beyond which a ping adds no more of them.
const MOST_MONITORS: usize = 10_000;

/// Characters of a unique key.
const UNIQUE_KEY: usize = 40;

/// The routes of the API.
pub(super) fn routes(api: &Api) -> Routes {
    let (reader, writer) = (Audience::Reader, Audience::Scope(Scope::Write));
    let (all, one) = ("/api/v3/checks/", "/api/v3/checks/{id}");
    let below = |rest: &str| format!("{one}/{rest}");
    Routes::new(api)
        .get(reader, all, list)
        .post(writer, all, create)
        .get(reader, one, get)
        .post(writer, one, update)
        .on(Method::DELETE, writer, one, remove)
        .post(writer, &below("pause"), pause)
        .post(writer, &below("resume"), resume)
        .get(writer, &below("pings/"), pings)
        .get(reader, &below("flips/"), flips)
        .get(writer, "/api/v3/channels/", channels)
        .layer(translate)
}

/// An error as Healthchecks reports it: `{"error": "…"}`.
#[derive(Debug)]
struct Refusal {
    status: StatusCode,
    message: String,
}

impl Refusal {
    fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self {
            status,
            message: message.into(),
        }
    }

    fn invalid(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    fn missing() -> Self {
        Self::new(StatusCode::NOT_FOUND, "not found")
    }

    fn of_file(name: &str) -> Self {
        let message = format!("the configuration file defines `{name}`; change it there");
        Self::new(StatusCode::CONFLICT, message)
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut response = json_of(&json!({ "error": self.message }));
        *response.status_mut() = self.status;
        response
    }
}

impl From<ApiError> for Refusal {
    fn from(error: ApiError) -> Self {
        Self::new(error.status(), error.message())
    }
}

impl From<ChangeError> for Refusal {
    fn from(error: ChangeError) -> Self {
        ApiError::from(error).into()
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        ApiError::from(error).into()
    }
}

impl From<CommandError> for Refusal {
    fn from(error: CommandError) -> Self {
        ApiError::from(error).into()
    }
}

type Outcome = Result<Response, Refusal>;

/// Takes the API key from where clients of Healthchecks put it, and gives refusals of access the form that they know.
async fn translate(mut request: Request, next: Next) -> Response {
    const FIELD: HeaderName = HeaderName::from_static("x-api-key");

    let mut key = request.headers().get(FIELD).cloned();
    if key.is_none() && request.method() == Method::POST {
        let (parts, body) = request.into_parts();
        let Ok(content) = to_bytes(body, MOST_BODY).await else {
            return Refusal::invalid("could not parse request body").into_response();
        };
        let value: Value = serde_json::from_slice(&content).unwrap_or_default();
        let given = value.get("api_key").and_then(Value::as_str);
        key = given.and_then(|given| HeaderValue::from_str(given).ok());
        request = Request::from_parts(parts, Body::from(content));
    }
    if let Some(key) = key {
        let bearer = [b"Bearer ", key.as_bytes()].concat();
        if let Ok(bearer) = HeaderValue::from_bytes(&bearer) {
            request.headers_mut().insert(AUTHORIZATION, bearer);
        }
    }
    let why = if request.headers().contains_key(AUTHORIZATION) {
        "wrong api key"
    } else {
        "missing api key"
    };
    let response = next.run(request).await;
    match response.status() {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            Refusal::new(StatusCode::UNAUTHORIZED, why).into_response()
        }
        _ => response,
    }
}

async fn list(
    State(api): State<Api>,
    Extension(Held(scope)): Extension<Held>,
    request: Request,
) -> Outcome {
    let origin = origin_of(request.headers(), request.extensions());
    let query = request.uri().query();
    let slug = parameter(query, "slug");
    let pairs = url::form_urlencoded::parse(query.unwrap_or_default().as_bytes());
    let tags = pairs.filter(|(name, _)| name == "tag");
    let tags: Vec<_> = tags.map(|(_, tag)| tag.into_owned()).collect();
    let all = Check::all(&api).into_iter();
    let chosen = all
        .filter(|check| slug.as_ref().is_none_or(|slug| check.slug() == *slug))
        .filter(|check| tags.iter().all(|tag| check.view.plan.tags.contains(tag)));
    let writes = scope >= Scope::Write;
    let checks: Vec<_> = chosen
        .map(|check| check.shown(&api, &origin, writes))
        .collect();
    Ok(json_of(&json!({ "checks": checks })))
}

async fn get(
    State(api): State<Api>,
    Extension(Held(scope)): Extension<Held>,
    Path(id): Path<String>,
    request: Request,
) -> Outcome {
    let origin = origin_of(request.headers(), request.extensions());
    let check = Check::find(&api, &id)?;
    Ok(json_of(&check.shown(&api, &origin, scope >= Scope::Write)))
}

async fn create(
    State(api): State<Api>,
    Extension(actor): Extension<Actor>,
    request: Request,
) -> Outcome {
    let (parts, body) = request.into_parts();
    let origin = origin_of(&parts.headers, &parts.extensions);
    let spec = Spec::read(body).await?;
    let same = Check::all(&api)
        .into_iter()
        .find(|check| spec.is_same_as(check));
    if let Some(check) = same {
        let check = change(&api, &actor, &check, &spec).await?;
        return Ok(check.answer(&api, &origin, StatusCode::OK));
    }
    let check = add(&api, &actor, &spec).await?;
    Ok(check.answer(&api, &origin, StatusCode::CREATED))
}

async fn update(
    State(api): State<Api>,
    Extension(actor): Extension<Actor>,
    Path(id): Path<String>,
    request: Request,
) -> Outcome {
    let (parts, body) = request.into_parts();
    let origin = origin_of(&parts.headers, &parts.extensions);
    let check = Check::find(&api, &id)?;
    let spec = Spec::read(body).await?;
    let check = change(&api, &actor, &check, &spec).await?;
    Ok(check.answer(&api, &origin, StatusCode::OK))
}

/// Adds a check; what the request leaves out has the defaults of Healthchecks.
async fn add(api: &Api, actor: &Actor, spec: &Spec) -> Result<Check, Refusal> {
    let uuid = uuid_of(&random::bits().ok_or_else(ApiError::no_random)?, 4);
    let table = spec.added(&uuid);
    let name = table.get("name").and_then(toml::Value::as_str);
    let key = key_of("", name.unwrap_or_default());
    spec.check_channels(api, &key)?;
    let put = Put {
        id: Some(uuid),
        was: None,
        version: None,
        table,
    };
    write(api, actor, put).await
}

/// Changes a check that the store has.
async fn change(api: &Api, actor: &Actor, check: &Check, spec: &Spec) -> Result<Check, Refusal> {
    spec.check_channels(api, check.key())?;
    let definition = stored(api, check).await?;
    let present: toml::Table = toml::from_str(&definition.text).unwrap_or_default();
    let mut table = present.clone();
    spec.apply(&mut table);
    if table == present {
        return Check::of_key(api, check.key());
    }
    let put = Put {
        id: None,
        was: Some(definition.key),
        version: Some(definition.version),
        table,
    };
    write(api, actor, put).await
}

async fn stored(api: &Api, check: &Check) -> Result<plimsoll_monitor::store::Definition, Refusal> {
    if check.view.source == Source::File {
        return Err(Refusal::of_file(&check.view.plan.name));
    }
    let kind = DefinitionKind::Monitor;
    let found = api.handle.definition(kind, check.key()).await?;
    found.ok_or_else(Refusal::missing)
}

async fn write(api: &Api, actor: &Actor, put: Put) -> Result<Check, Refusal> {
    let now = Timestamp::from_system(api.clock.wall());
    let written = api
        .handle
        .change_monitors(actor, vec![put], Vec::new(), None, now)
        .await?;
    let key = written.into_iter().next().map(|one| one.key);
    Check::of_key(api, &key.unwrap_or_default())
}

/// A check of that slug which a ping makes, with the defaults of Healthchecks; its key.
pub(super) async fn create_by_slug(
    api: &Api,
    slug: &str,
    address: String,
) -> Result<String, (StatusCode, String)> {
    if api.handle.board.with_views(|views| views.len()) >= MOST_MONITORS {
        let why = format!("there are {MOST_MONITORS} monitors already");
        return Err((StatusCode::FORBIDDEN, why));
    }
    let actor = Actor {
        name: "ping key".to_owned(),
        address,
    };
    let made = add(api, &actor, &Spec::of_slug(slug)).await;
    let made = made.map_err(|refusal| (refusal.status, refusal.message))?;
    Ok(made.key().to_owned())
}

/// Removes a check; its history stays in the store.
async fn remove(
    State(api): State<Api>,
    Extension(actor): Extension<Actor>,
    Path(id): Path<String>,
    request: Request,
) -> Outcome {
    let origin = origin_of(request.headers(), request.extensions());
    let check = Check::find(&api, &id)?;
    let definition = stored(&api, &check).await?;
    let response = check.answer(&api, &origin, StatusCode::OK);
    let now = Timestamp::from_system(api.clock.wall());
    let removals = vec![(definition.key, Some(definition.version))];
    api.handle
        .change_monitors(&actor, Vec::new(), removals, None, now)
        .await?;
    Ok(response)
}

async fn pause(
    State(api): State<Api>,
    Extension(actor): Extension<Actor>,
    Path(id): Path<String>,
    request: Request,
) -> Outcome {
    let origin = origin_of(request.headers(), request.extensions());
    let check = Check::find(&api, &id)?;
    set_paused(&api, &actor, &check, true).await?;
    let check = Check::of_key(&api, check.key())?;
    Ok(check.answer(&api, &origin, StatusCode::OK))
}

async fn resume(
    State(api): State<Api>,
    Extension(actor): Extension<Actor>,
    Path(id): Path<String>,
    request: Request,
) -> Outcome {
    let origin = origin_of(request.headers(), request.extensions());
    let check = Check::find(&api, &id)?;
    if !check.view.is_paused {
        let why = "check is not paused";
        return Err(Refusal::new(StatusCode::CONFLICT, why));
    }
    set_paused(&api, &actor, &check, false).await?;
    let check = Check::of_key(&api, check.key())?;
    Ok(check.answer(&api, &origin, StatusCode::OK))
}

async fn set_paused(
    api: &Api,
    actor: &Actor,
    check: &Check,
    is_paused: bool,
) -> Result<(), Refusal> {
    api.handle.pause(check.key(), is_paused).await?;
    let action = if is_paused {
        "monitor.pause"
    } else {
        "monitor.resume"
    };
    let now = Timestamp::from_system(api.clock.wall());
    api.handle.note(actor, action, check.key(), now).await?;
    Ok(())
}

/// Successes and failures, the newest first. The store has no starts and no logs.
async fn pings(State(api): State<Api>, Path(id): Path<String>) -> Outcome {
    let check = Check::find(&api, &id)?;
    let handle = &api.handle;
    let rows = handle
        .store
        .results(handle.org, check.view.id, Timestamp(i64::MAX), MOST_RESULTS)
        .await?;
    let sent = rows.iter().filter(|row| {
        let detail = row.detail.as_ref();
        let reason = detail.and_then(|detail| detail.reason.as_deref());
        !reason.is_some_and(is_late)
    });
    let count = check.view.beat.unwrap_or_default().count;
    let numbers = (1..=count).rev();
    let pings = sent.take(MOST_PINGS).zip(numbers).map(|(row, n)| {
        let is_up = matches!(row.status, Status::Up | Status::Degraded);
        let mut ping = json!({
            "type": if is_up { "success" } else { "fail" },
            "date": micros(row.at),
            "n": n,
            "scheme": null,
            "remote_addr": null,
            "method": null,
            "ua": null,
            "rid": null,
            "body_url": null,
        });
        // Of a run whose start was reported.
        if row.took_us > 0 {
            ping["duration"] = (row.took_us as f64 / 1e6).into();
        }
        ping
    });
    let pings: Vec<_> = pings.collect();
    Ok(json_of(&json!({ "pings": pings })))
}

/// Changes from up to down and back, the newest first.
async fn flips(
    State(api): State<Api>,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
) -> Outcome {
    let check = Check::find(&api, &id)?;
    let now = Timestamp::from_system(api.clock.wall());
    let number = |name: &str| -> Result<Option<i64>, Refusal> {
        let Some(text) = parameter(query.as_deref(), name) else {
            return Ok(None);
        };
        let number = text.parse::<u32>();
        let number = number.map_err(|_| Refusal::invalid(format!("{name} is not a number")))?;
        Ok(Some(i64::from(number) * 1000))
    };
    let start = number("start")?.unwrap_or(0);
    let recent = number("seconds")?.map_or(0, |seconds| now.0 - seconds);
    let from = Timestamp(start.max(recent).max(0));
    let until = number("end")?.map_or(now.0 + 1, |end| end.min(now.0 + 1));
    let handle = &api.handle;
    let changes = handle
        .store
        .health(handle.org, check.view.id, from, Timestamp(until))
        .await?;
    let mut last = None;
    let mut flips = Vec::new();
    for (change, _) in changes {
        let is_up = match change.health {
            Health::Up | Health::Degraded => true,
            Health::Down => false,
            Health::Pending | Health::NoData | Health::Paused => continue,
        };
        let is_flip = last.replace(is_up) != Some(is_up);
        // The first one may be from before.
        if is_flip && change.at >= from {
            flips.push(json!({ "timestamp": seconds(change.at), "up": u8::from(is_up) }));
        }
    }
    flips.reverse();
    Ok(json_of(&json!({ "flips": flips })))
}

async fn channels(State(api): State<Api>) -> Outcome {
    let all = api.handle.board.channels();
    let channels: Vec<_> = all
        .iter()
        .map(|one| json!({ "id": id_of(&one.name), "name": one.name, "kind": one.channel }))
        .collect();
    Ok(json_of(&json!({ "channels": channels })))
}
