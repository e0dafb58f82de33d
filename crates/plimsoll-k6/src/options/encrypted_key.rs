//! Private keys with a password: PKCS #8 with PBES2 (RFC 8018) and the older form of OpenSSL, whose PEM section has
//! `Proc-Type: 4,ENCRYPTED` (RFC 1421).
//!
//! Only decrypts. The cryptography is that of libraries; the older form's derivation of the key is MD5 over password and salt.

use cbc::cipher::{BlockDecryptMut as _, KeyIvInit as _, block_padding::Pkcs7};
use md5::{Digest as _, Md5};
use pem::Pem;
use pkcs8::EncryptedPrivateKeyInfo;
use pkcs8::der::asn1::AnyRef;
use pkcs8::der::{Decode as _, Tag, Tagged as _};
use pkcs8::pkcs5::EncryptionScheme;

use crate::crypto::aes::{Input, cbc_decrypt};

/// The label of encrypted PKCS #8.
const ENCRYPTED: &str = "ENCRYPTED PRIVATE KEY";

/// Salt of the older form: the first bytes of the initialisation vector.
const SALT_BYTES: usize = 8;

/// Why a key cannot be decrypted. Messages continue the name of an option.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum KeyError {
    /// It needs a password.
    #[error("is encrypted: it needs a `password`")]
    NoPassword,
    /// The password is not the one that the key was encrypted with, or the key is damaged.
    #[error("cannot be decrypted by the `password`: it is the wrong one, or the key is damaged")]
    WrongPassword,
    /// It is encrypted in a way that is not supported.
    #[error(
        "is encrypted by {0}, which is not supported; encrypt it again with `openssl pkcs8 -topk8`"
    )]
    Unsupported(String),
}

/// The key in PEM without encryption.
///
/// - `key`: PEM; returned as it is unless it is encrypted.
pub(crate) fn decrypted(key: String, password: Option<&str>) -> Result<String, KeyError> {
    // What is no PEM is reported where the key is used.
    let sections = pem::parse_many(&key).unwrap_or_default();
    let keys = |section: &&Pem| section.tag().ends_with("PRIVATE KEY");
    let Some(section) = sections.iter().find(keys) else {
        return Ok(key);
    };
    let algorithm = section.headers().get("DEK-Info");
    if section.tag() != ENCRYPTED && algorithm.is_none() {
        return Ok(key);
    }
    let password = password.ok_or(KeyError::NoPassword)?;
    let (tag, content) = match algorithm {
        Some(algorithm) => (
            section.tag(),
            old_form(section.contents(), algorithm, password)?,
        ),
        None => ("PRIVATE KEY", pkcs8_form(section.contents(), password)?),
    };
    Ok(pem::encode(&Pem::new(tag, content)))
}

/// Encrypted PKCS #8 (RFC 5958, section 3).
fn pkcs8_form(content: &[u8], password: &str) -> Result<Vec<u8>, KeyError> {
    let info = EncryptedPrivateKeyInfo::try_from(content);
    let info = info.map_err(|_| KeyError::Unsupported("an unknown algorithm".to_owned()))?;
    if matches!(info.encryption_algorithm, EncryptionScheme::Pbes1(_)) {
        return Err(KeyError::Unsupported("PBES1".to_owned()));
    }
    let key = info
        .decrypt(password)
        .map_err(|_| KeyError::WrongPassword)?;
    Ok(key.as_bytes().to_vec())
}

/// - `algorithm`: of `DEK-Info`: a name and the initialisation vector in hexadecimal.
fn old_form(content: &[u8], algorithm: &str, password: &str) -> Result<Vec<u8>, KeyError> {
    let (name, start) = algorithm.split_once(',').unwrap_or((algorithm, ""));
    let unsupported = || KeyError::Unsupported(name.to_owned());
    let start = from_hex(start.trim()).ok_or_else(unsupported)?;
    let salt = start.get(..SALT_BYTES).ok_or_else(unsupported)?;
    let key = |length| derived(password.as_bytes(), salt, length);
    let aes_cbc =
        |length| cbc_decrypt(&Input::new(key(length), start.clone(), content.to_vec())).ok();
    let decrypted = match name.trim() {
        "AES-128-CBC" => aes_cbc(16),
        "AES-192-CBC" => aes_cbc(24),
        "AES-256-CBC" => aes_cbc(32),
        "DES-CBC" => cbc::Decryptor::<des::Des>::new_from_slices(&key(8), &start)
            .map_err(|_| unsupported())?
            .decrypt_padded_vec_mut::<Pkcs7>(content)
            .ok(),
        "DES-EDE3-CBC" => cbc::Decryptor::<des::TdesEde3>::new_from_slices(&key(24), &start)
            .map_err(|_| unsupported())?
            .decrypt_padded_vec_mut::<Pkcs7>(content)
            .ok(),
        _ => return Err(unsupported()),
    };
    // One wrong password in 256 leaves a padding that is valid, but no key.
    decrypted
        .filter(|key| AnyRef::from_der(key).is_ok_and(|key| key.tag() == Tag::Sequence))
        .ok_or(KeyError::WrongPassword)
}

/// OpenSSL's `EVP_BytesToKey` with MD5 and one iteration.
fn derived(password: &[u8], salt: &[u8], length: usize) -> Vec<u8> {
    let mut key: Vec<u8> = Vec::new();
    let mut last = Vec::new();
    while key.len() < length {
        let digest = Md5::new().chain_update(&last).chain_update(password);
        last = digest.chain_update(salt).finalize().to_vec();
        key.extend_from_slice(&last);
    }
    key.truncate(length);
    key
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let bytes = pairs.iter().map(|pair| {
        let digits = std::str::from_utf8(pair).ok()?;
        u8::from_str_radix(digits, 16).ok()
    });
    rest.is_empty().then(|| bytes.collect())?
}

#[cfg(test)]
mod tests;
