//! AES: CBC, CTR and GCM.

use ::aes::cipher::{BlockCipherDecrypt, BlockCipherEncrypt, KeyInit};
use ::aes::{Aes128, Aes192, Aes256, Block};
use ghash::GHash;
use ghash::universal_hash::UniversalHash as _;

/// Bytes of a block of AES.
const BLOCK: usize = 16;

/// Why nothing was encrypted or decrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AesError {
    /// The key has another length than those of AES.
    #[error("a key of AES has 128, 192 or 256 bits")]
    Key,
    /// The initialisation vector or the counter is no block.
    #[error("iv and counter have 16 bytes")]
    Start,
    /// No or too many bits of the counter block count.
    #[error("length, the bits that count, is a number from 1 to 128")]
    CounterBits,
    /// The tag has another length than those of the Web Cryptography API.
    #[error("tagLength is one of 32, 64, 96, 104, 112, 120 and 128")]
    TagBits,
    /// The padding or the tag is not that of the data. It says no more, so that data cannot be guessed by it.
    #[error("decryption failed")]
    Decryption,
}

/// AES with a key of one of its lengths.
enum Cipher {
    Of128(Aes128),
    Of192(Aes192),
    Of256(Aes256),
}

impl Cipher {
    fn new(key: &[u8]) -> Result<Self, AesError> {
        match key.len() {
            16 => Aes128::new_from_slice(key).map(Self::Of128),
            24 => Aes192::new_from_slice(key).map(Self::Of192),
            _ => Aes256::new_from_slice(key).map(Self::Of256),
        }
        .map_err(|_| AesError::Key)
    }

    fn encrypt(&self, block: [u8; BLOCK]) -> [u8; BLOCK] {
        let mut block = Block::from(block);
        match self {
            Self::Of128(cipher) => cipher.encrypt_block(&mut block),
            Self::Of192(cipher) => cipher.encrypt_block(&mut block),
            Self::Of256(cipher) => cipher.encrypt_block(&mut block),
        }
        block.into()
    }

    fn decrypt(&self, block: [u8; BLOCK]) -> [u8; BLOCK] {
        let mut block = Block::from(block);
        match self {
            Self::Of128(cipher) => cipher.decrypt_block(&mut block),
            Self::Of192(cipher) => cipher.decrypt_block(&mut block),
            Self::Of256(cipher) => cipher.decrypt_block(&mut block),
        }
        block.into()
    }

    /// The data, each block of which is combined with a block that counts up.
    ///
    /// - `bits`: the last bits of that block, which count.
    fn count(&self, first: u128, bits: usize, data: &[u8]) -> Vec<u8> {
        let mask = u128::MAX >> (128 - bits);
        let blocks = data.chunks(BLOCK).zip(0_u128..);
        let made = blocks.flat_map(|(chunk, number)| {
            let counter = (first & !mask) | (first.wrapping_add(number) & mask);
            let key = self.encrypt(counter.to_be_bytes());
            let made = chunk.iter().zip(key).map(|(byte, key)| byte ^ key);
            made.collect::<Vec<_>>()
        });
        made.collect()
    }
}

/// The input of an encryption.
pub(crate) struct Input {
    key: Vec<u8>,
    /// The initialisation vector, nonce or first counter block.
    start: Vec<u8>,
    data: Vec<u8>,
}

impl Input {
    pub(crate) fn new(key: Vec<u8>, start: Vec<u8>, data: Vec<u8>) -> Self {
        Self { key, start, data }
    }

    fn first_block(&self) -> Result<[u8; BLOCK], AesError> {
        let block = <[u8; BLOCK]>::try_from(self.start.as_slice());
        block.map_err(|_| AesError::Start)
    }
}

fn xor(left: [u8; BLOCK], right: [u8; BLOCK]) -> [u8; BLOCK] {
    std::array::from_fn(|at| left[at] ^ right[at])
}

/// NIST SP 800-38A, section 6.2, with the padding of RFC 5652, section 6.3.
pub(crate) fn cbc_encrypt(input: &Input) -> Result<Vec<u8>, AesError> {
    let cipher = Cipher::new(&input.key)?;
    let mut previous = input.first_block()?;
    let missing = BLOCK - input.data.len() % BLOCK;
    let padding = u8::try_from(missing).unwrap_or_default();
    let mut data = input.data.clone();
    data.resize(data.len() + missing, padding);
    let (blocks, _) = data.as_chunks::<BLOCK>();
    let made = blocks.iter().flat_map(|block| {
        previous = cipher.encrypt(xor(*block, previous));
        previous
    });
    Ok(made.collect())
}

