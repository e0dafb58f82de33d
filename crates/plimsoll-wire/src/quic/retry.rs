//! Retry packets, and Initial packets whose token is exchanged.
//!
//! The keys of a client's first packets follow from the connection ID that it has chosen: everybody on the way can read and
//! change them. Pure.
//!
//! Source: RFC 9000, sections 17.2.2 and 17.2.5; RFC 9001, sections 5.2, 5.4 and 5.8; for version 2 RFC 9369, section 3.3.

use ring::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use rustls::crypto::ring::cipher_suite::TLS13_AES_128_GCM_SHA256;
use rustls::quic::{DirectionalKeys, Version};
use rustls::{Side, SupportedCipherSuite};

use crate::quic::header::{LongKind, QuicHeader, VERSION_1, VERSION_2};

/// Bytes of the longest packet number; the sample that protects the header lies behind them.
const MOST_NUMBER: usize = 4;
const SAMPLE: usize = 16;

/// An Initial packet at the beginning of a datagram.
#[derive(Debug, Clone, Copy)]
pub struct InitialPacket<'a> {
    version: Version,
    /// The connection ID of its receiver, from which its keys follow as long as the client has chosen it.
    destination: &'a [u8],
    /// Everything before the packet number.
    header: &'a [u8],
    /// Bytes of `header` before the token and its length.
    before_token: usize,
    token: &'a [u8],
    /// Packet number and content, encrypted.
    body: &'a [u8],
    /// What follows it in the datagram.
    rest: &'a [u8],
}

impl<'a> InitialPacket<'a> {
    /// Parses the first packet of a datagram; `None` if it is not an Initial packet of version 1 or 2.
    pub fn parse(datagram: &'a [u8]) -> Option<Self> {
        let Ok(QuicHeader::Long(header)) = QuicHeader::parse(datagram) else {
            return None;
        };
        let version = version_of(header.version).filter(|_| header.kind == LongKind::Initial)?;
        let before_token = 7 + header.destination.len() + header.source.len();
        let (token, after) = counted(datagram.get(before_token..)?)?;
        let (body, rest) = counted(after)?;
        let header_bytes = datagram.len() - rest.len() - body.len();
        Some(Self {
            version,
            destination: header.destination,
            header: &datagram[..header_bytes],
            before_token,
            token,
            body,
            rest,
        })
    }

    /// The token of an earlier Retry or connection; empty if the client has none.
    pub fn token(&self) -> &'a [u8] {
        self.token
    }

    /// Appends the packet with another token; `None` if its keys do not follow from its connection ID.
    fn exchange(&self, token: &[u8], out: &mut Vec<u8>) -> Option<()> {
        let keys = keys(self.version, self.destination)?;
        let (number, content) = self.body.split_first_chunk::<MOST_NUMBER>()?;
        let (sample, _) = content.split_first_chunk::<SAMPLE>()?;
        let (first, rest_of_header) = self.header.split_first()?;
        let (mut first, mut number) = (*first, *number);
        keys.header
            .decrypt_in_place(sample, &mut first, &mut number)
            .ok()?;
        let (number, of_content) = number.split_at(usize::from(first & 0b11) + 1);
        let value = number
            .iter()
            .fold(0, |sum, byte| sum << 8 | u64::from(*byte));
        let clear = [&[first], rest_of_header, number].concat();
        let mut content = [of_content, content].concat();
        let packet = &keys.packet;
        let length = packet.decrypt_in_place(value, &clear, &mut content);
        let length = length.ok()?.len();
        content.truncate(length);

        let start = out.len();
        out.extend(&clear[..self.before_token]);
        put_count(token.len(), out);
        out.extend(token);
        put_count(self.body.len(), out);
        let at = out.len();
        out.extend(number);
        let tag = packet.encrypt_in_place(value, &out[start..], &mut content);
        out.extend(&content);
        out.extend(tag.ok()?.as_ref());
        let (head, sample) = out.split_at_mut(at + MOST_NUMBER);
        let (first, protected) = head[start..].split_first_mut()?;
        let number_at = at - start - 1;
        let protected = &mut protected[number_at..number_at + number.len()];
        keys.header
            .encrypt_in_place(sample.get(..SAMPLE)?, first, protected)
            .ok()
    }
}

