//! The summary as programs read it: `schemas/load-summary.v1.json`.
//!
//! Units are in the names; durations are microseconds with up to three decimals. Within a version
//! fields are added and never change their meaning. What could not be observed is `null`.

use std::collections::BTreeMap;
use std::time::Duration;

use plimsoll_model::{
    Conditions, Cost, Counts, EventFigures, FailureCount, Generator, GrpcFigures, GrpcStatusCount,
    Histogram, JudgedThreshold, LoadModel, LoadShape, Phase, RunSummary, Saturation, ServerCost,
};
use serde::{Deserialize, Serialize};

use crate::series::course;

mod tick;

pub use self::tick::{SpreadDocument, TickDocument};

/// One run of `plimsoll load`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SummaryDocument {
    /// Always [`SummaryDocument::SCHEMA`].
    pub schema: String,
    /// What was asked for.
    pub load: LoadDocument,
    /// Whether the user ended the run early.
    pub interrupted: bool,
    /// Length of the measured window.
    pub window_us: f64,
    /// Complete responses per second of the window.
    pub requests_per_second: f64,
    /// Bytes received per second of the window.
    pub received_bytes_per_second: f64,
    /// How many exchanges came to what.
    pub counts: CountsDocument,
    /// Bytes handed to the transport.
    pub sent_bytes: u64,
    /// Bytes taken from the transport.
    pub received_bytes: u64,
    /// Connections opened, those of the warm-up included.
    pub connections_opened: u64,
    /// Messages of WebSockets in the measured window, where there were any connections of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub messages: Option<MessagesDocument>,
    /// What came on streams of events, where such were opened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub events: Option<EventsDocument>,
    /// How long exchanges took.
    pub latency: LatencyDocument,
    /// The phases that happened, in order.
    pub phases: Vec<PhaseDocument>,
    /// Responses by status.
    pub statuses: BTreeMap<u16, u64>,
    /// What gRPC says of them; null unless that was spoken.
    #[serde(default)]
    pub grpc: Option<GrpcDocument>,
    /// Failures by kind and phase, most frequent first.
    pub failures: Vec<FailureDocument>,
    /// Unmet `--expect` conditions by their text.
    pub unmet: BTreeMap<String, u64>,
    /// What the thresholds came to, in the order in which they were given.
    #[serde(default)]
    pub thresholds: Vec<ThresholdDocument>,
    /// What it cost the target, if its processes could be observed.
    pub target: Option<TargetDocument>,
    /// The generator's own state.
    pub generator: GeneratorDocument,
    /// Under which conditions this was measured.
    pub conditions: ConditionsDocument,
    /// One entry a second, warm-up included.
    pub ticks: Vec<TickDocument>,
}

/// Messages of WebSockets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessagesDocument {
    /// Handed to the transport as a whole.
    pub sent: u64,
    /// Complete; those that nobody waited for are among them.
    pub received: u64,
}

/// What came on streams of server-sent events in the measured window, after they had been opened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EventsDocument {
    /// Streams opened.
    pub opened: u64,
    /// Those that their servers ended in an orderly way.
    pub ended: u64,
    /// Those that broke.
    pub broken: u64,
    /// Those that were left because the run was over.
    pub left: u64,
    /// Why they broke, by kind and phase, most frequent first.
    pub failures: Vec<FailureDocument>,
    /// Complete events.
    pub received: u64,
    /// The same per second of the window.
    pub received_per_second: f64,
    /// From one event of a stream to the next, and from its opening to the first.
    pub gaps: TimesDocument,
}

impl EventsDocument {
    fn of(events: &EventFigures, per_second: f64) -> Self {
        Self {
            opened: events.opened,
            ended: events.ended,
            broken: events.broken,
            left: events.left,
            failures: events.failures.iter().map(FailureDocument::of).collect(),
            received: events.received,
            received_per_second: rounded(per_second),
            gaps: TimesDocument::of(&events.gaps),
        }
    }
}

impl SummaryDocument {
    /// Names this document and its version.
    pub const SCHEMA: &str = "plimsoll.load.summary/1";

