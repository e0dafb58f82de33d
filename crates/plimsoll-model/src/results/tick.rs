//! The rows of a run: one a second.

use std::time::Duration;

use crate::{Bounded, Bucket, Phase};

/// One second of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Tick {
    /// Time since the start of the run at the end of this second.
    pub at: Duration,
    /// Length; the last one may be shorter than a second.
    pub length: Duration,
    /// Whether it belongs to the warm-up.
    pub warm_up: bool,
    /// Whether it lies in the grace period: no exchange started in it.
    pub grace: bool,
    /// Complete responses.
    pub ok: u64,
    /// Failures.
    pub failed: u64,
    /// Aborted exchanges, failed statuses, unmet expectations, drops and streams that broke.
    pub other_errors: u64,
    /// Events of streams.
    pub events: u64,
    /// Bytes taken from the transport.
    pub bytes_received: u64,
    /// Exchanges under way at its end.
    pub in_flight: u64,
    /// Median latency, from the intended start where there is one.
    pub p50: Option<Bounded<Duration>>,
    /// 90th percentile of the same.
    pub p90: Option<Bounded<Duration>>,
    /// 99th percentile of the same.
    pub p99: Option<Bounded<Duration>>,
    /// 99.9th percentile of the same.
    pub p99_9: Option<Bounded<Duration>>,
    /// Maximum of the same.
    pub max: Option<Bounded<Duration>>,
    /// Their distribution, in the buckets of [`Histogram::coarse`](crate::Histogram::coarse).
    pub spread: Vec<Bucket>,
    /// The time that exchanges spent in each phase, per complete response; by [`Phase::index`].
    /// Zero where there was none.
    pub phases: [Duration; Phase::ALL.len()],
}

impl Tick {
    /// Merges the next row into this one. Counts are added, and the maximum is the larger one. The percentiles of both rows
    /// together lie between those of the two, so they become bounds.
    pub fn merge(&mut self, later: &Self) {
        let (own, theirs) = (self.ok as f64, later.ok as f64);
        for (mine, other) in self.phases.iter_mut().zip(later.phases) {
            // They are times per complete response.
            let sum = mine.as_secs_f64() * own + other.as_secs_f64() * theirs;
            *mine = Duration::try_from_secs_f64(sum / (own + theirs)).unwrap_or_default();
        }
        for (mine, other) in [
            (&mut self.p50, later.p50),
            (&mut self.p90, later.p90),
            (&mut self.p99, later.p99),
            (&mut self.p99_9, later.p99_9),
        ] {
            *mine = joined(*mine, other, Duration::min);
        }
        self.max = joined(self.max, later.max, Duration::max);
        for bucket in &later.spread {
            match self
                .spread
                .binary_search_by_key(&bucket.up_to, |it| it.up_to)
            {
                Ok(position) => self.spread[position].count += bucket.count,
                Err(position) => self.spread.insert(position, *bucket),
            }
        }
        self.at = later.at;
        self.length += later.length;
        self.warm_up &= later.warm_up;
        self.grace &= later.grace;
        self.ok += later.ok;
        self.failed += later.failed;
        self.other_errors += later.other_errors;
        self.events += later.events;
        self.bytes_received += later.bytes_received;
        self.in_flight = later.in_flight;
    }
}

/// A figure of two rows. Its lower bound is `low` of both lower bounds, its upper bound the larger of both.
fn joined(
    one: Option<Bounded<Duration>>,
    other: Option<Bounded<Duration>>,
    low: fn(Duration, Duration) -> Duration,
) -> Option<Bounded<Duration>> {
    let (Some(a), Some(b)) = (one, other) else {
        return one.or(other);
    };
    let high = a.high().zip(b.high()).map(|(a, b)| a.max(b));
    Some(Bounded::between(low(a.low(), b.low()), high))
}
