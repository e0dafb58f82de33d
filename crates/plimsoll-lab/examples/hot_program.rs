//! A program whose processor time is known to lie in one function: it runs until it is ended.

use std::hint::black_box;

/// Calls nothing, even in a build that inlines nothing.
#[inline(never)]
fn planted_hot_function(mut state: u64) -> u64 {
    let mut rounds = 10_000;
    while rounds > 0 {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        rounds -= 1;
    }
    state
}

#[inline(never)]
fn planted_cold_function(state: u64) -> u64 {
    black_box(state ^ 1)
}

/// Does something after the call, which so cannot become a jump.
#[inline(never)]
fn planted_caller(state: u64) -> u64 {
    planted_cold_function(planted_hot_function(state)).wrapping_add(1)
}

fn main() {
    let worker = std::thread::Builder::new()
        .name("hot-thread".to_owned())
        .spawn(|| {
            let mut state = 1;
            loop {
                state = planted_caller(black_box(state));
            }
        });
    if let Ok(worker) = worker {
        worker.join().ok();
    }
}
