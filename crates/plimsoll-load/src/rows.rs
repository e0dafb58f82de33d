//! The rows of a run: one a second, in bounded memory.

use plimsoll_model::Tick;

/// A day of seconds, some 90 MB by the size of a row. With more, neighbours are merged, and new rows are twice as long.
const MOST_ROWS: usize = 86_400;

/// The rows so far.
#[derive(Debug)]
pub(crate) struct Rows {
    ticks: Vec<Tick>,
    most: usize,
    /// Seconds of a row, and of the last one so far.
    seconds: usize,
    last: usize,
}

impl Rows {
    pub(crate) fn new() -> Self {
        Self::with_most(MOST_ROWS)
    }

    fn with_most(most: usize) -> Self {
        Self {
            ticks: Vec::new(),
            most,
            seconds: 1,
            last: 0,
        }
    }

    /// Adds a second.
    pub(crate) fn push(&mut self, tick: Tick) {
        match self.ticks.last_mut() {
            Some(last) if self.last < self.seconds && are_of_one_kind(last, &tick) => {
                last.merge(&tick);
                self.last += 1;
            }
            _ => {
                if self.ticks.len() >= self.most {
                    self.halve();
                }
                self.ticks.push(tick);
                self.last = 1;
            }
        }
    }

    /// The last one.
    pub(crate) fn last_mut(&mut self) -> Option<&mut Tick> {
        self.ticks.last_mut()
    }

    pub(crate) fn into_ticks(self) -> Vec<Tick> {
        self.ticks
    }

    /// Merges neighbours.
    fn halve(&mut self) {
        let rows = std::mem::take(&mut self.ticks);
        let mut is_full = true;
        for tick in rows {
            match self.ticks.last_mut() {
                Some(last) if !is_full && are_of_one_kind(last, &tick) => {
                    last.merge(&tick);
                    is_full = true;
                }
                _ => {
                    self.ticks.push(tick);
                    is_full = false;
                }
            }
        }
        self.seconds *= 2;
    }
}

/// Whether two rows may be one: the warm-up, the window and the grace period share none.
fn are_of_one_kind(one: &Tick, other: &Tick) -> bool {
    (one.warm_up, one.grace) == (other.warm_up, other.grace)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use plimsoll_model::{Bounded, Bucket, Phase};

    use super::*;

    fn tick(second: u64) -> Tick {
        let time = |millis: u64| Duration::from_millis(millis);
        Tick {
            at: Duration::from_secs(second),
            length: Duration::from_secs(1),
            warm_up: second <= 3,
            grace: false,
            ok: 10,
            failed: 1,
            other_errors: second,
            events: 2,
            bytes_received: 100,
            in_flight: second,
            p50: Some(Bounded::exact(time(second))),
            p90: None,
            p99: Some(Bounded::at_least(time(second))),
            p99_9: second.is_multiple_of(2).then(|| Bounded::exact(time(7))),
            max: Some(Bounded::exact(time(2000 - second))),
            spread: vec![Bucket {
                up_to: time(1 + second % 2),
                count: 10,
            }],
            phases: [time(second); Phase::ALL.len()],
        }
    }

    #[test]
    fn there_are_never_more_rows_than_that_and_no_count_is_lost() {
        for seconds in [1_u64, 7, 8, 9, 50, 1000] {
            let mut rows = Rows::with_most(8);
            for second in 1..=seconds {
                rows.push(tick(second));
                assert!(rows.ticks.len() <= 8, "{seconds}");
            }
            let rows = rows.into_ticks();
            let sum = |count: fn(&Tick) -> u64| rows.iter().map(count).sum::<u64>();
            assert_eq!(sum(|it| it.ok), 10 * seconds);
            assert_eq!(sum(|it| it.other_errors), seconds * (seconds + 1) / 2);
            let lengths: Duration = rows.iter().map(|it| it.length).sum();
            assert_eq!(lengths, Duration::from_secs(seconds));
            assert_eq!(rows.last().unwrap().at, Duration::from_secs(seconds));
            let warm_up = rows.iter().filter(|it| it.warm_up);
            assert_eq!(warm_up.map(|it| it.ok).sum::<u64>(), 10 * seconds.min(3));
            assert!(rows.is_sorted_by(|a, b| a.at < b.at));
            if seconds > 50 {
                assert!(rows.len() >= 4, "{}", rows.len());
            }
        }
    }

    #[test]
    fn a_row_of_two_seconds_has_what_is_known_of_both() {
        let mut both = tick(4);
        both.merge(&tick(5));
        let time = |millis: u64| Duration::from_millis(millis);
        assert_eq!(both.p50, Some(Bounded::between(time(4), Some(time(5)))));
        assert_eq!(
            (both.p90, both.p99),
            (None, Some(Bounded::at_least(time(4))))
        );
        assert_eq!(both.p99_9, Some(Bounded::exact(time(7))));
        assert_eq!(both.max, Some(Bounded::exact(time(1996))));
        assert_eq!(
            (both.in_flight, both.events, both.bytes_received),
            (5, 4, 200)
        );
        let spread: Vec<_> = both.spread.iter().map(|it| (it.up_to, it.count)).collect();
        assert_eq!(spread, [(time(1), 10), (time(2), 10)]);
        assert_eq!(both.phases[0], Duration::from_micros(4500));
    }
}
