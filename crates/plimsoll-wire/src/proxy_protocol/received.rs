//! The PROXY protocol as a receiver: reads the header that a connection begins with.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::proxy_protocol::{
    LOCAL, PROXY, ProxiedEnds, SIGNATURE, TCP_OVER_IPV4, TCP_OVER_IPV6, VERSION_2,
};

/// A header that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProxyHeader {
    /// Both ends of the connection; absent where the proxy does not send them, as in its own checks.
    pub ends: Option<ProxiedEnds>,
    /// Its bytes; what follows is the client's.
    pub length: usize,
}

/// Why a connection does not begin with a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ProxyHeaderError {
    /// It begins with something else.
    #[error("there is no PROXY header")]
    None,
    /// The header is broken.
    #[error("the PROXY header is malformed")]
    Malformed,
    /// It is longer than anybody needs.
    #[error("the PROXY header is longer than {LONGEST} bytes")]
    TooLong,
}

/// Longest line of version 1, with its end.
const LONGEST_LINE: usize = 107;

/// Longest header of version 2.
const LONGEST: usize = 2048;

/// Of version 2, before the addresses.
const FIXED: usize = 16;

/// Type of the extension with the checksum of the whole header (section 2.2.4).
const CRC32C: u8 = 0x03;

const LINE_START: &[u8] = b"PROXY ";

impl ProxyHeader {
    /// The header at the beginning of `input`; nothing as long as more bytes are needed.
    pub fn parse(input: &[u8]) -> Result<Option<Self>, ProxyHeaderError> {
        if starts_alike(input, &SIGNATURE) {
            return binary(input);
        }
        if starts_alike(input, LINE_START) {
            return line(input);
        }
        Err(ProxyHeaderError::None)
    }
}

/// Whether `input` begins as `start` does, as far as either goes.
fn starts_alike(input: &[u8], start: &[u8]) -> bool {
    let length = input.len().min(start.len());
    input[..length] == start[..length]
}

fn line(input: &[u8]) -> Result<Option<ProxyHeader>, ProxyHeaderError> {
    let within = &input[..input.len().min(LONGEST_LINE)];
    let Some(end) = within.iter().position(|byte| *byte == b'\n') else {
        return if within.len() == LONGEST_LINE {
            Err(ProxyHeaderError::Malformed)
        } else {
            Ok(None)
        };
    };
    let text = within[..end]
        .strip_suffix(b"\r")
        .and_then(|text| text.strip_prefix(LINE_START))
        .and_then(|text| std::str::from_utf8(text).ok())
        .ok_or(ProxyHeaderError::Malformed)?;
    let header = |ends| {
        Ok(Some(ProxyHeader {
            ends,
            length: end + 1,
        }))
    };
    // Text behind UNKNOWN has to be ignored.
    if text == "UNKNOWN" || text.starts_with("UNKNOWN ") {
        return header(None);
    }
    let parts: Vec<_> = text.split(' ').collect();
    let [family, source, destination, from, to] = parts[..] else {
        return Err(ProxyHeaderError::Malformed);
    };
    let address = |text: &str| match family {
        "TCP4" => text.parse().ok().map(IpAddr::V4),
        "TCP6" => text.parse().ok().map(IpAddr::V6),
        _ => None,
    };
    let end = |host: &str, port: &str| {
        let is_decimal = port.bytes().all(|byte| byte.is_ascii_digit());
        let port = port.parse().ok().filter(|_| is_decimal)?;
        Some(SocketAddr::new(address(host)?, port))
    };
    match (end(source, from), end(destination, to)) {
        (Some(source), Some(destination)) => header(Some(ProxiedEnds {
            source,
            destination,
        })),
        _ => Err(ProxyHeaderError::Malformed),
    }
}

