//! A request to the admin API, and what it is answered.

use bytes::Bytes;
use http::StatusCode;
use http::header::{
    ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderValue, LOCATION, X_CONTENT_TYPE_OPTIONS,
};
use percent_encoding::percent_decode_str;
use plimsoll_model::document::ConfigProblem;
use plimsoll_server::{Request, Response, ResponseBody};
use serde_json::{Value, json};

use super::document;
use crate::request::{Pairs, pairs, values};

/// A request.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) method: String,
    /// Of its path behind the root, each decoded.
    pub(crate) segments: Vec<String>,
    pub(crate) content: Bytes,
    parameters: Pairs,
    kind: String,
}

/// An answer.
#[derive(Debug)]
pub(crate) struct AdminResponse {
    status: StatusCode,
    content: Option<Value>,
    allow: Option<&'static str>,
    location: Option<String>,
}

impl Call {
    pub(crate) fn from_request(request: &Request<'_>, rest: &str) -> Self {
        let segments = rest.split('/').filter(|segment| !segment.is_empty());
        let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
        let kind = request.header("content-type").unwrap_or_default();
        Self {
            method: request.method.to_owned(),
            segments: segments.map(decoded).collect(),
            content: Bytes::new(),
            parameters: pairs(request.query.unwrap_or_default().as_bytes()),
            kind: String::from_utf8_lossy(kind).to_ascii_lowercase(),
        }
    }

    /// Whether its content says that it is TOML.
    pub(crate) fn is_toml(&self) -> bool {
        self.kind.starts_with("application/toml")
    }

    /// Its content as text.
    pub(crate) fn text(&self) -> Result<&str, AdminResponse> {
        std::str::from_utf8(&self.content)
            .map_err(|_| AdminResponse::error(StatusCode::BAD_REQUEST, "the content is not UTF-8"))
    }

    /// Its content as JSON.
    pub(crate) fn json(&self) -> Result<Value, AdminResponse> {
        serde_json::from_slice(&self.content).map_err(|error| {
            let text = format!("the content is no JSON: {error}");
            AdminResponse::error(StatusCode::BAD_REQUEST, &text)
        })
    }

    /// The value of a parameter.
    pub(crate) fn parameter(&self, name: &str) -> Option<&str> {
        values(&self.parameters, name).next()
    }

    /// The value of a parameter that is a whole number.
    pub(crate) fn number(&self, name: &str) -> Result<Option<u64>, AdminResponse> {
        let Some(text) = self.parameter(name) else {
            return Ok(None);
        };
        text.parse().map(Some).map_err(|_| {
            let text = format!("`{name}` must be a whole number");
            AdminResponse::error(StatusCode::BAD_REQUEST, &text)
        })
    }

    /// The value of a parameter that is true or false.
    pub(crate) fn flag(&self, name: &str) -> Result<Option<bool>, AdminResponse> {
        match self.parameter(name) {
            None => Ok(None),
            Some("true" | "") => Ok(Some(true)),
            Some("false") => Ok(Some(false)),
            Some(_) => {
                let text = format!("`{name}` must be true or false");
                Err(AdminResponse::error(StatusCode::BAD_REQUEST, &text))
            }
        }
    }
}

impl AdminResponse {
    /// A document of the API.
    pub(crate) fn fields(fields: Value) -> Self {
        Self::json(StatusCode::OK, document(fields))
    }

    /// Any JSON.
    pub(crate) fn json(status: StatusCode, content: Value) -> Self {
        Self {
            status,
            content: Some(content),
            allow: None,
            location: None,
        }
    }

    /// A status and nothing else.
    pub(crate) fn bare(status: StatusCode) -> Self {
        Self {
            content: None,
            ..Self::json(status, Value::Null)
        }
    }

    /// Nothing more than that it is done.
    pub(crate) fn done() -> Self {
        Self::bare(StatusCode::NO_CONTENT)
    }

    /// The same about something new.
    pub(crate) fn created(self, location: String) -> Self {
        Self {
            status: StatusCode::CREATED,
            location: Some(location),
            ..self
        }
    }

    /// Whether it could be done.
    pub(crate) fn is_success(&self) -> bool {
        self.status.is_success()
    }

    pub(crate) fn error(status: StatusCode, text: &str) -> Self {
        Self::json(status, document(json!({ "error": text, "problems": [] })))
    }

    /// Several mistakes of what was sent.
    ///
    /// - `has_places`: whether it was text, which has lines.
    pub(crate) fn problems(text: &str, problems: &[ConfigProblem], has_places: bool) -> Self {
        let problems = problems.iter().map(|problem| {
            let mut shown = json!({
                "key": problem.key,
                "message": problem.message,
                "hint": problem.hint,
            });
            if has_places {
                shown["line"] = json!(problem.line);
                shown["column"] = json!(problem.column);
            }
            shown
        });
        let fields = json!({ "error": text, "problems": problems.collect::<Vec<_>>() });
        Self::json(StatusCode::UNPROCESSABLE_ENTITY, document(fields))
    }

    /// There is something, but not by this method.
    pub(crate) fn not_allowed(methods: &'static str) -> Self {
        let text = format!("only {methods} mean something here");
        Self {
            allow: Some(methods),
            ..Self::error(StatusCode::METHOD_NOT_ALLOWED, &text)
        }
    }

    pub(crate) fn into_response(self) -> Response {
        let mut response = Response::new(self.status)
            .with_field(CACHE_CONTROL, HeaderValue::from_static("no-store"))
            .with_field(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        if let Some(methods) = self.allow {
            response = response.with_field(ALLOW, HeaderValue::from_static(methods));
        }
        let location = self.location.and_then(|it| HeaderValue::from_str(&it).ok());
        if let Some(location) = location {
            response = response.with_field(LOCATION, location);
        }
        let Some(content) = self.content else {
            return response;
        };
        let kind = HeaderValue::from_static("application/json");
        let text = format!("{content:#}\n");
        response
            .with_field(CONTENT_TYPE, kind)
            .with_body(ResponseBody::Bytes(Bytes::from(text)))
    }
}

/// The response, whether or not the call succeeded.
pub(crate) fn either(response: Result<AdminResponse, AdminResponse>) -> AdminResponse {
    response.unwrap_or_else(|response| response)
}
