//! Passwords as they are kept: the hashes that lines of htpasswd files have.

mod md5_crypt;

use argon2::{Argon2, Params, PasswordVerifier as _};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, SHA256};
use sha_crypt::{PasswordHashRef, ShaCrypt};

use self::md5_crypt::Md5Hash;

/// A password as it is kept.
#[derive(Clone, PartialEq, Eq)]
pub struct PasswordHash(Kind);

#[derive(Clone, PartialEq, Eq)]
enum Kind {
    /// `$2a$`, `$2b$`, `$2y$`.
    Bcrypt(String),
    /// `$argon2id$`, `$argon2i$`, `$argon2d$`.
    Argon2(String),
    /// `$5$`, `$6$`: SHA-crypt.
    ShaCrypt(String),
    /// `$apr1$`, `$1$`.
    Md5(Md5Hash),
    /// `{SHA}`, `{SSHA}`: SHA-1 of the password and a salt.
    Sha1 { digest: [u8; SHA1], salt: Vec<u8> },
    /// `{PLAIN}`.
    Plain(Vec<u8>),
}

/// Bytes of a digest of SHA-1.
const SHA1: usize = 20;

/// Why a text is no hash of a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HashError {
    /// It is of another kind.
    #[error(
        "is no hash of a password that is known (bcrypt, argon2, $6$, $5$, $apr1$, $1$, {{SSHA}}, {{SHA}}, {{PLAIN}}); `htpasswd -nB NAME` makes one"
    )]
    Kind,
    /// It is to be one of bcrypt, and is another one.
    #[error("is not a bcrypt hash; `htpasswd -nB NAME` makes one")]
    NotBcrypt,
    /// It takes very long to check, or much memory.
    #[error("takes more than a second or 256 MiB of memory to check")]
    Cost,
}

/// The most that checking a password may take: the logarithm of the rounds of bcrypt, rounds of SHA-crypt, and of argon2
/// KiB of memory and its product with the passes.
const MOST_BCRYPT: u32 = 14;
const MOST_SHA_CRYPT: u32 = 1_000_000;
const MOST_ARGON2_MEMORY: u32 = 256 << 10;
const MOST_ARGON2_WORK: u64 = 2 << 20;

impl PasswordHash {
    /// The hash of a line of an htpasswd file, or another one in the format of `crypt` or of PHC.
    pub fn parse(text: &str) -> Result<Self, HashError> {
        let kind = if text.starts_with("$argon2") {
            argon2(text)?
        } else if text.starts_with("$5$") || text.starts_with("$6$") {
            sha_crypt(text)?
        } else if text.starts_with("$apr1$") || text.starts_with("$1$") {
            Kind::Md5(Md5Hash::parse(text).ok_or(HashError::Kind)?)
        } else if let Some(plain) = text.strip_prefix("{PLAIN}") {
            Kind::Plain(plain.as_bytes().to_vec())
        } else if let Some(encoded) = text.strip_prefix("{SHA}") {
            sha1(encoded)
                .filter(|(_, salt)| salt.is_empty())
                .map(Kind::sha1)
                .ok_or(HashError::Kind)?
        } else if let Some(encoded) = text.strip_prefix("{SSHA}") {
            sha1(encoded).map(Kind::sha1).ok_or(HashError::Kind)?
        } else {
            let parts: bcrypt::HashParts = text.parse().map_err(|_| HashError::Kind)?;
            if parts.get_cost() > MOST_BCRYPT {
                return Err(HashError::Cost);
            }
            Kind::Bcrypt(text.to_owned())
        };
        Ok(Self(kind))
    }

    /// A hash of bcrypt, where no other is wanted.
    pub fn bcrypt(text: &str) -> Result<Self, HashError> {
        let hash = Self::parse(text);
        match hash {
            Ok(Self(Kind::Bcrypt(_))) | Err(HashError::Cost) => hash,
            Ok(_) | Err(HashError::Kind | HashError::NotBcrypt) => Err(HashError::NotBcrypt),
        }
    }

    /// Whether it is the hash of this password; takes up to a second.
    pub(crate) fn is_of(&self, password: &[u8]) -> bool {
        match &self.0 {
            Kind::Bcrypt(hash) => bcrypt::verify(password, hash).unwrap_or(false),
            Kind::Argon2(hash) => Argon2::default()
                .verify_password(password, hash.as_str())
                .is_ok(),
            Kind::ShaCrypt(hash) => PasswordHashRef::new(hash)
                .is_ok_and(|hash| ShaCrypt::default().verify_password(password, hash).is_ok()),
            Kind::Md5(hash) => hash.is_of(password),
            Kind::Sha1 { digest, salt } => {
                let salted = [password, salt].concat();
                let own = ring::digest::digest(&SHA1_FOR_LEGACY_USE_ONLY, &salted);
                is_same(own.as_ref(), digest)
            }
            Kind::Plain(plain) => is_same(password, plain),
        }
    }
}

