//! Targets that are reached without the proxy (`no_proxy`).

use std::net::IpAddr;
use std::str::FromStr;

use ipnet::IpNet;
use url::Host;

/// A list of hosts, domains, addresses and networks that are exempt from the proxy.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NoProxy(Vec<Entry>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    pattern: Pattern,
    /// Absent means every port.
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Pattern {
    Everything,
    /// The name and all below it; lowercase ASCII without a dot at either end.
    Domain(String),
    Network(IpNet),
}

impl NoProxy {
    /// Whether `host` at `port` is exempt.
    pub fn matches(&self, host: &Host<&str>, port: u16) -> bool {
        self.0.iter().any(|entry| {
            entry.port.is_none_or(|wanted| wanted == port) && entry.pattern.matches(host)
        })
    }
}

impl Pattern {
    fn matches(&self, host: &Host<&str>) -> bool {
        match (self, host) {
            (Self::Everything, _) => true,
            (Self::Domain(domain), Host::Domain(name)) => is_within(name, domain),
            (Self::Network(network), Host::Ipv4(address)) => {
                network.contains(&IpAddr::from(*address))
            }
            (Self::Network(network), Host::Ipv6(address)) => {
                network.contains(&IpAddr::from(*address))
            }
            (Self::Domain(_), _) | (Self::Network(_), Host::Domain(_)) => false,
        }
    }
}

impl FromStr for NoProxy {
    type Err = NoProxyError;

    /// Entries stand between commas or spaces: `*`, `example.com` (and all below it; a leading dot
    /// or `*.` means the same), `10.0.0.1`, `10.0.0.0/8`, `[::1]`, each but the first and CIDR with
    /// an optional `:PORT`.
    fn from_str(text: &str) -> Result<Self, NoProxyError> {
        text.split([',', ' ', '\t'])
            .filter(|entry| !entry.is_empty())
            .map(parse_entry)
            .collect::<Result<_, _>>()
            .map(Self)
    }
}

/// An entry that means nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is neither a host, a domain, an address nor a network")]
pub struct NoProxyError(String);

fn parse_entry(text: &str) -> Result<Entry, NoProxyError> {
    let error = || NoProxyError(text.to_owned());
    if text == "*" {
        return Ok(Entry {
            pattern: Pattern::Everything,
            port: None,
        });
    }
    if let Some(network) = parse_network(text) {
        return Ok(Entry {
            pattern: Pattern::Network(network),
            port: None,
        });
    }
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) => (host, Some(port.parse().map_err(|_| error())?)),
        None => (text, None),
    };
    if let Some(network) = parse_network(host) {
        return Ok(Entry {
            pattern: Pattern::Network(network),
            port,
        });
    }
    let name = host
        .strip_prefix("*.")
        .unwrap_or(host)
        .trim_start_matches('.');
    let name = name.strip_suffix('.').unwrap_or(name);
    match Host::parse(name) {
        Ok(Host::Domain(name)) => Ok(Entry {
            pattern: Pattern::Domain(name),
            port,
        }),
        _ => Err(error()),
    }
}

/// An address counts as a network of one; brackets around IPv6 are optional.
fn parse_network(text: &str) -> Option<IpNet> {
    let bare = text
        .strip_prefix('[')
        .and_then(|text| text.strip_suffix(']'))
        .unwrap_or(text);
    bare.parse()
        .ok()
        .or_else(|| bare.parse::<IpAddr>().ok().map(IpNet::from))
}

fn is_within(name: &str, domain: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    name.strip_suffix(domain)
        .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

#[cfg(test)]
mod tests;
