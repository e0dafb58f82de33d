//! The system's clocks: the one place that reads them.

use std::time::{Instant, SystemTime};

use plimsoll_model::Clock;

/// The clocks of the operating system.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[inline]
    #[expect(clippy::disallowed_methods, reason = "everything else asks this clock")]
    fn now(&self) -> Instant {
        Instant::now()
    }

    #[expect(clippy::disallowed_methods, reason = "everything else asks this clock")]
    fn wall(&self) -> SystemTime {
        SystemTime::now()
    }
}
