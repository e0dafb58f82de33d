//! Values that are made up.

use std::io::Write;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use plimsoll_formats::{Generator, Millionths};

/// The sources of generated values.
pub(super) struct Entropy<'a> {
    /// The number of the request in the run.
    pub(super) number: u64,
    pub(super) now: Option<SystemTime>,
    pub(super) random: &'a mut fastrand::Rng,
}

/// Whether the value depends on the time.
pub(super) const fn needs_clock(generator: &Generator) -> bool {
    matches!(
        generator,
        Generator::Timestamp
            | Generator::TimestampMillis
            | Generator::IsoTimestamp
            | Generator::Date(_)
    )
}

/// Writes a value behind `out`.
pub(super) fn write(generator: &Generator, entropy: &mut Entropy<'_>, out: &mut Vec<u8>) {
    let now = entropy.now.unwrap_or(UNIX_EPOCH);
    let since_1970 = now.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    let written = match generator {
        Generator::Counter { first, step } => {
            let value = first.wrapping_add(entropy.number.wrapping_mul(*step));
            write!(out, "{value}")
        }
        Generator::Uuid => {
            // Version 4 and variant 10 (RFC 9562, section 5.4).
            let bits = entropy.random.u128(..);
            let bits = bits & !(0xf << 76) & !(0b11 << 62) | (4 << 76) | (0b10 << 62);
            write!(
                out,
                "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
                bits >> 96,
                bits >> 80 & 0xffff,
                bits >> 64 & 0xffff,
                bits >> 48 & 0xffff,
                bits & 0xffff_ffff_ffff
            )
        }
        Generator::Integer { least, below } => {
            write!(out, "{}", entropy.random.i64(*least..*below))
        }
        Generator::Float { least, below } => {
            let value = Millionths(entropy.random.i64(*least..*below));
            write!(out, "{value}")
        }
        Generator::Characters { alphabet, count } => {
            let random = &mut *entropy.random;
            out.extend((0..*count).map(|_| alphabet[random.usize(..alphabet.len())]));
            Ok(())
        }
        Generator::Choice(texts) => {
            let text = &texts[entropy.random.usize(..texts.len())];
            out.extend_from_slice(text.as_bytes());
            Ok(())
        }
        Generator::Timestamp => write!(out, "{}", since_1970.as_secs()),
        Generator::TimestampMillis => write!(out, "{}", since_1970.as_millis()),
        Generator::IsoTimestamp => write!(out, "{}", humantime::format_rfc3339_millis(now)),
        Generator::Date(date) => write!(out, "{}", date.text(now)),
    };
    written.expect("memory takes what is written to it");
}
