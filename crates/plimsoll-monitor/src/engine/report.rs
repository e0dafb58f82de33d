//! Results of another process as JSON: reports of agents, and what processes on one store find for each other.
//!
//! Unknown keys are ignored, so that an agent may be newer than its centre.

use std::time::Duration;

use plimsoll_model::{Phase, Phases};
use serde::{Deserialize, Serialize};

use crate::detect::status::Status;
use crate::engine::command::RemoteResult;
use crate::probe::reading::{CheckResult, Judged};
use crate::time::Timestamp;

/// What a process finds for the one that has the lease, as the store keeps it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum SharedFinding {
    /// A report with one result.
    Result(Report),
    /// No check of this monitor was started, since its host cannot be reached.
    HeldBack(String),
}

/// Results of one report.
pub const MOST_RESULTS: usize = 1_000;

/// Characters of a reason or a condition.
const MOST_TEXT: usize = 1_000;

/// Conditions of one result.
const MOST_CONDITIONS: usize = 100;

/// A clock that is off by more than this is corrected.
const MOST_SKEW: i64 = 5_000;

/// A report of an agent.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Eq)]
pub struct Report {
    /// Differs with every start of the agent.
    pub run: u64,
    /// The version of plimsoll.
    pub version: String,
    /// When it is sent, by the agent's clock, in milliseconds.
    pub(crate) now: i64,
    /// Results that wait besides these.
    pub waiting: u64,
    /// Results that were given up since the start, because too many waited.
    pub lost: u64,
    /// What was found, in the order of the checks.
    pub results: Vec<Found>,
}

/// One result.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Eq)]
pub struct Found {
    number: u64,
    key: String,
    at: i64,
    status: String,
    took_us: u64,
    /// By their names.
    phases_us: Vec<(String, u64)>,
    code: Option<u16>,
    reason: Option<String>,
    connected: bool,
    conditions: Vec<(String, bool)>,
    certificate_expires: Option<i64>,
    domain_expires: Option<i64>,
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

fn shortened(mut text: String) -> String {
    if let Some((end, _)) = text.char_indices().nth(MOST_TEXT) {
        text.truncate(end);
    }
    text
}

impl Report {
    /// The first report of an agent, of what it has found so far.
    pub fn first(now: Timestamp, results: Vec<Found>) -> Self {
        Self {
            run: 1,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            now: now.0,
            waiting: 0,
            lost: 0,
            results,
        }
    }

    /// As a process hands it to the one that has the lease; `None` if it cannot be written.
    pub fn handed_over(self) -> Option<String> {
        serde_json::to_string(&SharedFinding::Result(self)).ok()
    }
}

impl Found {
    /// - `number`: ascending, of each agent.
    pub fn from_result(number: u64, key: &str, result: CheckResult) -> Self {
        let phases = result.phases.iter();
        let judged = result.conditions.into_iter().take(MOST_CONDITIONS);
        Self {
            number,
            key: key.to_owned(),
            at: result.at.0,
            status: result.status.name().to_owned(),
            took_us: micros(result.took),
            phases_us: phases
                .map(|(phase, took)| (phase.to_string(), micros(took)))
                .collect(),
            code: result.code,
            reason: result.reason.map(shortened),
            connected: result.connected,
            conditions: judged
                .map(|one| (shortened(one.condition), one.met))
                .collect(),
            certificate_expires: result.certificate_expires.map(|at| at.0),
            domain_expires: result.domain_expires.map(|at| at.0),
        }
    }

    pub(crate) fn key(&self) -> &str {
        &self.key
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// The result by another clock; `None` if its status is none.
    ///
    /// - `skew`: milliseconds by which the clock of the agent is late.
    fn result(self, skew: i64) -> Option<RemoteResult> {
        let mut statuses = Status::ALL.into_iter();
        let status = statuses.find(|status| status.name() == self.status)?;
        let mut phases = Phases::default();
        for (name, took) in &self.phases_us {
            if let Some(phase) = Phase::ALL.into_iter().find(|it| it.to_string() == *name) {
                phases.set(phase, Duration::from_micros(*took));
            }
        }
        let date = |at: i64| Timestamp(at.saturating_add(skew));
        let conditions = self.conditions.into_iter().take(MOST_CONDITIONS);
        Some(RemoteResult {
            number: self.number,
            key: self.key,
            result: CheckResult {
                at: date(self.at),
                status,
                took: Duration::from_micros(self.took_us),
                phases,
                code: self.code,
                reason: self.reason.map(shortened),
                connected: self.connected,
                conditions: conditions
                    .map(|(condition, met)| Judged {
                        condition: shortened(condition),
                        met,
                    })
                    .collect(),
                certificate_expires: self.certificate_expires.map(Timestamp),
                domain_expires: self.domain_expires.map(Timestamp),
            },
        })
    }
}

impl Report {
    /// The results by the clock of this process.
    pub fn into_results(self, now: Timestamp) -> Vec<RemoteResult> {
        let skew = now.0.saturating_sub(self.now);
        let skew = if skew.saturating_abs() > MOST_SKEW {
            skew
        } else {
            0
        };
        let results = self.results.into_iter().take(MOST_RESULTS);
        results.filter_map(|found| found.result(skew)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result() -> CheckResult {
        let mut phases = Phases::default();
        phases.set(Phase::Connect, Duration::from_micros(120));
        phases.set(Phase::Wait, Duration::from_micros(900));
        CheckResult {
            at: Timestamp(1_772_366_400_123),
            status: Status::Degraded,
            took: Duration::from_micros(1_234),
            phases,
            code: Some(200),
            reason: Some("took 1.2 ms, limit 1 ms".to_owned()),
            connected: true,
            conditions: vec![Judged {
                condition: "time < 1ms".to_owned(),
                met: false,
            }],
            certificate_expires: Some(Timestamp(1_800_000_000_000)),
            domain_expires: None,
        }
    }

    fn report(now: i64) -> Report {
        Report {
            run: u64::MAX,
            version: "1".to_owned(),
            now,
            waiting: 0,
            lost: 0,
            results: vec![Found::from_result(3, "core_web", result())],
        }
    }

    #[test]
    fn results_survive_the_way() {
        let sent = report(1_772_366_401_000);
        let text = serde_json::to_string(&sent).unwrap();
        let read: Report = serde_json::from_str(&text).unwrap();
        assert_eq!(read, sent);
        let found = read.into_results(Timestamp(1_772_366_401_050));
        let expected = RemoteResult {
            number: 3,
            key: "core_web".to_owned(),
            result: result(),
        };
        assert_eq!(found, [expected]);
    }

    #[test]
    fn a_clock_that_is_off_is_corrected() {
        let sent = report(1_772_366_401_000);
        let hour = 3_600_000;
        let found = sent.into_results(Timestamp(1_772_366_401_000 + hour));
        assert_eq!(found[0].result.at, Timestamp(1_772_366_400_123 + hour));
    }

    #[test]
    fn long_texts_and_unknown_statuses_are_bounded() {
        let mut sent = report(0);
        sent.results[0].reason = Some("ä".repeat(5_000));
        let mut other = sent.results[0].clone();
        other.status = "splendid".to_owned();
        sent.results.push(other);
        let found = sent.into_results(Timestamp(0));
        assert_eq!(found.len(), 1);
        assert_eq!(
            found[0]
                .result
                .reason
                .as_deref()
                .map(|it| it.chars().count()),
            Some(1_000)
        );
    }
}
