//! How long responses took, in buckets, as Prometheus has histograms.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use plimsoll_model::MetricsText;

/// The upper bounds of the buckets, in microseconds: three for each power of ten from half a millisecond, where
/// requests on a local network lie, to five seconds.
pub(crate) const BOUNDS: [u64; 12] = [
    500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000,
    5_000_000,
];

/// The durations that one worker counts. It alone writes, so that reading and writing back is enough, and cheaper than
/// adding.
#[derive(Debug, Default)]
pub(crate) struct Durations {
    buckets: [AtomicU64; BOUNDS.len() + 1],
    micros: AtomicU64,
}

/// Durations at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct DurationCounts {
    /// The last bucket has those beyond every bound.
    pub(crate) buckets: [u64; BOUNDS.len() + 1],
    /// The sum.
    pub(crate) micros: u64,
}

impl Durations {
    pub(crate) fn count(&self, took: Duration) {
        let took = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let bucket = BOUNDS.partition_point(|bound| *bound < took);
        add(&self.buckets[bucket], 1);
        add(&self.micros, took);
    }

    pub(crate) fn counts(&self) -> DurationCounts {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        DurationCounts {
            buckets: std::array::from_fn(|bucket| load(&self.buckets[bucket])),
            micros: load(&self.micros),
        }
    }
}

impl DurationCounts {
    pub(crate) fn add(&mut self, other: &Self) {
        for (sum, count) in self.buckets.iter_mut().zip(other.buckets) {
            *sum += count;
        }
        self.micros = self.micros.saturating_add(other.micros);
    }

    /// Appends them as a histogram, in seconds.
    pub(crate) fn show(&self, name: &str, labels: &[(&str, &str)], text: &mut MetricsText) {
        let bounds = BOUNDS.iter().map(|micros| *micros as f64 / 1e6);
        let buckets = bounds.zip(self.buckets);
        let beyond = self.buckets[BOUNDS.len()];
        text.histogram(name, labels, buckets, beyond, self.micros as f64 / 1e6);
    }
}

/// For counters with one writer.
pub(super) fn add(counter: &AtomicU64, number: u64) {
    let sum = counter.load(Ordering::Relaxed).saturating_add(number);
    counter.store(sum, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_fall_into_the_bucket_of_the_bound_that_they_do_not_exceed() {
        let durations = Durations::default();
        for micros in [0, 500, 501, 5_000_000, 5_000_001] {
            durations.count(Duration::from_micros(micros));
        }
        let mut counts = durations.counts();
        assert_eq!(counts.buckets, [2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1]);
        assert_eq!(counts.micros, 10_001_002);
        let again = counts;
        counts.add(&again);
        assert_eq!(counts.buckets[0], 4);
        assert_eq!(counts.micros, 20_002_004);
    }
}
