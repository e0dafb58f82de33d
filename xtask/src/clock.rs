//! The clock of tasks, and waiting on it.

use std::thread;
use std::time::{Duration, Instant};

/// Now.
#[expect(clippy::disallowed_methods, reason = "a task measures by the clock")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Waits until `end`.
#[expect(
    clippy::disallowed_methods,
    reason = "servers of the gauntlet are slow on purpose, and programs do not say when they are ready"
)]
pub(crate) fn wait_until(end: Instant) {
    while let Some(left) = end.checked_duration_since(now())
        && !left.is_zero()
    {
        thread::sleep(left);
    }
}

/// Waits for `time`.
pub(crate) fn wait(time: Duration) {
    wait_until(now() + time);
}
