//! The report of one process of the harness to the first one: a line of JSON without loss.

use std::time::Duration;

use plimsoll_model::{
    Bucket, Counts, Failure, FailureCount, FailureKind, Histogram, LoadtestFound, Phase,
};
use serde::{Deserialize, Serialize};

/// The part of a run of the harness that one process made.
#[derive(Debug, Clone)]
pub struct LoadtestPart {
    /// Outcomes of its checks.
    pub found: LoadtestFound,
    /// From its start to the end of its last check.
    pub elapsed: Duration,
}

/// Why a line is not a part.
#[derive(Debug, thiserror::Error)]
pub enum LoadtestPartError {
    /// It is not JSON of the right shape.
    #[error("it is not the result of a process of the harness")]
    Json(#[from] serde_json::Error),
    /// It names a phase or a kind of failure that there is not.
    #[error("it names `{0}`, which this program does not know")]
    Name(String),
}

#[derive(Debug, Serialize, Deserialize)]
struct PartDocument {
    started: u64,
    ok: u64,
    failed: u64,
    aborted: u64,
    unmet: u64,
    connections_opened: u64,
    elapsed_ns: u64,
    failures: Vec<PartFailure>,
    /// Nanoseconds and how often.
    latency: Vec<(u64, u64)>,
}

#[derive(Debug, Serialize, Deserialize)]
struct PartFailure {
    phase: String,
    kind: String,
    count: u64,
    cause: Option<String>,
}

impl LoadtestPart {
    /// The part as one line, without a line feed.
    pub fn to_line(&self) -> String {
        let counts = &self.found.counts;
        let document = PartDocument {
            started: counts.started,
            ok: counts.ok,
            failed: counts.failed,
            aborted: counts.aborted,
            unmet: counts.unmet,
            connections_opened: self.found.connections_opened,
            elapsed_ns: nanos(self.elapsed),
            failures: self
                .found
                .failures
                .iter()
                .map(PartFailure::from_failure)
                .collect(),
            latency: self
                .found
                .latency
                .buckets()
                .map(|bucket| (nanos(bucket.up_to), bucket.count))
                .collect(),
        };
        serde_json::to_string(&document).expect("numbers and text are always JSON")
    }

    /// Reads such a line.
    pub fn parse(line: &str) -> Result<Self, LoadtestPartError> {
        let document: PartDocument = serde_json::from_str(line)?;
        let mut latency = Histogram::new();
        for (up_to, count) in document.latency {
            latency.record_bucket(Bucket {
                up_to: Duration::from_nanos(up_to),
                count,
            });
        }
        let failures: Result<_, _> = document
            .failures
            .into_iter()
            .map(PartFailure::into_count)
            .collect();
        Ok(Self {
            found: LoadtestFound {
                counts: Counts {
                    started: document.started,
                    ok: document.ok,
                    failed: document.failed,
                    aborted: document.aborted,
                    unmet: document.unmet,
                    ..Counts::default()
                },
                failures: failures?,
                latency,
                connections_opened: document.connections_opened,
            },
            elapsed: Duration::from_nanos(document.elapsed_ns),
        })
    }
}

impl PartFailure {
    fn from_failure(failure: &FailureCount) -> Self {
        Self {
            phase: failure.phase.name().to_owned(),
            kind: failure.kind.name().to_owned(),
            count: failure.count,
            cause: failure.example.cause.clone(),
        }
    }

    fn into_count(self) -> Result<FailureCount, LoadtestPartError> {
        let phase = Phase::ALL
            .into_iter()
            .find(|phase| phase.name() == self.phase);
        let phase = phase.ok_or(LoadtestPartError::Name(self.phase))?;
        let kind = FailureKind::ALL
            .into_iter()
            .find(|kind| kind.name() == self.kind);
        let kind = kind.ok_or(LoadtestPartError::Name(self.kind))?;
        Ok(FailureCount {
            phase,
            kind,
            count: self.count,
            example: Failure {
                cause: self.cause,
                ..Failure::new(phase, kind)
            },
        })
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::loadtests;

    #[test]
    fn nothing_is_lost_on_the_way() {
        for (name, summary) in loadtests::all() {
            let part = LoadtestPart {
                found: summary.found,
                elapsed: summary.elapsed,
            };
            let line = part.to_line();
            assert!(!line.contains('\n'));
            let read = LoadtestPart::parse(&line).unwrap();
            assert_eq!(read.elapsed, part.elapsed, "{name}");
            assert_eq!(read.found.counts, part.found.counts, "{name}");
            assert_eq!(read.found.failures, part.found.failures, "{name}");
            assert_eq!(read.found.latency.len(), part.found.latency.len());
            for fraction in [0.0, 0.5, 0.99, 1.0] {
                let quantile = |part: &LoadtestPart| part.found.latency.quantile(fraction);
                assert_eq!(quantile(&read), quantile(&part), "{name}");
            }
        }
    }

    #[test]
    fn what_is_something_else_is_reported() {
        let message = |line: &str| LoadtestPart::parse(line).unwrap_err().to_string();
        assert!(message("nonsense").contains("not the result"));
        let line = LoadtestPart {
            found: loadtests::failing().found,
            elapsed: Duration::ZERO,
        };
        let line = line.to_line().replace("\"connect\"", "\"somewhere\"");
        assert!(message(&line).contains("`somewhere`"));
    }
}
