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

    /// The same, with the time in which the machine was suspended (`CLOCK_BOOTTIME`); where the system has no such clock,
    /// the one above.
    pub fn boot(self) -> Duration {
        #[cfg(target_os = "linux")]
        {
            let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
            Duration::try_from(now).unwrap_or_default()
        }
        #[cfg(not(target_os = "linux"))]
        self.monotonic()
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
