//! The compared metrics, and verdicts on them.

use std::fmt;

use plimsoll_report::page::Judgement;

use crate::statistics::Interval;

/// A figure of a trial that can be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Metric {
    /// Processor time of the operand's process tree per complete response, in microseconds.
    CpuUsPerRequest,
    /// Complete responses per second.
    RequestsPerSecond,
    /// Mean latency in microseconds, as the tool reports it.
    MeanUs,
    /// Median latency in microseconds, as the tool reports it.
    P50Us,
    /// 99th percentile of the latency in microseconds, as the tool reports it.
    P99Us,
    /// Largest resident memory of the operand's process tree, in bytes.
    PeakRssBytes,
    /// Processor time per complete response at the other end, in microseconds: the shared server's
    /// if operands are clients, the driver's if they are servers.
    OtherEndCpuUsPerRequest,
}

impl Metric {
    /// Every metric, in the order of the report.
    pub const ALL: [Self; 7] = [
        Self::CpuUsPerRequest,
        Self::RequestsPerSecond,
        Self::MeanUs,
        Self::P50Us,
        Self::P99Us,
        Self::PeakRssBytes,
        Self::OtherEndCpuUsPerRequest,
    ];

    /// The name used in flags, text and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::CpuUsPerRequest => "cpu_us_per_request",
            Self::RequestsPerSecond => "rps",
            Self::MeanUs => "mean_us",
            Self::P50Us => "p50_us",
            Self::P99Us => "p99_us",
            Self::PeakRssBytes => "peak_rss_bytes",
            Self::OtherEndCpuUsPerRequest => "other_end_cpu_us_per_request",
        }
    }

    /// The name used on pages; units are with the values.
    pub const fn title(self) -> &'static str {
        match self {
            Self::CpuUsPerRequest => "CPU µs per request",
            Self::RequestsPerSecond => "Requests per second",
            Self::MeanUs => "Latency, mean",
            Self::P50Us => "Latency p50",
            Self::P99Us => "Latency p99",
            Self::PeakRssBytes => "Memory, peak",
            Self::OtherEndCpuUsPerRequest => "CPU µs per request of the other end",
        }
    }

    /// The metric of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|metric| metric.name() == name)
    }

    /// Whether more is better, as for a rate; of a cost, less is better.
    pub const fn more_is_better(self) -> bool {
        matches!(self, Self::RequestsPerSecond)
    }

    /// The verdict for an interval of the ratio ours / peer, made from `trials` of each side.
    pub fn verdict(self, interval: Interval, trials: usize) -> Verdict {
        if trials < 2 {
            Verdict::Undecided
        } else if interval.contains(1.0) {
            Verdict::NoDifferenceSeen
        } else if (interval.low > 1.0) == self.more_is_better() {
            Verdict::Faster
        } else {
            Verdict::Slower
        }
    }

    /// By what factor ours is worse, from the ratio ours / peer: 1.05 is five per cent worse.
    pub fn worse_by(self, ratio: f64) -> f64 {
        if self.more_is_better() {
            1.0 / ratio
        } else {
            ratio
        }
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The verdict on ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// Better: a higher rate, a lower cost, latency or memory; the interval excludes 1.
    Faster,
    /// Worse; the interval excludes 1.
    Slower,
    /// The interval contains 1. That is not proof of equality: more trials may show a difference.
    NoDifferenceSeen,
    /// A single trial says nothing about what varies from one to the next.
    Undecided,
    /// The sides did not do the same: they failed, or rejected, different shares of their requests.
    NotComparable,
}

impl Verdict {
    /// What it means for ours.
    pub const fn judgement(self) -> Judgement {
        match self {
            Self::Faster => Judgement::Good,
            Self::Slower => Judgement::Bad,
            Self::NoDifferenceSeen => Judgement::Neutral,
            Self::Undecided | Self::NotComparable => Judgement::Open,
        }
    }

    /// The name used in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Faster => "faster",
            Self::Slower => "slower",
            Self::NoDifferenceSeen => "no-difference-seen",
            Self::Undecided => "undecided",
            Self::NotComparable => "not-comparable",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Faster => "faster",
            Self::Slower => "slower",
            Self::NoDifferenceSeen => "no difference seen",
            Self::Undecided => "undecided",
            Self::NotComparable => "not comparable",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdict_depends_on_which_way_is_better() {
        let below = Interval {
            low: 0.8,
            high: 0.9,
        };
        let around = Interval {
            low: 0.9,
            high: 1.1,
        };
        let above = Interval {
            low: 1.1,
            high: 1.2,
        };
        for (metric, interval, expected) in [
            (Metric::CpuUsPerRequest, below, Verdict::Faster),
            (Metric::CpuUsPerRequest, around, Verdict::NoDifferenceSeen),
            (Metric::CpuUsPerRequest, above, Verdict::Slower),
            (Metric::RequestsPerSecond, below, Verdict::Slower),
            (Metric::RequestsPerSecond, above, Verdict::Faster),
        ] {
            assert_eq!(
                metric.verdict(interval, 2),
                expected,
                "{metric} {interval:?}"
            );
            assert_eq!(metric.verdict(interval, 1), Verdict::Undecided);
        }
        assert!((Metric::RequestsPerSecond.worse_by(0.8) - 1.25).abs() < 1e-12);
    }

    #[test]
    fn names_lead_back() {
        for metric in Metric::ALL {
            assert_eq!(Metric::from_name(metric.name()), Some(metric));
        }
        assert_eq!(Metric::from_name("speed"), None);
    }
}
