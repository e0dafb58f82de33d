//! Bodies of requests, and their conditions.

use axum::body::{Body, to_bytes};
use http::header::IF_MATCH;
use http::{HeaderMap, Method};
use plimsoll_monitor::store::Replay;
use ring::digest::{Context, SHA256};
use serde_json::Value;

use crate::answer::ApiError;

/// Characters of a key.
const MOST_KEY: usize = 200;

/// The content of a body, and the JSON in it.
pub(super) async fn json(body: Body, most: usize) -> Result<(Vec<u8>, Value), ApiError> {
    let content = to_bytes(body, most)
        .await
        .map_err(|_| ApiError::invalid("body", format!("is longer than {} KiB", most / 1024)))?;
    let parsed = serde_json::from_slice(&content)
        .map_err(|error| ApiError::invalid("body", format!("is not JSON: {error}")))?;
    Ok((content.to_vec(), parsed))
}

/// The version that `If-Match` names; absent for `*` and without the field.
pub(super) fn version(fields: &HeaderMap) -> Result<Option<i64>, ApiError> {
    match fields.get(IF_MATCH) {
        None => Ok(None),
        Some(tag) if tag == "*" => Ok(None),
        Some(tag) => {
            let text = tag.to_str().unwrap_or_default().trim_matches('"');
            let version = text.parse().ok();
            version
                .map(Some)
                .ok_or_else(|| ApiError::invalid("if-match", "must be an entity tag of this API"))
        }
    }
}

/// `Idempotency-Key`, with the hash of what is requested.
pub(super) fn replay(
    method: &Method,
    path: &str,
    fields: &HeaderMap,
    content: &[u8],
) -> Result<Option<Replay>, ApiError> {
    let Some(key) = fields.get("idempotency-key") else {
        return Ok(None);
    };
    let key = key
        .to_str()
        .ok()
        .filter(|key| (1..=MOST_KEY).contains(&key.len()));
    let key = key.ok_or_else(|| {
        ApiError::invalid("idempotency-key", "must have 1 to 200 visible characters")
    })?;
    let mut hash = Context::new(&SHA256);
    for part in [method.as_str().as_bytes(), path.as_bytes(), content] {
        hash.update(&(part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    let mut request = [0; 32];
    request.copy_from_slice(hash.finish().as_ref());
    Ok(Some(Replay {
        key: key.to_owned(),
        request,
        answer: String::new(),
    }))
}
