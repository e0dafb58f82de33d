//! The figures in the text format of Prometheus, for a textfile collector or a push gateway.
//!
//! Source: <https://prometheus.io/docs/instrumenting/exposition_formats/>, version 0.0.4.

use plimsoll_model::{Bounded, MetricsText};

use super::Exporter;
use super::table::honest;
use crate::RunRecord;
use crate::document::{ObservedDocument, TimesDocument};

/// Every figure a gauge, in the base units of Prometheus: seconds, bytes, shares.
#[derive(Debug, Clone, Copy)]
pub struct Prometheus;

/// One value and the labels beside those of its run.
pub(crate) type Point = (Vec<(&'static str, String)>, f64);

/// A family: its name, what it is, and its values in a run.
pub(crate) type Family = (&'static str, &'static str, fn(&RunRecord) -> Vec<Point>);

impl Exporter for Prometheus {
    fn name(&self) -> &'static str {
        "prometheus"
    }

    fn media_type(&self) -> &'static str {
        MetricsText::MEDIA_TYPE
    }

    fn export(&self, runs: &[RunRecord]) -> Vec<u8> {
        let mut text = MetricsText::default();
        for (name, help, points) in FAMILIES {
            let name = format!("plimsoll_{name}");
            let mut samples = MetricsText::default();
            for run in runs {
                for (labels, value) in points(run) {
                    let own = labels.iter().map(|(label, text)| (*label, text.as_str()));
                    let labels: Vec<_> =
                        [("run", run.name.as_str()), ("url", &run.summary.load.url)]
                            .into_iter()
                            .chain(own)
                            .collect();
                    samples.sample(&name, &labels, value);
                }
            }
            if !samples.is_empty() {
                text.family(&name, "gauge", help);
                text.append(&samples);
            }
        }
        text.into_text().into_bytes()
    }
}

