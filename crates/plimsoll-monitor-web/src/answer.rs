//! Answers: JSON, text, pictures, and one shape for errors.

use std::borrow::Cow;
use std::time::Duration;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use plimsoll_model::document::ConfigProblem;
use plimsoll_monitor::engine::CommandError;
use plimsoll_monitor::manage::ChangeError;
use plimsoll_monitor::store::StoreError;
use serde_json::{Value, json};

/// Problems of one response.
const MOST_PROBLEMS: usize = 100;

/// An error as the API reports it: `{"error": {"code", "message", "field"}}`.
#[derive(Debug)]
pub(crate) struct ApiError {
    status: StatusCode,
    code: &'static str,
    message: String,
    field: Option<Cow<'static, str>>,
    /// All problems of a definition, with their fields.
    problems: Vec<Value>,
    /// How long a client should wait before it tries again.
    retry_after: Option<Duration>,
}

impl ApiError {
    pub(super) fn not_found(what: &str) -> Self {
        Self {
            status: StatusCode::NOT_FOUND,
            code: "not_found",
            message: format!("there is no such {what}"),
            field: None,
            problems: Vec::new(),
            retry_after: None,
        }
    }

    pub(super) fn invalid(field: &'static str, message: impl Into<String>) -> Self {
        Self {
            status: StatusCode::BAD_REQUEST,
            code: "invalid",
            message: message.into(),
            field: Some(Cow::Borrowed(field)),
            problems: Vec::new(),
            retry_after: None,
        }
    }

    pub(super) fn forbidden(why: &str) -> Self {
        Self {
            status: StatusCode::FORBIDDEN,
            code: "forbidden",
            message: why.to_owned(),
            field: None,
            problems: Vec::new(),
            retry_after: None,
        }
    }

    pub(super) fn conflict(why: &str) -> Self {
        Self {
            status: StatusCode::CONFLICT,
            code: "conflict",
            message: why.to_owned(),
            field: None,
            problems: Vec::new(),
            retry_after: None,
        }
    }

    /// The condition of a request does not hold.
    pub(super) fn stale() -> Self {
        Self {
            status: StatusCode::PRECONDITION_FAILED,
            code: "precondition_failed",
            ..Self::conflict("it was changed meanwhile, or is not there; read it again")
        }
    }

    pub(super) fn read_only(key: &str) -> Self {
        Self {
            code: "read_only",
            ..Self::conflict(&format!(
                "the configuration file defines `{key}`; change it there"
            ))
        }
    }

    pub(super) fn no_random() -> Self {
        Self {
            status: StatusCode::SERVICE_UNAVAILABLE,
            code: "unavailable",
            ..Self::conflict("the system has no random numbers")
        }
    }

    pub(super) fn busy(wait: Duration) -> Self {
        Self {
            status: StatusCode::TOO_MANY_REQUESTS,
            code: "busy",
            message: "too many passwords were tried".to_owned(),
            field: None,
            problems: Vec::new(),
            retry_after: Some(wait),
        }
    }

    pub(super) fn unauthorized() -> Self {
        Self {
            status: StatusCode::UNAUTHORIZED,
            code: "unauthorized",
            message: "the credentials are missing or wrong".to_owned(),
            field: None,
            problems: Vec::new(),
            retry_after: None,
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
            problems: Vec::new(),
            retry_after: None,
        }
    }
}

impl From<CommandError> for ApiError {
    fn from(error: CommandError) -> Self {
        let (status, code) = match error {
            CommandError::NotFound => (StatusCode::NOT_FOUND, "not_found"),
            CommandError::Kind(_) => (StatusCode::CONFLICT, "wrong_kind"),
            CommandError::Elsewhere(_) => (StatusCode::CONFLICT, "elsewhere"),
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
            problems: Vec::new(),
            retry_after: None,
        }
    }
}

impl From<ChangeError> for ApiError {
    fn from(error: ChangeError) -> Self {
        match error {
            ChangeError::Invalid(problems) => Self::of_problems(&problems),
            ChangeError::ReadOnly(key) => Self::read_only(&key),
            ChangeError::Needed { key, by } => {
                Self::conflict(&format!("`{by}` depends on `{key}`; change that first"))
            }
            ChangeError::Store(StoreError::Conflict) => {
                Self::conflict("it was changed meanwhile, or the key is in use")
            }
            ChangeError::Store(error) => error.into(),
            ChangeError::Engine(error) => error.into(),
        }
    }
}

impl ApiError {
    /// The error for definitions: the first problem, and all of them if they are several.
    fn of_problems(problems: &[(usize, ConfigProblem)]) -> Self {
        let message = |problem: &ConfigProblem| match &problem.hint {
            Some(hint) => format!("{}; {hint}", problem.message),
            None => problem.message.clone(),
        };
        let all = problems.iter().take(MOST_PROBLEMS).map(|(index, problem)| {
            json!({ "number": index + 1, "field": problem.key, "message": message(problem) })
        });
        let all: Vec<_> = all.collect();
        let (field, first) = match problems.first() {
            Some((_, problem)) => (problem.key.clone(), message(problem)),
            None => (String::new(), "the definition has errors".to_owned()),
        };
        Self {
            field: (!field.is_empty()).then_some(Cow::Owned(field)),
            problems: all,
            retry_after: None,
            ..Self::invalid("body", first)
        }
    }

    /// The status of its response.
    pub(crate) fn status(&self) -> StatusCode {
        self.status
    }

    /// The error as a message for people.
    pub(crate) fn message(&self) -> String {
        match &self.field {
            Some(field) => format!("{field}: {}", self.message),
            None => self.message.clone(),
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut error = json!({ "code": self.code, "message": self.message });
        if let Some(field) = self.field {
            error["field"] = field.into();
        }
        if self.problems.len() > 1 {
            error["problems"] = self.problems.into();
        }
        let mut response = json_of(&json!({ "error": error }));
        *response.status_mut() = self.status;
        if let Some(wait) = self.retry_after {
            let seconds = HeaderValue::from(wait.as_secs().max(1));
            response.headers_mut().insert(RETRY_AFTER, seconds);
        }
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
        problems: Vec::new(),
        retry_after: None,
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
