//! The algorithms of `crypto.subtle`, for `js/subtle.js`.

mod curve;

mod hash;

mod rsa;

use std::fmt::Display;
use std::num::NonZeroU32;

use plimsoll_script::js::{self, ArrayBuffer, Ctx, Exception, Value};
use ring::rand::{SecureRandom as _, SystemRandom};
use ring::{hkdf, pbkdf2};

use self::curve::{Curve, CurveError};
use self::hash::Hash;
use super::http::bytes;
use super::{Adder, Arguments};
use crate::crypto::aes::{Input, cbc_decrypt, cbc_encrypt, ctr, gcm};

/// Bytes that are derived or drawn in one call, at most.
const MOST_BYTES: usize = 1 << 16;

/// Why no bytes were derived from a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
enum DeriveError {
    #[error("at most {MOST_BYTES} bytes can be derived")]
    Bytes,
    #[error("iterations must be a number from 1")]
    Iterations,
    /// The limit of RFC 5869, section 2.3.
    #[error("at most 255 times the length of the hash can be derived")]
    Hashes,
}

pub(super) fn add(adder: &Adder<'_, '_>) -> js::Result<()> {
    // Mode, whether to encrypt, key, IV or counter block, bits of the counter or of the tag, data, additional data.
    adder.add("aes", |_, ctx, arguments| {
        let encrypts = arguments.value(1).as_bool().unwrap_or(false);
        let input = Input::new(
            bytes(ctx, &arguments.value(2))?.to_vec(),
            bytes(ctx, &arguments.value(3))?.to_vec(),
            bytes(ctx, &arguments.value(5))?.to_vec(),
        );
        let made = match arguments.text(0)?.as_str() {
            "AES-CBC" if encrypts => cbc_encrypt(&input),
            "AES-CBC" => cbc_decrypt(&input),
            "AES-CTR" => ctr(&input, arguments.index(4)?),
            _ => {
                let also = bytes(ctx, &arguments.value(6))?;
                gcm(&input, &also, arguments.index(4)?, encrypts)
            }
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
            Some(iterations) if length <= MOST_BYTES => {
                let mut derived = vec![0; length];
                pbkdf2::derive(algorithm, iterations, &salt, &secret, &mut derived);
                Ok(derived)
            }
            Some(_) => Err(DeriveError::Bytes),
            None => Err(DeriveError::Iterations),
        };
        buffer(ctx, made)
    })?;
    // Hash, secret, salt, info, bytes.
    adder.add("hkdf", |_, ctx, arguments| {
        let algorithm = match arguments.text(0)?.as_str() {
            "sha1" => hkdf::HKDF_SHA1_FOR_LEGACY_USE_ONLY,
            "sha384" => hkdf::HKDF_SHA384,
            "sha512" => hkdf::HKDF_SHA512,
            _ => hkdf::HKDF_SHA256,
        };
        let (secret, salt) = (
            bytes(ctx, &arguments.value(1))?,
            bytes(ctx, &arguments.value(2))?,
        );
        let info = bytes(ctx, &arguments.value(3))?;
        buffer(
            ctx,
            derive(algorithm, &secret, &salt, &info, arguments.index(4)?),
        )
    })?;
    adder.add("secureRandom", |_, ctx, arguments| {
        let mut made = vec![0; arguments.index(0)?.min(MOST_BYTES)];
        let filled = SystemRandom::new().fill(&mut made);
        buffer(
            ctx,
            filled.map(|()| made).map_err(|_| CurveError::Randomness),
        )
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
            rsa::sign(padding, Hash::from_name(&arguments.text(1)?), &key, &data),
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
        let hash = Hash::from_name(&arguments.text(1)?);
        Ok(rsa::is_signed(padding, hash, &key, &signed, &data))
    })?;
    // Whether to encrypt, hash, key, data, label.
    adder.add("rsaOaep", |_, ctx, arguments| {
        let encrypts = arguments.value(0).as_bool().unwrap_or(false);
        let hash = Hash::from_name(&arguments.text(1)?);
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
        buffer(ctx, Curve::from_name(&arguments.text(0)?).generate())
    })?;
    adder.add("curvePublic", |_, ctx, arguments| {
        let curve = Curve::from_name(&arguments.text(0)?);
        buffer(ctx, curve.public(&bytes(ctx, &arguments.value(1))?))
    })?;
    // Curve, number of the private key, point of the public key.
    adder.add("ecdh", |_, ctx, arguments| {
        let curve = Curve::from_name(&arguments.text(0)?);
        let own = bytes(ctx, &arguments.value(1))?;
        buffer(ctx, curve.agree(&own, &bytes(ctx, &arguments.value(2))?))
    })?;
    // Curve, hash, number, data.
    adder.add("ecdsaSign", |_, ctx, arguments| {
        let curve = Curve::from_name(&arguments.text(0)?);
        let hash = Hash::from_name(&arguments.text(1)?);
        let data = bytes(ctx, &arguments.value(3))?;
        buffer(
            ctx,
            curve.sign(&bytes(ctx, &arguments.value(2))?, &hash.digest(&data)),
        )
    })?;
    // Curve, hash, point, signature, data.
    adder.add("ecdsaVerify", |_, ctx, arguments| {
        let curve = Curve::from_name(&arguments.text(0)?);
        let hash = Hash::from_name(&arguments.text(1)?);
        let (point, signed) = (
            bytes(ctx, &arguments.value(2))?,
            bytes(ctx, &arguments.value(3))?,
        );
        let data = bytes(ctx, &arguments.value(4))?;
        Ok(curve.is_signed(&point, &signed, &hash.digest(&data)))
    })
}

