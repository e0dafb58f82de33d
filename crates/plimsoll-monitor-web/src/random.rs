//! Random numbers of the system, as tokens and codes. `None` where the system has none.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use ring::rand::{self, SystemRandom};

/// Without letters and digits that look alike; 32, so that a byte chooses each with the same chance.
const LETTERS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";

/// 256 random bits.
pub(crate) fn bits() -> Option<[u8; 32]> {
    Some(rand::generate(&SystemRandom::new()).ok()?.expose())
}

/// 256 random bits for a cookie or a link.
pub(crate) fn token() -> Option<String> {
    Some(BASE64_URL_SAFE_NO_PAD.encode(bits()?))
}

/// A code that people type: letters of five bits each, in groups with hyphens between them.
///
/// - `length`: at most 32.
pub(crate) fn code(length: usize, group: usize) -> Option<String> {
    let bits = bits()?;
    let letters = bits.iter().take(length);
    let letters: Vec<_> = letters
        .map(|byte| char::from(LETTERS[usize::from(byte & 31)]))
        .collect();
    let groups: Vec<String> = letters
        .chunks(group)
        .map(|group| group.iter().collect())
        .collect();
    Some(groups.join("-"))
}
