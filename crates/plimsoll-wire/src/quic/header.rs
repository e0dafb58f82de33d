//! The unencrypted part of a QUIC packet: the properties that all versions have, and the types of the known versions.
//!
//! Pure. Source: RFC 8999; for the types RFC 9000, section 17.2, and RFC 9369, section 3.2.

/// The header of the first packet in a datagram, without what only its ends can read. Later packets of the datagram have
/// the same destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuicHeader<'a> {
    /// A packet of a handshake, or one that offers versions.
    Long(LongHeader<'a>),
    /// A packet of an established connection.
    Short {
        /// The bytes behind the first. They begin with the connection ID of the destination, whose length only its issuer
        /// knows.
        rest: &'a [u8],
    },
}

/// A header that names both connection IDs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LongHeader<'a> {
    /// The type of the packet.
    pub kind: LongKind,
    /// 0 for version negotiation.
    pub version: u32,
    /// The connection ID that its receiver knows the connection by.
    pub destination: &'a [u8],
    /// The connection ID that its sender knows the connection by.
    pub source: &'a [u8],
}

/// The type of a packet with a long header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LongKind {
    /// Begins a connection, or answers the packet that did.
    Initial,
    /// Carries data before the handshake is done.
    ZeroRtt,
    /// Goes on with the handshake.
    Handshake,
    /// Sends the client back to prove its address.
    Retry,
    /// Offers other versions.
    Negotiation,
    /// Of a version that is not known, so it may be any of these.
    Unknown,
}

/// Why bytes are not a packet of QUIC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum QuicHeaderError {
    /// They end within the header.
    #[error("the packet ends within its header")]
    Short,
    /// A connection ID is longer than its version allows.
    #[error("the connection ID has more than {} bytes", QuicHeader::MOST_ID)]
    ConnectionId,
}

pub(super) const VERSION_1: u32 = 1;
pub(super) const VERSION_2: u32 = 0x6b33_43cf;

impl<'a> QuicHeader<'a> {
    /// Bytes of a connection ID in the versions that are known (RFC 9000, section 17.2).
    pub const MOST_ID: usize = 20;

    /// Bytes of a datagram that begins a connection, at least (RFC 9000, section 14.1).
    pub const LEAST_INITIAL: usize = 1200;

    /// Bytes of the connection ID that a client begins with, at least (RFC 9000, section 7.2).
    pub const LEAST_FIRST_ID: usize = 8;

    /// Reads the first header of a datagram.
    pub fn parse(datagram: &'a [u8]) -> Result<Self, QuicHeaderError> {
        let (first, rest) = datagram.split_first().ok_or(QuicHeaderError::Short)?;
        if first & 0x80 == 0 {
            return Ok(Self::Short { rest });
        }
        let (version, rest) = rest.split_first_chunk().ok_or(QuicHeaderError::Short)?;
        let version = u32::from_be_bytes(*version);
        let (destination, rest) = id(rest)?;
        let (source, _) = id(rest)?;
        let kind = kind(version, *first);
        let is_known = !matches!(kind, LongKind::Unknown | LongKind::Negotiation);
        if is_known && destination.len().max(source.len()) > Self::MOST_ID {
            return Err(QuicHeaderError::ConnectionId);
        }
        Ok(Self::Long(LongHeader {
            kind,
            version,
            destination,
            source,
        }))
    }
}

/// A connection ID behind its length, and what follows it.
fn id(bytes: &[u8]) -> Result<(&[u8], &[u8]), QuicHeaderError> {
    let (length, rest) = bytes.split_first().ok_or(QuicHeaderError::Short)?;
    let id = rest.split_at_checked(usize::from(*length));
    id.ok_or(QuicHeaderError::Short)
}

