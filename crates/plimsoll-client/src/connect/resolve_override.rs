//! Addresses given by hand in place of a name lookup: curl's `--resolve host:port:addr[,addr]…`.

use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

use url::Host;

/// One `--resolve` argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolveOverride {
    /// Absent stands for `*`, every host.
    host: Option<Host<String>>,
    port: u16,
    addresses: Vec<IpAddr>,
}

impl ResolveOverride {
    /// `addresses` (at least one) answer for `host` at `port`; no host means every host.
    ///
    /// Fails if there is no address.
    pub fn new(
        host: Option<Host<String>>,
        port: u16,
        addresses: Vec<IpAddr>,
    ) -> Result<Self, OverrideError> {
        if addresses.is_empty() {
            return Err(OverrideError::NoAddress);
        }
        Ok(Self {
            host,
            port,
            addresses,
        })
    }

    /// The addresses, in the order given; at least one.
    pub fn addresses(&self) -> &[IpAddr] {
        &self.addresses
    }
}

impl FromStr for ResolveOverride {
    type Err = OverrideError;

    /// `HOST:PORT:ADDRESS[,ADDRESS]…` where `HOST` may be `*` and IPv6 addresses may be in brackets.
    fn from_str(text: &str) -> Result<Self, OverrideError> {
        let (host, rest) = split_host(text)?;
        let (port, addresses) = rest.split_once(':').ok_or(OverrideError::Shape)?;
        let host = match host {
            "" => return Err(OverrideError::Shape),
            "*" => None,
            name => Some(Host::parse(name).map_err(|_| OverrideError::Host(name.to_owned()))?),
        };
        let port = port
            .parse()
            .map_err(|_| OverrideError::Port(port.to_owned()))?;
        let addresses = addresses
            .split(',')
            .map(parse_address)
            .collect::<Result<_, _>>()?;
        Self::new(host, port, addresses)
    }
}

/// Every override of a run; for a host named twice the last one counts, and a name beats `*`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Overrides(Vec<ResolveOverride>);

impl Overrides {
    /// Those in `list`, in the order given.
    pub fn new(list: Vec<ResolveOverride>) -> Self {
        Self(list)
    }

    /// The addresses given for `host` at `port`, if any.
    pub fn find(&self, host: &Host<&str>, port: u16) -> Option<&[IpAddr]> {
        let at_port = || self.0.iter().rev().filter(|entry| entry.port == port);
        at_port()
            .find(|entry| entry.host.as_ref().is_some_and(|named| named == host))
            .or_else(|| at_port().find(|entry| entry.host.is_none()))
            .map(ResolveOverride::addresses)
    }
}

/// Why a `--resolve` argument cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OverrideError {
    /// Not three parts.
    #[error("expected HOST:PORT:ADDRESS, such as `example.com:443:127.0.0.1`")]
    Shape,
    /// The host is neither a name, an address nor `*`.
    #[error("`{0}` is not a host name")]
    Host(String),
    /// The port is not a number.
    #[error("`{0}` is not a port")]
    Port(String),
    /// The address is not one.
    #[error("`{0}` is not an IP address")]
    Address(String),
    /// No address.
    #[error("no address is given")]
    NoAddress,
}

fn split_host(text: &str) -> Result<(&str, &str), OverrideError> {
    if text.starts_with('[') {
        let (host, rest) = text.split_once("]:").ok_or(OverrideError::Shape)?;
        let end = host.len() + 1;
        return Ok((text.get(..end).ok_or(OverrideError::Shape)?, rest));
    }
    text.split_once(':').ok_or(OverrideError::Shape)
}

fn parse_address(text: &str) -> Result<IpAddr, OverrideError> {
    let text = text.trim();
    let bracketed = text
        .strip_prefix('[')
        .and_then(|text| text.strip_suffix(']'));
    let address = match bracketed {
        Some(inner) => inner.parse::<Ipv6Addr>().map(IpAddr::from),
        None => text.parse(),
    };
    address.map_err(|_| OverrideError::Address(text.to_owned()))
}

#[cfg(test)]
mod tests;
