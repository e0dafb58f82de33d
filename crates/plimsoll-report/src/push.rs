//! Figures for databases of time series, in the formats that these are sent.
//!
//! A run is sent in points: some a second while it goes on ([`of_tick`]), the rest when it is over
//! ([`of_run`]). [`remote_write`] and [`Otlp`] encode any number of them.

mod otlp;

mod remote_write;

use std::borrow::Cow;
use std::time::SystemTime;

use plimsoll_model::{ResourceSample, RunSummary, Tick};

pub use self::otlp::{Otlp, Rejected};
pub use self::remote_write::remote_write;
use crate::RunRecord;
use crate::export::prometheus;

/// The prefix of metric names of a plain run.
const PREFIX: &str = "plimsoll";

/// One value of one series at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// The prefix of the name: `plimsoll`, or `k6` for metrics of scripts.
    pub prefix: &'static str,
    /// The name without the prefix; of plimsoll's own figures it ends with the unit, as in `latency_seconds`.
    pub name: Cow<'static, str>,
    /// The same in words; empty for metrics of scripts.
    pub help: &'static str,
    /// The labels of the series; names are unique, values not empty.
    pub labels: Vec<(Cow<'static, str>, String)>,
    /// When.
    pub at: SystemTime,
    /// The value, in the base units of Prometheus: seconds, bytes, shares.
    pub value: f64,
}

/// The figures of one second.
///
/// - `target`: what the target's processes held and had spent at its end.
/// - `labels`: those of the run.
/// - `at`: when it ended.
pub fn of_tick(
    tick: &Tick,
    target: Option<&ResourceSample>,
    labels: &[(Cow<'static, str>, String)],
    at: SystemTime,
) -> Vec<Point> {
    let mut points = Vec::new();
    let mut add = |name: &'static str, help, more: Option<(&'static str, &str)>, value| {
        let mut labels = labels.to_vec();
        labels.extend(more.map(|(name, value)| (name.into(), value.to_owned())));
        points.push(Point {
            prefix: PREFIX,
            name: name.into(),
            help,
            labels,
            at,
            value,
        });
    };
    let seconds = tick.length.as_secs_f64();
    if seconds > 0.0 {
        for (name, help, count) in [
            (
                "live_requests_per_second",
                "complete responses in the last second",
                tick.ok,
            ),
            (
                "live_errors_per_second",
                "failures, aborted exchanges, failed statuses, unmet expectations and drops in the last second",
                tick.failed + tick.other_errors,
            ),
            (
                "live_received_bytes_per_second",
                "taken from the transport in the last second",
                tick.bytes_received,
            ),
        ] {
            add(name, help, None, count as f64 / seconds);
        }
    }
    for (quantile, time) in [
        ("0.5", tick.p50),
        ("0.9", tick.p90),
        ("0.99", tick.p99),
        ("0.999", tick.p99_9),
        ("1", tick.max),
    ] {
        let Some(time) = time else { continue };
        add(
            "live_latency_seconds",
            "in the last second, from the intended start where there is one; at least, in the second in which requests are given up",
            Some(("quantile", quantile)),
            time.low().as_secs_f64(),
        );
    }
    add(
        "live_in_flight",
        "exchanges under way",
        None,
        tick.in_flight as f64,
    );
    if let Some(target) = target {
        add(
            "live_server_cpu_seconds",
            "processor time of the server until now",
            None,
            target.cpu.total().as_secs_f64(),
        );
        add(
            "live_server_memory_bytes",
            "resident memory of the server",
            None,
            target.memory.total_bytes() as f64,
        );
    }
    points
}

/// The figures of a whole run: those of [`Prometheus`](crate::export::Prometheus).
///
/// - `run`: what it is called.
/// - `at`: when it ended.
pub fn of_run(run: &str, summary: &RunSummary, at: SystemTime) -> Vec<Point> {
    let record = RunRecord::from_summary(run, summary);
    let mut points = Vec::new();
    for (name, help, of) in prometheus::FAMILIES {
        for (more, value) in of(&record) {
            let mut labels = run_labels(run, &record.summary.load.url);
            labels.extend(more.into_iter().map(|(name, value)| (name.into(), value)));
            points.push(Point {
                prefix: PREFIX,
                name: name.into(),
                help,
                labels,
                at,
                value,
            });
        }
    }
    points
}

/// The labels that every point of a run has.
pub fn run_labels(run: &str, url: &str) -> Vec<(Cow<'static, str>, String)> {
    vec![
        ("run".into(), run.to_owned()),
        ("url".into(), url.to_owned()),
    ]
}

/// Since 1970; a clock that is set to an earlier time counts as 1970.
fn since_epoch(at: SystemTime) -> std::time::Duration {
    at.duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default()
}

#[cfg(test)]
mod tests;
