//! Durations of exchanges and phases.

use plimsoll_model::Histogram;
use serde::{Deserialize, Serialize};

use super::microseconds;

/// Durations of exchanges, from the intended and from the actual start.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LatencyDocument {
    /// From the actual start.
    pub from_started: TimesDocument,
    /// From the intended start; `null` in a closed loop, where it is the same.
    pub from_intended: Option<TimesDocument>,
}

/// A distribution of durations; all but `count` are `null` if nothing was counted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TimesDocument {
    /// Number of values.
    pub count: u64,
    /// Smallest.
    pub min_us: Option<f64>,
    /// Arithmetic mean.
    pub mean_us: Option<f64>,
    /// Standard deviation.
    pub stddev_us: Option<f64>,
    /// Median.
    pub p50_us: Option<f64>,
    /// 75th percentile.
    pub p75_us: Option<f64>,
    /// 90th percentile.
    pub p90_us: Option<f64>,
    /// 95th percentile.
    pub p95_us: Option<f64>,
    /// 99th percentile.
    pub p99_us: Option<f64>,
    /// 99.9th percentile.
    pub p99_9_us: Option<f64>,
    /// Largest.
    pub max_us: Option<f64>,
}

impl TimesDocument {
    pub(crate) fn of(histogram: &Histogram) -> Self {
        let quantile = |fraction| histogram.quantile(fraction).map(microseconds);
        Self {
            count: histogram.len(),
            min_us: histogram.min().map(microseconds),
            mean_us: histogram.mean().map(microseconds),
            stddev_us: histogram.standard_deviation().map(microseconds),
            p50_us: quantile(0.5),
            p75_us: quantile(0.75),
            p90_us: quantile(0.9),
            p95_us: quantile(0.95),
            p99_us: quantile(0.99),
            p99_9_us: quantile(0.999),
            max_us: histogram.max().map(microseconds),
        }
    }
}

/// Durations of one phase in the exchanges that completed it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PhaseDocument {
    /// Its name.
    pub phase: String,
    /// Duration.
    #[serde(flatten)]
    pub times: TimesDocument,
}
