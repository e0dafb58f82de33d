//! What a client may see: who may use each route is decided here, and nowhere else.
//!
//! Without tokens and users every client may read and none may write. With them, reading needs a token too. What stays public
//! is listed as such: badges, metrics, and routes whose path or body has a secret of its own. Status pages have rules of
//! their own, since a page may be for everyone while the monitors behind it are not.

pub(crate) mod gatus;

pub(crate) mod passwords;

pub(crate) mod routes;

use std::net::SocketAddr;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::header::{AUTHORIZATION, HeaderValue, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderMap, StatusCode};
use plimsoll_model::Clock;
use plimsoll_monitor::config::ApiToken;
use plimsoll_monitor::engine::Access;
use plimsoll_monitor::manage::Actor;
use plimsoll_monitor::store::{Role, Scope};
use plimsoll_monitor::time::Timestamp;

use crate::admin;
use crate::answer::ApiError;
use crate::request::{address_of, client_of};
use crate::state::Api;

/// Who may use a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Audience {
    /// Everyone: it shows nothing of the monitors, or only badges and metrics.
    Everyone,
    /// Everyone who knows the secret that the handler finds in the path or the request: of a heartbeat, a calendar, an
    /// external endpoint of Gatus.
    OwnSecret,
    /// Readers of the status page that the handler finds; its guard decides.
    Page,
    /// Any token; everyone while there are neither tokens nor users.
    Reader,
    /// A token with this scope, or one that includes it.
    Scope(Scope),
    /// The token of an agent.
    Agent,
    /// The user of `security.basic` of a Gatus file, everyone if that has none; otherwise as [`Reader`](Self::Reader).
    GatusUser,
    /// Everyone if the file is Gatus's, which leaves these routes open; otherwise as [`Reader`](Self::Reader).
    GatusPublic,
    /// A signed-in user with this role, or one that includes it.
    Session(Role),
}

/// The guard of one route.
#[derive(Debug, Clone)]
pub(super) struct Guarded {
    pub(super) api: Api,
    pub(super) audience: Audience,
}

/// The permission of a request: whether its client sees definitions, which may hold credentials.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sees(pub(super) bool);

/// The region of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AgentName(pub(super) String);

/// The scope of the token of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Held(pub(super) Scope);

/// Passes requests of the audience of a route on.
pub(super) async fn guard(
    State(Guarded { api, audience }): State<Guarded>,
    request: Request,
    next: Next,
) -> Response {
    match admit(&api, audience, request).await {
        Ok(request) => next.run(request).await,
        Err(refusal) => refusal,
    }
}

/// The request, with what its handler may know of the client; otherwise the response that refuses it.
async fn admit(api: &Api, audience: Audience, request: Request) -> Result<Request, Response> {
    match audience {
        Audience::Everyone | Audience::OwnSecret | Audience::Page => Ok(request),
        Audience::Reader => reader(api, request).await,
        Audience::Scope(scope) => holder(api, scope, request).await,
        Audience::Agent => agent(api, request),
        Audience::GatusUser | Audience::GatusPublic => match gatus::settings(api) {
            None => reader(api, request).await,
            Some(_) if audience == Audience::GatusPublic => Ok(request),
            Some(settings) => {
                let client = client_of(request.extensions());
                let checked = gatus::check_user(api, &settings, request.headers(), client);
                checked.await.map_err(IntoResponse::into_response)?;
                Ok(request)
            }
        },
        Audience::Session(role) => admin::admit(api, role, request).await,
    }
}

fn agent(api: &Api, mut request: Request) -> Result<Request, Response> {
    let hash = given(request.headers()).map(ApiToken::hash_of);
    let agents = api.handle.board.agents();
    let found = agents
        .iter()
        .find(|agent| hash.is_some_and(|hash| agent.hashes.contains(&hash)));
    let found = found.ok_or_else(refused)?;
    let name = AgentName(found.name.clone());
    request.extensions_mut().insert(name);
    Ok(request)
}

