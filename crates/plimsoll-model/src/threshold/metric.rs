//! The figures that thresholds can be put on.

use std::time::Duration;

use crate::threshold::ThresholdError;
use crate::{
    Bounded, ByteSize, Cost, Counts, DurationText, Phase, RunSummary, ServerCost, TimesView,
    WindowBytes, percentage, rate_figures,
};

/// A figure of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Metric {
    /// A duration.
    Time(Trend),
    /// Exchanges that ended, with or without a response; as a rate, the responses completed within
    /// the measured window per second of it.
    Requests,
    /// Arrivals that were given up because no connection was free.
    Dropped,
    /// Exchanges without a response, aborted ones included, or with a status outside 200 to 399.
    Failed,
    /// Failures, aborted exchanges, failed statuses, unmet expectations and drops.
    Errors,
    /// Bytes taken from the transport.
    Received,
    /// Bytes handed to the transport.
    Sent,
    /// CPU-µs of the target per request.
    ServerCpuPerRequest,
    /// Share of one core that the target used.
    ServerCpu,
    /// Resident memory of the target.
    ServerMemory,
    /// Open descriptors of the target.
    ServerDescriptors,
}

/// A duration of which there are many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trend {
    /// From the actual start.
    FromStarted,
    /// From the intended start where there is one.
    Honest,
    /// One phase.
    Phase(Phase),
}

/// Aggregation of many values to one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Aggregation {
    /// The arithmetic mean.
    Mean,
    /// The smallest.
    Least,
    /// The largest.
    Most,
    /// The value at this fraction of all.
    Quantile(f64),
    /// The count.
    Count,
    /// Per second, or the share of all.
    Rate,
    /// The one at the end, or over the window.
    Value,
}

/// The unit of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Microseconds.
    Microseconds,
    /// A number of things.
    Count,
    /// Things per second.
    PerSecond,
    /// A share, 1 being all.
    Ratio,
    /// Bytes.
    Bytes,
    /// Bytes per second.
    BytesPerSecond,
    /// Percent of one core.
    Percent,
}

/// Anything that thresholds can be judged on: a run, or a stretch of one.
pub trait Measured {
    /// Its length.
    fn length(&self) -> Duration;
    /// Counts of exchanges by outcome.
    fn counts(&self) -> Counts;
    /// Failed exchanges and those with a status outside 200 to 399; for gRPC, one that is not `OK`.
    fn unexpected(&self) -> u64;
    /// Bytes handed to the transport.
    fn bytes_sent(&self) -> u64;
    /// Bytes taken from the transport.
    fn bytes_received(&self) -> u64;
    /// Bytes of the exchanges that completed within the measured window.
    fn bytes_in_window(&self) -> WindowBytes;
    /// Durations; `None` if none were recorded.
    fn times(&self, trend: Trend) -> Option<TimesView<'_>>;
    /// Cost of the server that was observed by that name, or of the target without one; `None` if it was not observed
    /// all the time.
    fn server(&self, name: Option<&str>) -> Option<ServerFigures>;
}

/// Cost and resources of the target.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ServerFigures {
    /// Processor time.
    pub cost: Cost,
    /// Resident memory at the end.
    pub memory_bytes: u64,
    /// Largest resident memory seen.
    pub peak_memory_bytes: u64,
    /// Open descriptors at the end.
    pub fds: u64,
    /// Most open descriptors seen.
    pub peak_fds: u64,
}

impl Measured for RunSummary {
    fn length(&self) -> Duration {
        self.window
    }

    fn counts(&self) -> Counts {
        self.counts
    }

    fn unexpected(&self) -> u64 {
        // Every response has a status of gRPC then, which follows from that of HTTP if need be.
        if let Some(grpc) = &self.grpc {
            return self.counts.failed + grpc.errors();
        }
        let unexpected = self.statuses.iter();
        let unexpected = unexpected.filter(|(status, _)| !(200..400).contains(*status));
        self.counts.failed + unexpected.map(|(_, count)| count).sum::<u64>()
    }

    fn bytes_sent(&self) -> u64 {
        self.bytes_sent
    }

    fn bytes_received(&self) -> u64 {
        self.bytes_received
    }

    fn bytes_in_window(&self) -> WindowBytes {
        self.bytes_in_window
    }

    fn times(&self, trend: Trend) -> Option<TimesView<'_>> {
        Some(match trend {
            Trend::FromStarted => self.latency.from_started.view(),
            Trend::Honest => self.latency.honest().view(),
            Trend::Phase(phase) => self.phase(phase),
        })
    }

    fn server(&self, name: Option<&str>) -> Option<ServerFigures> {
        match name {
            None => self.target.as_ref().map(ServerCost::figures),
            Some(name) => {
                let mut observed = self.observed.iter();
                observed.find(|server| server.name == name)?.figures()
            }
        }
    }
}

