//! The public keys of an issuer: JSON Web Key Sets (RFC 7517).

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256,
    RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512, RSA_PSS_2048_8192_SHA256,
    RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512, RsaPublicKeyComponents, UnparsedPublicKey,
};
use serde_json::Value;

use super::algorithm::JwtAlgorithm;

/// Keys of a set that are kept.
const MOST_KEYS: usize = 100;

/// Bytes of the modulus of an RSA key.
const RSA_BYTES: std::ops::RangeInclusive<usize> = 256..=1024;

/// The public keys of an issuer that can verify tokens.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JwtKeySet(Vec<Key>);

/// Why a text is no set of keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum JwtKeySetError {
    /// It is something else.
    #[error("is not a JSON Web Key Set, such as {{\"keys\": […]}}")]
    Malformed,
    /// It has keys, and none of them can verify a token.
    #[error(
        "has no public key for signatures: RSA of 2048 bits or more, EC by P-256 or P-384, Ed25519"
    )]
    Empty,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Key {
    id: Option<String>,
    /// The only algorithm that it is for, if it says so; by name, since it may be one that is not known.
    algorithm: Option<String>,
    material: Material,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Material {
    /// Modulus and exponent, big-endian.
    Rsa(Vec<u8>, Vec<u8>),
    /// An uncompressed point (SEC 1, section 2.3.3).
    P256(Vec<u8>),
    P384(Vec<u8>),
    Ed25519(Vec<u8>),
}

/// What the keys of a set say about a signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Valid,
    Invalid,
    /// No key fits the token.
    NoKey,
}

impl JwtKeySet {
    /// The keys of a set that can verify tokens, at most 100; others are left out.
    pub fn parse(content: &[u8]) -> Result<Self, JwtKeySetError> {
        let set: Value = serde_json::from_slice(content).map_err(|_| JwtKeySetError::Malformed)?;
        let keys = set.get("keys").and_then(Value::as_array);
        let keys = keys.ok_or(JwtKeySetError::Malformed)?;
        let keys: Vec<_> = keys.iter().filter_map(key).take(MOST_KEYS).collect();
        if keys.is_empty() {
            return Err(JwtKeySetError::Empty);
        }
        Ok(Self(keys))
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Whether one of the keys has made the signature: that of the identifier, or any if the token or the key has none.
    pub(super) fn verify(
        &self,
        (algorithm, id): (JwtAlgorithm, Option<&str>),
        signed: &[u8],
        signature: &[u8],
    ) -> Verdict {
        let mut verdict = Verdict::NoKey;
        for key in &self.0 {
            let is_meant = id.is_none() || key.id.is_none() || key.id.as_deref() == id;
            let is_for = key.algorithm.as_deref();
            let is_for = is_for.is_none_or(|it| JwtAlgorithm::from_name(it) == Some(algorithm));
            if !is_meant || !is_for {
                continue;
            }
            match key.material.verify(algorithm, signed, signature) {
                Some(true) => return Verdict::Valid,
                Some(false) => verdict = Verdict::Invalid,
                None => {}
            }
        }
        verdict
    }
}

impl Material {
    /// Nothing if the algorithm is for keys of another kind.
    fn verify(&self, algorithm: JwtAlgorithm, signed: &[u8], signature: &[u8]) -> Option<bool> {
        let verified = match (self, algorithm) {
            (Self::Rsa(n, e), algorithm) => {
                let by = match algorithm {
                    JwtAlgorithm::Rs256 => &RSA_PKCS1_2048_8192_SHA256,
                    JwtAlgorithm::Rs384 => &RSA_PKCS1_2048_8192_SHA384,
                    JwtAlgorithm::Rs512 => &RSA_PKCS1_2048_8192_SHA512,
                    JwtAlgorithm::Ps256 => &RSA_PSS_2048_8192_SHA256,
                    JwtAlgorithm::Ps384 => &RSA_PSS_2048_8192_SHA384,
                    JwtAlgorithm::Ps512 => &RSA_PSS_2048_8192_SHA512,
                    _ => return None,
                };
                RsaPublicKeyComponents { n, e }.verify(by, signed, signature)
            }
            (Self::P256(point), JwtAlgorithm::Es256) => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(signed, signature)
            }
            (Self::P384(point), JwtAlgorithm::Es384) => {
                UnparsedPublicKey::new(&ECDSA_P384_SHA384_FIXED, point).verify(signed, signature)
            }
            (Self::Ed25519(key), JwtAlgorithm::EdDsa) => {
                UnparsedPublicKey::new(&ED25519, key).verify(signed, signature)
            }
            _ => return None,
        };
        Some(verified.is_ok())
    }
}

fn key(value: &Value) -> Option<Key> {
    let text = |name| value.get(name).and_then(Value::as_str);
    let bytes = |name| BASE64_URL_SAFE_NO_PAD.decode(text(name)?).ok();
    if text("use").is_some_and(|purpose| purpose != "sig") {
        return None;
    }
    let operations = value.get("key_ops").and_then(Value::as_array);
    if operations.is_some_and(|all| !all.iter().any(|it| it == "verify")) {
        return None;
    }
    let point = |length| {
        let (x, y) = (bytes("x")?, bytes("y")?);
        (x.len() == length && y.len() == length).then(|| [vec![4], x, y].concat())
    };
    let material = match (text("kty")?, text("crv")) {
        ("RSA", _) => {
            let modulus = bytes("n")?;
            let zeros = modulus.iter().take_while(|byte| **byte == 0).count();
            let modulus = modulus.get(zeros..)?.to_vec();
            if !RSA_BYTES.contains(&modulus.len()) {
                return None;
            }
            Material::Rsa(modulus, bytes("e")?)
        }
        ("EC", Some("P-256")) => Material::P256(point(32)?),
        ("EC", Some("P-384")) => Material::P384(point(48)?),
        ("OKP", Some("Ed25519")) => Material::Ed25519(bytes("x").filter(|it| it.len() == 32)?),
        _ => return None,
    };
    Some(Key {
        id: text("kid").map(str::to_owned),
        algorithm: text("alg").map(str::to_owned),
        material,
    })
}
