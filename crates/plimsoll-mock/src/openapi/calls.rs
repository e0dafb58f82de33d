//! Requests that a document's service makes itself: callbacks of its operations, and webhooks.
//!
//! The URL of a callback comes from the client, who must not reach through the mock what it cannot reach itself: only hosts
//! that are named get any.

use plimsoll_formats::openapi::{Api, MakeError, ServiceRequest};
use url::Url;

use super::OpenApiOptions;
use super::expression::ExpressionError;
use super::response;
use crate::callback::OutgoingCallback;
use crate::request::RequestView;

/// The hosts that callbacks may be sent to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct CallbackHosts(Vec<CallbackHost>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct CallbackHost {
    /// In lower case; absent for any.
    name: Option<String>,
    /// Absent for any.
    port: Option<u16>,
}

/// A text that names no host.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no host, such as localhost, 127.0.0.1:9000 or *")]
pub(crate) struct NotAHost(String);

/// Why a callback or a webhook is not sent.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CallbackError {
    #[error("`{target}` is no URL: {cause}")]
    Url {
        /// As it was filled.
        target: String,
        cause: url::ParseError,
    },
    #[error("`{0}` is neither http nor https")]
    Scheme(String),
    /// With the host and its port.
    #[error(
        "no callback may be sent to {0}; allow it by `callbacks = [\"{0}\"]` of [[openapi]], or `--callbacks {0}`"
    )]
    Forbidden(String),
    #[error(transparent)]
    Expression(#[from] ExpressionError),
    /// Its content cannot be made.
    #[error(transparent)]
    Content(#[from] MakeError),
}

/// A callback of an operation that is not sent.
#[derive(Debug, thiserror::Error)]
#[error("the callback `{name}` of {method} {path} is not sent: {cause}")]
pub(crate) struct UnsentCallback {
    pub(super) name: String,
    /// Of the operation.
    pub(super) method: String,
    pub(super) path: String,
    pub(super) cause: CallbackError,
}

impl CallbackHosts {
    /// - `names`: each a host, with a port or without, or `*`.
    ///
    /// Fails with the first one of another form.
    pub(crate) fn new(names: &[String]) -> Result<Self, NotAHost> {
        let hosts = names.iter().map(|text| {
            if text == "*" {
                return Ok(CallbackHost {
                    name: None,
                    port: None,
                });
            }
            let wrong = || NotAHost(text.clone());
            let url = Url::parse(&format!("http://{text}/")).map_err(|_| wrong())?;
            let is_bare = url.path() == "/" && url.query().is_none() && url.username().is_empty();
            let name = url.host_str().filter(|_| is_bare).ok_or_else(wrong)?;
            // 80 is left out of URLs, so it is looked for in the text.
            let port = text.rsplit_once(':');
            let port = port.and_then(|(_, port)| port.parse().ok());
            Ok(CallbackHost {
                name: Some(name.to_owned()),
                port,
            })
        });
        hosts.collect::<Result<_, _>>().map(Self)
    }

    fn allow(&self, url: &Url) -> bool {
        self.0.iter().any(|host| {
            let is_host = host
                .name
                .as_deref()
                .is_none_or(|it| url.host_str() == Some(it));
            is_host
                && host
                    .port
                    .is_none_or(|port| url.port_or_known_default() == Some(port))
        })
    }
}

/// The callback that a request of the document is, for one exchange.
///
/// - `target`: the filled text of its URL.
/// - `base`: the URL of the request that was answered, which a path of `target` is relative to.
///
/// Fails with why it is not sent.
pub(super) fn callback(
    api: &Api,
    request: &ServiceRequest,
    target: &str,
    base: &Url,
    hosts: &CallbackHosts,
    options: OpenApiOptions,
) -> Result<OutgoingCallback, CallbackError> {
    let url = base.join(target).map_err(|cause| CallbackError::Url {
        target: target.to_owned(),
        cause,
    })?;
    if !["http", "https"].contains(&url.scheme()) {
        return Err(CallbackError::Scheme(target.to_owned()));
    }
    if !hosts.allow(&url) {
        let host = url.host_str().unwrap_or_default();
        let port = url.port().map(|port| format!(":{port}"));
        let host = host.to_owned() + &port.unwrap_or_default();
        return Err(CallbackError::Forbidden(host));
    }
    outgoing(api, request, url, options)
}

/// A request of the document to a URL.
///
/// Fails with why its content cannot be made.
pub(super) fn outgoing(
    api: &Api,
    request: &ServiceRequest,
    url: Url,
    options: OpenApiOptions,
) -> Result<OutgoingCallback, CallbackError> {
    let mut fields = request.headers.clone();
    let mut content = Vec::new();
    let is_json = |kind: &str| kind.contains("json");
    let by_kind = request.content.iter().find(|it| is_json(&it.kind));
    if let Some(described) = by_kind.or(request.content.first()) {
        let (kind, made) =
            response::content_of_call(api, described, options).map_err(CallbackError::Content)?;
        fields.retain(|(name, _)| name != "content-type");
        fields.push(("content-type".to_owned(), kind));
        content = made;
    }
    Ok(OutgoingCallback {
        method: request.method.clone(),
        url: url.into(),
        fields,
        content: content.into(),
        delay: std::time::Duration::ZERO,
    })
}

/// The URL of a request.
pub(super) fn url_of(request: &RequestView<'_>) -> Option<Url> {
    let (scheme, authority) = (request.scheme(), request.authority);
    Url::parse(&format!("{scheme}://{authority}{}", request.own_url())).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_hosts_that_are_named_get_callbacks() {
        let hosts = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|&it| it.to_owned()).collect();
            CallbackHosts::new(&names)
        };
        let named = hosts(&["LocalHost", "127.0.0.1:9000", "[::1]:80", "a.example"]).unwrap();
        for (url, is_allowed) in [
            ("http://localhost:1/x", true),
            ("https://localhost/", true),
            ("http://127.0.0.1:9000/", true),
            ("http://127.0.0.1/", false),
            ("http://2130706433:9000/", true),
            ("http://[::1]/", true),
            ("http://[::1]:81/", false),
            ("http://a.example./", false),
            ("http://b.a.example/", false),
            ("http://a.example@b.example/", false),
        ] {
            let parsed = Url::parse(url).unwrap();
            assert_eq!(named.allow(&parsed), is_allowed, "{url}");
        }
        let any = Url::parse("http://anything:7/").unwrap();
        assert!(hosts(&["*"]).unwrap().allow(&any));
        assert!(!CallbackHosts::default().allow(&any));
        for wrong in ["", "a b", "http://a", "a/b", "a:b", "u@a", "a?b"] {
            assert!(hosts(&[wrong]).is_err(), "{wrong}");
        }
    }
}
