//! The algorithms of `crypto.subtle`, for `js/subtle.js`.

mod curve;

mod hash;

mod rsa;

use std::num::NonZeroU32;

use aes::cipher::{BlockCipherDecrypt, BlockCipherEncrypt, KeyInit};
use aes::{Aes128, Aes192, Aes256, Block};
use plimsoll_script::js::{self, ArrayBuffer, Ctx, Exception, Value};
use ring::rand::{SecureRandom as _, SystemRandom};
use ring::{aead, pbkdf2};

use self::curve::Curve;
use self::hash::Hash;
use super::http::bytes;
use super::{Adder, Arguments};

/// Bytes of a block of AES.
const BLOCK: usize = 16;

pub(super) fn add(adder: &Adder<'_, '_>) -> js::Result<()> {
    // Mode, whether to encrypt, key, IV or counter block, bits of the counter, data.
    adder.add("aes", |_, ctx, arguments| {
        let encrypts = arguments.value(1).as_bool().unwrap_or(false);
        let input = Input::of(ctx, &arguments)?;
        let made = match arguments.text(0)?.as_str() {
            "AES-CBC" if encrypts => cbc_encrypt(&input),
            "AES-CBC" => cbc_decrypt(&input),
            "AES-CTR" => ctr(&input, arguments.index(4)?),
            _ => gcm(&input, &bytes(ctx, &arguments.value(6))?, encrypts),
        };
        buffer(ctx, made)
    })?;
    adder.add("pbkdf2", |_, ctx, arguments| {
        let algorithm = match arguments.text(0)?.as_str() {
            "sha1" => pbkdf2::PBKDF2_HMAC_SHA1,
            "sha384" => pbkdf2::PBKDF2_HMAC_SHA384,
            "sha512" => pbkdf2::PBKDF2_HMAC_SHA512,
            _ => pbkdf2::PBKDF2_HMAC_SHA256,
        };
        let (secret, salt) = (
            bytes(ctx, &arguments.value(1))?,
            bytes(ctx, &arguments.value(2))?,
        );
        let iterations = u32::try_from(arguments.index(3)?)
            .ok()
            .and_then(NonZeroU32::new);
        let length = arguments.index(4)?;
        let made = match iterations {
            Some(iterations) if length <= 1 << 16 => {
                let mut derived = vec![0; length];
                pbkdf2::derive(algorithm, iterations, &salt, &secret, &mut derived);
                Ok(derived)
            }
            Some(_) => Err("at most 65536 bytes can be derived"),
            None => Err("iterations must be a number from 1"),
        };
        buffer(ctx, made)
    })?;
    adder.add("secureRandom", |_, ctx, arguments| {
        let mut made = vec![0; arguments.index(0)?.min(1 << 16)];
        let filled = SystemRandom::new().fill(&mut made);
        buffer(ctx, filled.map(|()| made).map_err(|_| "no randomness"))
    })?;
    signatures(adder)?;
    rsa_keys(adder)
}

/// Private keys are documents of PKCS #8, public ones of PKCS #1.
fn rsa_keys(adder: &Adder<'_, '_>) -> js::Result<()> {
    // Bits of the modulus, bytes of the public exponent.
    adder.add("rsaGenerate", |_, ctx, arguments| {
        let bits = arguments.index(0)?;
        buffer(ctx, rsa::generate(bits, &bytes(ctx, &arguments.value(1))?))
    })?;
    // The public key of a private one, or that it is a usable key.
    adder.add("rsaPublic", |_, ctx, arguments| {
        buffer(ctx, rsa::public(&bytes(ctx, &arguments.value(0))?))
    })?;
    // Algorithm, hash, key, data, bytes of salt.
    adder.add("rsaSign", |_, ctx, arguments| {
        let padding = rsa_padding(&arguments, 4)?;
        let data = bytes(ctx, &arguments.value(3))?;
        let key = bytes(ctx, &arguments.value(2))?;
        buffer(
            ctx,
            rsa::sign(padding, Hash::of(&arguments.text(1)?), &key, &data),
        )
    })?;
    // Algorithm, hash, key, signature, data, bytes of salt.
    adder.add("rsaVerify", |_, ctx, arguments| {
        let padding = rsa_padding(&arguments, 5)?;
        let (key, signed) = (
            bytes(ctx, &arguments.value(2))?,
            bytes(ctx, &arguments.value(3))?,
        );
        let data = bytes(ctx, &arguments.value(4))?;
        let hash = Hash::of(&arguments.text(1)?);
        Ok(rsa::is_signed(padding, hash, &key, &signed, &data))
    })?;
    // Whether to encrypt, hash, key, data, label.
    adder.add("rsaOaep", |_, ctx, arguments| {
        let encrypts = arguments.value(0).as_bool().unwrap_or(false);
        let hash = Hash::of(&arguments.text(1)?);
        let (key, data) = (
            bytes(ctx, &arguments.value(2))?,
            bytes(ctx, &arguments.value(3))?,
        );
        let label = bytes(ctx, &arguments.value(4))?;
        buffer(ctx, rsa::oaep(encrypts, hash, &key, &data, &label))
    })
}

