//! One run of hostile clients as programs read it: `schemas/chaos.v1.json`.
//!
//! Units are in the names; durations are microseconds with up to three decimals. Within a version
//! fields are added and never change their meaning. What was not there is `null`.

use std::collections::BTreeMap;

use plimsoll_model::{ChaosCase, ChaosMemory, ChaosSummary, HealthyFigures, HostileFigures};
use serde::{Deserialize, Serialize};

use crate::document::{microseconds, to_json};

/// One run of `plimsoll chaos`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChaosDocument {
    /// Always [`ChaosDocument::SCHEMA`].
    pub schema: String,
    /// The name of the class.
    pub class: String,
    /// The URL, credentials left out.
    pub url: String,
    /// Destination of every connection.
    pub address: String,
    /// When it started, RFC 3339 in UTC.
    pub started: String,
    /// Time for which the hostile clients were active.
    pub elapsed_us: f64,
    /// The user ended it early.
    pub interrupted: bool,
    /// Every objective was kept.
    pub healthy: bool,
    /// The objectives of the server.
    pub objectives: Vec<ChaosObjectiveDocument>,
    /// The client that meant well.
    pub healthy_client: HealthyClientDocument,
    /// The hostile clients.
    pub hostile_clients: HostileClientsDocument,
    /// Memory of the server's processes; `null` if they were not named.
    pub memory: Option<ChaosMemoryDocument>,
    /// The cases of the class `smuggling`.
    pub cases: Vec<ChaosCaseDocument>,
}

/// One objective.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChaosObjectiveDocument {
    /// The objective.
    pub objective: String,
    /// The observed value.
    pub observed: String,
    /// Whether it held.
    pub met: bool,
}

/// The client that meant well.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HealthyClientDocument {
    /// Requests that were answered by a status below 500.
    pub served: u64,
    /// The others.
    pub failed: u64,
    /// The first failure.
    pub first_failure: Option<String>,
    /// The median latency, from when a request was due.
    pub p50_us: Option<f64>,
    /// The 99th percentile.
    pub p99_us: Option<f64>,
    /// The largest.
    pub max_us: Option<f64>,
}

/// The hostile clients.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostileClientsDocument {
    /// The unit of `sent`.
    pub unit: String,
    /// So many were sent.
    pub sent: u64,
    /// Bytes that were sent.
    pub sent_bytes: u64,
    /// Bytes that came back.
    pub received_bytes: u64,
    /// Connections opened.
    pub connections: u64,
    /// Connections that could not be opened.
    pub refused: u64,
    /// Connections that the server ended.
    pub ended: u64,
    /// Responses by status, 0 where it was not looked at.
    pub statuses: BTreeMap<u16, u64>,
    /// GOAWAY frames by code.
    pub goaways: BTreeMap<String, u64>,
    /// Streams that the server reset, by code.
    pub resets: BTreeMap<String, u64>,
}

/// Resident memory of the server's process tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChaosMemoryDocument {
    /// The observed target.
    pub target: String,
    /// Before the first hostile client.
    pub before_bytes: u64,
    /// The most that was seen.
    pub peak_bytes: u64,
    /// When they were gone.
    pub after_bytes: u64,
    /// The processes ended meanwhile.
    pub ended: bool,
}

/// One case of smuggling.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChaosCaseDocument {
    /// Its name.
    pub name: String,
    /// The defect of the request.
    pub about: String,
    /// Acceptable reactions.
    pub allowed: String,
    /// The reaction of this server.
    pub answer: String,
    /// The status of its first response.
    pub status: Option<u16>,
    /// Whether that is allowed.
    pub safe: bool,
}

impl ChaosDocument {
    /// Names this document and its version.
    pub const SCHEMA: &str = "plimsoll.chaos/1";

