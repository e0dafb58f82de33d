//! Which addresses may be attacked without further ado.

use std::net::{IpAddr, Ipv6Addr};

/// Whether `address` is one of this machine's or of a private network's: loopback, RFC 1918, link-local,
/// and unique local ones of IPv6 (RFC 4193).
pub fn may_be_attacked(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => {
            address.is_loopback() || address.is_private() || address.is_link_local()
        }
        IpAddr::V6(address) => match address.to_ipv4_mapped() {
            Some(mapped) => may_be_attacked(mapped.into()),
            None => is_local(address),
        },
    }
}

fn is_local(address: Ipv6Addr) -> bool {
    address.is_loopback() || address.is_unique_local() || address.is_unicast_link_local()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_and_private_addresses_may_be_attacked() {
        for (address, allowed) in [
            ("127.0.0.1", true),
            ("127.255.0.9", true),
            ("10.1.2.3", true),
            ("172.16.0.1", true),
            ("172.31.255.255", true),
            ("192.168.1.1", true),
            ("169.254.0.1", true),
            ("::1", true),
            ("fd00::1", true),
            ("fe80::1", true),
            ("::ffff:10.0.0.1", true),
            ("0.0.0.0", false),
            ("172.32.0.1", false),
            ("100.64.0.1", false),
            ("192.0.2.1", false),
            ("198.51.100.7", false),
            ("255.255.255.255", false),
            ("224.0.0.1", false),
            ("::", false),
            ("2001:db8::1", false),
            ("::ffff:192.0.2.1", false),
            ("ff02::1", false),
        ] {
            assert_eq!(
                may_be_attacked(address.parse().unwrap()),
                allowed,
                "{address}"
            );
        }
    }
}
