//! Limits the rate of notices about what happens while requests are answered.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use plimsoll_model::Clock as _;
use plimsoll_server::{Notice, Notices, Severity};
use plimsoll_wire::SystemClock;

/// Notices a second that are passed on. A notice per request would flood the log at full load.
const MOST: u32 = 20;

/// Passes notices on, at most [`MOST`] a second.
#[derive(Debug, Default)]
pub(crate) struct NoticeLimiter {
    notices: Notices,
    window: Mutex<Window>,
}

#[derive(Debug, Default)]
struct Window {
    /// When the second began that is counted.
    since: Option<Instant>,
    count: u32,
    left_out: u64,
}

impl NoticeLimiter {
    pub(crate) fn new(notices: &Notices) -> Self {
        Self {
            notices: notices.clone(),
            window: Mutex::default(),
        }
    }

    /// Passes a notice on, or counts it as left out if there were too many in this second.
    pub(crate) fn report(&self, notice: &Notice) {
        let Some(left_out) = self.leave(SystemClock.now()) else {
            return;
        };
        if left_out > 0 {
            let message = format!("{left_out} more of these were left out");
            self.notices
                .report(&Notice::new(Severity::Warning, message));
        }
        self.notices.report(notice);
    }

    /// Number of notices suppressed before this one; `None` if it is suppressed as well.
    fn leave(&self, now: Instant) -> Option<u64> {
        let mut window = self.window.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = window
            .since
            .is_none_or(|since| now.saturating_duration_since(since) >= Duration::from_secs(1));
        if is_new {
            window.since = Some(now);
            window.count = 0;
        }
        if window.count == MOST {
            window.left_out += 1;
            return None;
        }
        window.count += 1;
        Some(std::mem::take(&mut window.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_much_is_counted() {
        let notices = NoticeLimiter::default();
        let now = SystemClock.now();
        for _ in 0..MOST {
            assert_eq!(notices.leave(now), Some(0));
        }
        assert_eq!(notices.leave(now), None);
        assert_eq!(notices.leave(now + Duration::from_millis(999)), None);
        assert_eq!(notices.leave(now + Duration::from_secs(1)), Some(2));
        assert_eq!(notices.leave(now + Duration::from_secs(1)), Some(0));
    }
}
