//! The occupied buckets of an encoded histogram, without decoding it into one.
//!
//! Source: G. Tene, HdrHistogram, the V2 encoding: 40 bytes of head, then numbers as `ZigZag` LEB128 of at most nine bytes, of which
//! a non-negative one is the count of the next bucket, and a negative one skips that many buckets.

use super::{FiguresError, WRONG, decoded};

const COOKIE: [u8; 4] = [0x1c, 0x84, 0x93, 0x13];

const HEAD: usize = 40;

/// Significant figures and the lowest value, as we write them.
const FIGURES: u32 = 3;
const LOWEST: u64 = 1;

/// Half of the buckets of a power of two, of which three figures need 2,048.
const HALF: usize = 1 << HALF_BITS;
const HALF_BITS: u32 = 10;

/// Buckets of all numbers of 64 bits.
const MOST: usize = 55 * HALF;

/// Calls `take` with the highest value of each occupied bucket, in nanoseconds, and its count.
///
/// - `text`: as [`write`](super::write) makes it.
pub(super) fn each(text: &str, mut take: impl FnMut(u64, u64)) -> Result<(), FiguresError> {
    if text.is_empty() {
        return Ok(());
    }
    let bytes = decoded(text)?;
    let (head, mut rest) = bytes.split_at_checked(HEAD).ok_or(WRONG)?;
    let has = |at: usize, wanted: &[u8]| head[at..at + wanted.len()] == *wanted;
    if !has(0, &COOKIE) || !has(12, &FIGURES.to_be_bytes()) || !has(16, &LOWEST.to_be_bytes()) {
        return Err(WRONG);
    }
    let mut index = 0_usize;
    while !rest.is_empty() {
        let number = number(&mut rest)?;
        let step = if number < 0 {
            usize::try_from(number.unsigned_abs()).map_err(|_| WRONG)?
        } else {
            1
        };
        if number > 0 {
            take(highest(index), number.unsigned_abs());
        }
        index = index.saturating_add(step);
        if index > MOST {
            return Err(WRONG);
        }
    }
    Ok(())
}

/// Reads the next number and advances the slice.
fn number(rest: &mut &[u8]) -> Result<i64, FiguresError> {
    let mut bits = 0_u64;
    for at in 0..9 {
        let (byte, behind) = rest.split_first().ok_or(WRONG)?;
        *rest = behind;
        // The ninth byte has eight bits of the number.
        let part = if at < 8 { byte & 0x7f } else { *byte };
        bits |= u64::from(part) << (7 * at);
        if at == 8 || byte & 0x80 == 0 {
            break;
        }
    }
    Ok((bits >> 1).cast_signed() ^ -(bits & 1).cast_signed())
}

/// The highest value of a bucket.
fn highest(index: usize) -> u64 {
    let power = (index >> HALF_BITS).saturating_sub(1);
    let within = if index < HALF {
        index
    } else {
        (index & (HALF - 1)) + HALF
    };
    let width = 1_u64 << power;
    (within as u64 * width) + (width - 1)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use plimsoll_model::Histogram;
    use proptest::prelude::*;

    use super::*;
    use crate::message::figures::{read_histogram, write};

    fn found(text: &str) -> Result<Vec<(u64, u64)>, FiguresError> {
        let mut found = Vec::new();
        each(text, |up_to, count| found.push((up_to, count)))?;
        Ok(found)
    }

    proptest! {
        #[test]
        fn buckets_are_those_of_the_histogram(values in prop::collection::vec((0_u64..4_000_000_000_000, 1_u64..1 << 40), 0..60)) {
            let mut histogram = Histogram::new();
            for (nanos, count) in values {
                let up_to = Duration::from_nanos(nanos);
                histogram.record_bucket(plimsoll_model::Bucket { up_to, count });
            }
            let expected = histogram.buckets().map(|it| (u64::try_from(it.up_to.as_nanos()).unwrap(), it.count));
            prop_assert_eq!(found(&write(&histogram)).unwrap(), expected.collect::<Vec<_>>());
        }

        #[test]
        fn what_is_no_histogram_is_refused_or_read(bytes in prop::collection::vec(any::<u8>(), 0..80), is_headed in any::<bool>()) {
            use base64::Engine as _;
            let mut text = Vec::new();
            if is_headed {
                text.extend_from_slice(&COOKIE);
                text.extend_from_slice(&u32::try_from(bytes.len()).unwrap().to_be_bytes());
                text.extend_from_slice(&[0; 4]);
                text.extend_from_slice(&FIGURES.to_be_bytes());
                text.extend_from_slice(&LOWEST.to_be_bytes());
                text.extend_from_slice(&u64::MAX.to_be_bytes());
                text.extend_from_slice(&1_f64.to_be_bytes());
            }
            text.extend_from_slice(&bytes);
            let text = base64::engine::general_purpose::STANDARD.encode(text);
            let (_, _) = (found(&text), read_histogram(&text));
        }
    }
}
