//! Durations counted in logarithmic buckets: constant memory, exact merging.

use std::fmt;
use std::time::Duration;

/// Three significant figures, from one nanosecond to [`Histogram::MAX`].
///
/// Source: G. Tene, HdrHistogram; the buckets are those of the `hdrhistogram` crate, so a V2 log can
/// be written without loss.
#[derive(Clone)]
pub struct Histogram {
    inner: hdrhistogram::Histogram<u64>,
}

const SIGNIFICANT_FIGURES: u8 = 3;

const MAX_NANOS: u64 = Histogram::MAX.as_secs() * 1_000_000_000;

/// Why counting does not fail.
const GROWS: &str = "a histogram grows as far as an hour";

/// One occupied bucket of a [`Histogram`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bucket {
    /// The highest duration that the bucket stands for.
    pub up_to: Duration,
    /// Number of values.
    pub count: u64,
}

impl Histogram {
    /// The longest recorded duration; longer ones are counted as this one.
    pub const MAX: Duration = Duration::from_hours(1);

    /// An empty histogram, whose memory grows with the longest value: 16 KiB at first, 264 KiB at [`MAX`](Self::MAX).
    pub fn new() -> Self {
        Self {
            inner: hdrhistogram::Histogram::new(SIGNIFICANT_FIGURES)
                .expect("three figures are allowed"),
        }
    }

    /// The values of a histogram of nanoseconds, as an HdrHistogram log holds it.
    pub fn from_hdr(mut nanos: hdrhistogram::Histogram<u64>) -> Self {
        let longest = nanos.lowest_equivalent(nanos.max());
        if nanos.low() == 1 && nanos.sigfig() == SIGNIFICANT_FIGURES && longest <= MAX_NANOS {
            // The buckets are ours.
            nanos.auto(true);
            return Self { inner: nanos };
        }
        let mut histogram = Self::new();
        for value in nanos.iter_recorded() {
            histogram.record_bucket(Bucket {
                up_to: Duration::from_nanos(value.value_iterated_to()),
                count: value.count_at_value(),
            });
        }
        histogram
    }

    /// Counts one duration.
    #[inline]
    pub fn record(&mut self, duration: Duration) {
        self.inner.record(bounded_nanos(duration)).expect(GROWS);
    }

    /// Counts every value of `bucket`.
    pub fn record_bucket(&mut self, bucket: Bucket) {
        let nanos = bounded_nanos(bucket.up_to);
        self.inner.record_n(nanos, bucket.count).expect(GROWS);
    }

    /// Adds every value of `other`; the order of merging does not matter.
    pub fn merge(&mut self, other: &Self) {
        if !other.is_empty() {
            self.inner.add(&other.inner).expect(GROWS);
        }
    }

    /// Adds every value of `other`, whose memory is taken over where there is no value yet.
    pub fn absorb(&mut self, other: Self) {
        if self.is_empty() {
            *self = other;
        } else {
            self.merge(&other);
        }
    }

    /// The values that are not in `part`, of which each must be in here.
    #[must_use]
    pub fn without(&self, part: &Self) -> Self {
        let mut rest = Self::new();
        let mut taken = part.buckets().peekable();
        for bucket in self.buckets() {
            let same = taken.next_if(|taken| taken.up_to == bucket.up_to);
            let count = bucket
                .count
                .saturating_sub(same.map_or(0, |same| same.count));
            if count > 0 {
                rest.record_bucket(Bucket { count, ..bucket });
            }
        }
        rest
    }

    /// Forgets every value and keeps the memory.
    pub fn clear(&mut self) {
        if !self.is_empty() {
            self.inner.reset();
        }
    }

    /// Number of recorded values.
    pub fn len(&self) -> u64 {
        self.inner.len()
    }