/// By name; the first name of a metric is the one that is shown.
const METRICS: [(&str, Metric); 31] = [
    ("http_req_duration", Metric::Time(Trend::FromStarted)),
    ("latency", Metric::Time(Trend::Honest)),
    (
        "http_req_blocked",
        Metric::Time(Trend::Phase(Phase::Blocked)),
    ),
    (
        "http_req_looking_up",
        Metric::Time(Trend::Phase(Phase::Dns)),
    ),
    (
        "http_req_connecting",
        Metric::Time(Trend::Phase(Phase::Connect)),
    ),
    (
        "http_req_tls_handshaking",
        Metric::Time(Trend::Phase(Phase::Tls)),
    ),
    ("http_req_sending", Metric::Time(Trend::Phase(Phase::Send))),
    ("http_req_waiting", Metric::Time(Trend::Phase(Phase::Wait))),
    (
        "http_req_receiving",
        Metric::Time(Trend::Phase(Phase::Receive)),
    ),
    ("http_reqs", Metric::Requests),
    ("http_req_failed", Metric::Failed),
    ("iterations", Metric::Requests),
    ("dropped_iterations", Metric::Dropped),
    ("data_received", Metric::Received),
    ("data_sent", Metric::Sent),
    ("errors", Metric::Errors),
    ("server_cpu_per_request", Metric::ServerCpuPerRequest),
    ("server_cpu", Metric::ServerCpu),
    ("server_rss", Metric::ServerMemory),
    ("server_fds", Metric::ServerDescriptors),
    ("blocked", Metric::Time(Trend::Phase(Phase::Blocked))),
    ("dns", Metric::Time(Trend::Phase(Phase::Dns))),
    ("connect", Metric::Time(Trend::Phase(Phase::Connect))),
    ("tls", Metric::Time(Trend::Phase(Phase::Tls))),
    ("send", Metric::Time(Trend::Phase(Phase::Send))),
    ("wait", Metric::Time(Trend::Phase(Phase::Wait))),
    ("receive", Metric::Time(Trend::Phase(Phase::Receive))),
    ("dropped", Metric::Dropped),
    ("requests", Metric::Requests),
    ("failed", Metric::Failed),
    ("rss", Metric::ServerMemory),
];

impl Metric {
    /// Every name by which a metric is known.
    pub fn names() -> impl Iterator<Item = &'static str> {
        METRICS.into_iter().map(|(name, _)| name)
    }

    pub(super) fn parse(name: &str) -> Result<Self, ThresholdError> {
        let known = METRICS.into_iter().find(|(known, _)| *known == name);
        known
            .map(|(_, metric)| metric)
            .ok_or_else(|| ThresholdError::Metric {
                name: name.to_owned(),
            })
    }

    /// The name that is shown.
    pub fn name(self) -> &'static str {
        METRICS
            .into_iter()
            .find(|(_, metric)| *metric == self)
            .map_or("", |(name, _)| name)
    }

    /// Whether it needs observation of the target's processes.
    pub fn needs_server(self) -> bool {
        matches!(
            self,
            Self::ServerCpuPerRequest
                | Self::ServerCpu
                | Self::ServerMemory
                | Self::ServerDescriptors
        )
    }

    pub(super) fn aggregation(self, text: &str) -> Result<Aggregation, ThresholdError> {
        let known = match self {
            Self::Time(_) => "avg, min, max, med, p(N), count",
            Self::Requests
            | Self::Dropped
            | Self::Received
            | Self::Sent
            | Self::Failed
            | Self::Errors => "count, rate",
            Self::ServerCpuPerRequest | Self::ServerCpu => "value",
            Self::ServerMemory | Self::ServerDescriptors => "value, max",
        };
        let aggregation = match text {
            "avg" => Aggregation::Mean,
            "min" => Aggregation::Least,
            "max" => Aggregation::Most,
            "med" => Aggregation::Quantile(0.5),
            "count" => Aggregation::Count,
            "rate" => Aggregation::Rate,
            "value" => Aggregation::Value,
            _ if text.starts_with('p') && matches!(self, Self::Time(_)) => {
                return percentile(text);
            }
            _ => Aggregation::Quantile(f64::NAN),
        };
        let name = if text == "p(N)" { "" } else { text };
        if known.split(", ").any(|known| known == name) {
            Ok(aggregation)
        } else {
            Err(ThresholdError::Aggregation {
                metric: self.name(),
                aggregation: text.to_owned(),
                known,
            })
        }
    }

    pub(super) fn unit(self, aggregation: Aggregation) -> Unit {
        match (self, aggregation) {
            (_, Aggregation::Count) | (Self::ServerDescriptors, _) => Unit::Count,
            (Self::Time(_) | Self::ServerCpuPerRequest, _) => Unit::Microseconds,
            (Self::Failed | Self::Errors, _) => Unit::Ratio,
            (Self::Requests | Self::Dropped, _) => Unit::PerSecond,
            (Self::Received | Self::Sent, _) => Unit::BytesPerSecond,
            (Self::ServerCpu, _) => Unit::Percent,
            (Self::ServerMemory, _) => Unit::Bytes,
        }
    }

    pub(super) fn value(
        self,
        aggregation: Aggregation,
        measured: &dyn Measured,
        server: Option<&str>,
    ) -> Option<Bounded<f64>> {
        match self {
            Self::Time(trend) => time(aggregation, measured.times(trend)?),
            _ => self
                .number(aggregation, measured, server)
                .map(Bounded::exact),
        }
    }

    /// The value of a metric that is no duration of exchanges.
    fn number(
        self,
        aggregation: Aggregation,
        measured: &dyn Measured,
        server: Option<&str>,
    ) -> Option<f64> {
        let counts = measured.counts();
        let ended = counts.ok + counts.failed;
        // A rate divides by the window, so it counts only what ended within it.
        let per_second = |count: u64, in_window: u64| {
            let length = measured.length().as_secs_f64();
            match aggregation {
                Aggregation::Rate => (length > 0.0).then(|| in_window as f64 / length),
                _ => Some(count as f64),
            }
        };
        let in_window = measured.bytes_in_window();
        let share = |count: u64, of: u64| match aggregation {
            Aggregation::Rate => (of > 0).then(|| count as f64 / of as f64),
            _ => Some(count as f64),
        };
        match self {
            Self::Time(_) => None,
            Self::Requests => per_second(ended, counts.completed_in_window),
            Self::Dropped => per_second(counts.dropped, counts.dropped),
            Self::Failed => share(
                measured.unexpected() + counts.aborted,
                ended + counts.aborted,
            ),
            Self::Errors => share(counts.errors(), counts.started + counts.dropped),
            Self::Received => per_second(measured.bytes_received(), in_window.received),
            Self::Sent => per_second(measured.bytes_sent(), in_window.sent),
            Self::ServerCpuPerRequest => measured.server(server)?.cost.cpu_us_per_request(),
            Self::ServerCpu => measured.server(server)?.cost.cpu_percent(),
            Self::ServerMemory => {
                let server = measured.server(server)?;
                Some(if aggregation == Aggregation::Most {
                    server.peak_memory_bytes
                } else {
                    server.memory_bytes
                } as f64)
            }
            Self::ServerDescriptors => {
                let server = measured.server(server)?;
                // Every server holds some; none means that they could not be counted.
                (server.peak_fds > 0).then_some(if aggregation == Aggregation::Most {
                    server.peak_fds
                } else {
                    server.fds
                } as f64)
            }
        }
    }
}

