//! Tells what happens while requests are answered, at most so often.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use plimsoll_model::Clock as _;
use plimsoll_server::{Notice, Notices, Severity};
use plimsoll_wire::SystemClock;

/// Notices that are told in a second; there may be as many requests as the machine can answer.
const MOST: u32 = 20;

/// Who is told, and how often that was.
#[derive(Debug, Default)]
pub(crate) struct Teller {
    notices: Notices,
    told: Mutex<Told>,
}

#[derive(Debug, Default)]
struct Told {
    /// When the second began that is counted.
    since: Option<Instant>,
    count: u32,
    left_out: u64,
}

impl Teller {
    pub(crate) fn new(notices: &Notices) -> Self {
        Self {
            notices: notices.clone(),
            told: Mutex::default(),
        }
    }

    /// Tells it, unless that was done too often just now.
    pub(crate) fn tell(&self, notice: &Notice) {
        let Some(left_out) = self.leave(SystemClock.now()) else {
            return;
        };
        if left_out > 0 {
            let message = format!("{left_out} more of these were left out");
            self.notices.tell(&Notice::new(Severity::Warning, message));
        }
        self.notices.tell(notice);
    }

    /// Whether something may be told now, and how much was left out before it.
    fn leave(&self, now: Instant) -> Option<u64> {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = told
            .since
            .is_none_or(|since| now.saturating_duration_since(since) >= Duration::from_secs(1));
        if is_new {
            told.since = Some(now);
            told.count = 0;
        }
        if told.count == MOST {
            told.left_out += 1;
            return None;
        }
        told.count += 1;
        Some(std::mem::take(&mut told.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_much_is_counted() {
        let teller = Teller::default();
        let now = SystemClock.now();
        for _ in 0..MOST {
            assert_eq!(teller.leave(now), Some(0));
        }
        assert_eq!(teller.leave(now), None);
        assert_eq!(teller.leave(now + Duration::from_millis(999)), None);
        assert_eq!(teller.leave(now + Duration::from_secs(1)), Some(2));
        assert_eq!(teller.leave(now + Duration::from_secs(1)), Some(0));
    }
}
