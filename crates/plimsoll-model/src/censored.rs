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
            unknown: 0,
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

    /// The same, and takes their memory over where there is no duration yet.
    pub fn absorb(&mut self, other: Self) {
        self.observed.absorb(other.observed);
        if let Some(theirs) = other.censored {
            self.censored.get_or_insert_default().absorb(*theirs);
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
    /// Durations of which nothing is known, not even how long was waited for them.
    unknown: u64,
}

impl<'a> From<&'a Histogram> for TimesView<'a> {
    /// Durations that are all known.
    fn from(observed: &'a Histogram) -> Self {
        Self {
            observed,
            censored: None,
            unknown: 0,
        }
    }
}

impl<'a> TimesView<'a> {
    /// Those that are known from below, at their bounds; `None` if there are none.
    pub fn censored(&self) -> Option<&'a Histogram> {
        self.censored
    }

    /// The same with as many more durations of which nothing is known.
    #[must_use]
    pub fn with_unknown(self, unknown: u64) -> Self {
        Self {
            unknown: self.unknown + unknown,
            ..self
        }
    }

    /// The durations that are known.
    pub fn observed(self) -> &'a Histogram {
        self.observed
    }

    /// Number of durations of either kind.
    pub fn len(self) -> u64 {
        self.observed.len() + self.censored.map_or(0, Histogram::len) + self.unknown
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The duration at `fraction` of all, see [`Histogram::quantile`]; `None` if there are none.
    pub fn quantile(self, fraction: f64) -> Option<Bounded<Duration>> {
        if self.is_complete() {
            return self.observed.quantile(fraction).map(Bounded::exact);
        }
        let all = self.len();
        let rank = (fraction.clamp(0.0, 1.0) * all as f64).ceil().max(1.0);
        (all > 0).then(|| self.at_rank(rank))
    }

    /// An interval that holds the quantile at `fraction` of what these durations are a sample of, at a confidence of
    /// 95 %: its lower end, and its upper end unless that lies beyond the largest duration. `None` if there are none.
    ///
    /// The ends are order statistics, so no distribution is assumed, but that durations do not depend on each other
    /// is: where slow responses come in groups, the interval is too narrow.
    ///
    /// Source: Hahn and Meeker, "Statistical Intervals" (1991), section 5.2, in the normal approximation.
    pub fn interval(self, fraction: f64) -> Option<(Duration, Option<Duration>)> {
        let all = self.len() as f64;
        if all < 1.0 {
            return None;
        }
        let middle = fraction * all;
        let margin = Z_95 * (fraction * (1.0 - fraction) * all).sqrt();
        let low = self.at_rank((middle - margin).floor().max(1.0)).low();
        let upper = (middle + margin).ceil() + 1.0;
        let high = (upper <= all).then(|| self.at_rank(upper).high()).flatten();
        Some((low, high))
    }

    /// The duration of a rank, from 1 to their number.
    fn at_rank(self, rank: f64) -> Bounded<Duration> {
        let known = self.observed.len() as f64;
        // At zero those that are unknown are the first in order, and at infinity the last.
        let above = rank - self.unknown as f64;
        let low = if above <= 0.0 {
            Duration::ZERO
        } else {
            match self.censored.filter(|censored| !censored.is_empty()) {
                None => quantile_of_rank(self.observed, above),
                Some(censored) => {
                    let mut all = self.observed.clone();
                    all.merge(censored);
                    quantile_of_rank(&all, above)
                }
            }
        };
        let high = (rank <= known).then(|| quantile_of_rank(self.observed, rank).max(low));
        Bounded::between(low, high)
    }

    /// Whether every duration is known.
    fn is_complete(self) -> bool {
        self.unknown == 0 && self.censored.is_none_or(Histogram::is_empty)
    }

    /// The smallest.
    pub fn min(self) -> Option<Bounded<Duration>> {
        if self.unknown > 0 {
            return Some(Bounded::between(Duration::ZERO, self.observed.min()));
        }
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
        if self.unknown > 0 {
            let known = self.observed.max().into_iter().chain(censored).max();
            return Some(Bounded::at_least(known.unwrap_or_default()));
        }
        match (self.observed.max(), censored) {
            (known, None) => known.map(Bounded::exact),
            (known, Some(waited)) => Some(Bounded::at_least(
                known.map_or(waited, |known| known.max(waited)),
            )),
        }
    }

    /// The arithmetic mean.
    pub fn mean(self) -> Option<Bounded<Duration>> {
        if self.is_complete() {
            return self.observed.mean().map(Bounded::exact);
        }
        let mut all = self.observed.clone();
        if let Some(censored) = self.censored {
            all.merge(censored);
        }
        // Those that are unknown count with nothing.
        let share = all.len() as f64 / self.len() as f64;
        let mean = all.mean().unwrap_or_default().mul_f64(share);
        (!self.is_empty()).then(|| Bounded::at_least(mean))
    }

    /// The standard deviation; `None` if some durations are known only from below, since that bounds it
    /// on neither side.
    pub fn standard_deviation(self) -> Option<Duration> {
        self.is_complete()
            .then(|| self.observed.standard_deviation())
            .flatten()
    }
}