    /// The document of `run`.
    pub fn of(run: &RunSummary) -> Self {
        Self {
            schema: Self::SCHEMA.to_owned(),
            load: LoadDocument::of(&run.load),
            interrupted: run.interrupted,
            window_us: microseconds(run.window),
            requests_per_second: rounded(run.requests_per_second()),
            received_bytes_per_second: rounded(run.bytes_received_per_second()),
            counts: CountsDocument::of(&run.counts),
            sent_bytes: run.bytes_sent,
            received_bytes: run.bytes_received,
            connections_opened: run.connections_opened,
            messages: run.messages.map(|messages| MessagesDocument {
                sent: messages.sent,
                received: messages.received,
            }),
            events: run.events.as_ref().map(|events| {
                EventsDocument::of(events, run.events_per_second().unwrap_or_default())
            }),
            latency: LatencyDocument {
                from_started: TimesDocument::of(&run.latency.from_started),
                from_intended: run.latency.from_intended.as_ref().map(TimesDocument::of),
            },
            phases: Phase::ALL
                .into_iter()
                .map(|phase| (phase, &run.phases[phase.index()]))
                .filter(|(_, histogram)| !histogram.is_empty())
                .map(|(phase, histogram)| PhaseDocument {
                    phase: phase.name().to_owned(),
                    times: TimesDocument::of(histogram),
                })
                .collect(),
            statuses: run.statuses.clone(),
            grpc: run.grpc.as_ref().map(GrpcDocument::of),
            failures: run.failures.iter().map(FailureDocument::of).collect(),
            unmet: run.unmet.clone(),
            thresholds: run.thresholds.iter().map(ThresholdDocument::of).collect(),
            target: run.target.as_ref().map(TargetDocument::of),
            generator: GeneratorDocument::of(&run.generator),
            conditions: ConditionsDocument::of(&run.conditions),
            ticks: course(run)
                .map(|(tick, before, after)| TickDocument::of(tick, before, after))
                .collect(),
        }
    }

    /// The document as indented JSON with a line feed at its end.
    pub fn to_json(&self) -> String {
        to_json(self)
    }
}

/// What calls of gRPC came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GrpcDocument {
    /// Calls by the name of their status.
    pub statuses: BTreeMap<String, u64>,
    /// What the server said first to each status that is not `OK`, where it said anything.
    pub messages: BTreeMap<String, String>,
    /// Messages of all complete responses.
    pub messages_received: u64,
}

impl GrpcDocument {
    fn of(grpc: &GrpcFigures) -> Self {
        let name = |counted: &GrpcStatusCount| counted.status.name().to_owned();
        let statuses = grpc.statuses.iter();
        let said = statuses.clone().filter_map(|counted| {
            let example = counted.example.clone()?;
            Some((name(counted), example))
        });
        Self {
            messages: said.collect(),
            statuses: statuses
                .map(|counted| (name(counted), counted.count))
                .collect(),
            messages_received: grpc.messages_received,
        }
    }
}

/// What was asked of the generator.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadDocument {
    /// The target's URL, credentials masked; the first one where there are several.
    pub url: String,
    /// How many different URLs were requested.
    pub urls: usize,
    /// The request method.
    pub method: String,
    /// What every response had to meet, as it was written.
    #[serde(default)]
    pub expectations: Vec<String>,
    /// `closed` or `open`.
    pub model: String,
    /// Arrivals per second of an open loop.
    pub rate_per_second: Option<f64>,
    /// `HTTP/1.1` or `HTTP/2`.
    pub protocol: String,
    /// What an exchange is called, in the plural: `requests`, `round trips` or `streams`.
    #[serde(default = "requests")]
    pub exchanges: String,
    /// Connections at most.
    pub connections: usize,
    /// Exchanges at a time on each connection.
    pub streams: usize,
    /// The UDP payload that was set for QUIC packets; null where it was found by probing, or is none.
    pub udp_payload_bytes: Option<u16>,
    /// Worker threads.
    pub workers: usize,
    /// Length asked for, if the run was bounded by time.
    pub duration_us: Option<f64>,
    /// Requests asked for, if the run was bounded by number.
    pub requests: Option<u64>,
    /// Time at the start that is left out of the figures.
    pub warm_up_us: f64,
}

