//! Which addresses may be connected to, decided between resolving and connecting.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use plimsoll_model::{Failure, FailureKind, Phase, Side};

/// Decides for each resolved address whether a connection may be opened to it, and for each host whether it is looked up.
///
/// Names resolve to what their owners like, so a check of URLs cannot keep requests away from internal servers (SSRF);
/// a check of the addresses can.
#[derive(Clone)]
pub struct AddressFilter {
    hosts: Arc<HostRule>,
    addresses: Arc<AddressRule>,
}

/// Whether a host and port may be looked up.
type HostRule = dyn Fn(&str, u16) -> bool + Send + Sync;

/// Whether an address of a host may be connected to.
type AddressRule = dyn Fn(&str, SocketAddr) -> bool + Send + Sync;

impl AddressFilter {
    /// Allows the addresses for which `is_allowed` is true, of any host.
    pub fn new(is_allowed: impl Fn(SocketAddr) -> bool + Send + Sync + 'static) -> Self {
        Self::of_hosts(|_, _| true, move |_, address| is_allowed(address))
    }

    /// Allows hosts with some of their addresses.
    ///
    /// - `hosts`: gets host and port before the name is looked up: a name that is looked up has left this machine.
    /// - `addresses`: gets the host with each of its addresses.
    pub fn of_hosts(
        hosts: impl Fn(&str, u16) -> bool + Send + Sync + 'static,
        addresses: impl Fn(&str, SocketAddr) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self {
            hosts: Arc::new(hosts),
            addresses: Arc::new(addresses),
        }
    }

    /// Allows addresses of the public internet: none that is private, shared, link-local, loopback, multicast,
    /// reserved, or an IPv4 address of those within IPv6 (RFC 6890).
    pub fn public() -> Self {
        Self::new(|address| is_public(address.ip()))
    }

    /// Allows what both filters allow.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let (one, another) = (self.clone(), other.clone());
        Self::of_hosts(
            move |host, port| one.allows_host(host, port) && another.allows_host(host, port),
            move |host, address| self.allows_at(host, address) && other.allows_at(host, address),
        )
    }

    /// Whether a connection may be opened to `address`, which is named by itself.
    pub fn allows(&self, address: SocketAddr) -> bool {
        let host = address.ip().to_string();
        self.allows_host(&host, address.port()) && self.allows_at(&host, address)
    }

    /// Whether `host` may be looked up, to connect to `port`.
    pub fn allows_host(&self, host: &str, port: u16) -> bool {
        (self.hosts)(host, port)
    }

    /// Whether a connection to `host` may be opened at `address`.
    fn allows_at(&self, host: &str, address: SocketAddr) -> bool {
        (self.addresses)(host, address)
    }

    /// Fails in the phase dns if `host` may not be looked up.
    pub(crate) fn admit_host(&self, host: &str, port: u16) -> Result<(), Failure> {
        if self.allows_host(host, port) {
            return Ok(());
        }
        Err(Failure::new(Phase::Dns, FailureKind::Refused)
            .on(Side::Config)
            .because(format!("{host}:{port} is not allowed")))
    }

    /// The addresses that are allowed. Fails in the phase dns if none is.
    pub(crate) fn admit(
        &self,
        host: &str,
        addresses: Vec<SocketAddr>,
    ) -> Result<Vec<SocketAddr>, Failure> {
        let first = addresses.first().copied();
        let allowed: Vec<_> = addresses
            .into_iter()
            .filter(|address| self.allows_at(host, *address))
            .collect();
        match (first, allowed.is_empty()) {
            (Some(address), true) => Err(Failure::new(Phase::Dns, FailureKind::Refused)
                .on(Side::Config)
                .because(format!("{host} is {}, which is not allowed", address.ip()))),
            _ => Ok(allowed),
        }
    }
}

impl fmt::Debug for AddressFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AddressFilter")
    }
}

fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => {
            let [a, b, c, _] = address.octets();
            let is_shared = a == 100 && b & 0xc0 == 64;
            let is_protocol = a == 192 && b == 0 && c == 0;
            let is_benchmark = a == 198 && b & 0xfe == 18;
            !(a == 0
                || a >= 224
                || address.is_loopback()
                || address.is_private()
                || address.is_link_local()
                || address.is_documentation()
                || is_shared
                || is_protocol
                || is_benchmark)
        }
        IpAddr::V6(address) => {
            if let Some(inner) = address.to_ipv4_mapped() {
                return is_public(inner.into());
            }
            let [first, second, ..] = address.segments();
            if let [0x64, 0xff9b, 0, 0, 0, 0, high, low] = address.segments() {
                let [a, b] = high.to_be_bytes();
                let [c, d] = low.to_be_bytes();
                return is_public(std::net::Ipv4Addr::new(a, b, c, d).into());
            }
            let is_global = first & 0xe000 == 0x2000;
            // Documentation, Teredo and 6to4, whose addresses lead to others.
            let is_special =
                (first == 0x2001 && (second == 0x0db8 || second < 0x0200)) || first == 0x2002;
            is_global && !is_special
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn public_addresses_are_distinguished_from_others() {
        for address in [
            "1.1.1.1",
            "93.184.216.34",
            "2606:4700::1111",
            "::ffff:1.1.1.1",
            "64:ff9b::101:101",
        ] {
            assert!(is_public(address.parse().unwrap()), "{address}");
        }
        for address in [
            "0.0.0.0",
            "10.1.2.3",
            "100.64.0.1",
            "127.0.0.1",
            "169.254.169.254",
            "172.16.0.1",
            "192.168.0.1",
            "192.0.0.1",
            "198.18.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "203.0.113.1",
            "::",
            "::1",
            "fe80::1",
            "fc00::1",
            "ff02::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "::ffff:127.0.0.1",
            "::127.0.0.1",
            "64:ff9b::7f00:1",
        ] {
            assert!(!is_public(address.parse().unwrap()), "{address}");
        }
    }

    #[test]
    fn a_host_is_judged_before_its_addresses_and_by_both_filters() {
        let named = AddressFilter::of_hosts(
            |host, port| host == "a.test" && port == 80,
            |host, address| host == "a.test" && address.ip().is_loopback(),
        );
        assert!(named.admit_host("a.test", 80).is_ok());
        for (host, port) in [("a.test", 81), ("b.test", 80), ("127.0.0.1", 80)] {
            assert!(named.admit_host(host, port).is_err(), "{host}:{port}");
        }
        let loopback: SocketAddr = "127.0.0.1:80".parse().unwrap();
        assert!(named.admit("a.test", vec![loopback]).is_ok());
        assert!(!named.allows(loopback), "its host is another");
        let neither = named.and(AddressFilter::public());
        assert!(neither.admit_host("a.test", 80).is_ok());
        assert!(neither.admit("a.test", vec![loopback]).is_err());
    }

    #[test]
    fn a_host_with_an_allowed_address_is_reached_by_it() {
        let addresses = ["127.0.0.1:80", "1.1.1.1:80"].map(|text| text.parse().unwrap());
        let admitted = AddressFilter::public().admit("a", addresses.to_vec());
        assert_eq!(admitted.unwrap(), addresses[1..]);
        let refused = AddressFilter::public()
            .admit("a", addresses[..1].to_vec())
            .unwrap_err();
        assert_eq!(refused.side, Side::Config);
        assert_eq!(
            refused.to_string(),
            "refused during dns: a is 127.0.0.1, which is not allowed"
        );
    }
}