/// Whether two values are the same, by their digests: how much of them is does not show.
fn is_same(first: &[u8], second: &[u8]) -> bool {
    let [first, second] = [first, second].map(|it| ring::digest::digest(&SHA256, it));
    first.as_ref() == second.as_ref()
}

impl Kind {
    fn sha1((digest, salt): ([u8; SHA1], Vec<u8>)) -> Self {
        Self::Sha1 { digest, salt }
    }
}

fn argon2(text: &str) -> Result<Kind, HashError> {
    let hash = argon2::PasswordHash::new(text).map_err(|_| HashError::Kind)?;
    let params = Params::try_from(&hash).map_err(|_| HashError::Kind)?;
    let work = u64::from(params.m_cost()) * u64::from(params.t_cost());
    if params.m_cost() > MOST_ARGON2_MEMORY || work > MOST_ARGON2_WORK {
        return Err(HashError::Cost);
    }
    Ok(Kind::Argon2(text.to_owned()))
}

fn sha_crypt(text: &str) -> Result<Kind, HashError> {
    PasswordHashRef::new(text).map_err(|_| HashError::Kind)?;
    let rounds = text
        .split('$')
        .nth(2)
        .and_then(|it| it.strip_prefix("rounds="));
    let rounds = rounds.map_or(Ok(0), str::parse::<u32>);
    if rounds.map_err(|_| HashError::Kind)? > MOST_SHA_CRYPT {
        return Err(HashError::Cost);
    }
    Ok(Kind::ShaCrypt(text.to_owned()))
}

/// A digest of SHA-1 with the salt behind it.
fn sha1(encoded: &str) -> Option<([u8; SHA1], Vec<u8>)> {
    let bytes = BASE64_STANDARD.decode(encoded).ok()?;
    let (digest, salt) = bytes.split_first_chunk()?;
    Some((*digest, salt.to_vec()))
}

impl std::fmt::Debug for PasswordHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PasswordHash")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of the password `secret`, made by OpenSSL, Python and the reference code of Argon2.
    const HASHES: [&str; 9] = [
        "$2b$04$925LOPgaFESm4R9LIQt0/.Bk3T0ZkvO.QFosDML3CC971.9Odv/G.",
        "$argon2id$v=19$m=64,t=1,p=1$Qu6wvKASNwNIv+3VXDrbgA$ZTWifuBOn0qxuzQbMNUsbaJM42nPtYjFSN447jRhV04",
        "$5$saltsalt$0IyaXrmV7.sGNS6tirgqHLqX/G.FBvgkYA.lpPdS5sA",
        "$6$saltsalt$TVLlQcbpFVof5W3Yz4DTP6gRstiNuHwwTt6GLc1E5n0U0aDehy0S5knV8wiOQSpT0Y77vwPZN.Pq.H91p5hVO1",
        "$apr1$saltsalt$LrttParrLPdxvgutaSXWJ0",
        "$1$saltsalt$9xy1btjgzLYfb7hivXtC//",
        "{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=",
        "{SSHA}1G904nLkTkGWjKNnQuB/hpWXC/hzYWx0c2FsdA==",
        "{PLAIN}secret",
    ];

    #[test]
    fn hashes_of_all_kinds_are_of_their_password_alone() {
        for hash in HASHES {
            let parsed = PasswordHash::parse(hash).unwrap();
            assert!(parsed.is_of(b"secret"), "{hash}");
            assert!(!parsed.is_of(b"Secret") && !parsed.is_of(b""), "{hash}");
        }
    }

    #[test]
    fn what_is_no_hash_or_takes_long_is_refused() {
        for text in [
            "",
            "secret",
            "$apr1$",
            "$6$",
            "{SHA}x",
            "{SSHA}c2hvcnQ=",
            "$argon2id$v=19$",
        ] {
            assert_eq!(
                PasswordHash::parse(text).err(),
                Some(HashError::Kind),
                "{text}"
            );
        }
        for text in [
            "$2y$15$abcdefghijklmnopqrstuuJ3X1yWl8Ht7gk7Ew5v3m9XlGm0VxF5K",
            "$6$rounds=999999999$salt$x",
            "$argon2id$v=19$m=4194304,t=1,p=1$c29tZXNhbHQ$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
        ] {
            assert_eq!(
                PasswordHash::parse(text).err(),
                Some(HashError::Cost),
                "{text}"
            );
        }
    }
}
