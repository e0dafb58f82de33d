//! Names of this machine alone, for servers that only it is to reach.

use std::net::IpAddr;

/// Whether an authority (`host` or `host:port`) is a name of the loopback. A page of another site can have a browser send
/// requests to the loopback, but under another name than these, unless the page is of this machine.
pub fn names_loopback(authority: &str) -> bool {
    let host = match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|it| it.is_ascii_digit()) => host,
        _ => authority,
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let is_address = host
        .parse::<IpAddr>()
        .is_ok_and(|address| address.is_loopback());
    is_address || host.eq_ignore_ascii_case("localhost")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_the_loopback_are_such() {
        for authority in [
            "localhost:5665",
            "127.0.0.1",
            "[::1]:80",
            "LOCALHOST",
            "127.9.9.9:1",
        ] {
            assert!(names_loopback(authority), "{authority}");
        }
        for authority in [
            "",
            "example.org:5665",
            "127.0.0.1.example.org",
            "10.0.0.1:80",
        ] {
            assert!(!names_loopback(authority), "{authority}");
        }
    }
}
