//! Figures of which some are known only from below: censored observations.
//!
//! An exchange that was given up took *at least* as long as it was waited for. A statistic over such
//! durations is computed twice, with them at the time waited and at infinity. If both agree the result
//! is a figure, otherwise it is a lower bound, and [`Bounded`] shows it as `≥ 47.0 ms`.
//!
//! Source: the Kaplan–Meier estimate and its bounds for right-censored data, of which these are the
//! outermost.

use std::time::Duration;

use crate::{Bucket, Histogram};

/// A figure, or a bound below which it does not lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounded<T> {
    low: T,
    /// `None` if there is no upper bound.
    high: Option<T>,
}

impl<T: Copy + PartialEq> Bounded<T> {
    /// A figure that is known.
    pub const fn exact(value: T) -> Self {
        Self {
            low: value,
            high: Some(value),
        }
    }

    /// A figure that is `low` or more.
    pub const fn at_least(low: T) -> Self {
        Self { low, high: None }
    }

    /// A figure from `low` to `high`; without an upper bound if there is none.
    pub const fn between(low: T, high: Option<T>) -> Self {
        Self { low, high }
    }

    /// The lower bound; the figure itself if it is known.
    pub const fn low(self) -> T {
        self.low
    }

    /// The upper bound, if there is one.
    pub const fn high(self) -> Option<T> {
        self.high
    }

    /// Whether only bounds are known.
    pub fn is_censored(self) -> bool {
        self.high != Some(self.low)
    }

    /// The figure, if it is known.
    pub fn known(self) -> Option<T> {
        (!self.is_censored()).then_some(self.low)
    }

    /// The same in another unit.
    ///
    /// - `convert`: must grow with its argument.
    pub fn map<U>(self, convert: impl Fn(T) -> U) -> Bounded<U> {
        Bounded {
            low: convert(self.low),
            high: self.high.map(convert),
        }
    }

    /// The figure as `show` writes it, after `≥ ` if it is a lower bound.
    pub fn text(self, show: impl Fn(T) -> String) -> String {
        let text = show(self.low);
        if self.is_censored() {
            format!("≥ {text}")
        } else {
            text
        }
    }
}

/// Durations, of which some are known only from below.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Times {
    observed: Histogram,
    /// Made when the first one is recorded: most runs have none.
    censored: Option<Box<Histogram>>,
}

impl Times {
    /// No durations.
    pub fn new() -> Self {
        Self::default()
    }

    /// Durations that were read from a file: `censored` are those known only from below.
    pub fn from_parts(observed: Histogram, censored: Histogram) -> Self {
        Self {
            observed,
            censored: (!censored.is_empty()).then(|| Box::new(censored)),
        }
    }

    /// The durations that are known.
    pub fn observed(&self) -> &Histogram {
        &self.observed
    }

    /// Those that are known from below, at their bounds; `None` if there are none.
    pub fn censored(&self) -> Option<&Histogram> {
        self.censored.as_deref()
    }

    /// Number of durations that are known only from below.
    pub fn censored_count(&self) -> u64 {
        self.censored().map_or(0, Histogram::len)
    }

    /// Whether there is no duration of either kind.
    pub fn is_empty(&self) -> bool {
        self.observed.is_empty() && self.censored_count() == 0
    }

