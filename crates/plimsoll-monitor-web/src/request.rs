//! Facts about a request: its client and its query.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use http::HeaderMap;
use http::header::HOST;
use plimsoll_server::Scheme;

/// The address of the client, by which attempts are limited.
pub(crate) fn client_of(extensions: &http::Extensions) -> IpAddr {
    let peer = extensions.get::<SocketAddr>();
    peer.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), SocketAddr::ip)
}

/// The address of the client, for the audit log.
pub(crate) fn address_of(extensions: &http::Extensions) -> String {
    let peer = extensions.get::<SocketAddr>();
    peer.map_or_else(String::new, |peer| peer.ip().to_string())
}

/// Whether the client came by TLS, to here or to a proxy before it.
pub(crate) fn is_tls(fields: &HeaderMap, extensions: &http::Extensions) -> bool {
    let proxied = fields.get("x-forwarded-proto");
    extensions.get::<Scheme>() == Some(&Scheme::Https)
        || proxied.is_some_and(|scheme| scheme.as_bytes() == b"https")
}

/// Scheme and host by which the client reached this server.
pub(crate) fn origin_of(fields: &HeaderMap, extensions: &http::Extensions) -> String {
    let host = fields.get(HOST).and_then(|host| host.to_str().ok());
    let scheme = if is_tls(fields, extensions) {
        "https"
    } else {
        "http"
    };
    format!("{scheme}://{}", host.unwrap_or("localhost"))
}

/// A parameter of a query.
pub(crate) fn parameter(query: Option<&str>, name: &str) -> Option<String> {
    let mut pairs = url::form_urlencoded::parse(query?.as_bytes());
    let found = pairs.find(|(key, _)| key == name);
    found.map(|(_, value)| value.into_owned())
}

/// Whether a path is one of a status page, rather than of the API or of operators.
///
/// Pages change nothing but subscribers, which are rows of the store alone: it is safe, and two processes may do it at a time.
pub(crate) fn is_for_readers(path: &str) -> bool {
    const OTHERS: [&str; 7] = [
        "/api",
        "/admin",
        "/acknowledge",
        "/metrics",
        "/probe",
        "/ping",
        "/health",
    ];

    !OTHERS.iter().any(|prefix| {
        let rest = path.strip_prefix(prefix);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    })
}
