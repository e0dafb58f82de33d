//! The clock of an agent against that of the coordinator: of eight probes the fastest one decides.
//!
//! Pure. Clocks count microseconds from a moment of their own and never go back, so dates that are wrong or jump do not matter.
//!
//! Source: Cristian, "Probabilistic clock synchronization" (1989): the answer of the clock is half a round trip old, within half
//! a round trip.

use std::time::{Duration, Instant};

/// Probes of each agent.
pub const PROBES: u32 = 8;

/// How long an answer may take before the probe is sent again.
const PATIENCE: Duration = Duration::from_secs(1);

/// The probes of one agent.
#[derive(Debug, Clone)]
pub struct ClockProbes {
    epoch: Instant,
    sent: Option<Instant>,
    number: u32,
    answered: u32,
    best: Option<ClockOffset>,
}

/// How far the clock of an agent is ahead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockOffset {
    /// In microseconds; negative if it is behind.
    pub ahead_us: i64,
    /// By how much that may be wrong.
    pub within: Duration,
}

impl ClockProbes {
    /// - `epoch`: from which the coordinator's clock counts.
    pub fn new(epoch: Instant) -> Self {
        Self {
            epoch,
            sent: None,
            number: 0,
            answered: 0,
            best: None,
        }
    }

    /// The number of a probe that is to be sent now, if one is.
    pub fn next(&mut self, now: Instant) -> Option<u32> {
        let is_due = match self.sent {
            None => true,
            Some(sent) => now >= sent + PATIENCE,
        };
        if self.is_complete() || !is_due {
            return None;
        }
        self.number += 1;
        self.sent = Some(now);
        Some(self.number)
    }

    /// When [`next`](Self::next) is to be called again.
    pub fn next_wake(&self) -> Option<Instant> {
        if self.is_complete() {
            return None;
        }
        self.sent.map(|sent| sent + PATIENCE)
    }

    /// Takes an answer; one of a probe that was given up counts for nothing.
    ///
    /// - `at_us`: on the clock of the agent.
    pub fn answer(&mut self, number: u32, at_us: u64, now: Instant) {
        if number != self.number {
            return;
        }
        let Some(sent) = self.sent.take() else {
            return;
        };
        self.answered += 1;
        let round_trip = now.saturating_duration_since(sent);
        let middle = sent.saturating_duration_since(self.epoch) + round_trip / 2;
        let middle = i64::try_from(middle.as_micros()).unwrap_or(i64::MAX);
        let offset = ClockOffset {
            ahead_us: i64::try_from(at_us)
                .unwrap_or(i64::MAX)
                .saturating_sub(middle),
            within: round_trip / 2,
        };
        if self.best.is_none_or(|best| offset.within < best.within) {
            self.best = Some(offset);
        }
    }

    /// Whether all probes were answered.
    pub fn is_complete(&self) -> bool {
        self.answered >= PROBES
    }

    /// The offset by the fastest probe.
    pub fn offset(&self) -> Option<ClockOffset> {
        self.best
    }
}

/// By how much the starts of agents may differ: the two largest errors together; nothing with one agent.
pub fn spread(offsets: &[ClockOffset]) -> Duration {
    let mut errors: Vec<_> = offsets.iter().map(|offset| offset.within).collect();
    errors.sort_unstable();
    match errors.as_slice() {
        [.., second, first] => *first + *second,
        _ => Duration::ZERO,
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_model::Clock as _;
    use plimsoll_wire::SystemClock;

    use super::*;

    fn micros(count: u64) -> Duration {
        Duration::from_micros(count)
    }

    #[test]
    fn the_fastest_of_eight_decides_and_bounds_the_error() {
        let epoch = SystemClock.now();
        let mut probes = ClockProbes::new(epoch);
        let mut now = epoch + micros(5_000);
        // To the agent and back, in microseconds; its clock is 7 s ahead.
        for (there, back) in [
            (900, 100),
            (300, 200),
            (40, 60),
            (5_000, 20),
            (80, 80),
            (70, 50),
            (61, 60),
            (90, 20),
        ] {
            let number = probes.next(now).unwrap();
            assert_eq!(probes.next(now), None, "one at a time");
            let there = now + micros(there);
            let at_us = u64::try_from((there - epoch).as_micros()).unwrap() + 7_000_000;
            now = there + micros(back);
            probes.answer(number, at_us, now);
        }
        assert!(probes.is_complete());
        assert_eq!(probes.next(now), None);
        let offset = probes.offset().unwrap();
        assert_eq!(offset.within, micros(50));
        assert!((offset.ahead_us - 7_000_000).abs() <= 50, "{offset:?}");
    }

    #[test]
    fn a_probe_without_an_answer_is_sent_again_and_its_late_answer_ignored() {
        let epoch = SystemClock.now();
        let mut probes = ClockProbes::new(epoch);
        let first = probes.next(epoch).unwrap();
        let later = probes.next_wake().unwrap();
        let second = probes.next(later).unwrap();
        assert_ne!(first, second);
        probes.answer(first, 1, later);
        assert_eq!(probes.offset(), None);
        probes.answer(second, 1_000_000, later + micros(10));
        assert_eq!(probes.offset().unwrap().within, micros(5));
    }

    #[test]
    fn the_spread_is_that_of_the_two_worst_clocks() {
        let offset = |within| ClockOffset {
            ahead_us: 0,
            within: micros(within),
        };
        assert_eq!(spread(&[offset(10)]), Duration::ZERO);
        assert_eq!(spread(&[offset(10), offset(40), offset(30)]), micros(70));
    }
}
