//! Whether something that goes on goes on fast enough.

use std::time::{Duration, Instant};

use crate::counters::Cut;

/// Bytes received since the wait began.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Pace {
    begun: Option<Instant>,
    bytes: u64,
    /// Since when it is not the client that is waited for.
    paused: Option<Instant>,
}

impl Pace {
    /// So many bytes came.
    #[inline]
    pub(crate) fn took(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
    }

    /// It is not the client that is waited for; what follows is counted anew.
    #[inline]
    pub(crate) fn rest(&mut self) {
        *self = Self::default();
    }

    /// It is not the client that is waited for, until it [goes on](Self::go_on): what came before still counts.
    ///
    /// A reader that runs as a task of its own asks for more only once it has run, so there is a pause behind each piece.
    pub(crate) fn pause(&mut self, now: impl FnOnce() -> Instant) {
        self.paused.get_or_insert_with(now);
    }

    /// It is the client that is waited for again; when that began, if there was a pause.
    pub(crate) fn go_on(&mut self, now: impl FnOnce() -> Instant) -> Option<Instant> {
        let paused = self.paused.take()?;
        let now = now();
        let time = now.saturating_duration_since(paused);
        self.begun = self.begun.and_then(|begun| begun.checked_add(time));
        Some(now)
    }

    /// When too little will have come, unless more does before.
    ///
    /// - `since`: when the present wait began; the first one begins the count.
    /// - `grace`: time that is given besides what the bytes take.
    /// - `rate`: bytes per second; 0 for none.
    pub(crate) fn deadline(
        &mut self,
        since: Instant,
        grace: Duration,
        rate: u64,
    ) -> Option<Instant> {
        let begun = *self.begun.get_or_insert(since);
        let millis = self.bytes.saturating_mul(1000).checked_div(rate)?;
        begun
            .checked_add(grace)?
            .checked_add(Duration::from_millis(millis))
    }
}

/// The deadline that comes first, with its reason.
pub(crate) fn sooner(usual: (Instant, Cut), pace: Option<Instant>, slow: Cut) -> (Instant, Cut) {
    match pace {
        Some(pace) if pace < usual.0 => (pace, slow),
        _ => usual,
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_model::Clock;
    use plimsoll_wire::SystemClock;

    use super::*;

    #[test]
    fn bytes_buy_time_at_the_rate() {
        let begun = SystemClock.now();
        let grace = Duration::from_secs(10);
        let mut pace = Pace::default();
        let deadline = pace.deadline(begun, grace, 100);
        assert_eq!(deadline, Some(begun + grace));
        pace.took(250);
        let later = begun + Duration::from_secs(5);
        let deadline = pace.deadline(later, grace, 100);
        assert_eq!(deadline, Some(begun + grace + Duration::from_millis(2_500)));
        // A pause takes no time, however often it is entered, and forgets nothing.
        let second = Duration::from_secs(1);
        assert_eq!(pace.go_on(|| later), None);
        pace.pause(|| later);
        pace.pause(|| later + second);
        assert_eq!(pace.go_on(|| later + second * 3), Some(later + second * 3));
        let paused = Duration::from_millis(2_500) + second * 3;
        let deadline = pace.deadline(later, grace, 100);
        assert_eq!(deadline, Some(begun + grace + paused));
        pace.rest();
        assert_eq!(pace.deadline(later, grace, 100), Some(later + grace));
        assert_eq!(pace.deadline(later, grace, 0), None);
        pace.took(usize::MAX);
        pace.deadline(later, grace, 1);
    }
}
