//! The hosts file, hosts(5).

use std::net::IpAddr;

/// Where it is.
const PATH: &str = "/etc/hosts";

/// Its content; empty if there is none.
pub(super) fn read() -> String {
    // Names are ASCII; bytes that are no text are in comments.
    std::fs::read(PATH).map_or_else(
        |_| String::new(),
        |bytes| String::from_utf8_lossy(&bytes).into_owned(),
    )
}

/// The addresses that `hosts` lists for `name`, in order.
pub(super) fn listed(hosts: &str, name: &str) -> Vec<IpAddr> {
    let name = name.strip_suffix('.').unwrap_or(name);
    let lines = hosts
        .lines()
        .map(|line| line.split('#').next().unwrap_or_default());
    let mut addresses = Vec::new();
    for line in lines {
        let mut words = line.split_whitespace();
        let address = words.next().and_then(|word| word.parse::<IpAddr>().ok());
        let Some(address) = address.filter(|address| !addresses.contains(address)) else {
            continue;
        };
        if words.any(|word| word.eq_ignore_ascii_case(name)) {
            addresses.push(address);
        }
    }
    addresses
}
