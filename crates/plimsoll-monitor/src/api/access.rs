//! Access control of routes.
//!
//! Without tokens and users every client may read and none may write. With them, reading needs a token too. Routes of
//! Gatus, heartbeats and badges have rules of their own.

use std::net::SocketAddr;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::header::{AUTHORIZATION, HeaderValue, WWW_AUTHENTICATE};
use http::{HeaderMap, StatusCode};
use plimsoll_model::Clock;

use crate::api::Api;
use crate::api::answer::ApiError;
use crate::config::ApiToken;
use crate::engine::Access;
use crate::store::Scope;
use crate::store::manage::Actor;
use crate::store::timestamp::Timestamp;

/// The permission of a request: whether its client sees definitions, which may hold credentials.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sees(pub(super) bool);

/// The region of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AgentName(pub(super) String);

/// Passes requests of agents on.
pub(super) async fn agent(State(api): State<Api>, mut request: Request, next: Next) -> Response {
    let hash = given(request.headers()).map(ApiToken::hash_of);
    let agents = api.handle.board.agents();
    let found = agents
        .iter()
        .find(|agent| hash.is_some_and(|hash| agent.hashes.contains(&hash)));
    let Some(found) = found else {
        return refused();
    };
    let name = AgentName(found.name.clone());
    request.extensions_mut().insert(name);
    next.run(request).await
}

/// The scope of the token of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Held(pub(super) Scope);

/// Passes requests with any token on; all if there are no tokens and no users.
pub(super) async fn reading(State(api): State<Api>, mut request: Request, next: Next) -> Response {
    let found = match token_of(&api, request.headers()).await {
        Ok(found) => found,
        Err(error) => return error.into_response(),
    };
    let is_open = is_open(&api, &api.handle.board.access());
    let scope = found.map(|(_, scope)| scope);
    if scope.is_none() && !is_open {
        return refused();
    }
    let sees = Sees(scope.is_some_and(|scope| scope >= Scope::Write));
    request.extensions_mut().insert(sees);
    let held = Held(scope.unwrap_or(Scope::Read));
    request.extensions_mut().insert(held);
    next.run(request).await
}

/// Passes requests with a token that may write on.
pub(super) async fn writing(state: State<Api>, request: Request, next: Next) -> Response {
    at_least(Scope::Write, state, request, next).await
}

/// Passes requests with a token that may manage on.
pub(super) async fn managing(state: State<Api>, request: Request, next: Next) -> Response {
    at_least(Scope::Admin, state, request, next).await
}

async fn at_least(
    needed: Scope,
    State(api): State<Api>,
    mut request: Request,
    next: Next,
) -> Response {
    match token_of(&api, request.headers()).await {
        Ok(Some((name, scope))) if scope >= needed => {
            let address = address_of(request.extensions());
            request.extensions_mut().insert(Actor { name, address });
            request.extensions_mut().insert(Sees(true));
            request.extensions_mut().insert(Held(scope));
            next.run(request).await
        }
        Ok(Some(_)) => {
            let why = format!("the token has no scope `{}`", needed.name());
            ApiError::forbidden(&why).into_response()
        }
        Ok(None) if is_open(&api, &api.handle.board.access()) => {
            let why = format!(
                "there is no token with the scope `{}`; `plimsoll monitor token` makes one",
                needed.name()
            );
            ApiError::forbidden(&why).into_response()
        }
        Ok(None) => refused(),
        Err(error) => error.into_response(),
    }
}

/// The address of the client, for the audit log.
pub(crate) fn address_of(extensions: &http::Extensions) -> String {
    let peer = extensions.get::<SocketAddr>();
    peer.map_or_else(String::new, |peer| peer.ip().to_string())
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
    let now = Timestamp::of(api.clock.wall());
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
