//! Counts of the last minute, second by second: rates and latency for the admin page.
//!
//! Pure: counters and times are given.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::durations::BOUNDS;

/// Samples that are kept: a minute, and the one before it.
const MOST: usize = 61;

/// Rates are averages over this time.
const WINDOW: Duration = Duration::from_secs(10);

/// Counters at one time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sample {
    pub(crate) at: Instant,
    /// Requests since the beginning.
    pub(crate) requests: u64,
    /// Those that failed.
    pub(crate) failed: u64,
    /// Responses by the bucket of their latency, of [`BOUNDS`] and beyond.
    pub(crate) latencies: [u64; BOUNDS.len() + 1],
}

/// The samples of the last minute.
#[derive(Debug, Default)]
pub(crate) struct History(VecDeque<Sample>);

/// Figures of the last seconds.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Recent {
    /// Requests a second.
    pub(crate) rate: f64,
    /// The share of them that failed, from 0 to 1.
    pub(crate) failed: f64,
    /// Quantiles of the latency, interpolated within their bucket; absent without responses.
    pub(crate) p50: Option<Duration>,
    pub(crate) p99: Option<Duration>,
    /// Requests a second in each second, the oldest first.
    pub(crate) series: Vec<f64>,
}

impl History {
    /// Appends a sample, later than those before.
    pub(crate) fn push(&mut self, sample: Sample) {
        self.0.push_back(sample);
        while self.0.len() > MOST {
            self.0.pop_front();
        }
    }

    /// Rates and latency at the last sample.
    pub(crate) fn recent(&self) -> Recent {
        let Some(last) = self.0.back() else {
            return Recent::default();
        };
        let within = |it: &&Sample| last.at.duration_since(it.at) <= WINDOW;
        let first = self.0.iter().find(within).unwrap_or(last);
        let requests = last.requests.saturating_sub(first.requests);
        let failed = last.failed.saturating_sub(first.failed);
        let both = first.latencies.iter().zip(last.latencies);
        let latencies: Vec<_> = both.map(|(old, new)| new.saturating_sub(*old)).collect();
        Recent {
            rate: rate(first, last),
            failed: failed as f64 / (requests.max(1)) as f64,
            p50: quantile(&latencies, 0.5),
            p99: quantile(&latencies, 0.99),
            series: self
                .0
                .iter()
                .zip(self.0.iter().skip(1))
                .map(|(old, new)| rate(old, new))
                .collect(),
        }
    }
}

fn rate(old: &Sample, new: &Sample) -> f64 {
    let seconds = new.at.duration_since(old.at).as_secs_f64();
    if seconds == 0.0 {
        return 0.0;
    }
    new.requests.saturating_sub(old.requests) as f64 / seconds
}

/// The quantile `q`, from 0 to 1, of counts by bucket; linear within the bucket. Beyond the last bound it is that bound.
fn quantile(counts: &[u64], q: f64) -> Option<Duration> {
    let all: u64 = counts.iter().sum();
    if all == 0 {
        return None;
    }
    let wanted = q * all as f64;
    let mut before = 0.0;
    for (bucket, count) in counts.iter().enumerate() {
        let count = *count as f64;
        if before + count >= wanted && count > 0.0 {
            let low = bucket.checked_sub(1).map_or(0, |it| BOUNDS[it]) as f64;
            let high = BOUNDS.get(bucket).map_or(low, |it| *it as f64);
            let share = (wanted - before) / count;
            return Some(Duration::from_secs_f64((low + (high - low) * share) / 1e6));
        }
        before += count;
    }
    None
}

#[cfg(test)]
mod tests {
    use plimsoll_model::Clock as _;
    use plimsoll_testkit::VirtualClock;

    use super::*;

    fn sample(at: Instant, requests: u64, failed: u64) -> Sample {
        let mut latencies = [0; BOUNDS.len() + 1];
        latencies[1] = requests;
        Sample {
            at,
            requests,
            failed,
            latencies,
        }
    }

    #[test]
    fn rates_are_those_of_the_last_ten_seconds_and_a_minute_is_kept() {
        let clock = VirtualClock::new();
        let mut history = History::default();
        assert_eq!(history.recent(), Recent::default());
        let start = clock.now();
        // 10 requests a second for 60 seconds, then 100 of which half fail.
        for second in 0..80_u64 {
            let fast = second.saturating_sub(60);
            let requests = 10 * second.min(60) + 100 * fast;
            let at = start + Duration::from_secs(second);
            history.push(sample(at, requests, 50 * fast));
        }
        let recent = history.recent();
        assert!((recent.rate - 100.0).abs() < 1e-9, "{recent:?}");
        assert!((recent.failed - 0.5).abs() < 1e-9);
        assert_eq!(recent.series.len(), 60);
        assert_eq!(recent.series.first().map(|it| it.round()), Some(10.0));
        // The second bucket is that from 500 µs to 1 ms.
        assert_eq!(recent.p50, Some(Duration::from_micros(750)));
        assert_eq!(recent.p99, Some(Duration::from_micros(995)));
    }

    #[test]
    fn quantiles_beyond_the_last_bound_are_that_bound() {
        let mut counts = vec![0; BOUNDS.len() + 1];
        counts[BOUNDS.len()] = 3;
        assert_eq!(quantile(&counts, 0.5), Some(Duration::from_secs(5)));
        assert_eq!(quantile(&[0; 3], 0.5), None);
    }

    #[test]
    fn counters_that_begin_anew_are_no_negative_rate() {
        let clock = VirtualClock::new();
        let mut history = History::default();
        history.push(sample(clock.now(), 100, 3));
        history.push(sample(clock.now() + Duration::from_secs(1), 2, 0));
        assert_eq!(history.recent().series, [0.0]);
    }
}
