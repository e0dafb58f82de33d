//! Who may use which route.
//!
//! Without tokens in the configuration every client may read and none may write. With tokens, reading needs one too.
//! Routes of Gatus, heartbeats and badges have rules of their own.

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::header::{AUTHORIZATION, HeaderValue, WWW_AUTHENTICATE};
use http::{HeaderMap, StatusCode};

use crate::api::Api;
use crate::api::answer::ApiError;
use crate::config::ApiToken;

/// Who makes a request: the name of its token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Actor(pub(super) String);

/// Lets requests with any token through; all if there are no tokens.
pub(super) async fn reading(State(api): State<Api>, request: Request, next: Next) -> Response {
    let tokens = api.handle.board.tokens();
    if tokens.is_empty() || token_of(&tokens, request.headers()).is_some() {
        return next.run(request).await;
    }
    refused()
}

/// Lets requests with a token that may write through.
pub(super) async fn writing(State(api): State<Api>, mut request: Request, next: Next) -> Response {
    let tokens = api.handle.board.tokens();
    match token_of(&tokens, request.headers()) {
        Some(token) if token.may_write => {
            request.extensions_mut().insert(Actor(token.name.clone()));
            next.run(request).await
        }
        Some(_) => ApiError::forbidden("the token has no scope `write`").into_response(),
        None if tokens.is_empty() => {
            let why =
                "the configuration has no token that may write; `plimsoll monitor token` makes one";
            ApiError::forbidden(why).into_response()
        }
        None => refused(),
    }
}

fn refused() -> Response {
    let mut response = ApiError::unauthorized().into_response();
    debug_assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
    let challenge = HeaderValue::from_static("Bearer realm=\"plimsoll monitor\"");
    response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
    response
}

fn token_of<'t>(tokens: &'t [ApiToken], fields: &HeaderMap) -> Option<&'t ApiToken> {
    let given = fields.get(AUTHORIZATION)?.to_str().ok()?;
    let hash = ApiToken::hash_of(given.strip_prefix("Bearer ")?.trim());
    // Comparing hashes gives nothing away about the token.
    tokens.iter().find(|token| token.hash == hash)
}
