//! Fields that concern one connection, which nobody passes on.

/// Those of RFC 9110, section 7.6.1, those like them, and the framing, which each connection has its own of.
const OF_CONNECTIONS: [&str; 11] = [
    "connection",
    "content-length",
    "http2-settings",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Whether a field concerns one connection.
///
/// - `connection`: the value of the field `connection` beside it, which names more of them; empty without one.
pub(crate) fn is_of_connection(name: &str, connection: &str) -> bool {
    let is_it = |it: &str| it.eq_ignore_ascii_case(name);
    OF_CONNECTIONS.into_iter().any(is_it) || connection.split(',').map(str::trim).any(is_it)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_are_known_and_some_are_named() {
        assert!(is_of_connection("Keep-Alive", ""));
        assert!(is_of_connection("x-hop", "close, X-Hop"));
        assert!(!is_of_connection("x-hop", "x-hops"));
        assert!(!is_of_connection("accept", ""));
    }
}
