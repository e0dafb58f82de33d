//! The table of servers that were observed by name, for every format that has tables.

use plimsoll_model::{ByteSize, DurationText};

use super::table::{NOTHING, of_server, optional_us};
use crate::RunRecord;
use crate::document::ObservedDocument;

/// Titles of the columns.
pub(super) const COLUMNS: [&str; 7] = [
    "Server",
    "CPU per request",
    "Memory, peak",
    "Throttled",
    "Gaps",
    "Clock offset",
    "Observed",
];

/// The rows of one run, in the order of the command line; none where no server was observed by name.
pub(super) fn rows(run: &RunRecord) -> Vec<[String; 7]> {
    run.summary.observed.iter().map(row).collect()
}

fn row(server: &ObservedDocument) -> [String; 7] {
    let cost = server.cost.as_ref();
    let mut per_request = cost.map_or(NOTHING.to_owned(), of_server);
    if !server.whole {
        per_request.push_str(" of a part");
    }
    let clock = server.clock_offset_us.zip(server.clock_error_us);
    let clock = clock.map(|(offset, error)| {
        let sign = if offset < 0.0 { '−' } else { '+' };
        format!("{sign}{} ± {}", micros(offset.abs()), micros(error))
    });
    let some = |micros: f64| (micros > 0.0).then_some(micros);
    [
        server.name.clone(),
        per_request,
        cost.map_or(NOTHING.to_owned(), |cost| {
            ByteSize(cost.peak_memory_bytes).to_string()
        }),
        optional_us(server.throttled_us.and_then(some)),
        optional_us(some(server.unseen_us())),
        clock.unwrap_or_else(|| NOTHING.to_owned()),
        server.target.clone(),
    ]
}

fn micros(micros: f64) -> String {
    let time = std::time::Duration::try_from_secs_f64(micros / 1e6).unwrap_or_default();
    DurationText(time).to_string()
}
