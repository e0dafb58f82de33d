//! Estimators for a handful of trials: medians, and the ratio of two sides with its interval.
//!
//! Pure and seeded: the same samples and the same seed give the same interval.

mod coin;

mod pairs;

mod slope;

mod tails;

use std::fmt;

pub(crate) use self::coin::at_least;
pub use self::coin::median_interval;
pub use self::pairs::ratio_of_pairs;
pub use self::slope::{Slope, theil_sen};
use self::tails::{normal_tail, student_quantile};

/// The median: the middle value, or the mean of the two middle ones.
///
/// - `values`: in any order and any one unit, none NaN; the result has that unit.
///
/// `None` if there are no values.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    (!sorted.is_empty()).then(|| median_in_place(&mut sorted))
}

/// `values` in ascending order.
fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted
}

/// The smallest and the largest of `values`; `None` if there are none.
pub fn range(values: &[f64]) -> Option<Interval> {
    let first = *values.first()?;
    Some(values.iter().fold(
        Interval {
            low: first,
            high: first,
        },
        |range, &value| Interval {
            low: range.low.min(value),
            high: range.high.max(value),
        },
    ))
}

/// Half the length of the interval that holds a normal deviate of this variance with probability `level`.
pub(crate) fn normal_interval_half(level: f64, variance: f64) -> f64 {
    /// Student's distribution with so many degrees of freedom is the normal one to three digits.
    const MANY: f64 = 1000.0;
    student_quantile((1.0 - level) / 2.0, MANY) * variance.sqrt()
}

/// From a low to a high bound, both included.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// The lower bound.
    pub low: f64,
    /// The upper bound.
    pub high: f64,
}

impl Interval {
    /// Whether `value` lies within the bounds.
    pub fn contains(self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }
}

/// Pairing of the trials of the two sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pairing {
    /// The i-th values were measured next to each other, so a drift of the machine that hit both does not widen the
    /// interval: [`ratio_of_pairs`].
    Blocks,
    /// Each side stands by itself: [`ratio_of_medians`].
    Independent,
}

/// Settings of an interval by resampling.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bootstrap {
    /// Nominal coverage, a fraction such as 0.99.
    pub level: f64,
    /// Number of resamples; with 19 999 both bounds of a 99 % interval are order statistics.
    pub resamples: usize,
    /// Start of the random sequence.
    pub seed: u64,
}

impl Default for Bootstrap {
    fn default() -> Self {
        Self {
            level: 0.99,
            resamples: 19_999,
            // Any number does; the same one makes a report repeatable.
            seed: 1979,
        }
    }
}

/// The ratio of two sides.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RatioEstimate {
    /// Ours divided by the peer's.
    pub ratio: f64,
    /// The interval of that ratio.
    pub interval: Interval,
    /// Which of the two estimates it is.
    pub pairing: Pairing,
}

impl RatioEstimate {
    /// The smallest difference that these trials could have shown, as a fraction: one of this size
    /// would have taken the interval off 1 in about half of all comparisons with as much noise.
    pub fn could_have_seen(&self) -> f64 {
        let Interval { low, high } = self.interval;
        (self.ratio / low).max(high / self.ratio) - 1.0
    }
}

/// Why a ratio cannot be estimated.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum RatioError {
    /// A side has no values.
    #[error("no values to compare")]
    Empty,
    /// Values that were to be paired have different numbers.
    #[error("{ours} values cannot be paired with {peer}")]
    Unpaired {
        /// Number of our values.
        ours: usize,
        /// Number of the peer's values.
        peer: usize,
    },
    /// A ratio needs values above zero.
    #[error("{value} is not above zero, so it has no ratio")]
    NotPositive {
        /// The first such value.
        value: f64,
    },
    /// No interval has such a level.
    #[error("an interval has a level between 0 and 1, not {level}")]
    Level {
        /// What was wanted.
        level: f64,
    },
    /// The level or the number of resamples makes no interval.
    #[error("{0}")]
    Settings(BadSettings),
}

/// Which setting of a [`Bootstrap`] is out of range.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BadSettings {
    /// The wanted level.
    pub level: f64,
    /// The wanted number of resamples.
    pub resamples: usize,
}

impl fmt::Display for BadSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} resamples do not give an interval of level {}",
            self.resamples, self.level
        )
    }
}

