//! The files of one run, as `--out DIR` keeps them.

use plimsoll_model::RunSummary;

use crate::document::ConditionsDocument;
use crate::export::{Exporter, Html};
use crate::record::RunRecord;
use crate::text::Style;
use crate::{SummaryDocument, latency_log, series_csv, text};

/// The summary for programs, by `schemas/load-summary.v1.json`.
pub const SUMMARY_JSON: &str = "summary.json";
/// The summary for people, as printed.
pub const SUMMARY_TEXT: &str = "summary.txt";
/// One row a second.
pub const SERIES_CSV: &str = "series.csv";
/// Latencies in the HdrHistogram V2 log format.
pub const LATENCY_HDR: &str = "latency.hdr";
/// The conditions alone.
pub const CONDITIONS_JSON: &str = "conditions.json";

/// The page for people.
pub const REPORT_HTML: &str = "report.html";

/// All of them.
pub const NAMES: [&str; 6] = [
    SUMMARY_JSON,
    SUMMARY_TEXT,
    SERIES_CSV,
    LATENCY_HDR,
    CONDITIONS_JSON,
    REPORT_HTML,
];

/// A file's name and content.
pub type NamedFile = (&'static str, Vec<u8>);

/// Every file of `run`, in a fixed order.
pub fn of_run(run: &RunSummary) -> Vec<NamedFile> {
    vec![
        (
            SUMMARY_JSON,
            SummaryDocument::of(run).to_json().into_bytes(),
        ),
        (SUMMARY_TEXT, text::summary(run, Style::Plain).into_bytes()),
        (SERIES_CSV, series_csv(run).into_bytes()),
        (LATENCY_HDR, latency_log(run)),
        (
            CONDITIONS_JSON,
            ConditionsDocument::of(&run.conditions)
                .to_json()
                .into_bytes(),
        ),
        (REPORT_HTML, Html.export(&[RunRecord::of("run", run)])),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn every_run_gives_every_file() {
        for (name, run) in fixture::all() {
            let files = of_run(&run);
            let names: Vec<&str> = files.iter().map(|(name, _)| *name).collect();
            assert_eq!(
                names,
                [
                    "summary.json",
                    "summary.txt",
                    "series.csv",
                    "latency.hdr",
                    "conditions.json",
                    "report.html"
                ]
            );
            for (file, content) in files {
                assert_eq!(content.last(), Some(&b'\n'), "{file} of {name}");
            }
        }
    }
}
