//! The table of figures per request, for every format that has tables.

use plimsoll_model::grouped;

use super::table::{NOTHING, optional};
use crate::RunRecord;

/// Titles of the columns.
pub(super) const COLUMNS: [&str; 5] = ["Request", "Count", "Errors", "p50", "p99"];

/// The rows of one run, the worst first; none where it has only one request.
pub(super) fn rows(run: &RunRecord) -> Vec<[String; 5]> {
    let row = |request: &crate::document::RequestDocument| {
        let times = request.latency.as_ref();
        let errors = match request.errors() {
            0 => NOTHING.to_owned(),
            errors => format!("{} ({:.1} %)", grouped(errors), request.error_percent),
        };
        [
            request.name.clone(),
            grouped(request.count),
            errors,
            optional(times.and_then(|times| times.p50_us)),
            optional(times.and_then(|times| times.p99_us)),
        ]
    };
    run.summary.requests.iter().map(row).collect()
}
