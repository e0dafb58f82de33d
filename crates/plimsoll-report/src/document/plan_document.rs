//! What a run would do, as JSON: the document of `load --check`.

use plimsoll_model::LoadShape;
use serde::Serialize;

use super::load::LoadDocument;
use super::to_json;

/// A run that was not started.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlanDocument {
    /// Name and version of this format.
    pub schema: &'static str,
    /// The generator's configuration, as in the summary of a run.
    pub load: LoadDocument,
    /// The names under which requests are counted, in the order of their file.
    pub requests: Vec<String>,
    /// The thresholds, as written.
    pub thresholds: Vec<String>,
}

impl PlanDocument {
    /// - `requests`: their names.
    pub fn new(load: &LoadShape, requests: Vec<String>, thresholds: Vec<String>) -> Self {
        Self {
            schema: "plimsoll.load.plan/1",
            load: LoadDocument::from_shape(load),
            requests,
            thresholds,
        }
    }

    /// The document as indented JSON with a line feed at its end.
    pub fn to_json(&self) -> String {
        to_json(self)
    }
}
