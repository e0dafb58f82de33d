//! Signing in by a proof of the password.
//!
//! Source: RFC 5802 (SCRAM) and RFC 7677 (SHA-256), without channel binding. Passwords are taken as they are: `SASLprep`
//! changes only those with characters outside of ASCII.

use std::num::NonZeroU32;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use ring::{digest, hmac, pbkdf2};

/// Rounds that a server may demand; each costs two blocks of the hash.
const MOST_ITERATIONS: u32 = 100_000;

/// The hash of a mechanism.
#[derive(Debug, Clone, Copy)]
pub(super) enum ScramHash {
    Sha256,
    Sha512,
}

/// Why a login does not succeed.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(super) enum ScramError {
    #[error("the server's part of the login is not one of SCRAM")]
    Syntax,
    #[error("the server asks for {0} iterations, and at most {MOST_ITERATIONS} are made")]
    Iterations(u32),
    #[error("the server does not go on with the login that was begun")]
    Nonce,
    #[error("the server refuses the login: {0}")]
    Refused(String),
    #[error("the server does not prove that it knows the password")]
    Proof,
}

/// A login that was begun.
pub(super) struct Scram {
    hash: ScramHash,
    nonce: String,
    /// What the client says first, without the part about channel binding.
    first: String,
}

/// What the client says last.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) message: String,
    /// What only a server that knows the password can send.
    signature: Vec<u8>,
}

impl Scram {
    /// - `nonce`: printable, without commas, new for each login.
    pub(super) fn new(hash: ScramHash, user: &str, nonce: &str) -> Self {
        let user = user.replace('=', "=3D").replace(',', "=2C");
        Self {
            hash,
            nonce: nonce.to_owned(),
            first: format!("n={user},r={nonce}"),
        }
    }

    /// What the client says first.
    pub(super) fn first(&self) -> String {
        format!("n,,{}", self.first)
    }

    /// The answer to the server's challenge.
    pub(super) fn answer(&self, password: &str, challenge: &[u8]) -> Result<Answer, ScramError> {
        let challenge = std::str::from_utf8(challenge).map_err(|_| ScramError::Syntax)?;
        let mut attributes = challenge.split(',');
        let mut attribute = |name: &str| {
            let value = attributes.next().and_then(|it| it.strip_prefix(name));
            value.ok_or(ScramError::Syntax)
        };
        let (nonce, salt) = (attribute("r=")?, attribute("s=")?);
        let iterations: u32 = attribute("i=")?.parse().map_err(|_| ScramError::Syntax)?;
        if nonce.len() <= self.nonce.len() || !nonce.starts_with(&self.nonce) {
            return Err(ScramError::Nonce);
        }
        if iterations > MOST_ITERATIONS {
            return Err(ScramError::Iterations(iterations));
        }
        let iterations = NonZeroU32::new(iterations).ok_or(ScramError::Syntax)?;
        let salt = BASE64_STANDARD
            .decode(salt)
            .map_err(|_| ScramError::Syntax)?;
        // "n,," in Base64: no channel is bound.
        let without_proof = format!("c=biws,r={nonce}");
        let signed = format!("{},{challenge},{without_proof}", self.first);
        let salted = self.salted(password, &salt, iterations);
        let client_key = self.sign(&salted, b"Client Key");
        let stored_key = digest::digest(self.digest(), &client_key);
        let client_signature = self.sign(stored_key.as_ref(), signed.as_bytes());
        let proof: Vec<u8> = client_key
            .iter()
            .zip(&client_signature)
            .map(|(key, signature)| key ^ signature)
            .collect();
        let server_key = self.sign(&salted, b"Server Key");
        Ok(Answer {
            message: format!("{without_proof},p={}", BASE64_STANDARD.encode(proof)),
            signature: self.sign(&server_key, signed.as_bytes()),
        })
    }

    fn digest(&self) -> &'static digest::Algorithm {
        match self.hash {
            ScramHash::Sha256 => &digest::SHA256,
            ScramHash::Sha512 => &digest::SHA512,
        }
    }

    fn salted(&self, password: &str, salt: &[u8], iterations: NonZeroU32) -> Vec<u8> {
        let algorithm = match self.hash {
            ScramHash::Sha256 => pbkdf2::PBKDF2_HMAC_SHA256,
            ScramHash::Sha512 => pbkdf2::PBKDF2_HMAC_SHA512,
        };
        let mut salted = vec![0; self.digest().output_len()];
        pbkdf2::derive(
            algorithm,
            iterations,
            salt,
            password.as_bytes(),
            &mut salted,
        );
        salted
    }

    fn sign(&self, key: &[u8], message: &[u8]) -> Vec<u8> {
        let algorithm = match self.hash {
            ScramHash::Sha256 => hmac::HMAC_SHA256,
            ScramHash::Sha512 => hmac::HMAC_SHA512,
        };
        let key = hmac::Key::new(algorithm, key);
        hmac::sign(&key, message).as_ref().to_vec()
    }
}

impl Answer {
    /// Whether the server knows the password too.
    pub(super) fn verify(&self, last: &[u8]) -> Result<(), ScramError> {
        let last = std::str::from_utf8(last).map_err(|_| ScramError::Syntax)?;
        let first = last.split(',').next().unwrap_or_default();
        if let Some(why) = first.strip_prefix("e=") {
            return Err(ScramError::Refused(why.to_owned()));
        }
        let signature = first.strip_prefix("v=").ok_or(ScramError::Syntax)?;
        let signature = BASE64_STANDARD.decode(signature);
        let signature = signature.map_err(|_| ScramError::Syntax)?;
        if signature == self.signature {
            Ok(())
        } else {
            Err(ScramError::Proof)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONCE: &str = "rOprNGfwEbeRWgbNEkqO";

    /// The example of RFC 7677, section 3.
    #[test]
    fn the_login_of_the_standard_is_made() {
        let scram = Scram::new(ScramHash::Sha256, "user", NONCE);
        assert_eq!(scram.first(), format!("n,,n=user,r={NONCE}"));
        let server = "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096";
        let answer = scram.answer("pencil", server.as_bytes()).unwrap();
        assert_eq!(
            answer.message,
            "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
        );
        let proof = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=";
        assert_eq!(answer.verify(proof), Ok(()));
        assert_eq!(answer.verify(b"v=AAAA"), Err(ScramError::Proof));
        assert_eq!(
            answer.verify(b"e=invalid-proof"),
            Err(ScramError::Refused("invalid-proof".to_owned()))
        );
    }

    #[test]
    fn a_server_that_does_not_keep_to_it_is_refused() {
        let scram = Scram::new(ScramHash::Sha512, "a=b,c", NONCE);
        assert_eq!(scram.first(), format!("n,,n=a=3Db=2Cc,r={NONCE}"));
        let answer = |server: String| scram.answer("p", server.as_bytes()).unwrap_err();
        assert_eq!(
            answer(format!("r={NONCE},s=AAAA,i=4096")),
            ScramError::Nonce
        );
        assert_eq!(
            answer("r=other,s=AAAA,i=4096".to_owned()),
            ScramError::Nonce
        );
        let server = |rest: &str| format!("r={NONCE}x,{rest}");
        assert_eq!(
            answer(server("s=AAAA,i=2000000")),
            ScramError::Iterations(2_000_000)
        );
        for wrong in ["s=AAAA,i=0", "s=A,i=4096", "s=AAAA", "m=x,s=AAAA,i=1"] {
            assert_eq!(answer(server(wrong)), ScramError::Syntax, "{wrong}");
        }
    }
}