/// What exchanges were called before that was written down.
fn requests() -> String {
    "requests".to_owned()
}

impl LoadDocument {
    fn of(load: &LoadShape) -> Self {
        let (model, rate) = match load.model {
            LoadModel::Closed => ("closed", None),
            LoadModel::Open { rate } => ("open", Some(rate.per_second())),
        };
        Self {
            url: load.url.clone(),
            urls: load.urls,
            method: load.method.clone(),
            expectations: load.expectations.clone(),
            model: model.to_owned(),
            rate_per_second: rate,
            protocol: load.protocol.name().to_owned(),
            exchanges: load.exchanges.plural().to_owned(),
            connections: load.connections,
            streams: load.streams,
            udp_payload_bytes: load.udp_payload,
            workers: load.workers,
            duration_us: load.duration.map(microseconds),
            requests: load.requests,
            warm_up_us: microseconds(load.warm_up),
        }
    }
}

/// How many exchanges came to what; `started` is always `ok + failed + aborted`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CountsDocument {
    /// Exchanges begun in the window.
    pub started: u64,
    /// Those with a complete response, whatever its status.
    pub ok: u64,
    /// Those without one.
    pub failed: u64,
    /// Those still under way when the grace period ended.
    pub aborted: u64,
    /// Of `ok`: a status that `--fail-status` names.
    pub failed_status: u64,
    /// Of `ok`: a response that did not meet `--expect`.
    pub unmet: u64,
    /// Arrivals that were given up because nothing was free.
    pub dropped: u64,
    /// Arrivals that were due but not begun when the run ended.
    pub missed: u64,
    /// Streams of events that broke after they had been opened; zero where there were none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub broken: u64,
    /// Failures, failed statuses, unmet expectations, drops and broken streams together.
    pub errors: u64,
    /// Exchanges completed during the warm-up, in none of the others.
    pub warm_up: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes it so")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl CountsDocument {
    fn of(counts: &Counts) -> Self {
        Self {
            started: counts.started,
            ok: counts.ok,
            failed: counts.failed,
            aborted: counts.aborted,
            failed_status: counts.failed_status,
            unmet: counts.unmet,
            dropped: counts.dropped,
            missed: counts.missed,
            broken: counts.broken,
            errors: counts.errors(),
            warm_up: counts.warm_up,
        }
    }
}

/// How long exchanges took, by the two ways to count.
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
    /// How many.
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

/// How long one phase took in those exchanges that completed it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PhaseDocument {
    /// Its name.
    pub phase: String,
    /// How long it took.
    #[serde(flatten)]
    pub times: TimesDocument,
}

/// Failures of one kind in one phase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailureDocument {
    /// The phase that was under way.
    pub phase: String,
    /// What happened.
    pub kind: String,
    /// How often.
    pub count: u64,
    /// Who is at fault in the first one: `ours`, `theirs`, `network`, `config`.
    pub side: String,
    /// Whether the first one could be sent again: `never`, `safe`, `if-reused`.
    pub retry: String,
    /// The message behind the first one.
    pub cause: Option<String>,
}

impl FailureDocument {
    pub(crate) fn of(failure: &FailureCount) -> Self {
        Self {
            phase: failure.phase.name().to_owned(),
            kind: failure.kind.name().to_owned(),
            count: failure.count,
            side: failure.example.side.name().to_owned(),
            retry: failure.example.retry.name().to_owned(),
            cause: failure.example.cause.clone(),
        }
    }
}

/// What a threshold came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ThresholdDocument {
    /// What was asked for, as it was written.
    pub threshold: String,
    /// `met`, `breached` or `no-data`.
    pub verdict: String,
    /// The value of the run, or of the worst stretch; `null` if there was nothing to tell it from.
    pub value: Option<f64>,
    /// What it was compared with.
    pub limit: f64,
    /// The unit of both: `us`, `count`, `per_second`, `ratio`, `bytes`, `bytes_per_second`,
    /// `percent`.
    pub unit: String,
    /// How far the value is within the limit, in percent of the limit; negative beyond it.
    pub margin_percent: Option<f64>,
    /// Of a threshold over a stretch: the end of the worst one, since the start of the run.
    pub at_us: Option<f64>,
    /// Whether its breach ended the run.
    pub ended_run: bool,
}

