//! Which upstream a connection goes to, by what a TLS client says before anything is encrypted. Pure.

use plimsoll_wire::tls::ClientHello;

/// Conditions on a TLS client, and where connections that meet them go.
#[derive(Debug, Clone)]
pub(crate) struct TcpRoute<T> {
    /// Names, in lower case, of which the client requests one; any if the list is empty. `*.example.org` is every name below
    /// that one.
    pub(crate) names: Vec<String>,
    /// Protocols of which the client offers one; any if the list is empty.
    pub(crate) protocols: Vec<Vec<u8>>,
    pub(crate) to: T,
}

/// Routes in the order of the file, of which the first that matches counts.
#[derive(Debug, Clone)]
pub(crate) struct TcpRoutes<T> {
    pub(crate) routes: Vec<TcpRoute<T>>,
    /// For every other connection, in the clear too.
    pub(crate) fallback: Option<T>,
}

impl<T> TcpRoutes<T> {
    /// The upstream for a TLS client; `None` if no route matches.
    pub(crate) fn of_client(&self, hello: &ClientHello) -> Option<&T> {
        let found = self.routes.iter().find(|route| route.matches(hello));
        found.map(|route| &route.to).or(self.fallback.as_ref())
    }

    /// Everything that connections may go to.
    pub(crate) fn targets(&self) -> impl Iterator<Item = &T> {
        let routes = self.routes.iter().map(|route| &route.to);
        routes.chain(&self.fallback)
    }

    /// The protocols that routes ask for, in their order.
    pub(crate) fn protocols(&self) -> Vec<Vec<u8>> {
        let all = self.routes.iter().flat_map(|route| &route.protocols);
        let mut protocols: Vec<Vec<u8>> = Vec::new();
        for protocol in all {
            if !protocols.contains(protocol) {
                protocols.push(protocol.clone());
            }
        }
        protocols
    }

    /// The same routes to something else.
    pub(crate) fn map<U>(&self, mut to: impl FnMut(&T) -> U) -> TcpRoutes<U> {
        let routes = self.routes.iter().map(|route| TcpRoute {
            names: route.names.clone(),
            protocols: route.protocols.clone(),
            to: to(&route.to),
        });
        TcpRoutes {
            routes: routes.collect(),
            fallback: self.fallback.as_ref().map(&mut to),
        }
    }
}

impl<T> TcpRoute<T> {
    fn matches(&self, hello: &ClientHello) -> bool {
        let has_name = |name: &str| self.names.iter().any(|pattern| covers(pattern, name));
        let is_named = self.names.is_empty() || hello.server_name.as_deref().is_some_and(has_name);
        let is_offered = |protocol: &Vec<u8>| hello.alpn.contains(protocol);
        is_named && (self.protocols.is_empty() || self.protocols.iter().any(is_offered))
    }
}

/// Whether a pattern is for a name; both are in lower case.
fn covers(pattern: &str, name: &str) -> bool {
    match pattern.strip_prefix('*') {
        // With its dot, before which there is at least one character.
        Some(suffix) => name.len() > suffix.len() && name.ends_with(suffix),
        None => pattern == name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(names: &[&str], protocols: &[&str], to: u8) -> TcpRoute<u8> {
        TcpRoute {
            names: names.iter().map(|&it| it.to_owned()).collect(),
            protocols: protocols.iter().map(|it| it.as_bytes().to_vec()).collect(),
            to,
        }
    }

    #[test]
    fn the_first_route_that_matches_counts() {
        let routes = TcpRoutes {
            routes: vec![
                route(&["a.example", "*.b.example"], &["h2"], 1),
                route(&["a.example"], &[], 2),
                route(&[], &["acme-tls/1"], 3),
            ],
            fallback: Some(9),
        };
        let go = |name: Option<&str>, protocols: &[&str]| {
            let hello = ClientHello {
                server_name: name.map(str::to_owned),
                alpn: protocols.iter().map(|it| it.as_bytes().to_vec()).collect(),
                is_encrypted: false,
            };
            *routes.of_client(&hello).unwrap()
        };
        assert_eq!(go(Some("a.example"), &["http/1.1", "h2"]), 1);
        assert_eq!(go(Some("a.example"), &["http/1.1"]), 2);
        assert_eq!(go(Some("x.y.b.example"), &["h2"]), 1);
        for name in ["b.example", ".b.example", "xb.example"] {
            assert_eq!(go(Some(name), &["h2"]), 9, "{name}");
        }
        assert_eq!(go(None, &["acme-tls/1"]), 3);
        assert_eq!(go(None, &[]), 9);
        assert_eq!(*routes.map(|to| to * 2).fallback.as_ref().unwrap(), 18);
    }
}
