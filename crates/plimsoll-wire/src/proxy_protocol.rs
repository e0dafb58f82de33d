//! The PROXY protocol: the client's address, sent to a server before anything else.
//!
//! Source: W. Tarreau, The PROXY protocol, versions 1 and 2 (2020).

mod received;

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

pub use crate::proxy_protocol::received::{ProxyHeader, ProxyHeaderError};

/// Version of the header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProxyProtocol {
    /// A line of text.
    V1,
    /// Binary.
    V2,
}

/// The two ends that the server is to believe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProxiedEnds {
    /// Source of the connection.
    pub source: SocketAddr,
    /// Destination of the connection.
    pub destination: SocketAddr,
}

/// The first bytes of every header of version 2.
const SIGNATURE: [u8; 12] = *b"\r\n\r\n\0\r\nQUIT\n";

const VERSION_2: u8 = 0x20;
const LOCAL: u8 = 0x0;
const PROXY: u8 = 0x1;
const TCP_OVER_IPV4: u8 = 0x11;
const TCP_OVER_IPV6: u8 = 0x21;

impl ProxyProtocol {
    /// The header to send first.
    ///
    /// - `ends`: of one family or of both, in which case the IPv4 address is written as a mapped one; `None`
    ///   where there are no addresses to pass on, as on a unix socket.
    pub fn header(self, ends: Option<ProxiedEnds>) -> Vec<u8> {
        match self {
            Self::V1 => line(ends).into_bytes(),
            Self::V2 => binary(ends),
        }
    }
}

fn line(ends: Option<ProxiedEnds>) -> String {
    let Some(ends) = ends else {
        return "PROXY UNKNOWN\r\n".to_owned();
    };
    let (source, destination) = (ends.source, ends.destination);
    let (from, to) = (source.port(), destination.port());
    match (source.ip(), destination.ip()) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            format!("PROXY TCP4 {source} {destination} {from} {to}\r\n")
        }
        (source, destination) => {
            let (source, destination) = (ipv6(source), ipv6(destination));
            format!("PROXY TCP6 {source} {destination} {from} {to}\r\n")
        }
    }
}

fn binary(ends: Option<ProxiedEnds>) -> Vec<u8> {
    let mut header = SIGNATURE.to_vec();
    let Some(ends) = ends else {
        header.extend([VERSION_2 | LOCAL, 0, 0, 0]);
        return header;
    };
    header.push(VERSION_2 | PROXY);
    match (ends.source.ip(), ends.destination.ip()) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            header.extend([TCP_OVER_IPV4, 0, 12]);
            header.extend(source.octets());
            header.extend(destination.octets());
        }
        (source, destination) => {
            header.extend([TCP_OVER_IPV6, 0, 36]);
            header.extend(ipv6(source).octets());
            header.extend(ipv6(destination).octets());
        }
    }
    header.extend(ends.source.port().to_be_bytes());
    header.extend(ends.destination.port().to_be_bytes());
    header
}

fn ipv6(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(source: &str, destination: &str) -> ProxiedEnds {
        ProxiedEnds {
            source: source.parse().unwrap(),
            destination: destination.parse().unwrap(),
        }
    }

    #[test]
    fn version_1_is_a_line() {
        let text = |ends| String::from_utf8(ProxyProtocol::V1.header(ends)).unwrap();
        assert_eq!(
            text(Some(ends("192.0.2.7:56324", "198.51.100.1:443"))),
            "PROXY TCP4 192.0.2.7 198.51.100.1 56324 443\r\n"
        );
        assert_eq!(
            text(Some(ends("[2001:db8::7]:1", "[2001:db8::1]:65535"))),
            "PROXY TCP6 2001:db8::7 2001:db8::1 1 65535\r\n"
        );
        assert_eq!(
            text(Some(ends("192.0.2.7:1", "[::1]:2"))),
            "PROXY TCP6 ::ffff:192.0.2.7 ::1 1 2\r\n"
        );
        assert_eq!(text(None), "PROXY UNKNOWN\r\n");
    }

    #[test]
    fn version_2_is_binary() {
        let header = ProxyProtocol::V2.header(Some(ends("192.0.2.7:256", "198.51.100.1:443")));
        assert_eq!(header[..12], SIGNATURE);
        assert_eq!(header[12..16], [0x21, 0x11, 0, 12]);
        assert_eq!(
            header[16..],
            [192, 0, 2, 7, 198, 51, 100, 1, 1, 0, 0x01, 0xbb]
        );
        let header = ProxyProtocol::V2.header(Some(ends("[::1]:1", "[::2]:2")));
        assert_eq!(header[12..16], [0x21, 0x21, 0, 36]);
        assert_eq!(header.len(), 16 + 36);
        assert_eq!(ProxyProtocol::V2.header(None)[12..], [0x20, 0, 0, 0]);
    }
}
