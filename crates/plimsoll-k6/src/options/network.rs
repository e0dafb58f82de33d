//! Options about connections: where hosts are, what is blocked, which versions of TLS are offered.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use ipnet::IpNet;
use plimsoll_client::{AddressFamily, AddressFilter};
use plimsoll_model::Secret;
use plimsoll_wire::tls::{CipherSuites, IdentityText, TlsVersion, TlsVersions};
use serde_json::Value;

use super::Reader;
use super::encrypted_key::decrypted;
use crate::options::duration;

/// Connection options of virtual users.
#[derive(Debug, Clone, Default)]
pub(crate) struct NetworkOptions {
    /// Addresses in place of a lookup.
    pub(crate) hosts: Vec<HostEntry>,
    /// Patterns of names that are not connected to.
    pub(crate) blocked_names: Vec<NamePattern>,
    /// Networks that are not connected to.
    pub(crate) blocked_networks: Vec<IpNet>,
    /// Requests per second of all virtual users; 0 for no limit.
    pub(crate) rps: u32,
    pub(crate) family: AddressFamily,
    /// How long looked-up addresses are kept.
    pub(crate) address_ttl: Duration,
    pub(crate) tls_versions: TlsVersions,
    /// Absent for all.
    pub(crate) ciphers: Option<CipherSuites>,
    /// Client certificates.
    pub(crate) identities: Vec<IdentityText>,
    /// Addresses to connect from; virtual users take turns.
    pub(crate) local_addresses: Vec<IpAddr>,
    /// Which parts of requests and responses are logged.
    pub(crate) http_debug: Option<HttpDebug>,
}

/// The logged parts of requests and responses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HttpDebug {
    /// Their heads.
    Heads,
    /// Their contents too.
    Full,
}

/// Local addresses beyond it are rejected: each has connections of its own.
const MOST_LOCAL: usize = 4096;

/// A name in lower case, or the end of names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NamePattern {
    pub(crate) written: String,
    is_suffix: bool,
    name: String,
}

/// The address of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HostEntry {
    pattern: NamePattern,
    /// Absent for every port.
    port: Option<u16>,
    pub(crate) address: IpAddr,
    /// Absent for that of the URL.
    pub(crate) to_port: Option<u16>,
}

impl NamePattern {
    fn new(written: &str) -> Option<Self> {
        let lower = written.to_ascii_lowercase();
        let (is_suffix, name) = match lower.strip_prefix('*') {
            Some(rest) => (true, rest),
            None => (false, lower.as_str()),
        };
        let is_valid = !name.contains('*') && (is_suffix || !name.is_empty());
        is_valid.then(|| Self {
            written: written.to_owned(),
            is_suffix,
            name: name.to_owned(),
        })
    }

    /// - `host`: in lower case, as URLs have it.
    pub(crate) fn matches(&self, host: &str) -> bool {
        if self.is_suffix {
            host.ends_with(&self.name)
        } else {
            host == self.name
        }
    }
}

impl NetworkOptions {
    pub(super) fn read(reader: &mut Reader<'_>) -> Self {
        let (family, address_ttl) = dns(reader);
        Self {
            hosts: hosts(reader),
            blocked_names: blocked_names(reader),
            blocked_networks: blocked_networks(reader),
            rps: reader.count("rps", 0),
            family,
            address_ttl,
            tls_versions: tls_versions(reader),
            ciphers: ciphers(reader),
            identities: identities(reader),
            local_addresses: local_addresses(reader),
            http_debug: http_debug(reader),
        }
    }

    /// The address that the script gives a host. The longest pattern counts, and one with a port first.
    pub(crate) fn host(&self, host: &str, port: u16) -> Option<&HostEntry> {
        let entries = self.hosts.iter().filter(|entry| {
            entry.pattern.matches(host) && entry.port.is_none_or(|own| own == port)
        });
        entries.max_by_key(|entry| {
            let pattern = &entry.pattern;
            (!pattern.is_suffix, entry.port.is_some(), pattern.name.len())
        })
    }

    /// The pattern that blocks a host.
    pub(crate) fn blocking(&self, host: &str) -> Option<&NamePattern> {
        self.blocked_names
            .iter()
            .find(|pattern| pattern.matches(host))
    }

    /// Which addresses may be connected to; `None` for all.
    pub(crate) fn filter(&self) -> Option<AddressFilter> {
        let networks = self.blocked_networks.clone();
        if networks.is_empty() {
            return None;
        }
        Some(AddressFilter::new(move |address| {
            !networks
                .iter()
                .any(|network| network.contains(&address.ip()))
        }))
    }
}

