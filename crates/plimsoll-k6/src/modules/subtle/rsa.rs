//! RSA (RFC 8017): keys, signatures, OAEP. Private keys are documents of PKCS #8, public ones of PKCS #1.

use rsa::pkcs1::{DecodeRsaPublicKey as _, EncodeRsaPublicKey as _};
use rsa::pkcs8::{DecodePrivateKey as _, EncodePrivateKey as _};
use rsa::rand_core::OsRng;
use rsa::{BigUint, Oaep, Pkcs1v15Sign, Pss, RsaPrivateKey, RsaPublicKey};
use sha1::Sha1;
use sha2::{Sha256, Sha384, Sha512};

use super::hash::Hash;

/// Bits of keys that are generated: more take minutes, and the worker waits for them.
const BITS: std::ops::RangeInclusive<usize> = 1024..=4096;

/// Why a key, a signature or a text could not be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum RsaError {
    /// A key of another size was to be generated.
    #[error("keys of RSA are generated with {} to {} bits", BITS.start(), BITS.end())]
    Bits,
    /// The library makes no key with this exponent.
    #[error("no key could be generated with this publicExponent")]
    Exponent,
    /// A key that was generated has no document.
    #[error("no key could be generated")]
    Document,
    /// A private key cannot be read.
    #[error("the key is no PKCS #8 document of RSA with up to 4096 bits")]
    PrivateKey,
    /// A public key cannot be read.
    #[error("the key is not one of RSA")]
    PublicKey,
    /// A private key has no document of its public key.
    #[error("the key has no public key")]
    NoPublicKey,
    /// Hash and salt do not fit into the modulus.
    #[error("the signature failed: the key is too short for this hash and salt")]
    Signature,
    /// A label is no text.
    #[error("labels of RSA-OAEP are supported as UTF-8 only")]
    Label,
    /// The data does not fit into the modulus.
    #[error("encryption failed: the data is too long for the key")]
    Encryption,
    /// The text is not one that was encrypted for this key. It says no more, so that the text cannot be guessed by it.
    #[error("decryption failed")]
    Decryption,
}

/// The padding of a signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Padding {
    Pkcs1,
    Pss {
        /// Its bytes.
        salt: usize,
    },
}

/// A new private key.
pub(super) fn generate(bits: usize, exponent: &[u8]) -> Result<Vec<u8>, RsaError> {
    if !BITS.contains(&bits) {
        return Err(RsaError::Bits);
    }
    let exponent = BigUint::from_bytes_be(exponent);
    let key = RsaPrivateKey::new_with_exp(&mut OsRng, bits, &exponent);
    let key = key.map_err(|_| RsaError::Exponent)?;
    let document = key.to_pkcs8_der();
    document
        .map(|document| document.as_bytes().to_vec())
        .map_err(|_| RsaError::Document)
}

/// The public key of a private one.
pub(super) fn public(pkcs8: &[u8]) -> Result<Vec<u8>, RsaError> {
    let document = private_key(pkcs8)?.to_public_key().to_pkcs1_der();
    document
        .map(|document| document.as_bytes().to_vec())
        .map_err(|_| RsaError::NoPublicKey)
}

pub(super) fn sign(
    padding: Padding,
    hash: Hash,
    pkcs8: &[u8],
    data: &[u8],
) -> Result<Vec<u8>, RsaError> {
    let key = private_key(pkcs8)?;
    let digest = hash.digest(data);
    let signed = match padding {
        Padding::Pkcs1 => key.sign_with_rng(&mut OsRng, pkcs1_padding(hash), &digest),
        Padding::Pss { salt } => key.sign_with_rng(&mut OsRng, pss_padding(hash, salt), &digest),
    };
    signed.map_err(|_| RsaError::Signature)
}

pub(super) fn is_signed(
    padding: Padding,
    hash: Hash,
    pkcs1: &[u8],
    signature: &[u8],
    data: &[u8],
) -> bool {
    let Ok(key) = RsaPublicKey::from_pkcs1_der(pkcs1) else {
        return false;
    };
    let digest = hash.digest(data);
    let verified = match padding {
        Padding::Pkcs1 => key.verify(pkcs1_padding(hash), &digest, signature),
        Padding::Pss { salt } => key.verify(pss_padding(hash, salt), &digest, signature),
    };
    verified.is_ok()
}

/// - `key`: the public one to encrypt, the private one to decrypt.
pub(super) fn oaep(
    encrypts: bool,
    hash: Hash,
    key: &[u8],
    data: &[u8],
    label: &[u8],
) -> Result<Vec<u8>, RsaError> {
    let mut padding = match hash {
        Hash::Sha1 => Oaep::new::<Sha1>(),
        Hash::Sha256 => Oaep::new::<Sha256>(),
        Hash::Sha384 => Oaep::new::<Sha384>(),
        Hash::Sha512 => Oaep::new::<Sha512>(),
    };
    if !label.is_empty() {
        let label = String::from_utf8(label.to_vec());
        padding.label = Some(label.map_err(|_| RsaError::Label)?);
    }
    if encrypts {
        let key = RsaPublicKey::from_pkcs1_der(key).map_err(|_| RsaError::PublicKey)?;
        let encrypted = key.encrypt(&mut OsRng, padding, data);
        return encrypted.map_err(|_| RsaError::Encryption);
    }
    let decrypted = private_key(key)?.decrypt_blinded(&mut OsRng, padding, data);
    decrypted.map_err(|_| RsaError::Decryption)
}

fn private_key(pkcs8: &[u8]) -> Result<RsaPrivateKey, RsaError> {
    RsaPrivateKey::from_pkcs8_der(pkcs8).map_err(|_| RsaError::PrivateKey)
}

fn pkcs1_padding(hash: Hash) -> Pkcs1v15Sign {
    match hash {
        Hash::Sha1 => Pkcs1v15Sign::new::<Sha1>(),
        Hash::Sha256 => Pkcs1v15Sign::new::<Sha256>(),
        Hash::Sha384 => Pkcs1v15Sign::new::<Sha384>(),
        Hash::Sha512 => Pkcs1v15Sign::new::<Sha512>(),
    }
}

fn pss_padding(hash: Hash, salt: usize) -> Pss {
    match hash {
        Hash::Sha1 => Pss::new_with_salt::<Sha1>(salt),
        Hash::Sha256 => Pss::new_with_salt::<Sha256>(salt),
        Hash::Sha384 => Pss::new_with_salt::<Sha384>(salt),
        Hash::Sha512 => Pss::new_with_salt::<Sha512>(salt),
    }
}