fn binary(input: &[u8]) -> Result<Option<ProxyHeader>, ProxyHeaderError> {
    let Some((fixed, rest)) = input.split_at_checked(FIXED) else {
        return Ok(None);
    };
    let (command, family) = (fixed[12], fixed[13]);
    if command & 0xf0 != VERSION_2 || ![LOCAL, PROXY].contains(&(command & 0x0f)) {
        return Err(ProxyHeaderError::Malformed);
    }
    let length = usize::from(u16::from_be_bytes([fixed[14], fixed[15]]));
    if FIXED + length > LONGEST {
        return Err(ProxyHeaderError::TooLong);
    }
    let Some(rest) = rest.get(..length) else {
        return Ok(None);
    };
    let ends = match family {
        _ if command & 0x0f == LOCAL => None,
        TCP_OVER_IPV4 => {
            let (addresses, ports) = split(rest, 8)?;
            let address = |at: usize| {
                let octets = [0, 1, 2, 3].map(|octet| addresses[at + octet]);
                IpAddr::V4(Ipv4Addr::from(octets))
            };
            check_extensions(&input[..FIXED + length], FIXED + 12)?;
            Some(ends(address(0), address(4), ports))
        }
        TCP_OVER_IPV6 => {
            let (addresses, ports) = split(rest, 32)?;
            let address = |at: usize| {
                let octets = std::array::from_fn::<u8, 16, _>(|octet| addresses[at + octet]);
                IpAddr::V6(Ipv6Addr::from(octets))
            };
            check_extensions(&input[..FIXED + length], FIXED + 36)?;
            Some(ends(address(0), address(16), ports))
        }
        // Unix sockets, datagrams and whatever comes later: the proxy's own address stands.
        _ => None,
    };
    Ok(Some(ProxyHeader {
        ends,
        length: FIXED + length,
    }))
}

/// The addresses, and the two ports behind them.
fn split(rest: &[u8], addresses: usize) -> Result<(&[u8], [u8; 4]), ProxyHeaderError> {
    let (addresses, behind) = rest
        .split_at_checked(addresses)
        .ok_or(ProxyHeaderError::Malformed)?;
    let ports = behind.first_chunk().ok_or(ProxyHeaderError::Malformed)?;
    Ok((addresses, *ports))
}

/// Extensions end where the header does, and a checksum among them is right (section 2.2). All others are read over.
fn check_extensions(header: &[u8], start: usize) -> Result<(), ProxyHeaderError> {
    let mut at = start;
    while let Some(rest) = header.get(at..).filter(|rest| !rest.is_empty()) {
        let [kind, high, low, ..] = *rest else {
            return Err(ProxyHeaderError::Malformed);
        };
        let length = usize::from(u16::from_be_bytes([high, low]));
        let value = rest.get(3..3 + length).ok_or(ProxyHeaderError::Malformed)?;
        let value_at = at + 3;
        at = value_at + length;
        if kind != CRC32C {
            continue;
        }
        let sent: [u8; 4] = value.try_into().map_err(|_| ProxyHeaderError::Malformed)?;
        let zeroed = [&header[..value_at], &[0; 4], &header[at..]];
        if crc32c(zeroed.iter().copied().flatten()) != u32::from_be_bytes(sent) {
            return Err(ProxyHeaderError::Malformed);
        }
    }
    Ok(())
}

/// The checksum of RFC 9260, appendix A; of a header, so bit by bit is fast enough.
fn crc32c<'a>(bytes: impl Iterator<Item = &'a u8>) -> u32 {
    let crc = bytes.fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            let polynomial = if crc & 1 == 1 { 0x82f6_3b78 } else { 0 };
            (crc >> 1) ^ polynomial
        })
    });
    !crc
}

