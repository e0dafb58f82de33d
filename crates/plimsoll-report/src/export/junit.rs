//! Thresholds and expectations as test cases in the XML of `JUnit`, which CI systems show.

use std::fmt::Write as _;

use plimsoll_model::{RunSummary, escaped_html};

use super::Exporter;
use super::table::threshold_value;
use crate::RunRecord;
use crate::document::CountsDocument;

/// One suite per run: that every request was answered, each expectation, each threshold.
#[derive(Debug, Clone, Copy)]
pub struct Junit;

/// A test case.
struct Case {
    class: &'static str,
    name: String,
    /// Why it failed, if it did.
    failure: Option<String>,
}

impl Exporter for Junit {
    fn name(&self) -> &'static str {
        "junit"
    }

    fn media_type(&self) -> &'static str {
        "application/xml"
    }

    fn export(&self, runs: &[RunRecord]) -> Vec<u8> {
        let suites: Vec<_> = runs.iter().map(|run| (run, cases(run))).collect();
        let failed = |cases: &[Case]| cases.iter().filter(|case| case.failure.is_some()).count();
        let all: usize = suites.iter().map(|(_, cases)| cases.len()).sum();
        let all_failed: usize = suites.iter().map(|(_, cases)| failed(cases)).sum();
        let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
        writeln!(
            xml,
            "<testsuites tests=\"{all}\" failures=\"{all_failed}\">"
        )
        .expect(IN_MEMORY);
        for (run, cases) in &suites {
            let seconds = run.summary.window_us / 1e6;
            writeln!(
                xml,
                "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"0\" \
                 skipped=\"0\" time=\"{seconds:.3}\" timestamp=\"{}\">",
                escaped_html(&run.name),
                cases.len(),
                failed(cases),
                escaped_html(&run.summary.conditions.started)
            )
            .expect(IN_MEMORY);
            for case in cases {
                let name = escaped_html(&case.name);
                let head = format!("    <testcase classname=\"{}\" name=\"{name}\"", case.class);
                match &case.failure {
                    None => writeln!(xml, "{head}/>"),
                    Some(reason) => writeln!(
                        xml,
                        "{head}><failure message=\"{}\"/></testcase>",
                        escaped_html(reason)
                    ),
                }
                .expect(IN_MEMORY);
            }
            xml.push_str("  </testsuite>\n");
        }
        xml.push_str("</testsuites>\n");
        xml.into_bytes()
    }
}

const IN_MEMORY: &str = "writing to memory does not fail";

fn cases(run: &RunRecord) -> Vec<Case> {
    let summary = &run.summary;
    let counts = &summary.counts;
    // A threshold on errors says how many may be without a response.
    let is_judged = summary.thresholds.iter().any(|threshold| {
        let text = &threshold.threshold;
        ["errors", "http_req_failed", "failed"]
            .iter()
            .any(|name| text.trim_start().starts_with(name))
    });
    let unanswered = counts.failed + counts.aborted;
    let answered = if unanswered == 0 {
        None
    } else {
        Some(format!(
            "no complete response to {unanswered} of {} requests",
            counts.started
        ))
    };
    let statuses = match counts.failed_status {
        0 => None,
        failed => Some(format!("{failed} responses have one")),
    };
    let is_intended = summary.load.fail_status.as_deref() == Some("none")
        || !summary.load.expectations.is_empty();
    let has_good = if counts.ok > 0 && counts.error_statuses == counts.ok && !is_intended {
        Some(format!("all {} responses have one", counts.ok))
    } else {
        None
    };
    let mut cases = Vec::new();
    if !is_judged || unanswered == 0 || counts.ok == 0 {
        cases.push(Case {
            class: "plimsoll.load",
            name: "every request is answered".to_owned(),
            failure: answered,
        });
    }
    if let Some(short) = shortfall(counts) {
        cases.push(Case {
            class: "plimsoll.load",
            name: "at most 1 % of the intended requests are missed or aborted".to_owned(),
            failure: Some(short),
        });
    }
    cases.extend([Case {
        class: "plimsoll.load",
        name: "not every response has an error status".to_owned(),
        failure: has_good,
    }]);
    if summary.grpc.is_some() || summary.load.fail_status.is_some() {
        cases.push(Case {
            class: "plimsoll.load",
            name: match summary.grpc {
                Some(_) => "every status is OK and none is in --fail-status".to_owned(),
                None => "no status is in --fail-status".to_owned(),
            },
            failure: statuses,
        });
    }
    for condition in &summary.load.expectations {
        cases.push(Case {
            class: "plimsoll.expect",
            name: condition.clone(),
            failure: summary
                .unmet
                .get(condition)
                .map(|unmet| format!("{unmet} responses do not meet it")),
        });
    }
    for threshold in &summary.thresholds {
        cases.push(Case {
            class: "plimsoll.threshold",
            name: threshold.threshold.clone(),
            failure: match threshold.verdict.as_str() {
                "met" => None,
                verdict => Some(format!("{verdict}: {}", threshold_value(threshold))),
            },
        });
    }
    cases
}

/// How many requests were not made or not waited for to their end, if they are too many.
fn shortfall(counts: &CountsDocument) -> Option<String> {
    let short = counts.missed + counts.aborted;
    let intended = counts.started + counts.dropped + counts.missed;
    let most = RunSummary::SHORTFALL_SHARE * intended as f64;
    (short as f64 > most).then(|| format!("{short} of {intended} are"))
}
