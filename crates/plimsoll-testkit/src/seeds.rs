//! Seeds and numbers of cases for random tests, from the environment.

/// The seed of a random test: `PLIMSOLL_SEED`, which repeats a run, or else `default`.
#[expect(
    clippy::disallowed_methods,
    reason = "a failing run is repeated by its variable"
)]
pub fn seed(default: u64) -> u64 {
    let seed = std::env::var("PLIMSOLL_SEED").ok();
    seed.map_or(default, |text| {
        text.parse().expect("PLIMSOLL_SEED is a number")
    })
}

/// How many cases a random test makes: `PLIMSOLL_CASES`, or else `default`.
#[expect(
    clippy::disallowed_methods,
    reason = "a longer run is requested by its variable"
)]
pub fn cases(default: u32) -> u32 {
    let cases = std::env::var("PLIMSOLL_CASES").ok();
    cases.map_or(default, |text| {
        text.parse().expect("PLIMSOLL_CASES is a number")
    })
}