pub(crate) fn cbc_decrypt(input: &Input) -> Result<Vec<u8>, AesError> {
    let cipher = Cipher::new(&input.key)?;
    let mut previous = input.first_block()?;
    let (blocks, rest) = input.data.as_chunks::<BLOCK>();
    let mut made = Vec::with_capacity(input.data.len());
    for block in blocks {
        made.extend_from_slice(&xor(cipher.decrypt(*block), previous));
        previous = *block;
    }
    let padding = usize::from(made.last().copied().unwrap_or_default());
    let length = made.len().saturating_sub(padding);
    let is_padded = (1..=BLOCK).contains(&padding)
        && made
            .get(length..)
            .is_some_and(|it| it.iter().all(|byte| usize::from(*byte) == padding));
    if !rest.is_empty() || !is_padded {
        return Err(AesError::Decryption);
    }
    made.truncate(length);
    Ok(made)
}

/// NIST SP 800-38A, section 6.5.
///
/// - `bits`: the last bits of the block, which count.
pub(crate) fn ctr(input: &Input, bits: usize) -> Result<Vec<u8>, AesError> {
    if !(1..=128).contains(&bits) {
        return Err(AesError::CounterBits);
    }
    let cipher = Cipher::new(&input.key)?;
    let first = u128::from_be_bytes(input.first_block()?);
    Ok(cipher.count(first, bits, &input.data))
}
/// NIST SP 800-38D, section 7.
///
/// - `bits`: of the tag.
pub(crate) fn gcm(
    input: &Input,
    also: &[u8],
    bits: usize,
    encrypts: bool,
) -> Result<Vec<u8>, AesError> {
    if !TAGS.contains(&bits) {
        return Err(AesError::TagBits);
    }
    let cipher = Cipher::new(&input.key)?;
    let hash_key = cipher.encrypt([0; BLOCK]);
    let first = match <[u8; 12]>::try_from(input.start.as_slice()) {
        Ok(start) => (u128::from_be_bytes(padded(&start)) & !u128::from(u32::MAX)) | 1,
        Err(_) => hashed(hash_key, &[], &input.start, 0, input.start.len()),
    };
    let tag = |sealed: &[u8]| {
        let hash = hashed(hash_key, also, sealed, also.len(), sealed.len());
        let tag = hash ^ u128::from_be_bytes(cipher.encrypt(first.to_be_bytes()));
        tag.to_be_bytes()
    };
    // The tag takes the first block; the last 32 bits count.
    let next = (first & !u128::from(u32::MAX)) | ((first + 1) & u128::from(u32::MAX));
    if encrypts {
        let mut made = cipher.count(next, 32, &input.data);
        let tag = tag(&made);
        made.extend_from_slice(&tag[..bits / 8]);
        return Ok(made);
    }
    let length = input.data.len().checked_sub(bits / 8);
    let length = length.ok_or(AesError::Decryption)?;
    let (sealed, given) = input.data.split_at(length);
    let expected = tag(sealed);
    // Every byte is compared, so that the time does not depend on them.
    let differing = expected.iter().zip(given);
    if differing.fold(0, |all, (one, other)| all | (one ^ other)) != 0 {
        return Err(AesError::Decryption);
    }
    Ok(cipher.count(next, 32, sealed))
}

/// Bits of tags, as the Web Cryptography API has them.
const TAGS: [usize; 7] = [32, 64, 96, 104, 112, 120, 128];

/// GHASH of two texts, each filled up with zeros, and of two lengths in bytes.
fn hashed(key: [u8; BLOCK], first: &[u8], second: &[u8], one: usize, other: usize) -> u128 {
    let mut hash = GHash::new(&key.into());
    hash.update_padded(first);
    hash.update_padded(second);
    let lengths = ((one as u128 * 8) << 64) | (other as u128 * 8);
    hash.update(&[lengths.to_be_bytes().into()]);
    u128::from_be_bytes(hash.finalize().into())
}