impl ThresholdDocument {
    fn of(judged: &JudgedThreshold) -> Self {
        Self {
            threshold: judged.threshold.text().to_owned(),
            verdict: judged.verdict().name().to_owned(),
            value: judged.value,
            limit: judged.threshold.limit(),
            unit: judged.threshold.unit().name().to_owned(),
            margin_percent: judged.margin_percent().map(rounded),
            at_us: judged.at.map(microseconds),
            ended_run: judged.ended_run,
        }
    }
}

/// Processor time over the measured window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CostDocument {
    /// User and system time per exchange; `null` without exchanges.
    pub cpu_us_per_request: Option<f64>,
    /// Share of one core.
    pub cpu_percent: Option<f64>,
    /// In the program's own code.
    pub cpu_user_us: f64,
    /// In the kernel on its behalf.
    pub cpu_system_us: f64,
    /// Length of the window between the samples.
    pub window_us: f64,
    /// Exchanges completed in it.
    pub exchanges: u64,
}

impl CostDocument {
    fn of(cost: &Cost) -> Self {
        Self {
            cpu_us_per_request: cost.cpu_us_per_request().map(rounded),
            cpu_percent: cost.cpu_percent().map(rounded),
            cpu_user_us: microseconds(cost.cpu.user),
            cpu_system_us: microseconds(cost.cpu.system),
            window_us: microseconds(cost.window),
            exchanges: cost.exchanges,
        }
    }
}

/// What the run cost the target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TargetDocument {
    /// How it was found.
    pub name: String,
    /// Processor time.
    #[serde(flatten)]
    pub cost: CostDocument,
    /// Resident memory at the end of the window.
    pub memory_bytes: u64,
    /// Of it: heap and stacks.
    pub memory_anonymous_bytes: u64,
    /// Of it: code, mapped files, shared memory.
    pub memory_file_bytes: u64,
    /// Largest resident memory seen.
    pub peak_memory_bytes: u64,
    /// Open descriptors at the end of the window; `null` if they could not be counted.
    pub fds: Option<u64>,
    /// Most open descriptors seen.
    pub peak_fds: Option<u64>,
    /// Threads at the end of the window.
    pub threads: u64,
    /// Processes at the end of the window.
    pub processes: u64,
}

impl TargetDocument {
    fn of(target: &ServerCost) -> Self {
        let counted = |fds: u64| (fds > 0).then_some(fds);
        Self {
            name: target.name.clone(),
            cost: CostDocument::of(&target.cost),
            memory_bytes: target.memory.total_bytes(),
            memory_anonymous_bytes: target.memory.anonymous_bytes,
            memory_file_bytes: target.memory.file_bytes,
            peak_memory_bytes: target.peak_memory_bytes,
            fds: counted(target.fds),
            peak_fds: counted(target.peak_fds),
            threads: target.threads,
            processes: target.processes,
        }
    }
}

/// The generator's own state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GeneratorDocument {
    /// Processor time.
    #[serde(flatten)]
    pub cost: CostDocument,
    /// Largest resident memory seen.
    pub peak_memory_bytes: Option<u64>,
    /// Busiest worker: share of one core.
    pub busiest_worker_percent: f64,
    /// How late timers fired: 99th percentile.
    pub lag_p99_us: f64,
    /// How late timers fired at worst.
    pub lag_max_us: f64,
    /// Set when the figures describe the generator rather than the target.
    pub saturated: Option<SaturationDocument>,
}

impl GeneratorDocument {
    fn of(generator: &Generator) -> Self {
        Self {
            cost: CostDocument::of(&generator.cost),
            peak_memory_bytes: generator.peak_memory_bytes,
            busiest_worker_percent: rounded(generator.busiest_worker_percent),
            lag_p99_us: microseconds(generator.lag_p99),
            lag_max_us: microseconds(generator.lag_max),
            saturated: generator.saturated.as_ref().map(SaturationDocument::of),
        }
    }
}

