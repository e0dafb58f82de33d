//! Seconds put together to ticks.

use std::time::Duration;

use plimsoll_load::{Interval, PartSecond};

use super::PartTick;

/// Puts so many seconds into one tick. The warm-up, the window and the grace period share none: each has figures of its own.
#[derive(Debug)]
pub(super) struct Ticks {
    seconds: u64,
    warm_up: Duration,
    /// Of the last full tick, from the start of the run.
    number: u64,
    /// What was counted since the last tick, and until when; whether all of it lies in the grace period.
    waiting: Option<(Interval, Duration, bool)>,
}

impl Ticks {
    /// - `seconds`: of a tick.
    pub(super) fn new(seconds: u64, warm_up: Duration) -> Self {
        Self {
            seconds: seconds.max(1),
            warm_up,
            number: 0,
            waiting: None,
        }
    }

    /// Takes a second; returns the ticks that are full.
    pub(super) fn add(&mut self, second: &PartSecond<'_>) -> Vec<PartTick> {
        let mut full = Vec::new();
        // What belongs elsewhere is not put together with it.
        let is_apart = self.waiting.as_ref().is_some_and(|(_, at, grace)| {
            *grace != second.grace
                || (is_within(*at, self.warm_up) && !is_within(second.at, self.warm_up))
        });
        if is_apart {
            full.extend(self.made_of_waiting(false));
        }
        match &mut self.waiting {
            Some((interval, at, _)) => {
                interval.merge(second.interval);
                *at = second.at;
            }
            None => self.waiting = Some((second.interval.clone(), second.at, second.grace)),
        }
        // Seconds end a moment late. Their number decides, so agents put the same ones together.
        let seconds = (second.at + Duration::from_millis(500)).as_secs();
        let number = seconds / self.seconds;
        let is_full = number > self.number;
        self.number = self.number.max(number);
        if is_full || second.is_last {
            full.extend(self.made_of_waiting(second.is_last));
        }
        full
    }

    fn made_of_waiting(&mut self, is_last: bool) -> Option<PartTick> {
        let (interval, at, grace) = self.waiting.take()?;
        Some(PartTick::from_interval(&interval, at, grace, is_last))
    }
}
/// Whether a second that ends then belongs to the warm-up; it ends a moment late.
fn is_within(at: Duration, warm_up: Duration) -> bool {
    at < warm_up + Duration::from_millis(500)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_put_together_and_nothing_is_lost() {
        let check = |seconds: u64, warm_up: u64, expected: &[(u64, u64)]| {
            let mut ticks = Ticks::new(seconds, Duration::from_secs(warm_up));
            let mut made = Vec::new();
            for second in 1..=8_u64 {
                let mut interval = Interval::new(0, false);
                interval.counts.started = second;
                made.extend(ticks.add(&PartSecond {
                    at: Duration::from_millis(second * 1000 + second % 3),
                    grace: second > 6,
                    is_last: second == 8,
                    interval: &interval,
                }));
            }
            assert!(made.iter().rev().skip(1).all(|tick| !tick.is_last));
            assert!(made.last().is_some_and(|tick| tick.is_last && tick.grace));
            let found: Vec<_> = made
                .iter()
                .map(|tick| (tick.at_us / 1_000_000, tick.checksum.started))
                .collect();
            assert_eq!(found, expected, "{seconds}, {warm_up}");
        };
        check(
            1,
            0,
            &[
                (1, 1),
                (2, 2),
                (3, 3),
                (4, 4),
                (5, 5),
                (6, 6),
                (7, 7),
                (8, 8),
            ],
        );
        check(4, 0, &[(4, 10), (6, 11), (8, 15)]);
        check(5, 2, &[(2, 3), (5, 12), (6, 6), (8, 15)]);
        check(100, 0, &[(6, 21), (8, 15)]);
    }
}
