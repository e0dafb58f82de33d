//! Durations of exchanges and phases.

use std::time::Duration;

use plimsoll_model::{Bounded, GeneratorShare, TimesView};
use serde::{Deserialize, Serialize};

use super::{is_zero, microseconds};

/// Durations of exchanges, from the intended and from the actual start.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LatencyDocument {
    /// From the actual start.
    pub from_started: TimesDocument,
    /// From the intended start; `null` in a closed loop, where it is the same.
    pub from_intended: Option<TimesDocument>,
    /// Of responses with a status below 400, from the intended start where there is one; absent unless there are
    /// both kinds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of_ok: Option<TimesDocument>,
    /// Of responses with a status of 400 or above; absent unless there are both kinds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of_errors: Option<TimesDocument>,
}

/// A distribution of durations; all but the counts are `None` if nothing was counted.
///
/// A figure that is only a lower bound knows it, so that it cannot be shown as anything else; in JSON it
/// is a number whose name is in the list `censored`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(from = "RawTimes", into = "RawTimes")]
pub struct TimesDocument {
    /// Number of durations that are known.
    pub count: u64,
    /// Number of those known only from below: of exchanges that were aborted or missed.
    pub censored_count: u64,
    /// Smallest.
    pub min_us: Option<Bounded<f64>>,
    /// Arithmetic mean.
    pub mean_us: Option<Bounded<f64>>,
    /// Standard deviation; `None` too if some durations are known only from below.
    pub stddev_us: Option<f64>,
    /// Median.
    pub p50_us: Option<Bounded<f64>>,
    /// 75th percentile.
    pub p75_us: Option<Bounded<f64>>,
    /// 90th percentile.
    pub p90_us: Option<Bounded<f64>>,
    /// 95th percentile.
    pub p95_us: Option<Bounded<f64>>,
    /// 99th percentile.
    pub p99_us: Option<Bounded<f64>>,
    /// 99.9th percentile.
    pub p99_9_us: Option<Bounded<f64>>,
    /// Largest.
    pub max_us: Option<Bounded<f64>>,
    /// How much of each the generator may have added; absent where that is not known.
    pub of_generator: Option<GeneratorShareDocument>,
}

/// By how much waits of the generator may have raised each figure of a distribution, at most, in microseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GeneratorShareDocument {
    /// Of the smallest.
    pub min_us: f64,
    /// Of the arithmetic mean.
    pub mean_us: f64,
    /// Of the median.
    pub p50_us: f64,
    /// Of the 75th percentile.
    pub p75_us: f64,
    /// Of the 90th percentile.
    pub p90_us: f64,
    /// Of the 95th percentile.
    pub p95_us: f64,
    /// Of the 99th percentile.
    pub p99_us: f64,
    /// Of the 99.9th percentile.
    pub p99_9_us: f64,
    /// Of the largest.
    pub max_us: f64,
}

impl GeneratorShareDocument {
    /// `None` if there are no durations.
    fn of_times(share: &GeneratorShare, times: TimesView<'_>) -> Option<Self> {
        let quantile = |fraction| share.in_quantile(times, fraction).map(microseconds);
        Some(Self {
            min_us: quantile(0.0)?,
            mean_us: share.in_mean(times).map(microseconds)?,
            p50_us: quantile(0.5)?,
            p75_us: quantile(0.75)?,
            p90_us: quantile(0.9)?,
            p95_us: quantile(0.95)?,
            p99_us: quantile(0.99)?,
            p99_9_us: quantile(0.999)?,
            max_us: quantile(1.0)?,
        })
    }
}

impl TimesDocument {
    /// With what the generator may have added, if that is known.
    pub(crate) fn with_share(times: TimesView<'_>, share: Option<&GeneratorShare>) -> Self {
        Self {
            of_generator: share.and_then(|share| GeneratorShareDocument::of_times(share, times)),
            ..Self::from_times(times)
        }
    }

    pub(crate) fn from_times<'a>(times: impl Into<TimesView<'a>>) -> Self {
        let times = times.into();
        // JSON has lower bounds only, and a document reads as it was written.
        let micros = |time: Bounded<Duration>| match time.known() {
            Some(known) => Bounded::exact(microseconds(known)),
            None => Bounded::at_least(microseconds(time.low())),
        };
        let quantile = |fraction| times.quantile(fraction).map(micros);
        let count = times.observed().len();
        Self {
            count,
            censored_count: times.len() - count,
            min_us: times.min().map(micros),
            mean_us: times.mean().map(micros),
            stddev_us: times.standard_deviation().map(microseconds),
            p50_us: quantile(0.5),
            p75_us: quantile(0.75),
            p90_us: quantile(0.9),
            p95_us: quantile(0.95),
            p99_us: quantile(0.99),
            p99_9_us: quantile(0.999),
            max_us: times.max().map(micros),
            of_generator: None,
        }
    }
}

/// [`TimesDocument`] as it is in JSON: numbers, and the names of those that are lower bounds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct RawTimes {
    count: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    censored_count: u64,
    min_us: Option<f64>,
    mean_us: Option<f64>,
    stddev_us: Option<f64>,
    p50_us: Option<f64>,
    p75_us: Option<f64>,
    p90_us: Option<f64>,
    p95_us: Option<f64>,
    p99_us: Option<f64>,
    p99_9_us: Option<f64>,
    max_us: Option<f64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    censored: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    of_generator: Option<GeneratorShareDocument>,
}

impl From<TimesDocument> for RawTimes {
    fn from(times: TimesDocument) -> Self {
        let mut censored = Vec::new();
        let mut number = |name: &str, figure: Option<Bounded<f64>>| {
            let figure = figure?;
            if figure.is_censored() {
                censored.push(name.to_owned());
            }
            Some(figure.low())
        };
        Self {
            count: times.count,
            censored_count: times.censored_count,
            min_us: number("min_us", times.min_us),
            mean_us: number("mean_us", times.mean_us),
            stddev_us: times.stddev_us,
            p50_us: number("p50_us", times.p50_us),
            p75_us: number("p75_us", times.p75_us),
            p90_us: number("p90_us", times.p90_us),
            p95_us: number("p95_us", times.p95_us),
            p99_us: number("p99_us", times.p99_us),
            p99_9_us: number("p99_9_us", times.p99_9_us),
            max_us: number("max_us", times.max_us),
            censored,
            of_generator: times.of_generator,
        }
    }
}

impl From<RawTimes> for TimesDocument {
    fn from(raw: RawTimes) -> Self {
        let figure = |name: &str, number: Option<f64>| {
            let number = number?;
            Some(if raw.censored.iter().any(|censored| censored == name) {
                Bounded::at_least(number)
            } else {
                Bounded::exact(number)
            })
        };
        Self {
            count: raw.count,
            censored_count: raw.censored_count,
            min_us: figure("min_us", raw.min_us),
            mean_us: figure("mean_us", raw.mean_us),
            stddev_us: raw.stddev_us,
            p50_us: figure("p50_us", raw.p50_us),
            p75_us: figure("p75_us", raw.p75_us),
            p90_us: figure("p90_us", raw.p90_us),
            p95_us: figure("p95_us", raw.p95_us),
            p99_us: figure("p99_us", raw.p99_us),
            p99_9_us: figure("p99_9_us", raw.p99_9_us),
            max_us: figure("max_us", raw.max_us),
            of_generator: raw.of_generator,
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
