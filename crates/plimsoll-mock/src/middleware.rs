//! Middlewares of apimock: scripts of Rhai that may answer a request before the rules do.
//!
//! A script gets the path of a request as `url_path` and its JSON as `body`. It returns a file, JSON or a text, or nothing
//! where the next script or the rules are to answer. Scripts may block, so workers run them on other threads.

#[cfg(feature = "rhai")]
mod functions;

#[cfg(feature = "rhai")]
mod run;

#[cfg(feature = "rhai")]
mod script;

#[cfg(not(feature = "rhai"))]
mod none;

use std::sync::Arc;

use plimsoll_server::{Notice, Severity};
use serde_json::Value;

use crate::request::RequestView;
use crate::script::notice_limiter::NoticeLimiter;

#[cfg(feature = "rhai")]
pub use self::script::RhaiMiddleware;

#[cfg(not(feature = "rhai"))]
pub use self::none::RhaiMiddleware;

/// Operations of one script for one request, unless a file sets another limit: that of apimock.
pub const OPERATIONS: u64 = 10_000_000;

/// Bytes of JSON that scripts get: no string of a script may be longer.
pub const LONGEST_JSON: usize = 1_000_000;

/// The response that a script describes.
#[cfg_attr(
    not(feature = "rhai"),
    expect(dead_code, reason = "only scripts make it")
)]
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum MiddlewareAnswer {
    /// A file, relative to the folder of the script or within it.
    File(String),
    /// JSON or JSON5.
    Json(String),
    /// Plain text.
    Text(String),
}

/// A script that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MiddlewareError {
    /// Line and column of the error, from 1; absent if the script could not be read.
    pub place: Option<(usize, usize)>,
    /// The error.
    pub message: String,
}

/// JSON that is longer than [`LONGEST_JSON`].
#[derive(Debug, thiserror::Error)]
#[error("no middleware was called: the JSON is longer than {LONGEST_JSON} bytes")]
pub(crate) struct JsonTooLong;

/// A request as scripts see it.
#[cfg_attr(
    not(feature = "rhai"),
    expect(dead_code, reason = "only scripts read it")
)]
#[derive(Debug, Clone)]
pub(crate) struct MiddlewareInput {
    /// As it was sent, without a slash at its end.
    path: String,
    /// Absent if the content is no JSON, or `null`.
    body: Option<Value>,
}

impl MiddlewareInput {
    pub(crate) fn new(request: &RequestView<'_>) -> Result<Self, JsonTooLong> {
        let path = request.own_path();
        let path = path.strip_prefix('/').unwrap_or(path);
        let path = format!("/{}", path.strip_suffix('/').unwrap_or(path));
        let body = request.json().filter(|body| !body.is_null());
        if body.is_some() && request.body.len() > LONGEST_JSON {
            return Err(JsonTooLong);
        }
        Ok(Self {
            path,
            body: body.cloned(),
        })
    }
}

/// The first answer of several scripts, with the number of the script. Blocks.
///
/// A script that fails is reported, and the next one is called.
pub(crate) fn first_answer(
    middlewares: &[RhaiMiddleware],
    input: &MiddlewareInput,
    notices: &Arc<NoticeLimiter>,
) -> Option<(usize, MiddlewareAnswer)> {
    let mut middlewares = middlewares.iter().enumerate();
    middlewares.find_map(
        |(number, middleware)| match middleware.call(input, notices) {
            Ok(answer) => Some((number, answer?)),
            Err(error) => {
                let notice =
                    Notice::new(Severity::Error, error.to_string()).about(middleware.shown());
                notices.report(&notice);
                None
            }
        },
    )
}

#[cfg(test)]
#[cfg(feature = "rhai")]
mod tests;
