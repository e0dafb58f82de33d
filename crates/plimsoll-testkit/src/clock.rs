//! A clock that moves only when a test moves it.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use plimsoll_model::Clock;

/// A clock that stands still until it is advanced; clones are the same clock.
#[derive(Debug, Clone)]
pub struct VirtualClock {
    start: Instant,
    passed: Arc<Mutex<Duration>>,
}

impl VirtualClock {
    /// Stands at an arbitrary instant, and at the Unix epoch by its wall time.
    #[expect(
        clippy::disallowed_methods,
        reason = "an Instant can be had in no other way; only differences to it are used"
    )]
    pub fn new() -> Self {
        Self {
            start: Instant::now(),
            passed: Arc::default(),
        }
    }

    /// The instant it stood at when it was made.
    pub fn start(&self) -> Instant {
        self.start
    }

    /// Moves it forward.
    pub fn advance(&self, by: Duration) {
        *self.passed.lock().expect("no holder panics") += by;
    }

    /// The total time that it was moved.
    pub fn passed(&self) -> Duration {
        *self.passed.lock().expect("no holder panics")
    }
}

impl Default for VirtualClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for VirtualClock {
    fn now(&self) -> Instant {
        self.start + self.passed()
    }

    fn wall(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + self.passed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moves_only_when_moved() {
        let clock = VirtualClock::new();
        let same = clock.clone();
        assert_eq!(clock.now(), clock.start());
        clock.advance(Duration::from_secs(3));
        assert_eq!(same.now(), clock.start() + Duration::from_secs(3));
        assert_eq!(same.wall(), SystemTime::UNIX_EPOCH + Duration::from_secs(3));
    }
}
