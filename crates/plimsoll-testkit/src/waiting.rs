//! Waiting for a state, with a bound, in place of sleeping for a while.

use std::panic::Location;
use std::time::{Duration, Instant};

/// Generous, since a busy machine is no fault of the code under test.
const PATIENCE: Duration = Duration::from_mins(1);

const STEP: Duration = Duration::from_millis(1);

/// Blocks the thread until `condition` holds.
///
/// Panics at the caller's line after 60 seconds. Within a runtime use [`until`], which lets the
/// runtime go on.
#[track_caller]
pub fn eventually(condition: impl FnMut() -> bool) {
    eventually_or(condition, String::new);
}

/// The same; the panic shows what there was instead.
#[track_caller]
#[expect(
    clippy::disallowed_methods,
    reason = "the one place where tests wait by the clock; bounded"
)]
pub fn eventually_or(mut condition: impl FnMut() -> bool, instead: impl FnOnce() -> String) {
    let begun = Instant::now();
    while !condition() {
        if begun.elapsed() > PATIENCE {
            let instead = instead();
            panic!("the awaited state did not come within {PATIENCE:?} {instead}");
        }
        std::thread::sleep(STEP);
    }
}

/// Waits until `condition` holds, leaving the runtime free meanwhile.
///
/// Panics with the caller's line after 60 seconds of the runtime's time.
#[track_caller]
pub fn until(mut condition: impl FnMut() -> bool) -> impl Future<Output = ()> {
    let caller = Location::caller();
    async move {
        let waiting = async {
            while !condition() {
                tokio::time::sleep(STEP).await;
            }
        };
        assert!(
            tokio::time::timeout(PATIENCE, waiting).await.is_ok(),
            "{caller}: the awaited state did not come within {PATIENCE:?}"
        );
    }
}