    /// The statistics of these durations.
    pub fn view(&self) -> TimesView<'_> {
        TimesView {
            observed: &self.observed,
            censored: self.censored(),
        }
    }

    /// The duration at `fraction` of all, see [`Histogram::quantile`]; `None` if there are none.
    pub fn quantile(&self, fraction: f64) -> Option<Bounded<Duration>> {
        self.view().quantile(fraction)
    }

    /// The smallest.
    pub fn min(&self) -> Option<Bounded<Duration>> {
        self.view().min()
    }

    /// The largest.
    pub fn max(&self) -> Option<Bounded<Duration>> {
        self.view().max()
    }

    /// The arithmetic mean.
    pub fn mean(&self) -> Option<Bounded<Duration>> {
        self.view().mean()
    }

    /// Counts a duration that is known.
    #[inline]
    pub fn record(&mut self, duration: Duration) {
        self.observed.record(duration);
    }

    /// Counts a duration that is `waited` or more.
    pub fn record_at_least(&mut self, waited: Duration) {
        self.censored.get_or_insert_default().record(waited);
    }

    /// Counts every value of `bucket` as known.
    pub fn record_bucket(&mut self, bucket: Bucket) {
        self.observed.record_bucket(bucket);
    }

    /// Adds every duration of `other`; the order of merging does not matter.
    pub fn merge(&mut self, other: &Self) {
        self.observed.merge(&other.observed);
        if let Some(theirs) = other.censored() {
            self.censored.get_or_insert_default().merge(theirs);
        }
    }

    /// Forgets every duration and keeps the memory of those that are known.
    pub fn clear(&mut self) {
        self.observed.clear();
        self.censored = None;
    }
}

impl From<Histogram> for Times {
    /// Durations that are all known.
    fn from(observed: Histogram) -> Self {
        Self {
            observed,
            censored: None,
        }
    }
}

/// The durations of [`Times`], or of a histogram that is complete.
#[derive(Debug, Clone, Copy)]
pub struct TimesView<'a> {
    observed: &'a Histogram,
    censored: Option<&'a Histogram>,
}

impl<'a> From<&'a Histogram> for TimesView<'a> {
    /// Durations that are all known.
    fn from(observed: &'a Histogram) -> Self {
        Self {
            observed,
            censored: None,
        }
    }
}

