//! Whether something that goes on goes on fast enough.

use std::time::{Duration, Instant};

use crate::observe::counters::Cut;

/// Bytes received since the wait began.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Pace {
    begun: Option<Instant>,
    bytes: u64,
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

    /// So long it was not the client that was waited for.
    pub(crate) fn skip(&mut self, time: Duration) {
        self.begun = self.begun.and_then(|begun| begun.checked_add(time));
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
        pace.rest();
        assert_eq!(pace.deadline(later, grace, 100), Some(later + grace));
        assert_eq!(pace.deadline(later, grace, 0), None);
        pace.took(usize::MAX);
        pace.deadline(later, grace, 1);
    }
}
