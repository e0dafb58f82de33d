//! The system's clocks: the one place that reads them.

pub(crate) mod alarm;

pub mod timer_slack;

use std::time::{Duration, Instant, SystemTime};

use plimsoll_model::Clock;

/// The clocks of the operating system.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl SystemClock {
    /// Time since some moment that is the same for all processes until the machine is started anew
    /// (`CLOCK_MONOTONIC`).
    pub fn monotonic(self) -> Duration {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        Duration::try_from(now).unwrap_or_default()
    }
}

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