/// Why the generator was the limit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SaturationDocument {
    /// `cpu` or `lag`.
    pub by: String,
    /// By `cpu`: share of one core that the worker used.
    pub percent: Option<f64>,
    /// By `lag`: 99th percentile of the lateness.
    pub lag_p99_us: Option<f64>,
}

impl SaturationDocument {
    fn of(saturation: &Saturation) -> Self {
        let (percent, lag) = match saturation {
            Saturation::Cpu { percent } => (Some(rounded(*percent)), None),
            Saturation::Lag { p99 } => (None, Some(microseconds(*p99))),
        };
        Self {
            by: saturation.name().to_owned(),
            percent,
            lag_p99_us: lag,
        }
    }
}

/// Under which conditions the run was made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConditionsDocument {
    /// Version of plimsoll.
    pub plimsoll: String,
    /// The command line, secrets masked.
    pub command: Vec<String>,
    /// When the run started, in UTC (RFC 3339).
    pub started: String,
    /// Operating system and kernel release.
    pub kernel: Option<String>,
    /// Processor model.
    pub cpu_model: Option<String>,
    /// Cores that the generator could use.
    pub cores: usize,
    /// Scaling governor of the first core.
    pub governor: Option<String>,
    /// Physical memory.
    pub memory_bytes: Option<u64>,
    /// Cores that control groups allow the generator; absent where they do not limit it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_limit: Option<f64>,
    /// Memory that control groups allow it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_limit_bytes: Option<u64>,
    /// Local ports that its connections may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local_ports: Option<u32>,
    /// Load averages before the run over one, five and fifteen minutes.
    pub load_before: Option<[f64; 3]>,
    /// Share of time that the hypervisor took away during the run.
    pub steal_percent: Option<f64>,
    /// Cores of the generator's workers; empty if the scheduler chose.
    pub generator_cores: Vec<usize>,
    /// Cores of the target; empty if the scheduler chose.
    pub target_cores: Vec<usize>,
    /// Whether generator and target shared the machine.
    pub co_located: Option<bool>,
    /// What a reader should know before trusting the figures.
    pub warnings: Vec<String>,
}

impl ConditionsDocument {
    /// The document of `conditions`.
    pub fn of(conditions: &Conditions) -> Self {
        Self {
            plimsoll: conditions.plimsoll.clone(),
            command: conditions.command.clone(),
            started: humantime::format_rfc3339_millis(conditions.started).to_string(),
            kernel: conditions.kernel.clone(),
            cpu_model: conditions.cpu_model.clone(),
            cores: conditions.cores,
            governor: conditions.governor.clone(),
            memory_bytes: conditions.memory_bytes,
            cpu_limit: conditions.limits.cpus.map(rounded),
            memory_limit_bytes: conditions.limits.memory_bytes,
            local_ports: conditions.local_ports,
            load_before: conditions
                .load_before
                .map(|load| [load.one, load.five, load.fifteen]),
            steal_percent: conditions.steal_percent.map(rounded),
            generator_cores: conditions.pinning.generator.clone(),
            target_cores: conditions.pinning.target.clone(),
            co_located: conditions.co_located,
            warnings: conditions.warnings.clone(),
        }
    }

    /// The document as indented JSON with a line feed at its end.
    pub fn to_json(&self) -> String {
        to_json(self)
    }
}

/// A document as indented JSON with a line feed at its end.
///
/// Its maps must have keys that are text or numbers, as those of all documents have.
pub fn to_json(document: &impl Serialize) -> String {
    let mut json = serde_json::to_string_pretty(document)
        .expect("every key is text or a number, so a document is always JSON");
    json.push('\n');
    json
}

/// Exact to the nanosecond.
pub(crate) fn microseconds(duration: Duration) -> f64 {
    duration.as_nanos() as f64 / 1e3
}

/// To three decimals: the rest is noise.
pub(crate) fn rounded(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

#[cfg(test)]
mod tests;
