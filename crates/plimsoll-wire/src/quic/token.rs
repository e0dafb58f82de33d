//! Tokens by which clients of QUIC prove their address, made by a gateway before the servers (a Retry service).
//!
//! A token is bound to the address that its reader sees: the gateway sees that of the client, the server that of the
//! gateway. So there are two tokens for a connection, with two keys of one secret. The token for servers is the one of
//! quinn, whose servers read it by `ServerConfig::token_key`. Pure.
//!
//! Source: RFC 9000, sections 8.1.2 and 8.1.4; the format is that of quinn-proto 0.11.

use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ring::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use ring::hkdf::{HKDF_SHA256, Prk, Salt};

use crate::quic::header::QuicHeader;

/// Random bytes at the end of a token, from which its key is derived.
const RANDOM: usize = 16;

/// The type of a token that a Retry brought.
const OF_RETRY: u8 = 0;

/// The keys of a secret that a gateway shares with the servers behind it.
#[derive(Clone)]
pub struct RetryKey {
    clients: Prk,
    servers: Prk,
    /// Names the secret without showing it.
    id: u64,
}

/// The content of a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetryToken {
    /// The address that the Retry was sent to, as the reader of the token sees it.
    pub address: SocketAddr,
    /// The connection ID of the packet that the Retry answered; at most 20 bytes.
    pub original: Vec<u8>,
    /// When, in whole seconds.
    pub issued: SystemTime,
}

impl RetryKey {
    /// Bytes of a secret, at least.
    pub const LEAST: usize = 32;

    /// How long a token is valid: as long as the servers of quinn take it.
    pub const LIFETIME: Duration = Duration::from_secs(15);

    /// Derives the keys of a secret; `None` if it has fewer than [`LEAST`](Self::LEAST) bytes.
    pub fn new(secret: &[u8]) -> Option<Self> {
        if secret.len() < Self::LEAST {
            return None;
        }
        let of = |salt: &[u8]| Salt::new(HKDF_SHA256, salt).extract(secret);
        let id = ring::digest::digest(&ring::digest::SHA256, secret);
        let (id, _) = id.as_ref().split_first_chunk()?;
        Some(Self {
            clients: of(b"plimsoll retry"),
            // As quinn has it.
            servers: of(b""),
            id: u64::from_be_bytes(*id),
        })
    }

    /// The `token_key` of a server of quinn.
    pub fn of_servers(&self) -> &Prk {
        &self.servers
    }

    /// A token for a client.
    pub fn for_client(&self, token: &RetryToken, random: [u8; RANDOM]) -> Vec<u8> {
        sealed(&self.clients, token, random)
    }

    /// The same for a server.
    pub fn for_server(&self, token: &RetryToken, random: [u8; RANDOM]) -> Vec<u8> {
        sealed(&self.servers, token, random)
    }

    /// Decrypts a token made by [`for_client`](Self::for_client); `None` if it is not one.
    pub fn read(&self, token: &[u8]) -> Option<RetryToken> {
        let (sealed, random) = token.split_last_chunk::<RANDOM>()?;
        let mut content = sealed.to_vec();
        let content = key(&self.clients, *random)
            .open_in_place(
                Nonce::assume_unique_for_key([0; 12]),
                Aad::empty(),
                &mut content,
            )
            .ok()?;
        RetryToken::read(content)
    }
}

impl PartialEq for RetryKey {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl Eq for RetryKey {}

impl std::fmt::Debug for RetryKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RetryKey({:016x})", self.id)
    }
}

/// Each key is used once, so the nonce may be zero.
fn key(prk: &Prk, random: [u8; RANDOM]) -> LessSafeKey {
    let info = [&random[..]];
    let mut bytes = [0; 32];
    let expanded = prk.expand(&info, HKDF_SHA256);
    expanded
        .and_then(|expanded| expanded.fill(&mut bytes))
        .expect("a key is as long as a hash");
    let key = UnboundKey::new(&AES_256_GCM, &bytes).expect("a key of AES-256 has 32 bytes");
    LessSafeKey::new(key)
}

fn sealed(prk: &Prk, token: &RetryToken, random: [u8; RANDOM]) -> Vec<u8> {
    let mut bytes = token.to_bytes();
    key(prk, random)
        .seal_in_place_append_tag(
            Nonce::assume_unique_for_key([0; 12]),
            Aad::empty(),
            &mut bytes,
        )
        .expect("a token is short");
    bytes.extend(random);
    bytes
}