/// Ratio of the medians of `ours` and `peer`, which are not paired, with an expanded bootstrap percentile interval.
///
/// - `ours`, `peer`: values above zero, both in the same unit; the ratio has none.
///
/// With n trials no percentile interval reaches beyond the smallest and the largest value, and that
/// range covers the true median with probability 1 − 2^(1−n) at most ([`coverage_limit`]), whatever
/// the nominal level.
///
/// Resamples of few trials vary less than further trials would, so the percentiles are taken further out, as far as
/// Student's quantile is beyond the normal one: of comparisons by 8 trials whose noise is normal, a plain interval of 99 %
/// calls 1.7 % that show nothing, an expanded one 0.7 %; with 60 trials the two are nearly the same.
///
/// Source: Efron and Tibshirani, "An Introduction to the Bootstrap" (1993): percentile interval,
/// section 13.3, with the order statistics of section 12.5. Hesterberg, "What Teachers
/// Should Know About the Bootstrap" (2015): expanded percentile interval.
pub fn ratio_of_medians(
    ours: &[f64],
    peer: &[f64],
    bootstrap: &Bootstrap,
) -> Result<RatioEstimate, RatioError> {
    check_values(ours, peer)?;
    let trials = ours.len().min(peer.len());
    let tail = tail_rank(bootstrap, trials).ok_or(RatioError::Settings(BadSettings {
        level: bootstrap.level,
        resamples: bootstrap.resamples,
    }))?;

    let ratio = median_in_place(&mut ours.to_vec()) / median_in_place(&mut peer.to_vec());
    let mut ratios = resampled_ratios(ours, peer, bootstrap);
    ratios.sort_unstable_by(f64::total_cmp);
    Ok(RatioEstimate {
        ratio,
        interval: Interval {
            low: ratios[tail - 1],
            high: ratios[ratios.len() - tail],
        },
        pairing: Pairing::Independent,
    })
}

/// That there are values, and that all of them have a ratio.
fn check_values(ours: &[f64], peer: &[f64]) -> Result<(), RatioError> {
    if ours.is_empty() || peer.is_empty() {
        return Err(RatioError::Empty);
    }
    let usable = |value: f64| value.is_finite() && value > 0.0;
    match ours.iter().chain(peer).find(|&&value| !usable(value)) {
        Some(&value) => Err(RatioError::NotPositive { value }),
        None => Ok(()),
    }
}

/// The most that any percentile interval for a median can cover with `trials` values.
///
/// The range from the smallest to the largest of n independent values misses the median of their
/// distribution only if all of them fall on one side of it: 2 · (1/2)^n.
pub fn coverage_limit(trials: usize) -> f64 {
    let power = i32::try_from(trials).unwrap_or(i32::MAX);
    (1.0 - 2.0 * 0.5_f64.powi(power)).max(0.0)
}

/// Rank of the bounds, counted from either end: ⌊(B + 1)·α′/2⌋, and 1 at least.
///
/// α′ is α as expanded for so few trials: α′/2 = Φ(−√(n/(n − 1)) · t), with the quantile t of Student's distribution of n − 1
/// degrees of freedom that α/2 lie beyond.
fn tail_rank(bootstrap: &Bootstrap, trials: usize) -> Option<usize> {
    if !(bootstrap.level > 0.0 && bootstrap.level < 1.0) {
        return None;
    }
    let tail = (1.0 - bootstrap.level) / 2.0;
    let draws = bootstrap.resamples as f64 + 1.0;
    // The sum undoes a rounding error.
    if draws * tail + 1e-9 < 1.0 {
        return None;
    }
    let expanded = if trials < 2 {
        0.0
    } else {
        let trials = trials as f64;
        normal_tail((trials / (trials - 1.0)).sqrt() * student_quantile(tail, trials - 1.0))
    };
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a positive rank below the number of resamples"
    )]
    let rank = (draws * expanded + 1e-9).floor() as usize;
    Some(rank.max(1))
}

fn resampled_ratios(ours: &[f64], peer: &[f64], bootstrap: &Bootstrap) -> Vec<f64> {
    let mut random = fastrand::Rng::with_seed(bootstrap.seed);
    let mut our_draw = vec![0.0; ours.len()];
    let mut peer_draw = vec![0.0; peer.len()];
    (0..bootstrap.resamples)
        .map(|_| {
            our_draw.fill_with(|| ours[random.usize(..ours.len())]);
            peer_draw.fill_with(|| peer[random.usize(..peer.len())]);
            median_in_place(&mut our_draw) / median_in_place(&mut peer_draw)
        })
        .collect()
}

/// The median of values that are not empty; leaves them sorted.
fn median_in_place(values: &mut [f64]) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len().is_multiple_of(2) {
        f64::midpoint(values[middle - 1], values[middle])
    } else {
        values[middle]
    }
}

#[cfg(test)]
mod tests;