fn kind(version: u32, first: u8) -> LongKind {
    let number = first >> 4 & 0b11;
    let number = match version {
        0 => return LongKind::Negotiation,
        VERSION_1 => number,
        VERSION_2 => number.wrapping_sub(1) & 0b11,
        _ => return LongKind::Unknown,
    };
    match number {
        0 => LongKind::Initial,
        1 => LongKind::ZeroRtt,
        2 => LongKind::Handshake,
        _ => LongKind::Retry,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn long(first: u8, version: u32, destination: &[u8], source: &[u8]) -> Vec<u8> {
        let mut packet = vec![first];
        packet.extend(version.to_be_bytes());
        for id in [destination, source] {
            packet.push(u8::try_from(id.len()).unwrap());
            packet.extend_from_slice(id);
        }
        packet
    }

    fn kind_of(packet: &[u8]) -> LongKind {
        match QuicHeader::parse(packet) {
            Ok(QuicHeader::Long(header)) => header.kind,
            other => panic!("{other:?}"),
        }
    }

    /// The header of the packet in RFC 9001, appendix A.2, and that of RFC 9369, appendix A.1.
    #[test]
    fn packets_of_the_specifications() {
        let id = [0x83, 0x94, 0xc8, 0xf0, 0x3e, 0x51, 0x57, 0x08];
        let packet = long(0xc0, 1, &id, &[]);
        let expected = LongHeader {
            kind: LongKind::Initial,
            version: 1,
            destination: &id,
            source: &[],
        };
        assert_eq!(QuicHeader::parse(&packet), Ok(QuicHeader::Long(expected)));
        assert_eq!(kind_of(&long(0xd3, VERSION_2, &id, &[])), LongKind::Initial);
        // Retry of both (appendices A.4).
        assert_eq!(kind_of(&long(0xff, 1, &[], &id)), LongKind::Retry);
        assert_eq!(kind_of(&long(0xcf, VERSION_2, &[], &id)), LongKind::Retry);
        let short = QuicHeader::parse(&[0x4c, 0xfe, 0x41]);
        assert_eq!(
            short,
            Ok(QuicHeader::Short {
                rest: &[0xfe, 0x41]
            })
        );
    }

    #[test]
    fn types_by_version() {
        use LongKind::{Handshake, Initial, Retry, ZeroRtt};
        let kinds = |version| {
            [0xc0, 0xd0, 0xe0, 0xf0].map(|first| kind_of(&long(first, version, &[1], &[2])))
        };
        assert_eq!(kinds(1), [Initial, ZeroRtt, Handshake, Retry]);
        assert_eq!(kinds(VERSION_2), [Retry, Initial, ZeroRtt, Handshake]);
        assert_eq!(kinds(0), [LongKind::Negotiation; 4]);
        assert_eq!(kinds(0x0a0a_0a0a), [LongKind::Unknown; 4]);
    }

    #[test]
    fn long_ids_are_for_versions_that_are_not_known() {
        let id = [7; 255];
        assert_eq!(
            kind_of(&long(0xc0, 0x1a2a_3a4a, &id, &id)),
            LongKind::Unknown
        );
        assert_eq!(kind_of(&long(0x80, 0, &id, &id)), LongKind::Negotiation);
        let refused = QuicHeader::parse(&long(0xc0, 1, &id[..21], &[])).unwrap_err();
        assert_eq!(refused, QuicHeaderError::ConnectionId);
        assert!(QuicHeader::parse(&long(0xc0, 1, &id[..20], &id[..20])).is_ok());
        assert_eq!(QuicHeader::parse(&[]), Err(QuicHeaderError::Short));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            first in 0x80_u8..,
            version in prop_oneof![Just(0), Just(1), Just(VERSION_2), any::<u32>()],
            destination in prop::collection::vec(any::<u8>(), 0..=20),
            source in prop::collection::vec(any::<u8>(), 0..=20),
            rest in prop::collection::vec(any::<u8>(), 0..40),
        ) {
            let head = long(first, version, &destination, &source);
            let packet = [head.clone(), rest].concat();
            let Ok(QuicHeader::Long(read)) = QuicHeader::parse(&packet) else {
                return Err(TestCaseError::fail("a long header"));
            };
            prop_assert_eq!(read.version, version);
            prop_assert_eq!((read.destination, read.source), (&destination[..], &source[..]));
            // What follows changes nothing, and nothing shorter is one.
            prop_assert_eq!(QuicHeader::parse(&head), Ok(QuicHeader::Long(read)));
            for length in 1..head.len() {
                prop_assert_eq!(QuicHeader::parse(&head[..length]), Err(QuicHeaderError::Short));
            }
        }

        #[test]
        fn nothing_panics(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
            QuicHeader::parse(&bytes).ok();
        }
    }
}