    /// Whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.inner.is_empty()
    }

    /// The value at `fraction` of the counted values (0.5 is the median), `None` if there are none.
    ///
    /// The method is the nearest rank: the smallest value such that at least `fraction` of all are
    /// no larger, rounded up to its bucket's upper end and capped at the largest counted value.
    pub fn quantile(&self, fraction: f64) -> Option<Duration> {
        (!self.is_empty()).then(|| {
            let value = self.inner.value_at_quantile(fraction.clamp(0.0, 1.0));
            Duration::from_nanos(value.min(self.inner.max()))
        })
    }

    /// The smallest value, to three figures.
    pub fn min(&self) -> Option<Duration> {
        (!self.is_empty()).then(|| Duration::from_nanos(self.inner.min()))
    }

    /// The largest value, to three figures.
    pub fn max(&self) -> Option<Duration> {
        (!self.is_empty()).then(|| Duration::from_nanos(self.inner.max()))
    }

    /// The arithmetic mean.
    pub fn mean(&self) -> Option<Duration> {
        (!self.is_empty()).then(|| Duration::from_secs_f64(self.inner.mean() / 1e9))
    }

    /// The standard deviation of the counted values.
    pub fn standard_deviation(&self) -> Option<Duration> {
        (!self.is_empty()).then(|| Duration::from_secs_f64(self.inner.stdev() / 1e9))
    }

    /// Number of values no larger than `limit`, to three figures.
    pub fn count_up_to(&self, limit: Duration) -> u64 {
        self.inner
            .count_between(0, u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX))
    }

    /// The occupied buckets, ascending.
    pub fn buckets(&self) -> impl Iterator<Item = Bucket> + '_ {
        self.inner.iter_recorded().map(|value| Bucket {
            up_to: Duration::from_nanos(value.value_iterated_to()),
            count: value.count_at_value(),
        })
    }

    /// The values in wide buckets, ascending: their upper ends are the E6 series of preferred numbers
    /// (IEC 60063), six a decade, the same for every histogram. Empty ones are left out.
    pub fn coarse(&self) -> Vec<Bucket> {
        let mut coarse: Vec<Bucket> = Vec::new();
        for bucket in self.buckets() {
            let up_to = preferred(bucket.up_to);
            match coarse.last_mut() {
                Some(last) if last.up_to == up_to => last.count += bucket.count,
                _ => coarse.push(Bucket {
                    up_to,
                    count: bucket.count,
                }),
            }
        }
        coarse
    }

    /// The underlying histogram of nanoseconds, for the encoders of the HdrHistogram format.
    pub fn as_hdr(&self) -> &hdrhistogram::Histogram<u64> {
        &self.inner
    }
}

#[inline]
fn bounded_nanos(duration: Duration) -> u64 {
    let nanos = u64::try_from(duration.as_nanos()).unwrap_or(MAX_NANOS);
    nanos.min(MAX_NANOS)
}

/// The smallest number of the E6 series that is no less than `duration`.
fn preferred(duration: Duration) -> Duration {
    const SERIES: [u64; 6] = [10, 15, 22, 33, 47, 68];
    let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
    // In tenths of nanoseconds the first decade is whole numbers too.
    let decades = std::iter::successors(Some(1_u64), |power| power.checked_mul(10));
    let mut steps = decades.flat_map(|power| SERIES.map(|step| step.saturating_mul(power)));
    let tenths = nanos.saturating_mul(10);
    let step = steps.find(|step| *step >= tenths).unwrap_or(u64::MAX);
    Duration::from_nanos(step.div_ceil(10))
}

/// The same counts, whatever memory there is for more.
impl PartialEq for Histogram {
    fn eq(&self, other: &Self) -> bool {
        self.buckets().eq(other.buckets())
    }
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Histogram")
            .field("len", &self.len())
            .field("p50", &self.quantile(0.5))
            .field("max", &self.max())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn histogram(values: &[u64]) -> Histogram {
        let mut histogram = Histogram::new();
        for value in values {
            histogram.record(Duration::from_nanos(*value));
        }
        histogram
    }

    #[test]
    fn an_empty_histogram_has_no_quantile() {
        assert_eq!(Histogram::new().quantile(0.5), None);
        assert_eq!(Histogram::new().max(), None);
    }

    #[test]
    fn a_duration_beyond_the_maximum_is_still_counted() {
        let mut histogram = Histogram::new();
        histogram.record(Duration::from_secs(10_000));
        assert_eq!(histogram.len(), 1);
        assert!(histogram.max().is_some_and(|max| max >= Histogram::MAX));
    }

    #[test]
    fn histograms_that_grew_for_others_are_equal_and_add_up() {
        let mut grown = histogram(&[3_000_000_000]);
        grown.clear();
        grown.record(Duration::from_nanos(5));
        let small = histogram(&[5]);
        assert_eq!(grown, small);
        assert_eq!(small, grown);
        assert_ne!(small, histogram(&[6]));
        for (mut sum, other) in [(grown.clone(), &small), (small.clone(), &grown)] {
            sum.merge(other);
            assert_eq!(sum, histogram(&[5, 5]));
        }
    }

