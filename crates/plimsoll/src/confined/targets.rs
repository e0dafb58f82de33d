//! The targets of a confined command: loopback, and those of an allow-list.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use ipnet::IpNet;
use plimsoll_client::AddressFilter;
use serde_json::{Value, json};
use url::Url;

/// A host and port that may be connected to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    /// In lower case, an IPv6 address without brackets.
    host: String,
    port: u16,
}

impl Target {
    /// - `host`: as in a URL or in the client.
    pub(crate) fn new(host: &str, port: u16) -> Self {
        let host = host.trim_start_matches('[').trim_end_matches(']');
        Self {
            host: host.to_ascii_lowercase(),
            port,
        }
    }

    /// The target of a URL.
    pub(crate) fn of_url(url: &Url) -> Option<Self> {
        Some(Self::new(url.host_str()?, url.port_or_known_default()?))
    }

    /// Whether it is this machine by its name, before any lookup.
    pub(crate) fn is_loopback(&self) -> bool {
        self.host == "localhost" || self.address().is_some_and(is_loopback)
    }

    fn address(&self) -> Option<IpAddr> {
        self.host.parse().ok()
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// `https://staging.example.org`, `http://10.0.0.5:8080`.
impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let url = Url::parse(text).map_err(|_| {
            format!("`{text}` is not an origin such as https://staging.example.org")
        })?;
        let is_origin = matches!(url.scheme(), "http" | "https" | "ws" | "wss")
            && matches!(url.path(), "/" | "")
            && url.query().is_none()
            && url.fragment().is_none()
            && url.username().is_empty()
            && url.password().is_none();
        let target = Self::of_url(&url).filter(|_| is_origin);
        target.ok_or_else(|| {
            format!("`{text}` is not an origin: it has a scheme, a host and perhaps a port")
        })
    }
}

/// Which targets are allowed, and at which addresses.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct TargetPolicy {
    targets: Vec<Target>,
    networks: Vec<IpNet>,
}

impl TargetPolicy {
    /// Loopback and `targets`; their names may have public addresses and those of `networks`.
    pub(crate) fn new(targets: Vec<Target>, networks: Vec<IpNet>) -> Self {
        Self { targets, networks }
    }

    /// Whether a target is allowed by its name; no name is looked up.
    pub(crate) fn allows(&self, target: &Target) -> bool {
        target.is_loopback() || self.targets.contains(target)
    }

    /// Whether an allowed target is one at this address. A name is not enough: who answers for it may give it any address, also
    /// one that changes after it was looked at.
    fn allows_at(&self, target: &Target, address: SocketAddr) -> bool {
        let ip = address.ip().to_canonical();
        if target.is_loopback() {
            return is_loopback(ip);
        }
        match target.address() {
            Some(own) => own.to_canonical() == ip,
            None => {
                is_loopback(ip)
                    || AddressFilter::public().allows(SocketAddr::new(ip, address.port()))
                    || self.networks.iter().any(|network| network.contains(&ip))
            }
        }
    }

    /// The filter of every connection.
    pub(crate) fn filter(&self) -> AddressFilter {
        let (of_hosts, of_addresses) = (self.clone(), self.clone());
        AddressFilter::of_hosts(
            move |host, port| of_hosts.allows(&Target::new(host, port)),
            move |host, address| {
                let target = Target::new(host, address.port());
                of_addresses.allows(&target) && of_addresses.allows_at(&target, address)
            },
        )
    }

    pub(super) fn to_json(&self) -> Value {
        let targets = self.targets.iter();
        let targets: Vec<_> = targets.map(|it| json!([it.host, it.port])).collect();
        let networks: Vec<_> = self.networks.iter().map(ToString::to_string).collect();
        json!({ "allowed": targets, "networks": networks })
    }

    pub(super) fn from_json(value: &Value) -> Option<Self> {
        let target = |value: &Value| {
            let port = u16::try_from(value[1].as_u64()?).ok()?;
            Some(Target::new(value[0].as_str()?, port))
        };
        let targets = value["allowed"].as_array()?.iter().map(target);
        let networks = value["networks"].as_array()?.iter();
        let networks = networks.map(|network| network.as_str()?.parse().ok());
        Some(Self {
            targets: targets.collect::<Option<_>>()?,
            networks: networks.collect::<Option<_>>()?,
        })
    }
}

/// Also an IPv4 address within IPv6.
fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy() -> TargetPolicy {
        TargetPolicy::new(
            [
                "https://Staging.example.org",
                "http://10.0.0.5:8080",
                "http://[2001:db8::1]",
            ]
            .map(|text| text.parse().unwrap())
            .to_vec(),
            vec![
                "192.168.7.0/24".parse().unwrap(),
                "fd00::/8".parse().unwrap(),
            ],
        )
    }

    #[test]
    fn loopback_and_listed_targets_are_allowed_at_their_own_addresses() {
        let filter = policy().filter();
        for (host, address, is_allowed) in [
            ("localhost", "127.0.0.1:1", true),
            ("localhost", "[::1]:1", true),
            ("127.8.0.1", "127.8.0.1:65535", true),
            ("::1", "[::1]:80", true),
            ("[::1]", "[::1]:80", true),
            // Names of this machine that resolve to another one.
            ("localhost", "10.0.0.1:80", false),
            ("localhost", "93.184.216.34:80", false),
            // A name of the list, at addresses that its owner may and may not give it.
            ("staging.example.org", "93.184.216.34:443", true),
            ("STAGING.example.org", "93.184.216.34:443", true),
            ("staging.example.org", "192.168.7.9:443", true),
            ("staging.example.org", "[fd12::1]:443", true),
            ("staging.example.org", "192.168.8.9:443", false),
            ("staging.example.org", "169.254.169.254:443", false),
            ("staging.example.org", "10.0.0.5:443", false),
            ("staging.example.org", "[::ffff:10.0.0.5]:443", false),
            ("staging.example.org", "0.0.0.0:443", false),
            ("staging.example.org", "93.184.216.34:80", false),
            // Addresses of the list.
            ("10.0.0.5", "10.0.0.5:8080", true),
            ("10.0.0.5", "10.0.0.5:80", false),
            ("10.0.0.5", "10.0.0.6:8080", false),
            ("2001:db8::1", "[2001:db8::1]:80", true),
            // Others.
            ("example.org", "93.184.216.34:443", false),
            ("staging.example.org.", "93.184.216.34:443", false),
            ("0.0.0.0", "0.0.0.0:80", false),
            ("127.0.0.1.example.org", "127.0.0.1:80", false),
            ("169.254.169.254", "169.254.169.254:80", false),
        ] {
            let address: SocketAddr = address.parse().unwrap();
            let is_host_allowed = filter.allows_host(host, address.port());
            let target = Target::new(host, address.port());
            let allowed = is_host_allowed && policy().allows_at(&target, address);
            assert_eq!(allowed, is_allowed, "{host} at {address}");
        }
    }

    #[test]
    fn an_allow_list_has_origins() {
        for wrong in [
            "staging.example.org",
            "https://a/path",
            "https://a/?q",
            "https://u:p@a/",
            "ftp://a/",
            "unix:/run/x",
            "",
        ] {
            assert!(wrong.parse::<Target>().is_err(), "{wrong}");
        }
        let shown: Target = "http://[::1]:8080".parse().unwrap();
        assert_eq!(shown.to_string(), "[::1]:8080");
    }

    #[test]
    fn a_policy_survives_the_environment() {
        assert_eq!(TargetPolicy::from_json(&policy().to_json()), Some(policy()));
    }
}