fn padded(start: &[u8; 12]) -> [u8; BLOCK] {
    std::array::from_fn(|at| start.get(at).copied().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crypto::hex;
    use crate::crypto::tests::bytes;

    fn input(key: &str, start: &str, data: &str) -> Input {
        Input {
            key: bytes(key),
            start: bytes(start),
            data: bytes(data),
        }
    }

    const TEXT: &str = "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51";
    const KEYS: [&str; 3] = [
        "2b7e151628aed2a6abf7158809cf4f3c",
        "8e73b0f7da0e6452c810f32b809079e562f8ead2522c6b7b",
        "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4",
    ];

    #[test]
    fn cbc_is_that_of_nist() {
        // SP 800-38A, F.2.1, F.2.3 and F.2.5: the first two blocks.
        let start = "000102030405060708090a0b0c0d0e0f";
        for (key, expected) in KEYS.iter().zip([
            "7649abac8119b246cee98e9b12e9197d5086cb9b507219ee95db113a917678b2",
            "4f021db243bc633d7178183a9fa071e8b4d9ada9ad7dedf4e5e738763f69145a",
            "f58c4c04d6e5f1ba779eabfb5f7bfbd69cfc4e967edb808d679f777bc6702c7d",
        ]) {
            let made = cbc_encrypt(&input(key, start, TEXT)).unwrap();
            assert_eq!(hex(&made[..32]), expected);
            assert_eq!(made.len(), 48, "a block of padding");
            let mut back = input(key, start, &hex(&made));
            assert_eq!(hex(&cbc_decrypt(&back).unwrap()), TEXT);
            back.data[47] ^= 1;
            assert_eq!(cbc_decrypt(&back), Err(AesError::Decryption));
        }
    }

    #[test]
    fn ctr_is_that_of_nist() {
        // SP 800-38A, F.5.1, F.5.3 and F.5.5: the first two blocks.
        let start = "f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff";
        for (key, expected) in KEYS.iter().zip([
            "874d6191b620e3261bef6864990db6ce9806f66b7970fdff8617187bb9fffdff",
            "1abc932417521ca24f2b0459fe7e6e0b090339ec0aa6faefd5ccc2c6f4ce8e94",
            "601ec313775789a5b7a7f504bbf3d228f443e3ca4d62b59aca84e990cacaf5c5",
        ]) {
            assert_eq!(hex(&ctr(&input(key, start, TEXT), 128).unwrap()), expected);
        }
        // With one bit that counts, the third block is the first one again.
        let zeros = "00".repeat(48);
        let made = ctr(&input(KEYS[0], start, &zeros), 1).unwrap();
        assert_eq!(made[..16], made[32..]);
        let no_bits = ctr(&input(KEYS[0], start, TEXT), 0);
        assert_eq!(no_bits, Err(AesError::CounterBits));
    }

    #[test]
    fn gcm_is_that_of_nist() {
        // The proposal of GCM (McGrew, Viega), test case 4.
        let given = input(
            "feffe9928665731c6d6a8f9467308308",
            "cafebabefacedbaddecaf888",
            "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39",
        );
        let also = bytes("feedfacedeadbeeffeedfacedeadbeefabaddad2");
        let made = gcm(&given, &also, 128, true).unwrap();
        assert_eq!(
            hex(&made),
            "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973d58e0915bc94fbc3221a5db94fae95ae7121a47"
        );
        let back = Input {
            data: made,
            ..given
        };
        assert_eq!(gcm(&back, b"else", 128, false), Err(AesError::Decryption));
        assert_eq!(gcm(&back, &also, 128, false).unwrap().len(), 60);
    }
    #[test]
    fn gcm_takes_every_key_iv_and_tag() {
        // The proposal of GCM, test cases 5, 6, 10, 11, 12 and 16 to 18: IVs of 8, 12 and 60 bytes, keys of 128, 192 and 256 bits.
        let text = "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39";
        let also = bytes("feedfacedeadbeeffeedfacedeadbeefabaddad2");
        let long = "9313225df88406e555909c5aff5269aa6a7a9538534f7da1e4c303d2a318a728c3c0c95156809539fcf0e2429a6b525416aedbf5a0de6a57a637b39b";
        let key = "feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308";
        let (key_128, key_192) = (key.split_at(32).0, key.split_at(48).0);
        for (key, start, tag) in [
            (
                key_128,
                "cafebabefacedbad",
                "3612d2e79e3b0785561be14aaca2fccb",
            ),
            (key_128, long, "619cc5aefffe0bfa462af43c1699d050"),
            (
                key_192,
                "cafebabefacedbaddecaf888",
                "2519498e80f1478f37ba55bd6d27618c",
            ),
            (
                key_192,
                "cafebabefacedbad",
                "65dcc57fcf623a24094fcca40d3533f8",
            ),
            (key_192, long, "dcf566ff291c25bbb8568fc3d376a6d9"),
            (
                key,
                "cafebabefacedbaddecaf888",
                "76fc6ece0f4e1768cddf8853bb2d551b",
            ),
            (key, "cafebabefacedbad", "3a337dbf46a792c45e454913fe2ea8f2"),
            (key, long, "a44a8266ee1c8eb0c8b5d4cf5ae9f19a"),
        ] {
            let given = input(key, start, text);
            let made = gcm(&given, &also, 128, true).unwrap();
            assert_eq!(hex(&made[60..]), tag);
            let short = gcm(&given, &also, 96, true).unwrap();
            assert_eq!(hex(&short[60..]), tag.split_at(24).0);
            let back = Input {
                data: short,
                ..given
            };
            assert_eq!(hex(&gcm(&back, &also, 96, false).unwrap()), text);
        }
        let given = input(key_128, "cafebabefacedbad", "");
        assert_eq!(gcm(&given, &also, 127, true), Err(AesError::TagBits));
        assert_eq!(gcm(&given, &also, 128, false), Err(AesError::Decryption));
    }
}