/// Names of suites of TLS 1.2, as Go has them; those of TLS 1.3 are offered in any case.
fn ciphers(reader: &mut Reader<'_>) -> Option<CipherSuites> {
    let names = reader.list("tlsCipherSuites")?;
    let (mut known, mut unknown) = (Vec::new(), Vec::new());
    for name in &names {
        match name.parse::<CipherSuites>() {
            Ok(_) => known.push(name.as_str()),
            Err(_) => unknown.push(name.as_str()),
        }
    }
    if !unknown.is_empty() {
        reader.warn(&format!(
            "options.tlsCipherSuites: {} are not offered: plimsoll has only suites with forward secrecy and authenticated encryption, {}",
            unknown.join(", "),
            CipherSuites::known().collect::<Vec<_>>().join(", ")
        ));
    }
    if known.is_empty() {
        // Then every suite is offered, as far as the versions allow.
        return None;
    }
    known.extend(["TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384"]);
    known.push("TLS_CHACHA20_POLY1305_SHA256");
    known.join(",").parse().ok()
}

fn identities(reader: &mut Reader<'_>) -> Vec<IdentityText> {
    let Some(value) = reader.read_key("tlsAuth") else {
        return Vec::new();
    };
    let Some(list) = value.as_array() else {
        reader.error(
            "tlsAuth",
            "must be a list of { cert, key, password, domains }",
        );
        return Vec::new();
    };
    let mut identities = Vec::new();
    for (position, value) in list.iter().enumerate() {
        let name = format!("tlsAuth[{position}]");
        let Some(map) = value.as_object() else {
            reader.error(&name, "must be an object with cert and key");
            continue;
        };
        let mut inner = Reader::within(map, format!("{name}."));
        // As in k6, a server gets the first certificate that it accepts, whatever the domains are.
        inner.read_key("domains");
        let password = inner.text("password");
        let (certificate, key) = (inner.text("cert"), inner.text("key"));
        for (key, value) in [("cert", &certificate), ("key", &key)] {
            if value.is_none() {
                inner.error(
                    key,
                    "is missing: the text of a PEM file, as open() returns it",
                );
            }
        }
        let decrypted = key.map(|key| decrypted(key, password.as_deref()));
        let key = match decrypted.transpose() {
            Ok(key) => key,
            Err(error) => {
                inner.error("key", &error.to_string());
                None
            }
        };
        if let (Some(certificate), Some(key)) = (certificate, key) {
            identities.push(IdentityText {
                name: format!("options.{name}"),
                certificate,
                key: Secret::new(key),
            });
        }
        reader.absorb(&inner);
    }
    identities
}

/// Addresses, ranges `10.0.0.1-10.0.0.9` and networks, separated by commas.
fn local_addresses(reader: &mut Reader<'_>) -> Vec<IpAddr> {
    let mut addresses = Vec::new();
    for part in reader.text("localIPs").unwrap_or_default().split(',') {
        let part = part.trim();
        if part.is_empty() {
            continue;
        }
        let hosts: Option<Vec<IpAddr>> = if let Some((first, last)) = part.split_once('-') {
            range(first, last)
        } else if let Ok(network) = part.parse::<IpNet>() {
            Some(network.hosts().take(MOST_LOCAL + 1).collect())
        } else {
            part.parse().ok().map(|address| vec![address])
        };
        match hosts {
            Some(hosts) => addresses.extend(hosts),
            None => reader.error(
                "localIPs",
                &format!(
                    "has `{part}`, which is neither an address nor a range such as 10.0.0.1-10.0.0.9 nor a network"
                ),
            ),
        }
        if addresses.len() > MOST_LOCAL {
            reader.error("localIPs", &format!("has more than {MOST_LOCAL} addresses"));
            return Vec::new();
        }
    }
    addresses
}

/// The addresses from the first to the last one.
fn range(first: &str, last: &str) -> Option<Vec<IpAddr>> {
    match (first.trim().parse().ok()?, last.trim().parse().ok()?) {
        (IpAddr::V4(first), IpAddr::V4(last)) if first <= last => {
            let numbers = u32::from(first)..=u32::from(last);
            let addresses = numbers.map(|number| IpAddr::from(number.to_be_bytes()));
            Some(addresses.take(MOST_LOCAL + 1).collect())
        }
        (IpAddr::V6(first), IpAddr::V6(last)) if first <= last => {
            let numbers = u128::from(first)..=u128::from(last);
            let addresses = numbers.map(|number| IpAddr::from(number.to_be_bytes()));
            Some(addresses.take(MOST_LOCAL + 1).collect())
        }
        _ => None,
    }
}

fn http_debug(reader: &mut Reader<'_>) -> Option<HttpDebug> {
    match reader.text("httpDebug")?.as_str() {
        "full" => Some(HttpDebug::Full),
        _ => Some(HttpDebug::Heads),
    }
}

fn hosts(reader: &mut Reader<'_>) -> Vec<HostEntry> {
    let mut entries = Vec::new();
    for (name, target) in reader.texts("hosts") {
        let key = format!("hosts[\"{name}\"]");
        // An IPv6 address has colons too, but no host has one.
        let (host, port) = match name.rsplit_once(':') {
            Some((host, port)) => (host, port.parse().ok()),
            None => (name.as_str(), None),
        };
        let pattern = NamePattern::new(host);
        let has_port = name.contains(':');
        let (Some(pattern), true) = (pattern, !has_port || port.is_some()) else {
            let message = "must be a name, with `*` at most at its beginning and a port behind `:`";
            reader.error(&key, message);
            continue;
        };
        let address = target.parse::<SocketAddr>();
        let address = address.map(|address| (address.ip(), Some(address.port())));
        let address = address.or_else(|_| {
            let inner = target.trim_start_matches('[').trim_end_matches(']');
            inner.parse::<IpAddr>().map(|address| (address, None))
        });
        if let Ok((address, to_port)) = address {
            entries.push(HostEntry {
                pattern,
                port,
                address,
                to_port,
            });
        } else {
            let message =
                format!("must be an address such as 127.0.0.1 or 127.0.0.1:8080, not {target}");
            reader.error(&key, &message);
        }
    }
    entries
}

