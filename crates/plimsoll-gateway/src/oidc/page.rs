//! Responses of sign-ins. Texts of others are shown as text, shortened.

use http::StatusCode;
use http::header::{CACHE_CONTROL, HeaderValue, LOCATION, SET_COOKIE};
use plimsoll_server::Response;

/// Sends a browser elsewhere, with cookies to set.
pub(super) fn redirect(to: &str, cookies: &[String]) -> Response {
    let response = Response::new(StatusCode::SEE_OTHER);
    let response = match HeaderValue::try_from(to) {
        Ok(location) => response.with_field(LOCATION, location),
        Err(_) => {
            return failed(
                StatusCode::BAD_GATEWAY,
                "the target of the redirect is no URL",
            );
        }
    };
    with_cookies(not_stored(response), cookies)
}

/// Why a sign-in did not succeed.
pub(super) fn failed(status: StatusCode, message: &str) -> Response {
    not_stored(Response::text(status, format!("{message}\n")))
}

/// For a request that is no visit of a page: a redirect to a page for signing in would only confuse it.
pub(super) fn unauthorized() -> Response {
    failed(StatusCode::UNAUTHORIZED, "sign in first")
}

pub(super) fn forbidden(claim: &str, logout: &str) -> Response {
    let message = format!(
        "your account may not see this: the claim `{claim}` is not as required. Another account can sign in after {logout}"
    );
    failed(StatusCode::FORBIDDEN, &message)
}

/// A text of another party, for a page of plain text.
pub(super) fn printable(text: &str) -> String {
    let characters = text.chars().take(300);
    characters
        .map(|it| if it.is_control() { ' ' } else { it })
        .collect()
}

pub(super) fn with_cookies(mut response: Response, cookies: &[String]) -> Response {
    for cookie in cookies {
        if let Ok(value) = HeaderValue::try_from(cookie.as_str()) {
            response = response.with_field(SET_COOKIE, value);
        }
    }
    response
}

fn not_stored(response: Response) -> Response {
    response.with_field(CACHE_CONTROL, HeaderValue::from_static("no-store"))
}