    /// The document of `summary`.
    pub fn from_summary(summary: &ChaosSummary) -> Self {
        Self {
            schema: Self::SCHEMA.to_owned(),
            class: summary.class.clone(),
            url: summary.url.clone(),
            address: summary.address.to_string(),
            started: humantime::format_rfc3339_millis(summary.at).to_string(),
            elapsed_us: microseconds(summary.elapsed),
            interrupted: summary.interrupted,
            healthy: summary.is_healthy(),
            objectives: summary
                .objectives
                .iter()
                .map(|objective| ChaosObjectiveDocument {
                    objective: objective.objective.clone(),
                    observed: objective.observed.clone(),
                    met: objective.met,
                })
                .collect(),
            healthy_client: HealthyClientDocument::from_figures(&summary.healthy),
            hostile_clients: HostileClientsDocument::from_figures(&summary.hostile),
            memory: summary
                .memory
                .as_ref()
                .map(ChaosMemoryDocument::from_memory),
            cases: summary
                .cases
                .iter()
                .map(ChaosCaseDocument::from_case)
                .collect(),
        }
    }

    /// The document as indented JSON with a line feed at its end.
    pub fn to_json(&self) -> String {
        to_json(self)
    }
}

impl HealthyClientDocument {
    fn from_figures(figures: &HealthyFigures) -> Self {
        let quantile = |fraction| figures.latency.quantile(fraction).map(microseconds);
        Self {
            served: figures.served,
            failed: figures.failed(),
            first_failure: figures.first_failure.clone(),
            p50_us: quantile(0.5),
            p99_us: quantile(0.99),
            max_us: figures.latency.max().map(microseconds),
        }
    }
}

impl HostileClientsDocument {
    fn from_figures(figures: &HostileFigures) -> Self {
        Self {
            unit: figures.unit.clone(),
            sent: figures.sent,
            sent_bytes: figures.bytes_sent,
            received_bytes: figures.bytes_received,
            connections: figures.connections,
            refused: figures.refused,
            ended: figures.ended,
            statuses: figures.statuses.clone(),
            goaways: figures.goaways.clone(),
            resets: figures.resets.clone(),
        }
    }
}

impl ChaosMemoryDocument {
    fn from_memory(memory: &ChaosMemory) -> Self {
        Self {
            target: memory.target.clone(),
            before_bytes: memory.before_bytes,
            peak_bytes: memory.peak_bytes,
            after_bytes: memory.after_bytes,
            ended: memory.ended,
        }
    }
}

impl ChaosCaseDocument {
    fn from_case(case: &ChaosCase) -> Self {
        Self {
            name: case.name.clone(),
            about: case.about.clone(),
            allowed: case.allowed.name().to_owned(),
            answer: case.answer.name().to_owned(),
            status: case.answer.status(),
            safe: case.is_safe(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::fixture::chaos;

    const SCHEMA: &str = include_str!("../../../../schemas/chaos.v1.json");

    #[test]
    fn every_document_is_valid_by_the_published_schema() {
        let mut schema: Value = serde_json::from_str(SCHEMA).unwrap();
        close(&mut schema);
        let validator = jsonschema::validator_for(&schema).unwrap();
        for summary in [chaos::flooded(), chaos::smuggled()] {
            let document = ChaosDocument::from_summary(&summary);
            let value = serde_json::to_value(&document).unwrap();
            let errors: Vec<String> = validator
                .iter_errors(&value)
                .map(|error| format!("{}: {error}", error.instance_path()))
                .collect();
            assert_eq!(errors, [""; 0], "{}", summary.class);
            let read: ChaosDocument = serde_json::from_str(&document.to_json()).unwrap();
            assert_eq!(read, document);
        }
    }

    /// The published schema allows fields of later minor additions; here none may be undescribed.
    fn close(schema: &mut Value) {
        match schema {
            Value::Object(object) => {
                if let Some(properties) = object.get("properties").and_then(Value::as_object) {
                    let required = object["required"].as_array().unwrap().len();
                    assert_eq!(properties.len(), required, "{properties:?}");
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
}