impl<'a> TimesView<'a> {
    /// The durations that are known.
    pub fn observed(self) -> &'a Histogram {
        self.observed
    }

    /// Number of durations of either kind.
    pub fn len(self) -> u64 {
        self.observed.len() + self.censored.map_or(0, Histogram::len)
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The duration at `fraction` of all, see [`Histogram::quantile`]; `None` if there are none.
    pub fn quantile(self, fraction: f64) -> Option<Bounded<Duration>> {
        let Some(censored) = self.censored.filter(|censored| !censored.is_empty()) else {
            return self.observed.quantile(fraction).map(Bounded::exact);
        };
        let mut all = self.observed.clone();
        all.merge(censored);
        let low = all.quantile(fraction)?;
        // At infinity they are the last in order, so the rank falls among the known or beyond them.
        let known = self.observed.len() as f64;
        let rank = (fraction.clamp(0.0, 1.0) * all.len() as f64)
            .ceil()
            .max(1.0);
        let high = if rank <= known {
            self.observed.quantile(rank / known)
        } else {
            None
        };
        Some(Bounded::between(low, high.map(|high| high.max(low))))
    }

    /// The smallest.
    pub fn min(self) -> Option<Bounded<Duration>> {
        let censored = self.censored.and_then(Histogram::min);
        match (self.observed.min(), censored) {
            (known, None) => known.map(Bounded::exact),
            (known, Some(waited)) => Some(Bounded::between(
                known.map_or(waited, |known| known.min(waited)),
                known,
            )),
        }
    }

    /// The largest.
    pub fn max(self) -> Option<Bounded<Duration>> {
        let censored = self.censored.and_then(Histogram::max);
        match (self.observed.max(), censored) {
            (known, None) => known.map(Bounded::exact),
            (known, Some(waited)) => Some(Bounded::at_least(
                known.map_or(waited, |known| known.max(waited)),
            )),
        }
    }

    /// The arithmetic mean.
    pub fn mean(self) -> Option<Bounded<Duration>> {
        let Some(censored) = self.censored.filter(|censored| !censored.is_empty()) else {
            return self.observed.mean().map(Bounded::exact);
        };
        let mut all = self.observed.clone();
        all.merge(censored);
        all.mean().map(Bounded::at_least)
    }

    /// The standard deviation; `None` if some durations are known only from below, since that bounds it
    /// on neither side.
    pub fn standard_deviation(self) -> Option<Duration> {
        let is_known = self.censored.is_none_or(Histogram::is_empty);
        is_known
            .then(|| self.observed.standard_deviation())
            .flatten()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn millis(value: u64) -> Duration {
        Duration::from_millis(value)
    }

    fn times(known: &[u64], waited: &[u64]) -> Times {
        let mut times = Times::new();
        for value in known {
            times.record(millis(*value));
        }
        for value in waited {
            times.record_at_least(millis(*value));
        }
        times
    }

    #[test]
    fn a_percentile_among_what_was_given_up_is_a_lower_bound() {
        // Nine answers and one that never came: the median is known, the 99th percentile is not.
        let times = times(&[10; 9], &[4_000]);
        let median = times.quantile(0.5).unwrap();
        assert!(!median.is_censored());
        let p99 = times.quantile(0.99).unwrap();
        assert!(p99.is_censored() && p99.high().is_none());
        assert!(p99.low() >= millis(3_990), "{p99:?}");
        assert!(times.max().unwrap().is_censored());
        assert!(times.mean().unwrap().is_censored());
        assert!(times.min().unwrap().known().is_some());
        let text = p99.text(|time| format!("{} ms", time.as_millis() / 10 * 10));
        assert_eq!(text, "≥ 4000 ms");
    }

    #[test]
    fn what_was_given_up_early_bounds_a_percentile_on_both_sides() {
        let times = times(&[10, 20, 30, 40], &[1]);
        let median = times.quantile(0.5).unwrap();
        assert!(median.is_censored());
        assert!(median.low() < millis(21) && median.high().is_some_and(|high| high > millis(29)));
    }

    #[test]
    fn without_any_the_statistics_are_those_of_the_histogram() {
        let times = times(&[10, 20, 30], &[]);
        for fraction in [0.0, 0.5, 0.99, 1.0] {
            let known = times.quantile(fraction).unwrap().known();
            assert_eq!(known, times.observed().quantile(fraction));
        }
        assert_eq!(
            times.view().mean().unwrap().known(),
            times.observed().mean()
        );
        assert!(times.view().standard_deviation().is_some());
        assert!(Times::new().quantile(0.5).is_none() && Times::new().is_empty());
    }

    proptest! {
        #[test]
        fn the_true_percentile_lies_within_the_bounds(
            known in prop::collection::vec(1_u64..10_000, 0..60),
            given_up in prop::collection::vec((1_u64..10_000, 0_u64..50_000), 0..20),
            fraction in 0.0_f64..=1.0,
        ) {
            let waited: Vec<u64> = given_up.iter().map(|(waited, _)| *waited).collect();
            let bounds = times(&known, &waited).quantile(fraction);
            // Had each been waited for, it would have taken that much longer.
            let mut all: Vec<u64> = known.clone();
            all.extend(given_up.iter().map(|(waited, more)| waited + more));
            let truth = times(&all, &[]).quantile(fraction);
            prop_assert_eq!(bounds.is_some(), truth.is_some());
            if let (Some(bounds), Some(truth)) = (bounds, truth) {
                let truth = truth.low();
                // Buckets have three figures.
                prop_assert!(bounds.low() <= truth.mul_f64(1.002), "{bounds:?} {truth:?}");
                prop_assert!(bounds.high().is_none_or(|high| high.mul_f64(1.002) >= truth));
            }
        }

        #[test]
        fn merging_keeps_both_kinds(
            one in prop::collection::vec(1_u64..10_000, 0..20),
            other in prop::collection::vec(1_u64..10_000, 0..20),
        ) {
            let mut sum = times(&one, &other);
            sum.merge(&times(&other, &one));
            prop_assert_eq!(sum.observed().len(), (one.len() + other.len()) as u64);
            prop_assert_eq!(sum.censored_count(), (one.len() + other.len()) as u64);
        }
    }
}