fn blocked_names(reader: &mut Reader<'_>) -> Vec<NamePattern> {
    let mut patterns = Vec::new();
    for name in reader.list("blockHostnames").unwrap_or_default() {
        match NamePattern::new(&name) {
            Some(pattern) => patterns.push(pattern),
            None => reader.error(
                "blockHostnames",
                &format!("has `{name}`, in which `*` is not the first character only"),
            ),
        }
    }
    patterns
}

fn blocked_networks(reader: &mut Reader<'_>) -> Vec<IpNet> {
    let mut networks = Vec::new();
    for text in reader.list("blacklistIPs").unwrap_or_default() {
        let network = text.parse::<IpNet>();
        let network = network.or_else(|_| text.parse::<IpAddr>().map(IpNet::from));
        match network {
            Ok(network) => networks.push(network),
            Err(_) => reader.error(
                "blacklistIPs",
                &format!(
                    "has `{text}`, which is neither an address nor a network such as 10.0.0.0/8"
                ),
            ),
        }
    }
    networks
}

/// As k6 keeps addresses, whatever the TTL of their record.
const ADDRESS_TTL: Duration = Duration::from_mins(5);

/// More is as good as for ever.
const LONGEST_TTL: Duration = Duration::from_hours(24 * 365);

/// Which addresses are used, and how long they are kept.
fn dns(reader: &mut Reader<'_>) -> (AddressFamily, Duration) {
    let Some(value) = reader.read_key("dns") else {
        return (AddressFamily::Any, ADDRESS_TTL);
    };
    let Some(map) = value.as_object() else {
        reader.error("dns", "must be an object with ttl, select and policy");
        return (AddressFamily::Any, ADDRESS_TTL);
    };
    let mut inner = Reader::within(map, "dns.".to_owned());
    if inner.read_key("select").is_some() {
        reader.warn(
            "options.dns.select has no effect: addresses are tried in the order of the name server",
        );
    }
    let ttl = match inner.read_key("ttl") {
        None => ADDRESS_TTL,
        Some(Value::String(text)) if text == "inf" => LONGEST_TTL,
        Some(value) => match duration::from_json(value) {
            Ok(ttl) => ttl.min(LONGEST_TTL),
            Err(message) => {
                inner.error(
                    "ttl",
                    &format!("is neither a duration nor \"inf\": {message}"),
                );
                ADDRESS_TTL
            }
        },
    };
    let family = match inner.text("policy").as_deref() {
        None | Some("preferIPv4" | "preferIPv6" | "any") => AddressFamily::Any,
        Some("onlyIPv4") => AddressFamily::Ipv4,
        Some("onlyIPv6") => AddressFamily::Ipv6,
        Some(other) => {
            let message = format!(
                "is `{other}`, which is not one of preferIPv4, preferIPv6, onlyIPv4, onlyIPv6 and any"
            );
            inner.error("policy", &message);
            AddressFamily::Any
        }
    };
    reader.absorb(&inner);
    (family, ttl)
}

fn tls_versions(reader: &mut Reader<'_>) -> TlsVersions {
    let versions = match reader.read_key("tlsVersion") {
        None => return TlsVersions::default(),
        Some(Value::String(one)) => (Some(one.clone()), Some(one.clone())),
        Some(Value::Object(map)) => {
            let mut inner = Reader::within(map, "tlsVersion.".to_owned());
            let versions = (inner.text("min"), inner.text("max"));
            reader.absorb(&inner);
            versions
        }
        Some(other) => {
            let message =
                format!("must be a version such as \"tls1.2\" or {{ min, max }}, not {other}");
            reader.error("tlsVersion", &message);
            return TlsVersions::default();
        }
    };
    let mut version = |text: Option<String>, default: TlsVersion| match text.as_deref() {
        None | Some("") => default,
        Some("tls1.2") => TlsVersion::V1_2,
        Some("tls1.3") => TlsVersion::V1_3,
        // The least may be less than what is supported.
        Some("tls1.0" | "tls1.1") if default == TlsVersion::V1_2 => default,
        Some(other) => {
            let message = format!("is `{other}`, but plimsoll has tls1.2 and tls1.3 only");
            reader.error("tlsVersion", &message);
            default
        }
    };
    let least = version(versions.0, TlsVersion::V1_2);
    let most = version(versions.1, TlsVersion::V1_3);
    match TlsVersions::new(least, most) {
        Ok(versions) => versions,
        Err(error) => {
            reader.error("tlsVersion", &format!("is impossible: {error}"));
            TlsVersions::default()
        }
    }
}