async fn reader(api: &Api, mut request: Request) -> Result<Request, Response> {
    let found = token_of(api, request.headers()).await;
    let found = found.map_err(IntoResponse::into_response)?;
    let scope = found.map(|(_, scope)| scope);
    if scope.is_none() && !is_open(api, &api.handle.board.access()) {
        return Err(refused());
    }
    let sees = Sees(scope.is_some_and(|scope| scope >= Scope::Write));
    request.extensions_mut().insert(sees);
    let held = Held(scope.unwrap_or(Scope::Read));
    request.extensions_mut().insert(held);
    Ok(request)
}

async fn holder(api: &Api, needed: Scope, mut request: Request) -> Result<Request, Response> {
    let found = token_of(api, request.headers()).await;
    let found = found.map_err(IntoResponse::into_response)?;
    let forbidden = |why: String| ApiError::forbidden(&why).into_response();
    let (name, scope) = match found {
        Some((name, scope)) if scope >= needed => (name, scope),
        Some(_) => {
            let why = format!("the token has no scope `{}`", needed.name());
            return Err(forbidden(why));
        }
        None if is_open(api, &api.handle.board.access()) => {
            let why = format!(
                "there is no token with the scope `{}`; `plimsoll monitor token` makes one",
                needed.name()
            );
            return Err(forbidden(why));
        }
        None => return Err(refused()),
    };
    let address = address_of(request.extensions());
    let extensions = request.extensions_mut();
    extensions.insert(Actor { name, address });
    extensions.insert(Sees(true));
    extensions.insert(Held(scope));
    Ok(request)
}

/// Finds the client behind the trusted proxies, and removes fields that only they may set.
pub(super) async fn locate(State(api): State<Api>, mut request: Request, next: Next) -> Response {
    let grounds = api.handle.board.grounds();
    let peer = request.extensions().get::<SocketAddr>().copied();
    if let (Some(proxies), Some(peer)) = (grounds.trusted_proxies(), peer) {
        let named = request.headers().get_all(&proxies.header);
        let named: Vec<_> = named.iter().map(HeaderValue::as_bytes).collect();
        let client = proxies.client_behind(peer, &named);
        if !proxies.trusts(peer.ip()) {
            request.headers_mut().remove("x-forwarded-proto");
        }
        request.extensions_mut().insert(client);
    }
    let mut response = next.run(request).await;
    let nosniff = HeaderValue::from_static("nosniff");
    response
        .headers_mut()
        .insert(X_CONTENT_TYPE_OPTIONS, nosniff);
    response
}

fn is_open(api: &Api, access: &Access) -> bool {
    api.handle.board.tokens().is_empty() && access.tokens.is_empty() && !access.has_users
}

fn refused() -> Response {
    let mut response = ApiError::unauthorized().into_response();
    debug_assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
    let challenge = HeaderValue::from_static("Bearer realm=\"plimsoll monitor\"");
    response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
    response
}

/// The token of a request.
fn given(fields: &HeaderMap) -> Option<&str> {
    let field = fields.get(AUTHORIZATION)?.to_str().ok()?;
    field.strip_prefix("Bearer ").map(str::trim)
}

/// The name and the scope of the token of a request.
async fn token_of(api: &Api, fields: &HeaderMap) -> Result<Option<(String, Scope)>, ApiError> {
    let Some(given) = given(fields) else {
        return Ok(None);
    };
    let hash = ApiToken::hash_of(given);
    // Comparing hashes gives nothing away about the token.
    let of_file = api.handle.board.tokens();
    if let Some(token) = of_file.iter().find(|token| token.hash == hash) {
        return Ok(Some((token.name.clone(), token.scope)));
    }
    let now = Timestamp::from_system(api.clock.wall());
    let among = |access: &Access| {
        let mut tokens = access.tokens.iter();
        let found = tokens.find(|stored| stored.token.hash == hash && stored.is_valid(now));
        found.map(|stored| (stored.token.name.clone(), stored.token.scope))
    };
    if let Some(found) = among(&api.handle.board.access()) {
        return Ok(Some(found));
    }
    // Another process, such as `plimsoll monitor token`, may have added it.
    Ok(among(&api.handle.refresh_access().await?))
}
