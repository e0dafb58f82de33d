//! Cross-origin resource sharing: on unless it is turned off, since mocks serve pages of other origins.

use http::StatusCode;
use http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_MAX_AGE, HeaderName, HeaderValue, VARY,
};
use plimsoll_server::Response;

use crate::request::RequestView;

/// Whose pages may read what is answered.
#[derive(Debug, Clone, Default)]
pub struct Sharing {
    /// Anybody's.
    pub is_on: bool,
    /// Of these origins, and of those on this machine, also requests with cookies or passwords.
    pub credentials: Vec<String>,
}

/// The permissions of one response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Allowed {
    /// Nothing more than that anybody may read it, if sharing is on.
    Anybody,
    /// This origin may read it, though the request was made with credentials.
    Origin(HeaderValue),
}

const METHODS: &str = "GET, POST, PUT, DELETE, PATCH, OPTIONS";

impl Sharing {
    /// The permissions of the response to a request.
    pub fn allows(&self, request: &RequestView<'_>) -> Allowed {
        if !self.is_on {
            return Allowed::Anybody;
        }
        let Some(origin) = request.header("origin") else {
            return Allowed::Anybody;
        };
        let has_credentials =
            request.header("cookie").is_some() || request.header("authorization").is_some();
        // A preflight asks without credentials for what will come with them.
        let is_trusted = || {
            let origin = std::str::from_utf8(origin).unwrap_or_default();
            is_local(origin) || self.credentials.iter().any(|it| it == origin)
        };
        if (has_credentials || request.method == "OPTIONS") && is_trusted() {
            return HeaderValue::from_bytes(origin).map_or(Allowed::Anybody, Allowed::Origin);
        }
        Allowed::Anybody
    }

    /// The fields that say so.
    pub fn fields(&self, allowed: &Allowed) -> Vec<(HeaderName, HeaderValue)> {
        match allowed {
            _ if !self.is_on => Vec::new(),
            Allowed::Anybody => vec![(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"))],
            Allowed::Origin(origin) => vec![
                (ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone()),
                (
                    ACCESS_CONTROL_ALLOW_CREDENTIALS,
                    HeaderValue::from_static("true"),
                ),
                (VARY, HeaderValue::from_static("origin")),
            ],
        }
    }

    /// The answer to `OPTIONS`, which no rule sees.
    pub fn options(&self, request: &RequestView<'_>) -> Response {
        let mut response = Response::new(StatusCode::NO_CONTENT);
        let allowed = self.allows(request);
        for (name, value) in self.fields(&allowed) {
            response = response.with_field(name, value);
        }
        if !self.is_on {
            return response;
        }
        // With credentials, `*` means a field of that name.
        let asked_for = request.header("access-control-request-headers");
        let fields = match (&allowed, asked_for) {
            (Allowed::Origin(_), Some(fields)) => HeaderValue::from_bytes(fields).ok(),
            _ => None,
        };
        let fields = fields.unwrap_or(HeaderValue::from_static("*"));
        response
            .with_field(
                ACCESS_CONTROL_ALLOW_METHODS,
                HeaderValue::from_static(METHODS),
            )
            .with_field(ACCESS_CONTROL_ALLOW_HEADERS, fields)
            .with_field(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("86400"))
    }
}

/// Whether pages of that origin come from this machine: `http://localhost:3000`.
fn is_local(origin: &str) -> bool {
    let host = ["http://localhost", "http://127.0.0.1"];
    host.iter()
        .filter_map(|host| origin.strip_prefix(host))
        .any(|rest| {
            let is_port =
                |port: &str| !port.is_empty() && port.bytes().all(|it| it.is_ascii_digit());
            rest.is_empty() || rest.strip_prefix(':').is_some_and(is_port)
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::KeptRequest;

    fn allowed(origin: &str, cookie: bool) -> Allowed {
        let sharing = Sharing {
            is_on: true,
            credentials: vec!["https://app.example".to_owned()],
        };
        let mut kept = KeptRequest::made("GET", "/");
        kept.fields.push(("origin".to_owned(), origin.into()));
        if cookie {
            kept.fields.push(("cookie".to_owned(), b"a=b".to_vec()));
        }
        sharing.allows(&kept.view())
    }

    #[test]
    fn only_known_origins_get_what_is_requested_with_credentials() {
        for origin in [
            "http://localhost",
            "http://127.0.0.1:3000",
            "https://app.example",
        ] {
            let reflected = Allowed::Origin(HeaderValue::from_str(origin).unwrap());
            assert_eq!(allowed(origin, true), reflected);
            assert_eq!(allowed(origin, false), Allowed::Anybody);
        }
        for origin in [
            "https://localhost",
            "http://localhost.evil.example",
            "http://localhost:",
            "http://localhost:80x",
            "https://app.example.evil",
            "null",
        ] {
            assert_eq!(allowed(origin, true), Allowed::Anybody, "{origin}");
        }
    }
}