pub(crate) const FAMILIES: [Family; 24] = [
    (
        "requests",
        "exchanges of the run by what came of them",
        |run| {
            let counts = &run.summary.counts;
            [
                ("ok", counts.ok),
                ("failed", counts.failed),
                ("aborted", counts.aborted),
                ("dropped", counts.dropped),
                ("missed", counts.missed),
            ]
            .map(|(outcome, count)| (vec![("outcome", outcome.to_owned())], count as f64))
            .to_vec()
        },
    ),
    (
        "requests_per_second",
        "complete responses per second",
        |run| one(Some(run.summary.requests_per_second)),
    ),
    (
        "errors",
        "failures, aborted exchanges, failed statuses, unmet expectations and drops",
        |run| one(Some(run.summary.counts.errors as f64)),
    ),
    (
        "latency_seconds",
        "from the intended start where there is one",
        |run| times(honest(run), &[]),
    ),
    (
        "latency_of_responses_seconds",
        "latency of responses below 400 (`ok`) and of error statuses (`error`), if there are both",
        |run| {
            let latency = &run.summary.latency;
            [("ok", &latency.of_ok), ("error", &latency.of_errors)]
                .into_iter()
                .filter_map(|(kind, of_kind)| Some((kind, of_kind.as_ref()?)))
                .flat_map(|(kind, of_kind)| times(of_kind, &[("responses", kind.to_owned())]))
                .collect()
        },
    ),
    (
        "latency_mean_seconds",
        "arithmetic mean, from the intended start where there is one",
        |run| {
            let mean = honest(run).mean_us;
            let points = mean.map(|mean| bounded(mean, Vec::new()));
            points.into_iter().collect()
        },
    ),
    (
        "latency_censored",
        "exchanges whose latency is known only from below: aborted and missed",
        |run| one(Some(honest(run).censored_count as f64)),
    ),
    ("phase_seconds", "how long phases took", |run| {
        let phases = run.summary.phases.iter();
        phases
            .flat_map(|phase| times(&phase.times, &[("phase", phase.phase.clone())]))
            .collect()
    }),
    ("responses", "complete responses by status", |run| {
        let statuses = run.summary.statuses.iter();
        statuses
            .map(|(status, count)| (vec![("status", status.to_string())], *count as f64))
            .collect()
    }),
    ("grpc_responses", "calls by status of gRPC", |run| {
        let grpc = run.summary.grpc.iter();
        grpc.flat_map(|grpc| &grpc.statuses)
            .map(|(status, count)| (vec![("status", status.clone())], *count as f64))
            .collect()
    }),
    ("failures", "exchanges without a complete response", |run| {
        let failures = run.summary.failures.iter();
        failures
            .map(|failure| {
                let phase = ("phase", failure.phase.clone());
                (
                    vec![phase, ("kind", failure.kind.clone())],
                    failure.count as f64,
                )
            })
            .collect()
    }),
    ("received_bytes", "taken from the transport", |run| {
        one(Some(run.summary.received_bytes as f64))
    }),
    ("sent_bytes", "handed to the transport", |run| {
        one(Some(run.summary.sent_bytes as f64))
    }),
    ("window_seconds", "length of the measured window", |run| {
        one(Some(seconds(run.summary.window_us)))
    }),
    (
        "server_cpu_seconds_per_request",
        "processor time of the server",
        |run| {
            let target = run.summary.target.as_ref();
            one(target.and_then(|target| target.cost.cpu_us_per_request.map(seconds)))
        },
    ),
    (
        "server_cpu_error_seconds_per_request",
        "how far the processor time of the server may be off: two standard errors",
        |run| {
            let target = run.summary.target.as_ref();
            one(target.and_then(|target| target.cpu_us_per_request_error.map(seconds)))
        },
    ),
    (
        "server_memory_peak_bytes",
        "resident memory of the server",
        |run| {
            let target = run.summary.target.as_ref();
            one(target.map(|target| target.peak_memory_bytes as f64))
        },
    ),
    (
        "observed_cpu_seconds_per_request",
        "processor time of a server that was observed by name, if it was throughout",
        |run| {
            observed(run, |server| {
                let cost = server.cost.as_ref().filter(|_| server.whole)?;
                cost.cost.cpu_us_per_request.map(seconds)
            })
        },
    ),
    (
        "observed_cpu_error_seconds_per_request",
        "how far the processor time of a server that was observed by name may be off: two standard errors",
        |run| {
            observed(run, |server| {
                let cost = server.cost.as_ref().filter(|_| server.whole)?;
                cost.cpu_us_per_request_error.map(seconds)
            })
        },
    ),
    (
        "observed_memory_peak_bytes",
        "resident memory of a server that was observed by name",
        |run| {
            observed(run, |server| {
                let cost = server.cost.as_ref()?;
                Some(cost.peak_memory_bytes as f64)
            })
        },
    ),
    (
        "observed_throttled_seconds",
        "time for which a limit on processor time stopped a server that was observed by name",
        |run| observed(run, |server| server.throttled_us.map(seconds)),
    ),
    (
        "observed_gap_seconds",
        "time without samples of a server that was observed by name",
        |run| observed(run, |server| Some(seconds(server.unseen_us()))),
    ),
    (
        "generator_saturated",
        "1 if the generator was the limit",
        |run| {
            let is_saturated = run.summary.generator.saturated.is_some();
            one(Some(f64::from(u8::from(is_saturated))))
        },
    ),
    ("threshold_met", "1 if the threshold was met", |run| {
        let thresholds = run.summary.thresholds.iter();
        thresholds
            .map(|threshold| {
                let is_met = threshold.verdict == "met";
                let label = ("threshold", threshold.threshold.clone());
                (vec![label], f64::from(u8::from(is_met)))
            })
            .collect()
    }),
];

/// A value for each server that was observed by name and has it.
fn observed(run: &RunRecord, value: fn(&ObservedDocument) -> Option<f64>) -> Vec<Point> {
    let servers = run.summary.observed.iter();
    servers
        .filter_map(|server| Some((vec![("server", server.name.clone())], value(server)?)))
        .collect()
}

fn one(value: Option<f64>) -> Vec<Point> {
    value.map(|value| (Vec::new(), value)).into_iter().collect()
}

fn times(times: &TimesDocument, labels: &[(&'static str, String)]) -> Vec<Point> {
    [
        ("0.5", times.p50_us),
        ("0.9", times.p90_us),
        ("0.95", times.p95_us),
        ("0.99", times.p99_us),
        ("0.999", times.p99_9_us),
        ("1", times.max_us),
    ]
    .into_iter()
    .filter_map(|(quantile, micros)| {
        let mut labels = labels.to_vec();
        labels.push(("quantile", quantile.to_owned()));
        micros.map(|micros| bounded(micros, labels))
    })
    .collect()
}

/// A duration; one that is only a lower bound says so in a label.
fn bounded(micros: Bounded<f64>, mut labels: Vec<(&'static str, String)>) -> Point {
    if micros.is_censored() {
        labels.push(("bound", "lower".to_owned()));
    }
    (labels, seconds(micros.low()))
}

fn seconds(micros: f64) -> f64 {
    micros / 1e6
}