fn rsa_padding(arguments: &Arguments<'_>, salt: usize) -> js::Result<rsa::Padding> {
    Ok(match arguments.text(0)?.as_str() {
        "RSA-PSS" => rsa::Padding::Pss {
            salt: arguments.index(salt)?,
        },
        _ => rsa::Padding::Pkcs1,
    })
}

/// Private keys are numbers, public ones are points that are not compressed.
fn signatures(adder: &Adder<'_, '_>) -> js::Result<()> {
    adder.add("curveGenerate", |_, ctx, arguments| {
        buffer(ctx, Curve::of(&arguments.text(0)?).generate())
    })?;
    adder.add("curvePublic", |_, ctx, arguments| {
        let curve = Curve::of(&arguments.text(0)?);
        buffer(ctx, curve.public(&bytes(ctx, &arguments.value(1))?))
    })?;
    // Curve, number of the private key, point of the public key.
    adder.add("ecdh", |_, ctx, arguments| {
        let curve = Curve::of(&arguments.text(0)?);
        let own = bytes(ctx, &arguments.value(1))?;
        buffer(ctx, curve.agree(&own, &bytes(ctx, &arguments.value(2))?))
    })?;
    // Curve, hash, number, data.
    adder.add("ecdsaSign", |_, ctx, arguments| {
        let curve = Curve::of(&arguments.text(0)?);
        let hash = Hash::of(&arguments.text(1)?);
        let data = bytes(ctx, &arguments.value(3))?;
        buffer(
            ctx,
            curve.sign(&bytes(ctx, &arguments.value(2))?, &hash.digest(&data)),
        )
    })?;
    // Curve, hash, point, signature, data.
    adder.add("ecdsaVerify", |_, ctx, arguments| {
        let curve = Curve::of(&arguments.text(0)?);
        let hash = Hash::of(&arguments.text(1)?);
        let (point, signed) = (
            bytes(ctx, &arguments.value(2))?,
            bytes(ctx, &arguments.value(3))?,
        );
        let data = bytes(ctx, &arguments.value(4))?;
        Ok(curve.is_signed(&point, &signed, &hash.digest(&data)))
    })
}

fn buffer<'js>(ctx: &Ctx<'js>, made: Result<Vec<u8>, &'static str>) -> js::Result<Value<'js>> {
    let made = made.map_err(|message| Exception::throw_message(ctx, message))?;
    ArrayBuffer::new(ctx.clone(), made).map(ArrayBuffer::into_value)
}

/// AES with a key of one of its lengths.
enum Cipher {
    Of128(Aes128),
    Of192(Aes192),
    Of256(Aes256),
}

impl Cipher {
    fn new(key: &[u8]) -> Result<Self, &'static str> {
        let wrong = "a key of AES has 128, 192 or 256 bits";
        match key.len() {
            16 => Aes128::new_from_slice(key).map(Self::Of128),
            24 => Aes192::new_from_slice(key).map(Self::Of192),
            _ => Aes256::new_from_slice(key).map(Self::Of256),
        }
        .map_err(|_| wrong)
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
}

