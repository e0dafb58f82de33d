//! Sends clients elsewhere (RFC 9110, section 15.4).

use bytes::Bytes;
use http::StatusCode;
use http::header::{HeaderValue, LOCATION};
use regex::Regex;

use super::target::Target;
use crate::action::{Action, Answer};
use crate::message::request::Request;
use crate::message::response::{Response, ResponseBody};
use crate::place::Maps;
use crate::place::location::LocationError;

/// Answers with a `location`, in which places such as `{host}` stand for what the request has, and `{1}` and `{name}` for groups
/// of the route's regular expression.
#[derive(Debug, Clone)]
pub struct Redirect {
    status: StatusCode,
    to: Target,
}

/// Why a redirect makes no sense.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RedirectError {
    /// The status is no redirect.
    #[error("status {0} is no redirect; use 301, 302, 303, 307 or 308")]
    Status(u16),
    /// The target is none.
    #[error(transparent)]
    Location(#[from] LocationError),
}

impl Redirect {
    /// Sends clients to `to`.
    pub fn new(status: u16, to: &str) -> Result<Self, RedirectError> {
        Self::by_groups(status, to, None, &Maps::default())
    }

    /// Sends clients to `to`, which may contain groups of an expression for the path in its normal form.
    pub fn by_groups(
        status: u16,
        to: &str,
        groups: Option<Regex>,
        maps: &Maps,
    ) -> Result<Self, RedirectError> {
        if ![301, 302, 303, 307, 308].contains(&status) {
            return Err(RedirectError::Status(status));
        }
        Ok(Self {
            status: StatusCode::from_u16(status).map_err(|_| RedirectError::Status(status))?,
            to: Target::parse(to, groups, maps)?,
        })
    }
}

impl Action for Redirect {
    fn handle(&self, request: &Request<'_>) -> Answer {
        let location = self.to.fill(request);
        let Ok(value) = HeaderValue::from_str(&location) else {
            return Answer::now(Response::text(
                StatusCode::BAD_REQUEST,
                "the target cannot be redirected\n",
            ));
        };
        Answer::now(
            Response::new(self.status)
                .with_field(LOCATION, value)
                .with_body(ResponseBody::Bytes(Bytes::new())),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_have_names() {
        let error = |status, to| Redirect::new(status, to).unwrap_err();
        let place = |name: &str| RedirectError::Location(LocationError::Group(name.into()));
        let brace = RedirectError::Location(LocationError::Brace);
        let character = RedirectError::Location(LocationError::Character);
        assert_eq!(error(200, "/"), RedirectError::Status(200));
        assert_eq!(error(301, "/{pth}"), place("pth"));
        assert_eq!(error(301, "/{1}"), place("1"));
        assert_eq!(error(301, "/{path"), brace);
        assert_eq!(error(301, "/path}"), brace);
        assert_eq!(error(301, "/a b"), character);
        assert_eq!(error(301, "/a\r\nx: y"), character);
    }
}
