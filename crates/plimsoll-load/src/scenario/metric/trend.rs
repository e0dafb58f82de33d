//! The distribution of any numbers in bounded memory.

use std::collections::BTreeMap;

/// Bits of the fraction that tell buckets apart.
const PRECISION: u32 = 9;

/// Buckets of one power of two.
const PAGE: usize = 1 << PRECISION;

/// Counts values in logarithmic buckets; a value is known to within 0.1 %, and exactly if all are whole numbers below
/// 1024.
///
/// Durations in nanoseconds have [`Histogram`](plimsoll_model::Histogram); this one takes fractions, zero and negative
/// numbers too, as scripts measure them. A page of 4 KiB is taken for each power of two that occurs.
///
/// Source: the buckets of HdrHistogram (G. Tene), laid out by the bits of IEEE 754 doubles.
#[derive(Debug, Clone, Default)]
pub struct Trend {
    /// By sign and exponent, in the order of the values.
    pages: BTreeMap<i16, Box<[u64; PAGE]>>,
    count: u64,
    sum: f64,
    min: f64,
    max: f64,
    /// A value with a fraction was counted.
    has_fractions: bool,
    /// Every value, if quantiles are exact; `pages` are empty then.
    values: Option<Vec<f64>>,
}

impl Trend {
    /// A distribution that keeps every value, 8 bytes each, so that its quantiles are exact.
    pub fn exact() -> Self {
        Self {
            values: Some(Vec::new()),
            ..Self::default()
        }
    }

    /// Counts a value; one that is not a number is ignored.
    pub fn add(&mut self, value: f64) {
        if value.is_nan() {
            return;
        }
        if self.count == 0 {
            self.min = value;
            self.max = value;
        } else {
            self.min = self.min.min(value);
            self.max = self.max.max(value);
        }
        self.count += 1;
        self.sum += value;
        self.has_fractions |= value.fract() != 0.0;
        if let Some(values) = &mut self.values {
            values.push(value);
            return;
        }
        let (page, bucket) = place(value);
        self.page(page)[bucket] += 1;
    }

    /// Adds what another one counted.
    pub fn merge(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        if self.count == 0 {
            self.min = other.min;
            self.max = other.max;
        } else {
            self.min = self.min.min(other.min);
            self.max = self.max.max(other.max);
        }
        self.count += other.count;
        self.sum += other.sum;
        self.has_fractions |= other.has_fractions;
        if let (Some(mine), Some(theirs)) = (&mut self.values, &other.values) {
            mine.extend_from_slice(theirs);
            return;
        }
        debug_assert!(
            self.values.is_none() && other.values.is_none(),
            "the trends of a run are exact or none is"
        );
        for (key, counts) in &other.pages {
            let page = self.page(*key);
            for (mine, theirs) in page.iter_mut().zip(counts.iter()) {
                *mine += theirs;
            }
        }
    }

    /// How many values there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The arithmetic mean, exact; 0 without values.
    pub fn mean(&self) -> f64 {
        if self.count == 0 {
            return 0.0;
        }
        self.sum / self.count as f64
    }

    /// The smallest value, exact; 0 without values.
    pub fn min(&self) -> f64 {
        self.min
    }

    /// The largest value, exact; 0 without values.
    pub fn max(&self) -> f64 {
        self.max
    }