/// The input of an encryption.
struct Input {
    key: Vec<u8>,
    /// The initialisation vector, nonce or first counter block.
    start: Vec<u8>,
    data: Vec<u8>,
}

impl Input {
    fn of<'js>(ctx: &Ctx<'js>, arguments: &Arguments<'js>) -> js::Result<Self> {
        Ok(Self {
            key: bytes(ctx, &arguments.value(2))?.to_vec(),
            start: bytes(ctx, &arguments.value(3))?.to_vec(),
            data: bytes(ctx, &arguments.value(5))?.to_vec(),
        })
    }

    fn first_block(&self) -> Result<[u8; BLOCK], &'static str> {
        let block = <[u8; BLOCK]>::try_from(self.start.as_slice());
        block.map_err(|_| "iv and counter have 16 bytes")
    }
}

fn xor(left: [u8; BLOCK], right: [u8; BLOCK]) -> [u8; BLOCK] {
    std::array::from_fn(|at| left[at] ^ right[at])
}

/// NIST SP 800-38A, section 6.2, with the padding of RFC 5652, section 6.3.
fn cbc_encrypt(input: &Input) -> Result<Vec<u8>, &'static str> {
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

fn cbc_decrypt(input: &Input) -> Result<Vec<u8>, &'static str> {
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
        return Err("decryption failed");
    }
    made.truncate(length);
    Ok(made)
}

/// NIST SP 800-38A, section 6.5.
///
/// - `bits`: the last bits of the block, which count.
fn ctr(input: &Input, bits: usize) -> Result<Vec<u8>, &'static str> {
    if !(1..=128).contains(&bits) {
        return Err("length, the bits that count, is a number from 1 to 128");
    }
    let cipher = Cipher::new(&input.key)?;
    let first = u128::from_be_bytes(input.first_block()?);
    let mask = u128::MAX >> (128 - bits);
    let blocks = input.data.chunks(BLOCK).zip(0_u128..);
    let made = blocks.flat_map(|(chunk, number)| {
        let counter = (first & !mask) | (first.wrapping_add(number) & mask);
        let key = cipher.encrypt(counter.to_be_bytes());
        let made = chunk.iter().zip(key).map(|(byte, key)| byte ^ key);
        made.collect::<Vec<_>>()
    });
    Ok(made.collect())
}

/// NIST SP 800-38D with nonces of 96 and tags of 128 bits.
fn gcm(input: &Input, also: &[u8], encrypts: bool) -> Result<Vec<u8>, &'static str> {
    let algorithm = match input.key.len() {
        16 => &aead::AES_128_GCM,
        32 => &aead::AES_256_GCM,
        _ => return Err("AES-GCM is supported with keys of 128 and 256 bits"),
    };
    let key = aead::UnboundKey::new(algorithm, &input.key).map_err(|_| "the key is invalid")?;
    let key = aead::LessSafeKey::new(key);
    let nonce = aead::Nonce::try_assume_unique_for_key(&input.start)
        .map_err(|_| "AES-GCM is supported with an iv of 12 bytes")?;
    let also = aead::Aad::from(also);
    let mut data = input.data.clone();
    if encrypts {
        key.seal_in_place_append_tag(nonce, also, &mut data)
            .map_err(|_| "encryption failed")?;
        return Ok(data);
    }
    let opened = key.open_in_place(nonce, also, &mut data);
    opened
        .map(|text| text.to_vec())
        .map_err(|_| "decryption failed")
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::modules::codec::hex;

    pub(crate) fn bytes(digits: &str) -> Vec<u8> {
        let pairs = digits.as_bytes().chunks(2);
        pairs
            .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
            .collect()
    }

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
            assert_eq!(cbc_decrypt(&back), Err("decryption failed"));
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
        assert!(ctr(&input(KEYS[0], start, TEXT), 0).is_err());
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
        let made = gcm(&given, &also, true).unwrap();
        assert_eq!(
            hex(&made),
            "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973d58e0915bc94fbc3221a5db94fae95ae7121a47"
        );
        let back = Input {
            data: made,
            ..given
        };
        assert_eq!(gcm(&back, b"else", false), Err("decryption failed"));
        assert_eq!(gcm(&back, &also, false).unwrap().len(), 60);
    }
}