/// The quantile of the normal distribution that leaves 2.5 % on either side.
const Z_95: f64 = 1.96;

/// - `rank`: from 1 to the number of durations.
fn quantile_of_rank(histogram: &Histogram, rank: f64) -> Duration {
    // In the middle of the rank, so that no rounding leads to the next one.
    let fraction = (rank - 0.5) / histogram.len() as f64;
    histogram.quantile(fraction).unwrap_or_default()
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

    #[test]
    fn durations_of_which_nothing_is_known_make_percentiles_bounds() {
        let known = times(&[10; 90], &[]);
        let view = known.view().with_unknown(10);
        assert_eq!(view.len(), 100);
        let median = view.quantile(0.5).unwrap();
        assert!(median.known().is_some(), "{median:?}");
        let p95 = view.quantile(0.95).unwrap();
        assert!(p95.is_censored() && p95.high().is_none() && p95.low() > millis(9));
        let p5 = view.quantile(0.05).unwrap();
        assert!(p5.is_censored() && p5.low().is_zero() && p5.high().is_some());
        assert!(view.max().unwrap().is_censored());
        let mean = view.mean().unwrap();
        assert!(mean.is_censored() && (millis(8)..millis(10)).contains(&mean.low()));
    }

    #[test]
    fn a_rank_is_exact() {
        let values: Vec<u64> = (1..=100).collect();
        let times = times(&values, &[]);
        for rank in 1..=100_u64 {
            let found = quantile_of_rank(times.observed(), rank as f64);
            let off = found.as_micros().abs_diff(u128::from(rank * 1_000));
            assert!(off < 400, "{rank} {found:?}");
        }
    }

    #[test]
    fn an_interval_has_no_upper_end_where_there_are_too_few() {
        let hundreds: Vec<u64> = (1..=400).collect();
        let many = times(&hundreds, &[]);
        let (low, high) = many.view().interval(0.5).unwrap();
        // 200 ± 1.96 × 10.
        assert!((millis(179)..=millis(181)).contains(&low), "{low:?}");
        assert!(
            (millis(219)..=millis(223)).contains(&high.unwrap()),
            "{high:?}"
        );
        let (low, high) = many.view().interval(0.999).unwrap();
        assert!(low > millis(390) && high.is_none());
        assert_eq!(Times::new().view().interval(0.5), None);
        // One of those that were given up is no upper end.
        let given_up = times(&[10; 50], &[5; 50]);
        assert_eq!(given_up.view().interval(0.9).unwrap().1, None);
    }

    #[test]
    fn the_interval_of_a_median_holds_it_nineteen_times_in_twenty() {
        // Numerical Recipes' linear congruential generator.
        let mut state = 1_u32;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            u64::from(state >> 8) % 10_000 + 1
        };
        let held = (0..1_000).filter(|_| {
            let values: Vec<u64> = (0..60).map(|_| next()).collect();
            let (low, high) = times(&values, &[]).view().interval(0.5).unwrap();
            low <= millis(5_000) && high.is_some_and(|high| high >= millis(5_000))
        });
        let held = held.count();
        assert!((930..=990).contains(&held), "{held}");
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
