//! The clock that servers log by, and waiting on it.

use std::thread;
use std::time::{Duration, Instant};

/// Now.
#[expect(clippy::disallowed_methods, reason = "a task measures by the clock")]
pub(super) fn now() -> Instant {
    Instant::now()
}

/// Waits until `end`.
#[expect(
    clippy::disallowed_methods,
    reason = "a server of the gauntlet is slow on purpose"
)]
pub(super) fn wait_until(end: Instant) {
    while let Some(left) = end.checked_duration_since(now())
        && !left.is_zero()
    {
        thread::sleep(left);
    }
}

/// Waits for `time`.
pub(super) fn wait(time: Duration) {
    wait_until(now() + time);
}
