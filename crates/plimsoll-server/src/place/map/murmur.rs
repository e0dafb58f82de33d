//! `MurmurHash2` of 32 bits (A. Appleby, public domain), by which nginx distributes clients: a map has the same shares there.

const MULTIPLIER: u32 = 0x5bd1_e995;

/// The hash with the seed 0.
pub(super) fn hash(text: &[u8]) -> u32 {
    let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
    let mut hash = length;
    let (words, rest) = text.as_chunks::<4>();
    for word in words {
        let mut part = u32::from_le_bytes(*word).wrapping_mul(MULTIPLIER);
        part ^= part >> 24;
        hash = hash.wrapping_mul(MULTIPLIER) ^ part.wrapping_mul(MULTIPLIER);
    }
    if !rest.is_empty() {
        let mut last = [0; 4];
        for (slot, byte) in last.iter_mut().zip(rest) {
            *slot = *byte;
        }
        hash = (hash ^ u32::from_le_bytes(last)).wrapping_mul(MULTIPLIER);
    }
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(MULTIPLIER);
    hash ^ (hash >> 15)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_spread_evenly() {
        assert_eq!(hash(b""), 0);
        let below = |percent: u32| {
            let end = u32::MAX / 100 * percent;
            let texts = (0..10_000).map(|number: u32| number.to_string());
            texts.filter(|it| hash(it.as_bytes()) < end).count()
        };
        for percent in [5, 50, 95] {
            let expected = 100 * percent as usize;
            assert!(below(percent).abs_diff(expected) < 250, "{percent} %");
        }
    }
}