    /// Quantile at `fraction`, from 0 to 1: linear between the two closest ranks, rank = fraction × (n − 1), as k6
    /// computes it; 0 without values.
    ///
    /// Source: Hyndman and Fan, "Sample Quantiles in Statistical Packages" (1996), definition 7.
    pub fn quantile(&self, fraction: f64) -> f64 {
        let Some(last) = self.count.checked_sub(1) else {
            return 0.0;
        };
        let rank = fraction.clamp(0.0, 1.0) * last as f64;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a rank lies between 0 and the count"
        )]
        let lower = rank.floor() as u64;
        let sorted = self.values.clone().map(|mut values| {
            values.sort_by(f64::total_cmp);
            values
        });
        let value_at = |rank: u64| match &sorted {
            Some(values) => {
                let index = usize::try_from(rank).unwrap_or(usize::MAX);
                values.get(index).copied().unwrap_or(self.max)
            }
            None => self.value_at(rank),
        };
        let below = value_at(lower);
        if lower == last {
            return below;
        }
        let above = value_at(lower + 1);
        below + (above - below) * rank.fract()
    }

    /// The value of that rank, from 0.
    fn value_at(&self, rank: u64) -> f64 {
        if rank == 0 {
            return self.min;
        }
        if rank + 1 >= self.count {
            return self.max;
        }
        let mut left = rank;
        for (key, page) in &self.pages {
            for (bucket, count) in page.iter().enumerate() {
                // Buckets of negative numbers go from the largest magnitude.
                if left < *count {
                    let value = middle(*key, bucket, self.has_fractions);
                    return value.clamp(self.min, self.max);
                }
                left -= count;
            }
        }
        self.max
    }

    fn page(&mut self, key: i16) -> &mut [u64; PAGE] {
        self.pages.entry(key).or_insert_with(|| Box::new([0; PAGE]))
    }
}

/// A distribution as plain values.
#[derive(Debug, Clone, PartialEq)]
pub struct TrendParts {
    /// Pages and buckets with the number of their values, those that have any.
    pub buckets: Vec<(i16, u16, u64)>,
    /// How many values there are.
    pub count: u64,
    /// Their sum.
    pub sum: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
    /// Whether one of them has a fraction.
    pub has_fractions: bool,
    /// Every value, if quantiles are exact.
    pub values: Option<Vec<f64>>,
}

impl Trend {
    /// The distribution as plain values; nothing is lost.
    pub fn parts(&self) -> TrendParts {
        let pages = self.pages.iter().flat_map(|(page, counts)| {
            let counts = (0_u16..)
                .zip(counts.iter())
                .filter(|(_, count)| **count > 0);
            counts.map(|(bucket, count)| (*page, bucket, *count))
        });
        TrendParts {
            buckets: pages.collect(),
            count: self.count,
            sum: self.sum,
            min: self.min,
            max: self.max,
            has_fractions: self.has_fractions,
            values: self.values.clone(),
        }
    }

    /// A distribution from plain values; `None` if they are not those of one.
    pub fn from_parts(parts: TrendParts) -> Option<Self> {
        let mut trend = Self {
            count: parts.count,
            sum: parts.sum,
            min: parts.min,
            max: parts.max,
            has_fractions: parts.has_fractions,
            values: parts.values,
            ..Self::default()
        };
        let mut counted = trend
            .values
            .as_ref()
            .map_or(0, |values| values.len() as u64);
        for (page, bucket, count) in parts.buckets {
            *trend.page(page).get_mut(usize::from(bucket))? += count;
            counted = counted.checked_add(count)?;
        }
        (counted == trend.count).then_some(trend)
    }
}

/// The page and bucket of a value; both ascend with the values.
fn place(value: f64) -> (i16, usize) {
    let bits = value.abs().to_bits();
    let bits_of_fraction = (bits >> (52 - PRECISION)) & (PAGE as u64 - 1);
    let exponent = i16::try_from(bits >> 52).unwrap_or(i16::MAX);
    let bucket = usize::try_from(bits_of_fraction).unwrap_or_default();
    if value < 0.0 {
        (-1 - exponent, PAGE - 1 - bucket)
    } else {
        (exponent, bucket)
    }
}

/// The middle of a bucket; without fractions the number at its lower end, which small whole numbers are.
fn middle(page: i16, bucket: usize, has_fractions: bool) -> f64 {
    let is_negative = page < 0;
    let (exponent, bucket) = if is_negative {
        (-1 - page, PAGE - 1 - bucket)
    } else {
        (page, bucket)
    };
    let low = (u64::from(exponent.unsigned_abs()) << 52) | ((bucket as u64) << (52 - PRECISION));
    if low == 0 {
        return 0.0;
    }
    let width = 1_u64 << (52 - PRECISION);
    let value = f64::midpoint(f64::from_bits(low), f64::from_bits(low + width));
    let value = if has_fractions && value.is_finite() {
        value
    } else {
        f64::from_bits(low)
    };
    if is_negative { -value } else { value }
}
