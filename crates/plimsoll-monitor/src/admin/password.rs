//! Passwords as Argon2id hashes (RFC 9106), checked off the worker, a few at a time.

use std::sync::{Arc, OnceLock};

use argon2::{Algorithm, Argon2, Params, Version};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD_NO_PAD;
use plimsoll_model::Secret;
use ring::rand::{self, SystemRandom};
use tokio::sync::Semaphore;

use crate::random;

/// KiB, passes and lanes: the least that OWASP's password storage guide recommends.
const MEMORY: u32 = 19_456;
const PASSES: u32 = 2;
const LANES: u32 = 1;

/// Characters of a password.
pub(crate) const LEAST: usize = 10;
pub(crate) const MOST: usize = 200;

/// Checks under way at a time: each takes 19 MiB.
const CHECKS: usize = 2;

/// Why there is no hash.
#[derive(Debug, thiserror::Error)]
#[error("the system has no random numbers or memory for a password hash")]
pub struct HashFailure;

/// A hash as a PHC string: `$argon2id$v=19$m=19456,t=2,p=1$SALT$HASH`.
pub(crate) fn hash(password: &str) -> Result<String, HashFailure> {
    let salt: [u8; 16] = rand::generate(&SystemRandom::new())
        .map_err(|_| HashFailure)?
        .expose();
    let tag = derive(password, &salt, (MEMORY, PASSES, LANES)).ok_or(HashFailure)?;
    let encoded = |bytes: &[u8]| BASE64_STANDARD_NO_PAD.encode(bytes);
    Ok(format!(
        "$argon2id$v=19$m={MEMORY},t={PASSES},p={LANES}${}${}",
        encoded(&salt),
        encoded(&tag)
    ))
}

fn derive(
    password: &str,
    salt: &[u8],
    (memory, passes, lanes): (u32, u32, u32),
) -> Option<[u8; 32]> {
    let parameters = Params::new(memory, passes, lanes, Some(32)).ok()?;
    let argon = Argon2::new(Algorithm::Argon2id, Version::V0x13, parameters);
    let mut tag = [0; 32];
    argon
        .hash_password_into(password.as_bytes(), salt, &mut tag)
        .ok()?;
    Some(tag)
}

/// Whether a hash is of a password; false for what is no hash of ours.
pub(crate) fn is_of(hash: &str, password: &str) -> bool {
    let Some((parameters, salt, expected)) = parse(hash) else {
        return false;
    };
    let Some(tag) = derive(password, &salt, parameters) else {
        return false;
    };
    // In constant time.
    let difference = tag
        .iter()
        .zip(&expected)
        .fold(0, |all, (a, b)| all | (a ^ b));
    expected.len() == tag.len() && difference == 0
}

/// Memory in KiB, passes and lanes.
type Costs = (u32, u32, u32);

/// The costs, the salt and the tag.
fn parse(hash: &str) -> Option<(Costs, Vec<u8>, Vec<u8>)> {
    let rest = hash.strip_prefix("$argon2id$v=19$")?;
    let mut parts = rest.split('$');
    let (costs, salt, tag) = (parts.next()?, parts.next()?, parts.next()?);
    let mut numbers = costs
        .split(',')
        .zip(["m=", "t=", "p="])
        .map(|(cost, name)| cost.strip_prefix(name)?.parse().ok());
    let costs = (numbers.next()??, numbers.next()??, numbers.next()??);
    let decoded = |text: &str| BASE64_STANDARD_NO_PAD.decode(text).ok();
    Some((costs, decoded(salt)?, decoded(tag)?))
}

/// Checks a password; an account that there is not takes as long as one that there is.
pub(crate) async fn check(hash: Option<&Secret>, password: String) -> bool {
    static CHECKING: OnceLock<Arc<Semaphore>> = OnceLock::new();
    static DECOY: OnceLock<String> = OnceLock::new();

    let checking = CHECKING.get_or_init(|| Arc::new(Semaphore::new(CHECKS)));
    let Ok(_permit) = Arc::clone(checking).acquire_owned().await else {
        return false;
    };
    let known = hash.map(|hash| hash.expose().to_owned());
    let checked = tokio::task::spawn_blocking(move || {
        if let Some(known) = known {
            return is_of(&known, &password);
        }
        let decoy = DECOY.get_or_init(|| self::hash("decoy").unwrap_or_default());
        is_of(decoy, &password);
        false
    });
    checked.await.unwrap_or(false)
}

/// A hash, made off the worker.
pub(crate) async fn hashed(password: String) -> Result<String, HashFailure> {
    let made = tokio::task::spawn_blocking(move || hash(&password));
    made.await.map_err(|_| HashFailure)?
}

/// The error in a new password, if there is one.
pub(crate) fn problem(password: &str) -> Option<String> {
    let length = password.chars().count();
    (!(LEAST..=MOST).contains(&length))
        .then(|| format!("The password must have {LEAST} to {MOST} characters."))
}

/// A password of 100 random bits, in groups that can be read out.
pub(crate) fn generate() -> Result<String, HashFailure> {
    random::code(20, 5).ok_or(HashFailure)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_of_its_password_only() {
        let made = hash("correct horse").unwrap();
        assert!(made.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"));
        assert!(is_of(&made, "correct horse"));
        assert!(!is_of(&made, "correct horsf") && !is_of(&made, ""));
        assert_ne!(made, hash("correct horse").unwrap(), "salted");
        for broken in [
            "",
            "$argon2id$",
            "$2y$10$x",
            "$argon2id$v=19$m=1,t=0,p=9$AA$AA",
        ] {
            assert!(!is_of(broken, "x"), "{broken}");
        }
    }

    /// RFC 9106's parameters with another implementation's output are in the crate's own tests; here the string is read
    /// as PHC has it.
    #[test]
    fn a_generated_password_is_long_enough() {
        let one = generate().unwrap();
        assert_eq!(one.len(), 23);
        assert!(problem(&one).is_none());
        assert_ne!(one, generate().unwrap());
        assert!(problem("short").is_some());
    }
}