    #[test]
    fn a_part_can_be_taken_out_again() {
        let (part, rest) = (
            histogram(&[5, 900_000, 900_000]),
            histogram(&[5, 7, 900_000, 3_000_000_000]),
        );
        let mut whole = part.clone();
        whole.merge(&rest);
        assert_eq!(whole.without(&part), rest);
        assert_eq!(whole.without(&whole), Histogram::new());
    }

    #[test]
    fn the_highest_quantile_is_the_maximum() {
        let histogram = histogram(&[1_000_001, 5_000_003, 9_999_999]);
        assert_eq!(histogram.quantile(1.0), histogram.max());
    }

    #[test]
    fn coarse_buckets_are_six_a_decade_and_lose_no_value() {
        let histogram = histogram(&[1, 90_000, 100_000, 150_001, 980_000, 2_000_000_000]);
        let estimate: Vec<_> = histogram
            .coarse()
            .iter()
            .map(|bucket| (bucket.up_to.as_nanos(), bucket.count))
            .collect();
        let expected = [
            (1, 1),
            (100_000, 1),
            (150_000, 1),
            (220_000, 1),
            (1_000_000, 1),
            (2_200_000_000, 1),
        ];
        assert_eq!(estimate, expected);
    }

    #[test]
    fn a_histogram_of_a_log_is_the_same_whatever_its_buckets() {
        let values = [5, 900_000, 3_000_000_000, MAX_NANOS, 2 * MAX_NANOS];
        for (values, figures) in [
            (&values[..3], 3),
            (&values[..4], 3),
            (&values, 3),
            (&values, 5),
        ] {
            let mut nanos = hdrhistogram::Histogram::<u64>::new(figures).unwrap();
            for value in values {
                nanos.record(*value).unwrap();
            }
            let mut read = Histogram::from_hdr(nanos);
            assert_eq!(read, histogram(values));
            // It grows as any other.
            read.record(Histogram::MAX);
            read.absorb(histogram(&[7]));
            assert_eq!(read.len(), values.len() as u64 + 2);
        }
    }

    #[test]
    fn an_empty_histogram_absorbs_as_one_with_values_does() {
        for before in [&[][..], &[5, 3_000_000_000]] {
            let (mut merged, mut absorbed) = (histogram(before), histogram(before));
            merged.merge(&histogram(&[7, 900_000]));
            absorbed.absorb(histogram(&[7, 900_000]));
            assert_eq!(merged, absorbed);
        }
    }

    proptest! {
        #[test]
        fn coarse_buckets_hold_what_is_no_larger_than_their_ends(
            values in prop::collection::vec(1_u64..3_600_000_000_000, 0..60),
        ) {
            let histogram = histogram(&values);
            let coarse = histogram.coarse();
            prop_assert!(coarse.is_sorted_by(|a, b| a.up_to < b.up_to));
            let mut below = 0;
            for bucket in &coarse {
                below += bucket.count;
                let up_to = |factor: f64| {
                    let limit = bucket.up_to.as_nanos() as f64 * factor;
                    values.iter().filter(|value| **value as f64 <= limit).count() as u64
                };
                // A value may share its fine bucket with the end of the coarse one.
                prop_assert!((up_to(0.998)..=up_to(1.002)).contains(&below));
            }
            prop_assert_eq!(below, values.len() as u64);
        }

        #[test]
        fn merging_is_commutative_and_associative(
            a in prop::collection::vec(0_u64..10_000_000_000, 0..40),
            b in prop::collection::vec(0_u64..10_000_000_000, 0..40),
            c in prop::collection::vec(0_u64..10_000_000_000, 0..40),
        ) {
            let mut left = histogram(&a);
            left.merge(&histogram(&b));
            left.merge(&histogram(&c));
            let mut right = histogram(&c);
            let mut tail = histogram(&b);
            tail.merge(&histogram(&a));
            right.merge(&tail);
            prop_assert_eq!(left.len(), (a.len() + b.len() + c.len()) as u64);
            prop_assert!(left.buckets().eq(right.buckets()));
        }

        #[test]
        fn a_quantile_is_within_three_figures_of_the_nearest_rank(
            mut values in prop::collection::vec(1_u64..10_000_000_000, 1..200),
            fraction in 0.0_f64..=1.0,
        ) {
            let histogram = histogram(&values);
            values.sort_unstable();
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rank")]
            let rank = ((fraction * values.len() as f64).ceil() as usize).clamp(1, values.len());
            let exact = values[rank - 1] as f64;
            let estimate = histogram.quantile(fraction).unwrap().as_nanos() as f64;
            prop_assert!((estimate - exact).abs() <= exact * 0.001 + 1.0, "{estimate} for {exact}");
        }
    }
}