impl RetryToken {
    /// Whether it is `peer` that shows it, in time.
    pub fn is_of(&self, peer: SocketAddr, now: SystemTime) -> bool {
        // One from the future was made before a clock was set back, or by a neighbour whose clock is ahead.
        let age = now.duration_since(self.issued).unwrap_or_default();
        self.address == peer && age <= RetryKey::LIFETIME
    }

    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![OF_RETRY];
        match self.address.ip() {
            IpAddr::V4(ip) => {
                bytes.push(0);
                bytes.extend(ip.octets());
            }
            IpAddr::V6(ip) => {
                bytes.push(1);
                bytes.extend(ip.octets());
            }
        }
        bytes.extend(self.address.port().to_be_bytes());
        bytes
            .push(u8::try_from(self.original.len()).expect("a connection ID has at most 20 bytes"));
        bytes.extend(&self.original);
        let issued = self.issued.duration_since(UNIX_EPOCH).unwrap_or_default();
        bytes.extend(issued.as_secs().to_be_bytes());
        bytes
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let (kind, rest) = bytes.split_first()?;
        let (family, rest) = rest.split_first()?;
        let (ip, rest) = match family {
            0 => rest
                .split_first_chunk::<4>()
                .map(|(ip, rest)| (IpAddr::from(*ip), rest))?,
            1 => rest
                .split_first_chunk::<16>()
                .map(|(ip, rest)| (IpAddr::from(*ip), rest))?,
            _ => return None,
        };
        let (port, rest) = rest.split_first_chunk()?;
        let (length, rest) = rest.split_first()?;
        let (original, rest) = rest.split_at_checked(usize::from(*length))?;
        let (issued, rest) = rest.split_first_chunk()?;
        let issued = Duration::from_secs(u64::from_be_bytes(*issued));
        let is_whole =
            *kind == OF_RETRY && rest.is_empty() && original.len() <= QuicHeader::MOST_ID;
        is_whole.then_some(Self {
            address: SocketAddr::new(ip, u16::from_be_bytes(*port)),
            original: original.to_vec(),
            issued: UNIX_EPOCH.checked_add(issued)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn token(address: &str, original: &[u8], seconds: u64) -> RetryToken {
        RetryToken {
            address: address.parse().unwrap(),
            original: original.to_vec(),
            issued: UNIX_EPOCH + Duration::from_secs(seconds),
        }
    }

    #[test]
    fn a_token_is_for_its_reader_its_address_and_its_time() {
        assert!(RetryKey::new(&[1; 31]).is_none());
        let key = RetryKey::new(&[1; 32]).unwrap();
        let ours = token("192.0.2.1:4433", &[7; 8], 1_000);
        let sealed = key.for_client(&ours, [9; 16]);
        assert_eq!(key.read(&sealed), Some(ours.clone()));
        assert_eq!(key.read(&key.for_server(&ours, [9; 16])), None);
        assert_eq!(RetryKey::new(&[2; 32]).unwrap().read(&sealed), None);
        let at = |seconds| UNIX_EPOCH + Duration::from_secs(seconds);
        let peer = ours.address;
        assert!(ours.is_of(peer, at(1_015)));
        assert!(!ours.is_of(peer, at(1_016)));
        assert!(ours.is_of(peer, at(990)));
        assert!(!ours.is_of("192.0.2.1:4434".parse().unwrap(), at(1_000)));
    }

    proptest! {
        #[test]
        fn what_is_sealed_is_read_and_nothing_else(
            ip in any::<IpAddr>(),
            port in any::<u16>(),
            original in prop::collection::vec(any::<u8>(), 0..=20),
            seconds in 0..1_u64 << 40,
            random in any::<[u8; 16]>(),
            (place, change) in (any::<prop::sample::Index>(), 1..=255_u8),
        ) {
            let key = RetryKey::new(&[5; 40]).unwrap();
            let mut token = token("[::]:0", &original, seconds);
            token.address = SocketAddr::new(ip, port);
            let mut sealed = key.for_client(&token, random);
            prop_assert_eq!(key.read(&sealed), Some(token));
            let place = place.index(sealed.len());
            sealed[place] ^= change;
            prop_assert_eq!(key.read(&sealed), None);
            prop_assert_eq!(key.read(&sealed[..place]), None);
        }

        #[test]
        fn nothing_panics(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            RetryToken::read(&bytes);
            RetryKey::new(&[5; 40]).unwrap().read(&bytes);
        }
    }
}
