//! Aggregates of the samples of one series.

use std::time::Duration;

use super::registry::{Metric, MetricKind};
use super::trend::Trend;

/// The aggregate of one series.
#[derive(Debug, Clone)]
pub enum Sink {
    /// The sum of what was added.
    Counter(f64),
    /// The last value.
    Gauge(GaugeSink),
    /// How many samples were not 0.
    Rate(RateSink),
    /// The distribution.
    Trend(Box<TrendSink>),
}

/// The last value, with the extremes.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct GaugeSink {
    /// The last value.
    pub value: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
    /// When the last one was set, since the start of the run; absent without a value.
    pub at: Option<Duration>,
}

/// Samples by whether they are 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RateSink {
    /// Samples that were not 0.
    pub passes: u64,
    /// All samples.
    pub total: u64,
}

/// A distribution.
pub type TrendSink = Trend;

impl Sink {
    /// Without samples, for a series of the metric.
    pub fn for_metric(metric: &Metric) -> Self {
        if metric.kind == MetricKind::Trend && metric.is_exact {
            return Self::Trend(Box::new(Trend::exact()));
        }
        Self::new(metric.kind)
    }

    /// Without samples.
    pub fn new(kind: MetricKind) -> Self {
        match kind {
            MetricKind::Counter => Self::Counter(0.0),
            MetricKind::Gauge => Self::Gauge(GaugeSink::default()),
            MetricKind::Rate => Self::Rate(RateSink::default()),
            MetricKind::Trend => Self::Trend(Box::default()),
        }
    }

    /// Adds a sample.
    ///
    /// - `at`: since the start of the run.
    pub fn add(&mut self, value: f64, at: Duration) {
        match self {
            Self::Counter(sum) => *sum += value,
            Self::Gauge(gauge) => {
                let one = GaugeSink {
                    value,
                    min: value,
                    max: value,
                    at: Some(at),
                };
                gauge.merge(&one);
            }
            Self::Rate(rate) => {
                rate.total += 1;
                rate.passes += u64::from(value != 0.0);
            }
            Self::Trend(trend) => trend.add(value),
        }
    }

    /// Adds what another one of the same kind holds.
    pub fn merge(&mut self, other: &Self) {
        match (self, other) {
            (Self::Counter(sum), Self::Counter(other)) => *sum += other,
            (Self::Gauge(gauge), Self::Gauge(other)) => gauge.merge(other),
            (Self::Rate(rate), Self::Rate(other)) => {
                rate.passes += other.passes;
                rate.total += other.total;
            }
            (Self::Trend(trend), Self::Trend(other)) => trend.merge(other),
            _ => debug_assert!(false, "a series keeps its kind"),
        }
    }
}

impl GaugeSink {
    fn merge(&mut self, other: &Self) {
        if other.at.is_none() {
            return;
        }
        if self.at.is_none() {
            *self = *other;
            return;
        }
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        if other.at >= self.at {
            self.value = other.value;
            self.at = other.at;
        }
    }
}

impl RateSink {
    /// The share of samples that were not 0; 0 without samples.
    pub fn rate(&self) -> f64 {
        if self.total == 0 {
            return 0.0;
        }
        self.passes as f64 / self.total as f64
    }
}
