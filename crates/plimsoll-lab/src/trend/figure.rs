//! The figures whose course is followed.

use plimsoll_model::{ByteSize, Unit, grouped, percentage, three_figures};
use plimsoll_report::SummaryDocument;

/// A figure of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Figure {
    /// Processor time of the target per request, in microseconds.
    CpuUsPerRequest,
    /// Complete responses per second.
    RequestsPerSecond,
    /// Median latency in microseconds, from the intended start where there is one.
    P50Us,
    /// 99th percentile of the same.
    P99Us,
    /// Largest resident memory of the target.
    PeakMemoryBytes,
    /// Errors of all that was started, as a fraction.
    ErrorShare,
    /// Processor time of the generator per request, in microseconds.
    GeneratorCpuUsPerRequest,
}

impl Figure {
    /// Every figure, in the order of the report.
    pub const ALL: [Self; 7] = [
        Self::CpuUsPerRequest,
        Self::RequestsPerSecond,
        Self::P50Us,
        Self::P99Us,
        Self::PeakMemoryBytes,
        Self::ErrorShare,
        Self::GeneratorCpuUsPerRequest,
    ];

    /// The name used in text and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::CpuUsPerRequest => "cpu_us_per_request",
            Self::RequestsPerSecond => "requests_per_second",
            Self::P50Us => "p50_us",
            Self::P99Us => "p99_us",
            Self::PeakMemoryBytes => "peak_memory_bytes",
            Self::ErrorShare => "error_share",
            Self::GeneratorCpuUsPerRequest => "generator_cpu_us_per_request",
        }
    }

    /// The name used on pages, with its unit.
    pub const fn title(self) -> &'static str {
        match self {
            Self::CpuUsPerRequest => "Server CPU per request",
            Self::RequestsPerSecond => "Requests per second",
            Self::P50Us => "Latency p50",
            Self::P99Us => "Latency p99",
            Self::PeakMemoryBytes => "Server memory, peak",
            Self::ErrorShare => "Errors",
            Self::GeneratorCpuUsPerRequest => "Generator CPU per request",
        }
    }

    /// Its value in a result.
    pub fn value(self, summary: &SummaryDocument) -> Option<f64> {
        let latency = &summary.latency;
        let honest = latency
            .from_intended
            .as_ref()
            .unwrap_or(&latency.from_started);
        let target = summary.target.as_ref();
        match self {
            Self::CpuUsPerRequest => target?.cost.cpu_us_per_request,
            Self::RequestsPerSecond => Some(summary.requests_per_second),
            // A lower bound is no value to compare others with.
            Self::P50Us => honest.p50_us?.known(),
            Self::P99Us => honest.p99_us?.known(),
            Self::PeakMemoryBytes => Some(target?.peak_memory_bytes as f64),
            Self::ErrorShare => {
                let counts = &summary.counts;
                let tried = counts.started + counts.dropped;
                (tried > 0).then(|| counts.errors as f64 / tried as f64)
            }
            Self::GeneratorCpuUsPerRequest => summary.generator.cost.cpu_us_per_request,
        }
    }

    /// Whether more is better.
    pub const fn more_is_better(self) -> bool {
        matches!(self, Self::RequestsPerSecond)
    }

    /// `value` as people read it.
    pub fn show(self, value: f64) -> String {
        match self {
            Self::CpuUsPerRequest | Self::GeneratorCpuUsPerRequest => {
                format!("{} µs", three_figures(value))
            }
            Self::RequestsPerSecond => format!("{}/s", grouped(value)),
            Self::P50Us | Self::P99Us => Unit::Microseconds.show(value),
            Self::PeakMemoryBytes => {
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "a median of sizes"
                )]
                let bytes = value as u64;
                ByteSize(bytes).to_string()
            }
            Self::ErrorShare => percentage(value * 100.0),
        }
    }
}
