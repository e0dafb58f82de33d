//! A run of the harness as programs read it: `schemas/loadtest.v1.json`.
//!
//! Units are in the names; durations are microseconds with up to three decimals. Within a version
//! fields are added and never change their meaning. What was not there is `null`.

use plimsoll_model::{AgentFigures, Histogram, LoadtestShape, LoadtestSummary, LoadtestTick};
use serde::{Deserialize, Serialize};

use crate::document::{FailureDocument, microseconds, rounded, to_json};

/// One run of `plimsoll loadtest`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadtestDocument {
    /// Always [`LoadtestDocument::SCHEMA`].
    pub schema: String,
    /// The configuration, and how it was laid out.
    pub shape: LoadtestShapeDocument,
    /// Whether the user ended it early.
    pub interrupted: bool,
    /// From the first start to the last end.
    pub elapsed_us: f64,
    /// Complete responses per second of that time.
    pub requests_per_second: f64,
    /// Counts of checks by outcome.
    pub counts: LoadtestCountsDocument,
    /// Connections opened.
    pub connections_opened: u64,
    /// Durations of complete responses and timeouts, from the start of the check.
    pub latency: LoadtestLatencyDocument,
    /// Failures by kind and phase, most frequent first.
    pub failures: Vec<FailureDocument>,
    /// Resident memory: the sum of the most that each process has ever held.
    pub peak_memory_bytes: Option<u64>,
    /// One entry a second.
    pub ticks: Vec<LoadtestTickDocument>,
    /// The agents of a fleet that made the run; empty where one machine made it.
    #[serde(default)]
    pub agents: Vec<LoadtestAgentDocument>,
    /// Doubts about the figures; those about figures that are missing come first.
    #[serde(default)]
    pub cautions: Vec<String>,
}

/// The part of one agent of a fleet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadtestAgentDocument {
    /// Its name.
    pub name: String,
    /// Workers of its part.
    pub workers: usize,
    /// Checks that it has begun.
    pub started: u64,
    /// Those with a complete response.
    pub ok: u64,
    /// Failures, and responses that are not as they should be.
    pub errors: u64,
    /// Complete responses per second of the whole run.
    pub requests_per_second: f64,
    /// Durations of its complete responses and timeouts.
    pub latency: LoadtestLatencyDocument,
    /// How long after the agreed start it began; `null` if it did not finish.
    pub late_us: Option<f64>,
    /// Why its figures are not all that it counted, or its part is not whole; `null` if they are.
    pub problem: Option<String>,
}

impl LoadtestAgentDocument {
    fn from_figures(agent: &AgentFigures, summary: &LoadtestSummary) -> Self {
        let seconds = summary.elapsed.as_secs_f64();
        let rate = if seconds > 0.0 {
            agent.counts.ok as f64 / seconds
        } else {
            0.0
        };
        Self {
            name: agent.name.clone(),
            workers: agent.workers,
            started: agent.counts.started,
            ok: agent.counts.ok,
            errors: agent.counts.errors(),
            requests_per_second: rounded(rate),
            latency: LoadtestLatencyDocument::from_histogram(agent.latency.observed()),
            late_us: agent.late.map(microseconds),
            problem: agent.problem.clone(),
        }
    }
}

impl LoadtestDocument {
    /// Names this document and its version.
    pub const SCHEMA: &str = "plimsoll.loadtest/1";

    /// The document of `summary`.
    pub fn from_summary(summary: &LoadtestSummary) -> Self {
        let counts = &summary.found.counts;
        Self {
            schema: Self::SCHEMA.to_owned(),
            shape: LoadtestShapeDocument::from_shape(&summary.shape),
            interrupted: summary.interrupted,
            elapsed_us: microseconds(summary.elapsed),
            requests_per_second: rounded(summary.requests_per_second()),
            counts: LoadtestCountsDocument {
                started: counts.started,
                ok: counts.ok,
                failed: counts.failed,
                aborted: counts.aborted,
                unmet: counts.unmet,
            },
            connections_opened: summary.found.connections_opened,
            latency: LoadtestLatencyDocument::from_histogram(&summary.found.latency),
            failures: summary
                .found
                .failures
                .iter()
                .map(FailureDocument::from_failure)
                .collect(),
            peak_memory_bytes: summary.peak_memory_bytes,
            ticks: summary
                .ticks
                .iter()
                .map(LoadtestTickDocument::from_tick)
                .collect(),
            agents: summary
                .agents
                .iter()
                .map(|agent| LoadtestAgentDocument::from_figures(agent, summary))
                .collect(),
            cautions: summary.cautions.clone(),
        }
    }

    /// The document as indented JSON with a line feed at its end.
    pub fn to_json(&self) -> String {
        to_json(self)
    }
}

