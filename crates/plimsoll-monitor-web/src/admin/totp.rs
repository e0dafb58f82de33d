//! One-time codes by time (RFC 6238 on RFC 4226): SHA-1, six digits, 30 seconds, as every authenticator app has them.

use plimsoll_monitor::store::TotpSecret;
use plimsoll_monitor::time::Timestamp;
use ring::hmac;
use ring::rand::{self, SystemRandom};

const STEP: i64 = 30_000;

/// Steps by which the clock of a phone may differ.
const SKEW: i64 = 1;

const ALPHABET: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/// A secret of 160 random bits.
pub(crate) fn generate() -> Option<TotpSecret> {
    let random: [u8; 20] = rand::generate(&SystemRandom::new()).ok()?.expose();
    Some(TotpSecret(random.to_vec()))
}

/// The step whose code this is, among those near now.
pub(crate) fn step_of(secret: &TotpSecret, code: &str, now: Timestamp) -> Option<i64> {
    let code: String = code.chars().filter(|c| !c.is_whitespace()).collect();
    if code.len() != 6 {
        return None;
    }
    let present = now.0.div_euclid(STEP);
    (present - SKEW..=present + SKEW).find(|step| self::code(secret, *step) == code)
}

/// The code of a step (RFC 4226, section 5.3).
fn code(secret: &TotpSecret, step: i64) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, &secret.0);
    let tag = hmac::sign(&key, &step.to_be_bytes());
    let bytes = tag.as_ref();
    let at = usize::from(bytes[19] & 15);
    let number = u32::from_be_bytes([bytes[at] & 127, bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    format!("{:06}", number % 1_000_000)
}

/// In base 32 (RFC 4648, section 6) without padding, as people type it.
pub(crate) fn written(secret: &TotpSecret) -> String {
    let mut text = String::new();
    let (mut buffer, mut bits) = (0_u32, 0);
    for byte in &secret.0 {
        buffer = (buffer << 8) | u32::from(*byte);
        bits += 8;
        while bits >= 5 {
            bits -= 5;
            text.push(char::from(ALPHABET[(buffer >> bits) as usize & 31]));
        }
        buffer &= (1 << bits) - 1;
    }
    if bits > 0 {
        text.push(char::from(ALPHABET[(buffer << (5 - bits)) as usize & 31]));
    }
    text
}

/// A secret as it was written.
pub(crate) fn parse(text: &str) -> Option<TotpSecret> {
    let (mut buffer, mut bits, mut bytes) = (0_u32, 0, Vec::new());
    for letter in text.bytes() {
        let value = ALPHABET.iter().position(|known| *known == letter)?;
        buffer = (buffer << 5) | u32::try_from(value).ok()?;
        bits += 5;
        if bits >= 8 {
            bits -= 8;
            bytes.push(u8::try_from(buffer >> bits).ok()?);
            buffer &= (1 << bits) - 1;
        }
    }
    (bytes.len() == 20).then_some(TotpSecret(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_those_of_rfc_6238() {
        // Appendix B, SHA-1, of which the last six digits.
        let secret = TotpSecret(b"12345678901234567890".to_vec());
        for (seconds, expected) in [
            (59, "287082"),
            (1_111_111_109, "081804"),
            (1_111_111_111, "050471"),
            (1_234_567_890, "005924"),
            (2_000_000_000, "279037"),
            (20_000_000_000, "353130"),
        ] {
            let now = Timestamp(seconds * 1000);
            assert_eq!(
                step_of(&secret, expected, now),
                Some(seconds / 30),
                "{seconds}"
            );
            assert_eq!(step_of(&secret, expected, Timestamp(now.0 + 90_000)), None);
        }
        assert_eq!(written(&secret), "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ");
    }

    #[test]
    fn a_secret_is_read_as_it_was_written() {
        let secret = generate().unwrap();
        assert_eq!(parse(&written(&secret)), Some(secret));
        assert_eq!(parse("not base 32"), None);
        assert_eq!(parse(""), None);
    }
}
