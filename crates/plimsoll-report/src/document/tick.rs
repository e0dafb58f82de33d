//! One second of a run.

use std::collections::BTreeMap;
use std::time::Duration;

use plimsoll_model::{Bounded, Cost, Moment, Phase, ResourceSample, Tick};
use serde::{Deserialize, Serialize};

use super::{is_zero, microseconds, rounded};

/// One second of the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TickDocument {
    /// Time since the start of the run at its end.
    pub at_us: f64,
    /// Length; the last one may be shorter than a second.
    pub length_us: f64,
    /// Whether it belongs to the warm-up.
    pub warm_up: bool,
    /// Whether it lies in the grace period, in which no exchange starts.
    #[serde(default)]
    pub grace: bool,
    /// Complete responses.
    pub ok: u64,
    /// Failures.
    pub failed: u64,
    /// Aborted exchanges, failed statuses, unmet expectations, drops and streams of events that broke.
    pub other_errors: u64,
    /// Events of streams; zero where there were none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub events: u64,
    /// Bytes taken from the transport.
    pub received_bytes: u64,
    /// Exchanges under way at its end.
    pub in_flight: u64,
    /// The fewest exchanges under way at any sample within it, of which there are ten a second at first; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_flight_least: Option<u64>,
    /// The most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_flight_most: Option<u64>,
    /// Median latency, from the intended start where there is one.
    pub p50_us: Option<f64>,
    /// 99th percentile of the same.
    pub p99_us: Option<f64>,
    /// Maximum of the same.
    pub max_us: Option<f64>,
    /// 90th percentile of the same.
    #[serde(default)]
    pub p90_us: Option<f64>,
    /// 99.9th percentile of the same.
    #[serde(default)]
    pub p99_9_us: Option<f64>,
    /// Share of one core that the target used; `null` if it was not observed.
    #[serde(default)]
    pub target_cpu_percent: Option<f64>,
    /// Resident memory of the target at its end; `null` if it was not observed.
    #[serde(default)]
    pub target_memory_bytes: Option<u64>,
    /// The names of those that are lower bounds: exchanges were given up in this second.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub censored: Vec<String>,
    /// How the latency was spread, in buckets whose ends are the same in every run; empty ones are
    /// left out.
    #[serde(default)]
    pub spread: Vec<SpreadDocument>,
    /// The time that exchanges spent in each phase, per complete response; those that took none are
    /// left out.
    #[serde(default)]
    pub phases_us: BTreeMap<String, f64>,
}

/// One bucket of how latency was spread.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SpreadDocument {
    /// The longest latency that it stands for.
    pub up_to_us: f64,
    /// Number of exchanges in it.
    pub count: u64,
}

/// The names of the figures of a second that are lower bounds.
pub(crate) fn censored(tick: &Tick) -> impl Iterator<Item = &'static str> {
    [
        ("p50_us", tick.p50),
        ("p90_us", tick.p90),
        ("p99_us", tick.p99),
        ("p99_9_us", tick.p99_9),
        ("max_us", tick.max),
    ]
    .into_iter()
    .filter(|(_, time)| time.is_some_and(Bounded::is_censored))
    .map(|(name, _)| name)
}

impl TickDocument {
    /// - `moments`: of the whole run, in order of time.
    pub(super) fn from_tick(
        tick: &Tick,
        before: Option<&ResourceSample>,
        after: Option<&ResourceSample>,
        moments: &[Moment],
    ) -> Self {
        let from = tick.at.saturating_sub(tick.length);
        let first = moments.partition_point(|moment| moment.at <= from);
        let last = moments.partition_point(|moment| moment.at <= tick.at);
        let within = moments.get(first..last).unwrap_or_default();
        let under_way = within.iter().map(|moment| moment.in_flight);
        let low = |time: Option<Bounded<Duration>>| time.map(|time| microseconds(time.low()));
        Self {
            at_us: microseconds(tick.at),
            length_us: microseconds(tick.length),
            warm_up: tick.warm_up,
            grace: tick.grace,
            ok: tick.ok,
            failed: tick.failed,
            other_errors: tick.other_errors,
            events: tick.events,
            received_bytes: tick.bytes_received,
            in_flight: tick.in_flight,
            in_flight_least: under_way.clone().min(),
            in_flight_most: under_way.max(),
            p50_us: low(tick.p50),
            p99_us: low(tick.p99),
            max_us: low(tick.max),
            p90_us: low(tick.p90),
            p99_9_us: low(tick.p99_9),
            censored: censored(tick).map(str::to_owned).collect(),
            target_cpu_percent: before
                .zip(after)
                .and_then(|(before, after)| Cost::between(before, after).cpu_percent())
                .map(rounded),
            target_memory_bytes: after.map(|sample| sample.memory.total_bytes()),
            spread: tick
                .spread
                .iter()
                .map(|bucket| SpreadDocument {
                    up_to_us: microseconds(bucket.up_to),
                    count: bucket.count,
                })
                .collect(),
            phases_us: Phase::ALL
                .iter()
                .zip(tick.phases)
                .filter(|(_, time)| !time.is_zero())
                .map(|(phase, time)| (phase.name().to_owned(), microseconds(time)))
                .collect(),
        }
    }
}