/// The configuration, and how it was laid out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadtestShapeDocument {
    /// The protocol of the checks.
    pub protocol: String,
    /// The use of connections: `kept`, `fresh` or `shared`.
    pub connections: String,
    /// Workers: each makes one check after the other.
    pub workers: usize,
    /// Listeners of the origins, each at an address of its own.
    pub listeners: usize,
    /// Processes that check.
    pub client_processes: usize,
    /// Processes that answer.
    pub origin_processes: usize,
    /// All processes, the first one included.
    pub processes: usize,
    /// Time for which workers start new checks.
    pub duration_us: f64,
    /// Over which time workers begin.
    pub ramp_us: f64,
    /// Timeout of one check.
    pub timeout_us: f64,
    /// Whether it ran in a network namespace of its own.
    pub own_network: bool,
}

impl LoadtestShapeDocument {
    fn from_shape(shape: &LoadtestShape) -> Self {
        Self {
            protocol: shape.protocol.name().to_owned(),
            connections: shape.connections.name().to_owned(),
            workers: shape.workers,
            listeners: shape.listeners,
            client_processes: shape.client_processes,
            origin_processes: shape.origin_processes,
            processes: shape.processes,
            duration_us: microseconds(shape.duration),
            ramp_us: microseconds(shape.ramp),
            timeout_us: microseconds(shape.timeout),
            own_network: shape.own_network,
        }
    }
}

/// Counts of checks by outcome.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadtestCountsDocument {
    /// Checks begun: `ok + failed + aborted`.
    pub started: u64,
    /// Those with a complete response.
    pub ok: u64,
    /// Those without one.
    pub failed: u64,
    /// Those still under way when the grace period ended.
    pub aborted: u64,
    /// Of `ok`: those whose response was not as it should be.
    pub unmet: u64,
}

/// Durations of checks; `null` if none has a latency.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadtestLatencyDocument {
    /// Checks with a latency.
    pub count: u64,
    /// Median.
    pub p50_us: Option<f64>,
    /// 95th percentile.
    pub p95_us: Option<f64>,
    /// 99th percentile.
    pub p99_us: Option<f64>,
    /// Longest.
    pub max_us: Option<f64>,
}

impl LoadtestLatencyDocument {
    fn from_histogram(latency: &Histogram) -> Self {
        let quantile = |fraction| latency.quantile(fraction).map(microseconds);
        Self {
            count: latency.len(),
            p50_us: quantile(0.5),
            p95_us: quantile(0.95),
            p99_us: quantile(0.99),
            max_us: latency.max().map(microseconds),
        }
    }
}

/// The state at one moment; counts are those since the start.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadtestTickDocument {
    /// Time since the start.
    pub at_us: f64,
    /// Complete responses.
    pub ok: u64,
    /// Failures, and responses that are not as they should be.
    pub errors: u64,
    /// Checks under way.
    pub in_flight: u64,
    /// Resident memory, summed over all processes.
    pub memory_bytes: Option<u64>,
}

impl LoadtestTickDocument {
    fn from_tick(tick: &LoadtestTick) -> Self {
        Self {
            at_us: microseconds(tick.at),
            ok: tick.ok,
            errors: tick.errors,
            in_flight: tick.in_flight,
            memory_bytes: tick.memory_bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::fixture::loadtests;

    const SCHEMA: &str = include_str!("../../../../schemas/loadtest.v1.json");

    #[test]
    fn every_document_is_valid_and_says_no_more_than_is_described() {
        let mut schema: Value = serde_json::from_str(SCHEMA).unwrap();
        let published = jsonschema::validator_for(&schema).unwrap();
        close(&mut schema);
        let strict = jsonschema::validator_for(&schema).unwrap();
        for (name, summary) in loadtests::all() {
            let document = serde_json::to_value(LoadtestDocument::from_summary(&summary)).unwrap();
            for validator in [&published, &strict] {
                let errors: Vec<String> = validator
                    .iter_errors(&document)
                    .map(|error| format!("{}: {error}", error.instance_path()))
                    .collect();
                assert_eq!(errors, [""; 0], "{name}");
            }
        }
        assert!(!published.is_valid(&serde_json::json!({ "schema": "plimsoll.loadtest/1" })));
    }

    /// Allows nothing undescribed, and checks that what is described is required.
    fn close(schema: &mut Value) {
        match schema {
            Value::Object(object) => {
                if let Some(Value::Object(properties)) = object.get("properties") {
                    let required = object["required"].as_array().unwrap();
                    assert_eq!(properties.len(), required.len(), "{properties:?}");
                    for (name, property) in properties {
                        assert!(property["description"].is_string(), "{name}");
                    }
                    object.insert("additionalProperties".into(), Value::Bool(false));
                }
                object.values_mut().for_each(close);
            }
            Value::Array(items) => items.iter_mut().for_each(close),
            _ => {}
        }
    }

    #[test]
    fn a_document_survives_the_way_through_json() {
        for (name, summary) in loadtests::all() {
            let document = LoadtestDocument::from_summary(&summary);
            let read: LoadtestDocument = serde_json::from_str(&document.to_json()).unwrap();
            assert_eq!(read, document, "{name}");
        }
    }
}
