//! Hashes, codes and ciphers that `k6/crypto` offers to scripts, and that encrypted keys, authentication and modules of other
//! servers need too.

pub(crate) mod aes;

use md4::Md4;
use md5::Md5;
use ring::rand::{SecureRandom as _, SystemRandom};
use ripemd::Ripemd160;
use sha2::{Digest, Sha256, Sha384, Sha512, Sha512_224, Sha512_256};

/// Two digits for each byte.
pub(crate) fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits
        .map(|digit| char::from(DIGITS[usize::from(digit)]))
        .collect()
}

/// The hash of several pieces; `None` if there is none of that name.
pub(crate) fn hash(name: &str, parts: &[&[u8]]) -> Option<Vec<u8>> {
    fn digest<D: Digest>(parts: &[&[u8]]) -> Vec<u8> {
        let mut hasher = D::new();
        for part in parts {
            hasher.update(part);
        }
        hasher.finalize().to_vec()
    }
    Some(match name {
        "md4" => digest::<Md4>(parts),
        "md5" => digest::<Md5>(parts),
        "ripemd160" => digest::<Ripemd160>(parts),
        "sha1" => {
            let mut hasher = ring::digest::Context::new(&ring::digest::SHA1_FOR_LEGACY_USE_ONLY);
            for part in parts {
                hasher.update(part);
            }
            hasher.finish().as_ref().to_vec()
        }
        "sha256" => digest::<Sha256>(parts),
        "sha384" => digest::<Sha384>(parts),
        "sha512" => digest::<Sha512>(parts),
        "sha512_224" => digest::<Sha512_224>(parts),
        "sha512_256" => digest::<Sha512_256>(parts),
        _ => return None,
    })
}

/// Bytes of the blocks of a hash.
fn block_of(name: &str) -> usize {
    match name {
        "md4" | "md5" | "sha1" | "sha256" | "ripemd160" => 64,
        _ => 128,
    }
}

/// RFC 2104; `None` if there is no hash of that name.
pub(crate) fn hmac(name: &str, key: &[u8], content: &[u8]) -> Option<Vec<u8>> {
    let block = block_of(name);
    let mut padded = if key.len() > block {
        hash(name, &[key])?
    } else {
        key.to_vec()
    };
    padded.resize(block, 0);
    let with = |pad: u8| padded.iter().map(|byte| byte ^ pad).collect::<Vec<_>>();
    let inner = hash(name, &[&with(0x36), content])?;
    hash(name, &[&with(0x5c), &inner])
}

/// Bytes of the system's randomness.
pub(crate) fn random<const N: usize>() -> Result<[u8; N], ring::error::Unspecified> {
    let mut made = [0; N];
    SystemRandom::new().fill(&mut made)?;
    Ok(made)
}

/// The code of NTLM.
pub(crate) fn hmac_md5(key: &[u8], content: &[u8]) -> Vec<u8> {
    hmac("md5", key, content).expect("there is a hash of that name")
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The bytes that hexadecimal digits stand for.
    pub(crate) fn bytes(digits: &str) -> Vec<u8> {
        let pairs = digits.as_bytes().chunks(2);
        pairs
            .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
            .collect()
    }

    #[test]
    fn old_hashes_are_those_of_their_authors() {
        // RFC 1320, section A.5; Dobbertin, Bosselaers, Preneel, "RIPEMD-160" (1996), appendix B.
        let check = |name: &str, expected: &str| {
            assert_eq!(hex(&hash(name, &[b"a", b"bc"]).unwrap()), expected);
        };
        check("md4", "a448017aaf21d8525fc10ae87aa6729d");
        check("ripemd160", "8eb208f7e05d987a9b044a8e98c6b087f15a0bfc");
    }

    #[test]
    fn hmacs_are_those_of_the_standards() {
        // RFC 2202, test case 2; RFC 4231, test cases 2 and 6.
        let key = b"Jefe".as_slice();
        let text = b"what do ya want for nothing?".as_slice();
        let check = |name: &str, key: &[u8], text: &[u8], expected: &str| {
            let made = hex(&hmac(name, key, text).unwrap());
            assert!(made.starts_with(expected), "{name}: {made}");
        };
        check("md5", key, text, "750c783e6ab0b503eaa86e310a5db738");
        check("sha256", key, text, "5bdcc146bf60754e6a042426089575c7");
        check("sha512", key, text, "164b7a7bfcf819e2e395fbe73b56e0a3");
        check(
            "sha1",
            key,
            text,
            "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79",
        );
        let long = b"Test Using Larger Than Block-Size Key - Hash Key First".as_slice();
        check(
            "sha256",
            &[0xaa; 131],
            long,
            "60e431591ee0b67f0d8a26aacbf5b77f",
        );
    }
}
