//! Sources of time.

use std::time::{Instant, SystemTime};

/// A source of time, so that what depends on time can be tested without waiting.
pub trait Clock {
    /// The present on a clock that never goes back.
    fn now(&self) -> Instant;

    /// The present as a date; may jump.
    fn wall(&self) -> SystemTime;
}
