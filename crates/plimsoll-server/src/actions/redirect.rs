//! Sends clients elsewhere (RFC 9110, section 15.4).

use bytes::Bytes;
use http::StatusCode;
use http::header::{HeaderValue, LOCATION};

use crate::action::{Action, Answer};
use crate::message::request::{Request, Scheme};
use crate::message::response::{Response, ResponseBody};

/// Answers with a `location`, in which `{scheme}`, `{host}`, `{path}` and `{query}` stand for those of the request.
#[derive(Debug, Clone)]
pub struct Redirect {
    status: StatusCode,
    pieces: Vec<TemplatePart>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum TemplatePart {
    Text(String),
    Scheme,
    /// Without the port.
    Host,
    Path,
    /// With its question mark, if there is one.
    Query,
}

/// Why a redirect makes no sense.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RedirectError {
    /// The status is no redirect.
    #[error("status {0} is no redirect; use 301, 302, 303, 307 or 308")]
    Status(u16),
    /// A place that is not known.
    #[error("`{{{0}}}` is not known; there are {{scheme}}, {{host}}, {{path}} and {{query}}")]
    Place(String),
    /// A brace without its other half.
    #[error("a brace is not closed")]
    Brace,
    /// A character that cannot be part of a header field.
    #[error("contains a blank, a control character or one beyond ASCII; encode it with %XX")]
    Character,
}

impl Redirect {
    /// Sends clients to `to`.
    pub fn new(status: u16, to: &str) -> Result<Self, RedirectError> {
        if ![301, 302, 303, 307, 308].contains(&status) {
            return Err(RedirectError::Status(status));
        }
        if !to.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(RedirectError::Character);
        }
        let mut pieces = Vec::new();
        let mut rest = to;
        while let Some((text, after)) = rest.split_once('{') {
            let (place, after) = after.split_once('}').ok_or(RedirectError::Brace)?;
            pieces.push(TemplatePart::Text(text.to_owned()));
            pieces.push(match place {
                "scheme" => TemplatePart::Scheme,
                "host" => TemplatePart::Host,
                "path" => TemplatePart::Path,
                "query" => TemplatePart::Query,
                other => return Err(RedirectError::Place(other.to_owned())),
            });
            rest = after;
        }
        if rest.contains('}') {
            return Err(RedirectError::Brace);
        }
        pieces.push(TemplatePart::Text(rest.to_owned()));
        Ok(Self {
            status: StatusCode::from_u16(status).map_err(|_| RedirectError::Status(status))?,
            pieces,
        })
    }

    fn location(&self, request: &Request<'_>) -> String {
        let mut location = String::new();
        for piece in &self.pieces {
            match piece {
                TemplatePart::Text(text) => location.push_str(text),
                TemplatePart::Scheme => location.push_str(match request.scheme {
                    Scheme::Http => "http",
                    Scheme::Https => "https",
                }),
                TemplatePart::Host => location.push_str(request.host()),
                // Where it is the whole of the location, two slashes would name another host.
                TemplatePart::Path if location.is_empty() => {
                    location.push('/');
                    location.push_str(request.path.trim_start_matches('/'));
                }
                TemplatePart::Path => {
                    // That of `OPTIONS *` would otherwise become a part of the host.
                    if !request.path.starts_with('/') {
                        location.push('/');
                    }
                    location.push_str(request.path);
                }
                TemplatePart::Query => {
                    if let Some(query) = request.query {
                        location.push('?');
                        location.push_str(query);
                    }
                }
            }
        }
        location
    }
}

impl Action for Redirect {
    fn handle(&self, request: &Request<'_>) -> Answer {
        let location = self.location(request);
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
        assert_eq!(error(200, "/"), RedirectError::Status(200));
        assert_eq!(error(301, "/{pth}"), RedirectError::Place("pth".into()));
        assert_eq!(error(301, "/{path"), RedirectError::Brace);
        assert_eq!(error(301, "/path}"), RedirectError::Brace);
        assert_eq!(error(301, "/a b"), RedirectError::Character);
        assert_eq!(error(301, "/a\r\nx: y"), RedirectError::Character);
    }
}