/// A length of derived bytes.
struct Length(usize);

impl hkdf::KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

/// HKDF (RFC 5869).
fn derive(
    algorithm: hkdf::Algorithm,
    secret: &[u8],
    salt: &[u8],
    info: &[u8],
    length: usize,
) -> Result<Vec<u8>, DeriveError> {
    let too_long = DeriveError::Hashes;
    let key = hkdf::Salt::new(algorithm, salt).extract(secret);
    let info = [info];
    let derived = key.expand(&info, Length(length)).map_err(|_| too_long)?;
    let mut made = vec![0; length];
    derived.fill(&mut made).map_err(|_| too_long)?;
    Ok(made)
}

fn buffer<'js>(ctx: &Ctx<'js>, made: Result<Vec<u8>, impl Display>) -> js::Result<Value<'js>> {
    let made = made.map_err(|error| Exception::throw_message(ctx, &error.to_string()))?;
    ArrayBuffer::new(ctx.clone(), made).map(ArrayBuffer::into_value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crypto::hex;
    use crate::crypto::tests::bytes;

    #[test]
    fn hkdf_is_that_of_its_rfc() {
        // RFC 5869, sections A.1 and A.4.
        let (salt, info) = (
            bytes("000102030405060708090a0b0c"),
            bytes("f0f1f2f3f4f5f6f7f8f9"),
        );
        let check = |algorithm, secret: &[u8], expected: &str| {
            let made = derive(algorithm, secret, &salt, &info, 42).unwrap();
            assert_eq!(hex(&made), expected);
        };
        check(
            hkdf::HKDF_SHA256,
            &[0x0b; 22],
            "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865",
        );
        check(
            hkdf::HKDF_SHA1_FOR_LEGACY_USE_ONLY,
            &[0x0b; 11],
            "085a01ea1b10f36933068b56efa5ad81a4f14b822f5b091568a9cdd4f155fda2c22e422478d305f3f896",
        );
        let too_long = derive(hkdf::HKDF_SHA256, b"x", b"", b"", 255 * 32 + 1);
        assert_eq!(too_long, Err(DeriveError::Hashes));
    }
}
