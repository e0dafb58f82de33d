//! The figures of a load.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::TrialError;
use super::sides::{Side, Sides};
use crate::counts;
use crate::matrix::plan::Limited;
use crate::matrix::usage::{ObservedSide, ObservedUpstream, Usage, saturated};

/// The figures of a load, seen from all sides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// Whose output it was counted from.
    pub source: String,
    /// Complete responses.
    pub ok: u64,
    /// Requests without one, error statuses, and whatever else the tool calls an error.
    pub errors: u64,
    /// Of `errors`: requests without a complete response.
    #[serde(default)]
    pub failed: u64,
    /// Complete responses per second.
    pub requests_per_second: f64,
    /// Mean latency in microseconds, if the tool reports it; of an open loop from the intended start.
    pub mean_us: Option<f64>,
    /// Median latency.
    pub p50_us: Option<f64>,
    /// 90th percentile, if the tool reports it.
    pub p90_us: Option<f64>,
    /// 95th percentile, if the tool reports it.
    pub p95_us: Option<f64>,
    /// 99th percentile.
    pub p99_us: Option<f64>,
    /// 99.9th percentile, if the tool reports it.
    pub p99_9_us: Option<f64>,
    /// The usage of the target.
    pub target: Option<Usage>,
    /// The usage of the generator.
    pub generator: Option<Usage>,
    /// The usage of each upstream.
    pub upstreams: Vec<Usage>,
    /// The sides at their limit: names, or `machine`; empty if there were none.
    pub saturated: Vec<String>,
}

impl Figures {
    /// Reads what the tool printed and puts it beside what the sides used.
    pub(super) fn read(
        output: &str,
        length: Duration,
        sides: &Sides<'_>,
        generator: Option<Usage>,
    ) -> Result<Self, TrialError> {
        let tally = counts::read(output).map_err(|error| TrialError::Failed(error.to_string()))?;
        if tally.ok == 0 {
            return Err(TrialError::Failed(format!(
                "no request was answered ({} failed)",
                tally.failed
            )));
        }
        let own = OwnSummary::from_output(output);
        let usage = |side: &Side| side.watched.as_ref().and_then(ObservedSide::usage);
        let target = sides.target.as_ref().and_then(usage);
        let mut upstreams: Vec<Usage> = sides.upstreams.iter().filter_map(usage).collect();
        let (here, elsewhere): (Vec<_>, Vec<_>) =
            sides.observed.iter().partition(|it| it.is_here());
        let of_observed = |it: &ObservedUpstream| it.usage();
        upstreams.extend(here.into_iter().filter_map(of_observed));
        let elsewhere: Vec<Usage> = elsewhere.into_iter().filter_map(of_observed).collect();
        let used: Vec<&Usage> = generator.iter().chain(&target).chain(&upstreams).collect();
        let shared = sides
            .size
            .cpus
            .filter(|_| sides.size.limited == Limited::Both);
        let cores = shared.unwrap_or(sides.machine_cores as f64);
        let mut saturated = saturated(&used, cores);
        // They share no core with the others.
        let limited = elsewhere.iter().filter(|side| side.is_saturated());
        saturated.extend(limited.map(|side| side.name.clone()));
        upstreams.extend(elsewhere);
        if own.saturated && !saturated.iter().any(|name| name == "generator") {
            saturated.insert(0, "generator".to_owned());
        }
        Ok(Self {
            source: tally.source.to_owned(),
            ok: tally.ok,
            errors: own
                .errors
                .unwrap_or(0)
                .max(tally.failed + tally.error_statuses),
            failed: tally.failed,
            requests_per_second: tally
                .requests_per_second
                .unwrap_or_else(|| tally.ok as f64 / length.as_secs_f64()),
            mean_us: own.time("mean_us", tally.mean_us),
            p50_us: own.time("p50_us", tally.p50_us),
            p90_us: own.time("p90_us", tally.p90_us),
            p95_us: own.time("p95_us", tally.p95_us),
            p99_us: own.time("p99_us", tally.p99_us),
            p99_9_us: own.time("p99_9_us", tally.p99_9_us),
            target,
            generator,
            upstreams,
            saturated,
        })
    }
}

/// The part of `plimsoll load --json` beyond the tally of every tool.
#[derive(Debug, Default)]
struct OwnSummary {
    errors: Option<u64>,
    saturated: bool,
    /// From the intended start, if there was one.
    latency: Option<serde_json::Value>,
}

impl OwnSummary {
    fn from_output(output: &str) -> Self {
        let Ok(document) = serde_json::from_str::<serde_json::Value>(output.trim()) else {
            return Self::default();
        };
        let saturated = document.pointer("/generator/saturated");
        Self {
            errors: document
                .pointer("/counts/errors")
                .and_then(serde_json::Value::as_u64),
            saturated: saturated.is_some_and(serde_json::Value::is_object),
            latency: document
                .pointer("/latency/from_intended")
                .filter(|latency| latency.is_object())
                .cloned(),
        }
    }

    /// A time from the intended start, else `from_started`; `None` if it is only a lower bound.
    fn time(&self, name: &str, from_started: Option<f64>) -> Option<f64> {
        match &self.latency {
            Some(latency) => counts::plimsoll::known(latency, name),
            None => from_started,
        }
    }
}