fn ends(source: IpAddr, destination: IpAddr, ports: [u8; 4]) -> ProxiedEnds {
    let [source_high, source_low, destination_high, destination_low] = ports;
    let port = |high, low| u16::from_be_bytes([high, low]);
    ProxiedEnds {
        source: SocketAddr::new(source, port(source_high, source_low)),
        destination: SocketAddr::new(destination, port(destination_high, destination_low)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::proxy_protocol::ProxyProtocol;

    fn any_end() -> impl Strategy<Value = SocketAddr> {
        prop_oneof![
            (any::<[u8; 4]>(), any::<u16>()).prop_map(SocketAddr::from),
            (any::<[u8; 16]>(), any::<u16>()).prop_map(SocketAddr::from),
        ]
    }

    proptest! {
        #[test]
        fn what_is_sent_is_received_in_whatever_pieces(
            source in any_end(),
            destination in any_end(),
            is_binary in any::<bool>(),
            is_known in any::<bool>(),
            behind in prop::collection::vec(any::<u8>(), 0..20),
        ) {
            let version = if is_binary { ProxyProtocol::V2 } else { ProxyProtocol::V1 };
            let sent = is_known.then_some(ProxiedEnds { source, destination });
            let header = version.header(sent);
            let whole = [&header[..], &behind].concat();
            for length in 0..header.len() {
                prop_assert_eq!(ProxyHeader::parse(&whole[..length]), Ok(None));
            }
            let found = ProxyHeader::parse(&whole).unwrap().unwrap();
            prop_assert_eq!(found.length, header.len());
            let same = |one: SocketAddr, other: SocketAddr| {
                one.ip().to_canonical() == other.ip().to_canonical() && one.port() == other.port()
            };
            prop_assert_eq!(found.ends.is_some(), is_known);
            if let Some(ends) = found.ends {
                prop_assert!(same(ends.source, source) && same(ends.destination, destination));
            }
        }

        #[test]
        fn anything_may_come(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            for start in [&b""[..], LINE_START, &SIGNATURE] {
                let input = [start, &bytes].concat();
                if let Ok(Some(header)) = ProxyHeader::parse(&input) {
                    prop_assert!(header.length <= input.len());
                }
            }
        }
    }

    #[test]
    fn extensions_end_with_the_header_and_keep_its_checksum() {
        assert_eq!(crc32c(b"123456789".iter()), 0xe306_9283);
        let with = |extensions: &[u8]| {
            let length = u8::try_from(12 + extensions.len()).unwrap();
            let addresses = [192, 0, 2, 7, 198, 51, 100, 1, 1, 0, 1, 187];
            [
                &SIGNATURE[..],
                &[0x21, 0x11, 0, length],
                &addresses,
                extensions,
            ]
            .concat()
        };
        let mut checked = with(&[4, 0, 1, 0, 3, 0, 4, 0, 0, 0, 0, 2, 0, 0]);
        let sum = crc32c(checked.iter()).to_be_bytes();
        let wrong = checked.clone();
        let at = checked.len() - 7;
        checked[at..at + 4].copy_from_slice(&sum);
        for (header, is_good) in [
            (checked, true),
            (wrong, false),
            (with(&[4, 0, 0]), true),
            (with(&[3, 0, 3, 0, 0, 0]), false),
            (with(&[4, 0, 0x30, 1, 2, 3]), false),
            (with(&[4, 0]), false),
        ] {
            let found = ProxyHeader::parse(&header).is_ok();
            assert_eq!(found, is_good, "{}", header.escape_ascii());
        }
    }

    #[test]
    fn broken_headers_are_refused() {
        use ProxyHeaderError::{Malformed, None, TooLong};
        let parse = |input: &[u8]| ProxyHeader::parse(input).unwrap_err();
        assert_eq!(parse(b"GET / HTTP/1.1\r\n"), None);
        assert_eq!(parse(b"\r\n\r\nX"), None);
        for line in [
            &b"PROXY TCP4 1.2.3.4 1.2.3.4 1 2\n"[..],
            b"PROXY TCP4 1.2.3.4 1.2.3.4 1\r\n",
            b"PROXY TCP4 1.2.3.4 1.2.3.4 1 2 3\r\n",
            b"PROXY TCP4 1.2.3.4  1.2.3.4 1 2\r\n",
            b"PROXY TCP4 ::1 ::1 1 2\r\n",
            b"PROXY TCP6 1.2.3.4 1.2.3.4 1 2\r\n",
            b"PROXY TCP4 1.2.3.4 1.2.3.4 +1 2\r\n",
            b"PROXY TCP4 1.2.3.4 1.2.3.4 1 65536\r\n",
            b"PROXY UDP4 1.2.3.4 1.2.3.4 1 2\r\n",
            b"PROXY \r\n",
            &[b"PROXY UNKNOWN ", [b'x'; 100].as_slice()].concat(),
        ] {
            assert_eq!(parse(line), Malformed, "{}", line.escape_ascii());
        }
        let binary = |bytes: &[u8]| parse(&[&SIGNATURE[..], bytes].concat());
        assert_eq!(binary(&[0x11, 0x11, 0, 0]), Malformed);
        assert_eq!(binary(&[0x22, 0x11, 0, 0]), Malformed);
        assert_eq!(binary(&[0x21, 0x11, 0, 4, 1, 2, 3, 4]), Malformed);
        assert_eq!(binary(&[0x21, 0x11, 0xff, 0xff]), TooLong);
    }
}