/// `p(99)`, `p(99.9)` or, shorter, `p99`.
fn percentile(text: &str) -> Result<Aggregation, ThresholdError> {
    let digits = text.strip_prefix('p').unwrap_or(text);
    let digits = digits
        .strip_prefix('(')
        .and_then(|digits| digits.strip_suffix(')'))
        .unwrap_or(digits);
    digits
        .trim()
        .parse::<f64>()
        .ok()
        .filter(|percent| (0.0..=100.0).contains(percent))
        .map(|percent| Aggregation::Quantile(percent / 100.0))
        .ok_or_else(|| ThresholdError::Percentile(text.to_owned()))
}

fn time(aggregation: Aggregation, times: TimesView<'_>) -> Option<Bounded<f64>> {
    let time = match aggregation {
        Aggregation::Mean => times.mean(),
        Aggregation::Least => times.min(),
        Aggregation::Most => times.max(),
        Aggregation::Quantile(fraction) => times.quantile(fraction),
        _ => return Some(Bounded::exact(times.len() as f64)),
    };
    time.map(|time| time.map(|time| time.as_nanos() as f64 / 1e3))
}

impl Unit {
    /// The name used in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Microseconds => "us",
            Self::Count => "count",
            Self::PerSecond => "per_second",
            Self::Ratio => "ratio",
            Self::Bytes => "bytes",
            Self::BytesPerSecond => "bytes_per_second",
            Self::Percent => "percent",
        }
    }

    /// The unit of that [`name`](Self::name).
    pub fn named(name: &str) -> Option<Self> {
        [
            Self::Microseconds,
            Self::Count,
            Self::PerSecond,
            Self::Ratio,
            Self::Bytes,
            Self::BytesPerSecond,
            Self::Percent,
        ]
        .into_iter()
        .find(|unit| unit.name() == name)
    }

    pub(super) const fn example(self) -> &'static str {
        match self {
            Self::Microseconds => "300ms",
            Self::Count => "1000",
            Self::PerSecond => "500/s",
            Self::Ratio => "1%",
            Self::Bytes => "64MiB",
            Self::BytesPerSecond => "1MB/s",
            Self::Percent => "80%",
        }
    }

    /// `value` as people read it.
    pub fn show(self, value: f64) -> String {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a conversion of floating point numbers saturates; values are not negative"
        )]
        let whole = value.round() as u64;
        match self {
            Self::Microseconds => {
                let time = Duration::try_from_secs_f64(value / 1e6).unwrap_or(Duration::MAX);
                DurationText(time).to_string()
            }
            Self::Count => crate::grouped(whole),
            Self::PerSecond => format!("{}/s", rate_figures(value)),
            Self::Ratio => percentage(value * 100.0),
            Self::Bytes => ByteSize(whole).to_string(),
            Self::BytesPerSecond => format!("{}/s", ByteSize(whole)),
            Self::Percent => percentage(value),
        }
    }
}
