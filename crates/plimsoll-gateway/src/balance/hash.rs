//! Hashes that stay the same between runs and machines, so that several gateways choose the same server.

/// The hash of a key: FNV-1a with a final mix, since nearby keys should land far apart.
///
/// An attacker can construct keys that reach one server; limits on servers, not the hash, are the defence.
pub fn hash(key: &[u8]) -> u64 {
    let mut state = 0xcbf2_9ce4_8422_2325_u64;
    for byte in key {
        state = (state ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    }
    mixed(state)
}

/// The finaliser of `SplitMix64`.
pub(super) const fn mixed(mut state: u64) -> u64 {
    state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    state ^ (state >> 31)
}
