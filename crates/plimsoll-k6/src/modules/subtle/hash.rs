//! The hashes of signatures.

use sha1::Sha1;
use sha2::{Digest as _, Sha256, Sha384, Sha512};

/// A hash of the Web Cryptography API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hash {
    Sha1,
    Sha256,
    Sha384,
    Sha512,
}

impl Hash {
    /// - `name`: one of those that `js/subtle.js` lets through.
    pub(super) fn from_name(name: &str) -> Self {
        match name {
            "SHA-1" => Self::Sha1,
            "SHA-384" => Self::Sha384,
            "SHA-512" => Self::Sha512,
            _ => Self::Sha256,
        }
    }

    pub(super) fn digest(self, data: &[u8]) -> Vec<u8> {
        match self {
            Self::Sha1 => Sha1::digest(data).to_vec(),
            Self::Sha256 => Sha256::digest(data).to_vec(),
            Self::Sha384 => Sha384::digest(data).to_vec(),
            Self::Sha512 => Sha512::digest(data).to_vec(),
        }
    }
}
