//! Addresses of a `[[listen]]` with the options that depend on them, and networks.

use std::net::IpAddr;

use ipnet::{IpNet, Ipv4Net};

use crate::config::document::{Table, Value, as_text};
use crate::engine::address::Address;
use crate::engine::{ListenerPlan, Serves};

/// Permissions beyond which there are none.
const MOST_MODE: u32 = 0o777;

pub(super) fn address(table: &mut Table<'_>) -> Option<Address> {
    let Some(value) = table.take_value("address") else {
        table.missing("address", "such as address = \"127.0.0.1:8080\"");
        return None;
    };
    value.check(as_text(&value)?.parse::<Address>())
}

/// A network such as `10.0.0.0/8`, of which a single address is one. Addresses of clients are compared in their own form, so an
/// IPv4 network in IPv6's form is the IPv4 network.
pub fn network(text: &str) -> Option<IpNet> {
    let address = || text.parse::<IpAddr>().ok().map(IpNet::from);
    let network = text.parse().ok().or_else(address)?;
    let IpNet::V6(wide) = network else {
        return Some(network);
    };
    let length = wide.prefix_len().checked_sub(96);
    let mapped = length.zip(wide.addr().to_ipv4_mapped());
    match mapped {
        Some((length, address)) => Ipv4Net::new(address, length).ok().map(IpNet::V4),
        None => Some(network),
    }
}

/// A list of [networks](network).
pub fn networks(value: Value<'_>) -> Option<Vec<IpNet>> {
    let texts = value.texts_with(|text| {
        let is_network = network(text).is_some();
        (!is_network).then(|| format!("`{text}` is not a network, such as 10.0.0.0/8"))
    })?;
    Some(texts.iter().filter_map(|text| network(text)).collect())
}

/// Permissions of a socket in the file system, as chmod takes them.
pub(super) fn mode(table: &mut Table<'_>, address: Option<&Address>) -> Option<u32> {
    let value = table.take_value("mode")?;
    if matches!(address, Some(Address::Port(_) | Address::Inherited(_))) {
        return value.wrong("is for a socket in the file system");
    }
    let text = as_text(&value)?;
    let mode = u32::from_str_radix(text, 8).ok();
    let mode = mode.filter(|mode| *mode <= MOST_MODE);
    value.check(mode.ok_or_else(|| format!("`{text}` is no mode such as \"0660\"")))
}

/// Notes what HTTP cannot have where it listens.
pub(super) fn check_http(
    table: &mut Table<'_>,
    address: &Address,
    has_http3: bool,
    others: &[ListenerPlan],
) {
    let is_unix = matches!(address, Address::Unix(_));
    for (key, is_wrong, reason) in [
        ("tls", is_unix, "it does not leave the machine"),
        ("proxied_by", is_unix, "clients have no addresses there"),
        (
            "trusted_proxies",
            is_unix,
            "clients have no addresses there",
        ),
        ("addresses", is_unix, "clients have no addresses there"),
        (
            "http3",
            has_http3 && address.port().is_none(),
            "HTTP/3 needs a port",
        ),
    ] {
        if is_wrong && table.was_given(key) {
            table.wrong(format!("`{key}` is not for {address}: {reason}"), None);
        }
    }
    let takes = |other: &ListenerPlan| match &other.serves {
        Serves::Http { .. } | Serves::Stream { .. } => true,
        Serves::Datagram(_) | Serves::Quic(_) => has_http3,
    };
    check_others(table, address, others, takes);
}

/// Notes where datagrams cannot come.
///
/// - `key`: the key of what takes them.
pub(super) fn check_udp(
    table: &mut Table<'_>,
    key: &str,
    address: &Address,
    others: &[ListenerPlan],
) {
    if let Address::Unix(_) = address {
        table.wrong(format!("`{key}` is not for {address}"), None);
    }
    let takes = |other: &ListenerPlan| match &other.serves {
        Serves::Http { http3, .. } => http3.is_some(),
        Serves::Stream { .. } => false,
        Serves::Datagram(_) | Serves::Quic(_) => true,
    };
    check_others(table, address, others, takes);
}

/// - `takes`: whether what another listener serves would take the address.
fn check_others(
    table: &mut Table<'_>,
    address: &Address,
    others: &[ListenerPlan],
    takes: impl Fn(&ListenerPlan) -> bool,
) {
    let is_taken = |other: &ListenerPlan| other.address == *address && takes(other);
    if address.is_one() && others.iter().any(is_taken) {
        table.wrong(
            format!("{address} is listened on already"),
            Some("each address is listened on once".to_owned()),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_are_written_in_several_ways() {
        for (text, expected) in [
            ("10.0.0.0/8", Some("10.0.0.0/8")),
            ("10.0.0.1", Some("10.0.0.1/32")),
            ("::1", Some("::1/128")),
            ("::ffff:10.0.0.0/104", Some("10.0.0.0/8")),
            ("::ffff:10.0.0.1", Some("10.0.0.1/32")),
            ("::/0", Some("::/0")),
            ("::ffff:10.0.0.0/95", Some("::ffff:10.0.0.0/95")),
            ("10.0.0.0/33", None),
            ("example.org", None),
            ("", None),
        ] {
            let expected = expected.map(|it| it.parse().unwrap());
            assert_eq!(network(text), expected, "{text}");
        }
    }
}
