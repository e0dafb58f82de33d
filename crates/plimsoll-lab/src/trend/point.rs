//! One result of a series: what is kept of a run, and the line of a file that holds it.

use std::collections::BTreeMap;

use plimsoll_report::{RunRecord, SummaryDocument};
use serde::{Deserialize, Serialize};

use super::figure::Figure;

/// Name and major version of a line.
pub const LINE_SCHEMA: &str = "plimsoll.cost/1";

/// The figures of one result, and what must be known to set them beside others.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrendPoint {
    schema: String,
    /// What was measured: usually a commit.
    pub name: String,
    /// When the run started, in UTC (RFC 3339).
    pub started: String,
    /// The request, the protocol and the load; only results with the same one make a series.
    pub load: String,
    /// Processor and cores of the machine: another machine has other figures.
    pub machine: String,
    /// Version of plimsoll.
    pub plimsoll: String,
    /// By name; those that there are.
    figures: BTreeMap<String, f64>,
}

/// Why a line is no result.
#[derive(Debug, thiserror::Error)]
pub enum PointError {
    /// It is not JSON, or not of this form.
    #[error("it is not a line that `plimsoll load --append` wrote")]
    Form(#[source] serde_json::Error),
    /// It is of another version.
    #[error("its schema is {0}, and {LINE_SCHEMA} is expected")]
    Schema(String),
}

impl TrendPoint {
    /// The figures of a summary.
    pub fn from_summary(name: &str, summary: &SummaryDocument) -> Self {
        let conditions = &summary.conditions;
        let figures = Figure::ALL
            .into_iter()
            .filter_map(|figure| Some((figure.name().to_owned(), figure.value(summary)?)));
        Self {
            schema: LINE_SCHEMA.to_owned(),
            name: name.to_owned(),
            started: conditions.started.clone(),
            load: load_of(summary),
            machine: format!(
                "{}, {} cores",
                conditions
                    .cpu_model
                    .as_deref()
                    .unwrap_or("unknown processor"),
                conditions.cores
            ),
            plimsoll: conditions.plimsoll.clone(),
            figures: figures.collect(),
        }
    }

    /// The figures of a result.
    pub fn from_record(record: &RunRecord) -> Self {
        Self::from_summary(&record.name, &record.summary)
    }

    /// Reads a line that [`to_line`](Self::to_line) wrote.
    pub fn parse(line: &str) -> Result<Self, PointError> {
        let point: Self = serde_json::from_str(line).map_err(PointError::Form)?;
        if point.schema == LINE_SCHEMA {
            Ok(point)
        } else {
            Err(PointError::Schema(point.schema))
        }
    }

    /// The line of a file, without its line feed.
    pub fn to_line(&self) -> String {
        serde_json::to_string(self).expect("names and numbers are JSON")
    }

    /// The value of a figure.
    pub fn value(&self, figure: Figure) -> Option<f64> {
        self.figures.get(figure.name()).copied()
    }
}

/// What must be the same for figures to be of one series. The port of an embedded origin is another one in each run.
fn load_of(summary: &SummaryDocument) -> String {
    let load = &summary.load;
    let target = summary.target.as_ref();
    let is_embedded = target.is_some_and(|target| target.name == "embedded origin");
    let url = if is_embedded {
        "embedded origin"
    } else {
        &load.url
    };
    let model = match load.rate_per_second {
        Some(rate) => format!("{rate} requests/s"),
        None => "closed loop".to_owned(),
    };
    let streams = match load.streams {
        0 | 1 => String::new(),
        streams => format!(" of {streams} streams"),
    };
    format!(
        "{} {url}, {}, {model}, {} connections{streams}",
        load.method, load.protocol, load.connections
    )
}