/// Replaces the token in the Initial packets of a client's datagram; `None` if they cannot be decrypted.
///
/// Only those can be that the client has sent before it heard from its server.
pub fn with_token(datagram: &[u8], token: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(datagram.len() + token.len());
    let mut rest = datagram;
    while let Some(packet) = InitialPacket::parse(rest) {
        packet.exchange(token, &mut out)?;
        rest = packet.rest;
    }
    out.extend(rest);
    Some(out)
}

/// A Retry packet, which has the client prove its address; `None` for a version that is not known.
///
/// - `original`: the connection ID of its receiver in the packet that is answered; at most 20 bytes.
/// - `client`: that of its sender.
/// - `ours`: the connection ID that the client is to go on with.
/// - `random`: its low four bits fill the unused bits of the first byte.
pub fn retry_packet(
    version: u32,
    (original, client, ours): (&[u8], &[u8], &[u8]),
    token: &[u8],
    random: u8,
) -> Option<Vec<u8>> {
    let known = version_of(version)?;
    let is_second = matches!(known, Version::V2);
    let kind = if is_second { 0 } else { 0b11 };
    // The pseudo-packet begins with the original connection ID, which is not sent.
    let mut pseudo = Vec::with_capacity(64 + token.len());
    put_id(original, &mut pseudo)?;
    let sent = pseudo.len();
    pseudo.push(0xc0 | kind << 4 | random & 0xf);
    pseudo.extend(version.to_be_bytes());
    put_id(client, &mut pseudo)?;
    put_id(ours, &mut pseudo)?;
    pseudo.extend(token);
    let (key, nonce): (u128, u128) = if is_second {
        (
            0x8fb4_b01b_56ac_48e2_60fb_cbce_ad7c_cc92,
            0xd869_69bc_2d7c_6d99_90ef_b04a,
        )
    } else {
        (
            0xbe0c_690b_9f66_575a_1d76_6b54_e368_c84e,
            0x4615_99d3_5d63_2bf2_2398_25bb,
        )
    };
    let key = UnboundKey::new(&AES_128_GCM, &key.to_be_bytes()).ok()?;
    let nonce = Nonce::try_assume_unique_for_key(&nonce.to_be_bytes()[4..]).ok()?;
    let tag = LessSafeKey::new(key)
        .seal_in_place_separate_tag(nonce, Aad::from(&pseudo), &mut [])
        .ok()?;
    pseudo.extend(tag.as_ref());
    pseudo.drain(..sent);
    Some(pseudo)
}

fn version_of(number: u32) -> Option<Version> {
    match number {
        VERSION_1 => Some(Version::V1),
        VERSION_2 => Some(Version::V2),
        _ => None,
    }
}

/// The keys of a client's first packets.
fn keys(version: Version, destination: &[u8]) -> Option<DirectionalKeys> {
    let SupportedCipherSuite::Tls13(suite) = TLS13_AES_128_GCM_SHA256 else {
        return None;
    };
    let suite = suite.quic_suite()?;
    Some(suite.keys(destination, Side::Client, version).local)
}

fn put_id(id: &[u8], out: &mut Vec<u8>) -> Option<()> {
    out.push(u8::try_from(id.len()).ok()?);
    out.extend(id);
    Some(())
}

/// Bytes behind their length, a number of RFC 9000, section 16; and what follows them.
fn counted(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let first = *bytes.first()?;
    let (length, rest) = bytes.split_at_checked(1 << (first >> 6))?;
    let value = length
        .iter()
        .fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte));
    let value = value & ((1 << (8 * length.len() - 2)) - 1);
    rest.split_at_checked(usize::try_from(value).ok()?)
}

