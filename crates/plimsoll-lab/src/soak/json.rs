//! A soak as JSON: `schemas/soak.v1.json` describes it.

use plimsoll_report::ConditionsDocument;
use serde::Serialize;

use super::outcome::{JudgedSeries, LoadTally, ScenarioResult, Soak};
use super::text::by_thirds;
use super::verdict::Verdict;

/// Name and major version of the document.
pub const SCHEMA: &str = "plimsoll.soak/1";

/// The document, indented, ending with a line break.
pub fn to_json(soak: &Soak) -> String {
    plimsoll_report::to_json(&Document {
        schema: SCHEMA,
        name: &soak.name,
        verdict: soak.verdict(),
        duration_secs: soak.duration_secs,
        sample_secs: soak.sample_secs,
        scale: soak.scale,
        scenarios: soak.scenarios.iter().map(Scenario::new).collect(),
        scenarios_of_earlier_runs: soak.kept,
        conditions: ConditionsDocument::from_conditions(&soak.conditions),
    })
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    name: &'a str,
    verdict: Verdict,
    duration_secs: f64,
    sample_secs: f64,
    scale: f64,
    scenarios: Vec<Scenario<'a>>,
    scenarios_of_earlier_runs: usize,
    conditions: ConditionsDocument,
}

#[derive(Serialize)]
struct Scenario<'a> {
    name: &'a str,
    verdict: Verdict,
    by_thirds: Verdict,
    lasted_secs: f64,
    failure: Option<&'a str>,
    series: &'a [JudgedSeries],
    loads: &'a [LoadTally],
}

impl<'a> Scenario<'a> {
    fn new(result: &'a ScenarioResult) -> Self {
        Self {
            name: &result.name,
            verdict: result.verdict(),
            by_thirds: by_thirds(result),
            lasted_secs: result.lasted_secs,
            failure: result.failure.as_deref(),
            series: &result.series,
            loads: &result.loads,
        }
    }
}
