//! How long a worker rests after connections that were of no use.
//!
//! Pure: moments and the seed are given; nothing here waits or reads a clock.

use std::time::{Duration, Instant};

/// The rest after the first connection that could not be opened; it doubles up to [`LONGEST`].
const FIRST: Duration = Duration::from_millis(10);
const LONGEST: Duration = Duration::from_secs(1);

/// Counts connections in vain, one after the other, and spaces those that follow.
///
/// A connection is in vain if it could not be opened, or if it ended before it carried a complete
/// exchange. A server that closes after each answer is never waited for.
#[derive(Debug)]
pub(crate) struct BackOff {
    in_vain: u32,
    until: Option<Instant>,
    random: fastrand::Rng,
}

impl BackOff {
    /// - `seed`: of the jitter; those that are to rest for different times have different ones.
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            in_vain: 0,
            until: None,
            random: fastrand::Rng::with_seed(seed),
        }
    }

    /// An exchange was completed.
    #[inline]
    pub(crate) fn carried(&mut self) {
        self.in_vain = 0;
        self.until = None;
    }

    /// A connection could not be opened.
    ///
    /// - `begun`: when that was begun.
    pub(crate) fn refused(&mut self, begun: Instant) {
        self.rest(begun, self.in_vain);
    }

    /// A connection ended before it carried a complete exchange. The first that does so may have met
    /// a server that was just leaving: it is replaced at once.
    ///
    /// - `begun`: when it was begun to be opened.
    pub(crate) fn lost(&mut self, begun: Instant) {
        match self.in_vain.checked_sub(1) {
            None => self.in_vain = 1,
            Some(doublings) => self.rest(begun, doublings),
        }
    }

    /// How long it is from `now` until the next connection may be opened.
    pub(crate) fn remaining(&self, now: Instant) -> Duration {
        self.until
            .map_or(Duration::ZERO, |until| until.saturating_duration_since(now))
    }

    /// When the next connection may be opened; `None` if nothing was in vain.
    pub(crate) fn until(&self) -> Option<Instant> {
        self.until
    }

    /// Rests from when the last one was begun, for half of its time at least: so those that were sent
    /// away together do not come back together.
    fn rest(&mut self, begun: Instant, doublings: u32) {
        self.in_vain = self.in_vain.saturating_add(1);
        let whole = 2_u32
            .checked_pow(doublings)
            .and_then(|factor| FIRST.checked_mul(factor))
            .map_or(LONGEST, |rest| rest.min(LONGEST));
        let part = self.random.f64().mul_add(0.5, 0.5);
        self.until = Some(begun + whole.mul_f64(part));
    }
}

#[cfg(test)]
mod tests;
