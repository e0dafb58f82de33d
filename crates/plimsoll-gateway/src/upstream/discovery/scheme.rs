//! What servers speak whose source has only their addresses.

use std::fmt;
use std::net::IpAddr;

use plimsoll_client::Endpoint;

use crate::upstream::{ServerPlan, Transport};

/// `scheme` beside a source.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum ServerScheme {
    /// Requests, in the clear.
    #[default]
    Http,
    /// Requests over TLS.
    Https,
    /// The bytes of connections.
    Tcp,
    /// The bytes of connections, over TLS.
    Tls,
}

impl ServerScheme {
    pub(crate) const ALL: [Self; 4] = [Self::Http, Self::Https, Self::Tcp, Self::Tls];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
            Self::Tcp => "tcp",
            Self::Tls => "tls",
        }
    }

    /// Whether connections begin with a handshake of TLS.
    pub(crate) const fn is_tls(self) -> bool {
        matches!(self, Self::Https | Self::Tls)
    }

    pub(crate) const fn transport(self) -> Transport {
        match self {
            Self::Http | Self::Https => Transport::Http,
            Self::Tcp | Self::Tls => Transport::Tcp,
        }
    }

    /// The server at a host, which is a name or an address; `None` if no URL has such a host.
    ///
    /// - `port`: as a source says it; `None` if it is none.
    pub(crate) fn server(self, host: &str, port: impl TryInto<u16>) -> Option<ServerPlan> {
        let port = port.try_into().ok().filter(|port| *port != 0)?;
        let host = match host.parse::<IpAddr>() {
            Ok(IpAddr::V6(address)) => format!("[{address}]"),
            _ => host.to_owned(),
        };
        // The name of a host comes from others: nothing of it is a path, a user or a port.
        if host.is_empty() || host.contains(['/', '@', '?', '#', '\\']) {
            return None;
        }
        let scheme = if self.is_tls() { "https" } else { "http" };
        let endpoint = Endpoint::parse(&format!("{scheme}://{host}:{port}")).ok()?;
        (endpoint.port() == port).then(|| ServerPlan::new(self.transport(), endpoint))
    }
}

impl fmt::Display for ServerScheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_names_and_addresses_alone() {
        for (scheme, host, expected) in [
            (ServerScheme::Http, "10.0.0.1", Some("http://10.0.0.1:81")),
            (ServerScheme::Https, "fd00::1", Some("https://[fd00::1]:81")),
            (ServerScheme::Tcp, "db.test", Some("tcp://db.test:81")),
            (ServerScheme::Tls, "db.test", Some("tls://db.test:81")),
            (ServerScheme::Http, "a@b", None),
            (ServerScheme::Http, "a/b", None),
            (ServerScheme::Http, "a:1", None),
            (ServerScheme::Http, "", None),
        ] {
            let found = scheme.server(host, 81_u16).map(|server| server.name());
            assert_eq!(found.as_deref(), expected, "{host}");
        }
        for port in [0, -1, 65_536] {
            assert!(ServerScheme::Http.server("10.0.0.1", port).is_none());
        }
    }
}
