//! Responses to requests without an accepted token (RFC 6750, section 3).

use http::StatusCode;
use http::header::{HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use plimsoll_server::Response;

/// Makes the responses of a guard.
#[derive(Debug, Clone)]
pub(crate) struct Challenge {
    realm: String,
}

impl Challenge {
    /// - `realm`: what the token is for, as clients see it; quotes and backslashes are left out.
    pub(crate) fn new(realm: &str) -> Self {
        Self {
            realm: quotable(realm),
        }
    }

    /// For a request without a token: a challenge without an error (section 3.1).
    pub(super) fn missing(&self) -> Response {
        let challenge = format!("Bearer realm=\"{}\"", self.realm);
        response(StatusCode::UNAUTHORIZED, "a token is needed", &challenge)
    }

    pub(super) fn invalid_token(&self, reason: &str) -> Response {
        self.refusal(StatusCode::UNAUTHORIZED, "invalid_token", reason)
    }

    pub(super) fn forbidden(&self, reason: &str) -> Response {
        self.refusal(StatusCode::FORBIDDEN, "insufficient_scope", reason)
    }

    pub(super) fn invalid_request(&self, reason: &str) -> Response {
        self.refusal(StatusCode::BAD_REQUEST, "invalid_request", reason)
    }

    /// While there are no keys.
    #[expect(clippy::unused_self, reason = "as the other responses")]
    pub(super) fn unavailable(&self) -> Response {
        let message = "the keys that verify tokens cannot be fetched now\n";
        Response::text(StatusCode::SERVICE_UNAVAILABLE, message)
            .with_field(RETRY_AFTER, HeaderValue::from_static("5"))
    }

    fn refusal(&self, status: StatusCode, error: &str, reason: &str) -> Response {
        let reason = quotable(reason);
        let challenge = format!(
            "Bearer realm=\"{}\", error=\"{error}\", error_description=\"{reason}\"",
            self.realm
        );
        response(status, &reason, &challenge)
    }
}

fn response(status: StatusCode, message: &str, challenge: &str) -> Response {
    let challenge = HeaderValue::try_from(challenge);
    let challenge = challenge.expect("only printable characters are left in it");
    Response::text(status, format!("{message}\n")).with_field(WWW_AUTHENTICATE, challenge)
}

/// The characters that may stand in `error_description` (RFC 6750, section 3).
fn quotable(text: &str) -> String {
    let characters = text.chars();
    let is_quotable = |it: &char| matches!(it, ' '..='~') && !matches!(it, '"' | '\\');
    characters.filter(is_quotable).collect()
}
