//! The curves of NIST: keys, ECDSA (FIPS 186-5, section 6) and ECDH (NIST SP 800-56A, section 5.7.1.2).

use ring::rand::{SecureRandom as _, SystemRandom};

/// A curve, with the crate that has its arithmetic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Curve {
    P256,
    P384,
    P521,
}

/// The functions of a curve. Private keys are numbers, public ones are points that are not compressed.
macro_rules! curve {
    ($name:ident) => {
        mod $name {
            use ::$name::ecdsa::signature::hazmat::{PrehashSigner as _, PrehashVerifier as _};
            use ::$name::ecdsa::{Signature, SigningKey, VerifyingKey};
            use ::$name::elliptic_curve::sec1::ToEncodedPoint as _;
            use ::$name::{PublicKey, SecretKey, ecdh};

            pub(super) fn public(number: &[u8]) -> Option<Vec<u8>> {
                let key = SecretKey::from_slice(number).ok()?;
                let point = key.public_key().to_encoded_point(false);
                Some(point.as_bytes().to_vec())
            }

            pub(super) fn agree(number: &[u8], point: &[u8]) -> Option<Vec<u8>> {
                let own = SecretKey::from_slice(number).ok()?;
                let other = PublicKey::from_sec1_bytes(point).ok()?;
                let agreed = ecdh::diffie_hellman(own.to_nonzero_scalar(), other.as_affine());
                Some(agreed.raw_secret_bytes().to_vec())
            }

            pub(super) fn sign(number: &[u8], digest: &[u8]) -> Option<Vec<u8>> {
                let key = SigningKey::from_slice(number).ok()?;
                let signature: Signature = key.sign_prehash(digest).ok()?;
                Some(signature.to_bytes().to_vec())
            }

            pub(super) fn is_signed(point: &[u8], signature: &[u8], digest: &[u8]) -> Option<bool> {
                let key = VerifyingKey::from_sec1_bytes(point).ok()?;
                let signature = Signature::from_slice(signature).ok()?;
                Some(key.verify_prehash(digest, &signature).is_ok())
            }
        }
    };
}

curve!(p256);
curve!(p384);
curve!(p521);

/// Random numbers that are tried as a key: of P-521, whose first byte is masked, and of the others nearly every one is below the order.
const ATTEMPTS: usize = 64;

/// Why a key, a secret or a signature could not be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum CurveError {
    /// The system gives no random bytes.
    #[error("no randomness")]
    Randomness,
    /// No random number was a key.
    #[error("no key could be generated")]
    Generation,
    /// A number or a point does not lie on the curve.
    #[error("the key is not one of this curve")]
    Key,
    /// One of two keys does not lie on the curve.
    #[error("the keys are not of this curve")]
    Keys,
}

impl Curve {
    /// - `name`: one of those that `js/subtle.js` lets through.
    pub(super) fn from_name(name: &str) -> Self {
        match name {
            "P-384" => Self::P384,
            "P-521" => Self::P521,
            _ => Self::P256,
        }
    }

    /// Bytes of a number.
    fn size(self) -> usize {
        match self {
            Self::P256 => 32,
            Self::P384 => 48,
            Self::P521 => 66,
        }
    }

    /// A new private key.
    pub(super) fn generate(self) -> Result<Vec<u8>, CurveError> {
        let random = SystemRandom::new();
        let mut number = vec![0; self.size()];
        for _ in 0..ATTEMPTS {
            random
                .fill(&mut number)
                .map_err(|_| CurveError::Randomness)?;
            if self == Self::P521 {
                number[0] &= 1;
            }
            if self.public(&number).is_ok() {
                return Ok(number);
            }
        }
        Err(CurveError::Generation)
    }

    /// The point of a private key.
    pub(super) fn public(self, number: &[u8]) -> Result<Vec<u8>, CurveError> {
        let point = match self {
            Self::P256 => p256::public(number),
            Self::P384 => p384::public(number),
            Self::P521 => p521::public(number),
        };
        point.ok_or(CurveError::Key)
    }

    /// The coordinate that both sides of ECDH compute.
    pub(super) fn agree(self, number: &[u8], point: &[u8]) -> Result<Vec<u8>, CurveError> {
        let agreed = match self {
            Self::P256 => p256::agree(number, point),
            Self::P384 => p384::agree(number, point),
            Self::P521 => p521::agree(number, point),
        };
        agreed.ok_or(CurveError::Keys)
    }

    pub(super) fn sign(self, number: &[u8], digest: &[u8]) -> Result<Vec<u8>, CurveError> {
        let digest = self.widened(digest);
        let signature = match self {
            Self::P256 => p256::sign(number, &digest),
            Self::P384 => p384::sign(number, &digest),
            Self::P521 => p521::sign(number, &digest),
        };
        signature.ok_or(CurveError::Key)
    }

    pub(super) fn is_signed(self, point: &[u8], signature: &[u8], digest: &[u8]) -> bool {
        let digest = self.widened(digest);
        let is_signed = match self {
            Self::P256 => p256::is_signed(point, signature, &digest),
            Self::P384 => p384::is_signed(point, signature, &digest),
            Self::P521 => p521::is_signed(point, signature, &digest),
        };
        is_signed.unwrap_or(false)
    }

    /// The same number with as many bytes as the curve's: the crates reject digests that are much shorter.
    fn widened(self, digest: &[u8]) -> Vec<u8> {
        let mut widened = vec![0; self.size().saturating_sub(digest.len())];
        widened.extend_from_slice(digest);
        widened
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crypto::tests::bytes;
    use crate::modules::subtle::hash::Hash;

    #[test]
    fn keys_agree_as_in_the_test_vectors_of_nist() {
        // CAVS 14.1, ECC CDH primitive, P-256, count 0.
        let own = bytes("7d7dc5f71eb29ddaf80d6214632eeae03d9058af1fb6d22ed80badb62bc1a534");
        let other = bytes(
            "04700c48f77f56584c5cc632ca65640db91b6bacce3a4df6b42ce7cc838833d287db71e509e3fd9b060ddb20ba5c51dcc5948d46fbf640dfe0441782cab85fa4ac",
        );
        let agreed = bytes("46fc62106420ff012e54a434fbdd2d25ccc5852060561e68040dd7778997bd7b");
        assert_eq!(Curve::P256.agree(&own, &other), Ok(agreed));
        assert_eq!(Curve::P384.agree(&own, &other), Err(CurveError::Keys));
        assert!(Curve::P256.agree(&[0; 32], &other).is_err());
        assert!(Curve::P256.agree(&own, &other[..64]).is_err());
    }

    #[test]
    fn every_curve_signs_every_digest() {
        for curve in [Curve::P256, Curve::P384, Curve::P521] {
            let own = curve.generate().unwrap();
            let point = curve.public(&own).unwrap();
            let other = curve.generate().unwrap();
            let agreed = curve.agree(&other, &point).unwrap();
            let other = curve.public(&other).unwrap();
            assert_eq!(curve.agree(&own, &other).unwrap(), agreed);
            for hash in [Hash::Sha1, Hash::Sha256, Hash::Sha384, Hash::Sha512] {
                let digest = hash.digest(b"text");
                let signature = curve.sign(&own, &digest).unwrap();
                assert_eq!(signature.len(), 2 * curve.size());
                assert!(
                    curve.is_signed(&point, &signature, &digest),
                    "{curve:?} {hash:?}"
                );
                assert!(!curve.is_signed(&other, &signature, &digest));
                assert!(!curve.is_signed(&point, &signature, &hash.digest(b"else")));
            }
        }
    }
}
