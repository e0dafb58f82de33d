//! Answers: JSON, text, pictures, and one shape for errors.

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use serde_json::{Value, json};

use crate::engine::CommandError;
use crate::store::StoreError;

/// An error as the API reports it: `{"error": {"code", "message", "field"}}`.
#[derive(Debug)]
pub(crate) struct ApiError {
    status: StatusCode,
    code: &'static str,
    message: String,
    field: Option<&'static str>,
}

impl ApiError {
    pub(super) fn not_found(what: &str) -> Self {
        Self {
            status: StatusCode::NOT_FOUND,
            code: "not_found",
            message: format!("there is no such {what}"),
            field: None,
        }
    }

    pub(super) fn invalid(field: &'static str, message: impl Into<String>) -> Self {
        Self {
            status: StatusCode::BAD_REQUEST,
            code: "invalid",
            message: message.into(),
            field: Some(field),
        }
    }

    pub(super) fn forbidden(why: &str) -> Self {
        Self {
            status: StatusCode::FORBIDDEN,
            code: "forbidden",
            message: why.to_owned(),
            field: None,
        }
    }

    pub(super) fn busy() -> Self {
        Self {
            status: StatusCode::SERVICE_UNAVAILABLE,
            code: "busy",
            message: "too many passwords wait to be checked".to_owned(),
            field: None,
        }
    }

    pub(super) fn unauthorized() -> Self {
        Self {
            status: StatusCode::UNAUTHORIZED,
            code: "unauthorized",
            message: "the credentials are missing or wrong".to_owned(),
            field: None,
        }
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        let (status, code) = match error {
            StoreError::NotFound(_) => (StatusCode::NOT_FOUND, "not_found"),
            StoreError::Conflict => (StatusCode::CONFLICT, "conflict"),
            _ => (StatusCode::SERVICE_UNAVAILABLE, "store_unavailable"),
        };
        Self {
            status,
            code,
            message: error.to_string(),
            field: None,
        }
    }
}

impl From<CommandError> for ApiError {
    fn from(error: CommandError) -> Self {
        let (status, code) = match error {
            CommandError::NotFound => (StatusCode::NOT_FOUND, "not_found"),
            CommandError::Kind(_) => (StatusCode::CONFLICT, "wrong_kind"),
            CommandError::NoIncident => (StatusCode::CONFLICT, "no_incident"),
            CommandError::Busy(_) => (StatusCode::SERVICE_UNAVAILABLE, "busy"),
            CommandError::Stopping => (StatusCode::SERVICE_UNAVAILABLE, "stopping"),
            CommandError::Store(_) => (StatusCode::SERVICE_UNAVAILABLE, "store_unavailable"),
        };
        Self {
            status,
            code,
            message: error.to_string(),
            field: None,
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut error = json!({ "code": self.code, "message": self.message });
        if let Some(field) = self.field {
            error["field"] = field.into();
        }
        let mut response = json_of(&json!({ "error": error }));
        *response.status_mut() = self.status;
        response
    }
}

pub(super) type Answer = Result<Response, ApiError>;

pub(crate) async fn not_found() -> ApiError {
    ApiError::not_found("path")
}

pub(crate) async fn method_not_allowed() -> ApiError {
    ApiError {
        status: StatusCode::METHOD_NOT_ALLOWED,
        code: "method_not_allowed",
        message: "the path does not take this method".to_owned(),
        field: None,
    }
}

pub(super) fn json_of(value: &Value) -> Response {
    with_type(value.to_string(), "application/json")
}

pub(super) fn text(text: impl Into<String>) -> Response {
    with_type(text.into(), "text/plain; charset=utf-8")
}

pub(super) fn svg(picture: String) -> Response {
    with_type(picture, "image/svg+xml")
}

pub(super) fn with_type(content: String, media_type: &'static str) -> Response {
    let mut response = Response::new(Body::from(content));
    let fields = response.headers_mut();
    fields.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    fields.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}