/// A length within a datagram, as such a number.
fn put_count(count: usize, out: &mut Vec<u8>) {
    match u8::try_from(count) {
        Ok(count @ ..64) => out.push(count),
        // Every part of a datagram fits into two bytes.
        _ => out.extend((u16::try_from(count).unwrap_or(u16::MAX) & 0x3fff | 0x4000).to_be_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bytes(hex: &str) -> Vec<u8> {
        let digits: Vec<_> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
        digits
            .chunks(2)
            .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
            .collect()
    }

    /// RFC 9001, appendix A.4, and RFC 9369, appendix A.4.
    #[test]
    fn retry_packets_of_the_specifications() {
        let original = bytes("8394c8f03e515708");
        let ids = (&original[..], &[][..], &bytes("f067a5502a4262b5")[..]);
        for (version, random, expected) in [
            (
                VERSION_1,
                0xf,
                "ff000000010008f067a5502a4262b5746f6b656e04a265ba2eff4d829058fb3f0f2496ba",
            ),
            (
                VERSION_2,
                0xf,
                "cf6b3343cf0008f067a5502a4262b5746f6b656ec8646ce8bfe33952d955543665dcc7b6",
            ),
        ] {
            let packet = retry_packet(version, ids, b"token", random).unwrap();
            assert_eq!(packet, bytes(expected));
        }
        assert_eq!(retry_packet(0x1a2a_3a4a, ids, b"token", 0), None);
    }

    /// An Initial packet of a client, protected by its own means.
    fn initial(
        version: u32,
        destination: &[u8],
        number: u32,
        token: &[u8],
        content: usize,
    ) -> Vec<u8> {
        let keys = keys(version_of(version).unwrap(), destination).unwrap();
        let kind = u8::from(version == VERSION_2);
        let mut header = vec![0xc3 | kind << 4];
        header.extend(version.to_be_bytes());
        put_id(destination, &mut header);
        put_id(&[9; 5], &mut header);
        put_count(token.len(), &mut header);
        header.extend(token);
        put_count(4 + content + 16, &mut header);
        let at = header.len();
        header.extend(number.to_be_bytes());
        let mut content: Vec<u8> = (0_u8..=255).cycle().take(content).collect();
        let tag = keys
            .packet
            .encrypt_in_place(number.into(), &header, &mut content)
            .unwrap();
        let mut packet = [&header[..], &content, tag.as_ref()].concat();
        let sample: [u8; 16] = packet[at + 4..at + 20].try_into().unwrap();
        let (head, rest) = packet.split_at_mut(at);
        keys.header
            .encrypt_in_place(&sample, &mut head[0], &mut rest[..4])
            .unwrap();
        packet
    }

    proptest! {
        #[test]
        fn a_packet_with_another_token_is_as_its_client_would_have_made_it(
            version in prop_oneof![Just(VERSION_1), Just(VERSION_2)],
            destination in prop::collection::vec(any::<u8>(), 8..=20),
            number in any::<u32>(),
            old in prop::collection::vec(any::<u8>(), 0..100),
            new in prop::collection::vec(any::<u8>(), 0..100),
            content in prop_oneof![4..60_usize, 1100..1200_usize],
            rest in prop::collection::vec(0..0x80_u8, 0..40),
        ) {
            let packet = |token: &[u8]| initial(version, &destination, number, token, content);
            let first = packet(&old);
            prop_assert_eq!(InitialPacket::parse(&first).unwrap().token(), &old[..]);
            let expected = [packet(&new), rest.clone()].concat();
            prop_assert_eq!(with_token(&[first.clone(), rest].concat(), &new), Some(expected));
            // Two in one datagram.
            let both = [first.clone(), first].concat();
            prop_assert_eq!(with_token(&both, &new), Some([packet(&new), packet(&new)].concat()));
        }

        #[test]
        fn a_packet_that_was_changed_is_not_read(
            place in any::<prop::sample::Index>(),
            change in 1..=255_u8,
        ) {
            let mut packet = initial(VERSION_1, &[7; 8], 1, b"token", 1180);
            let header = InitialPacket::parse(&packet).unwrap().header.len();
            let place = header + place.index(packet.len() - header);
            packet[place] ^= change;
            prop_assert_eq!(with_token(&packet, b"other"), None);
        }

        #[test]
        fn nothing_panics(
            first in 0xc0_u8..,
            version in prop_oneof![Just(VERSION_1), Just(VERSION_2)],
            bytes in prop::collection::vec(any::<u8>(), 0..200),
        ) {
            let datagram = [&[first][..], &version.to_be_bytes(), &bytes].concat();
            with_token(&datagram, b"token");
        }
    }
}
