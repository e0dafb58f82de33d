//! Results of hostile clients: how a server treated them, and how well-behaved clients fared meanwhile.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, SystemTime};

use crate::{FailureKind, Histogram};

/// One run of a class of hostile clients.
#[derive(Debug, Clone, PartialEq)]
pub struct ChaosSummary {
    /// The name of the class: `rapid-reset`.
    pub class: String,
    /// The behaviour of its clients, in one line.
    pub about: String,
    /// The URL, credentials left out.
    pub url: String,
    /// The address that every connection went to.
    pub address: SocketAddr,
    /// When it began.
    pub at: SystemTime,
    /// Time for which the hostile clients were active.
    pub elapsed: Duration,
    /// Figures of the hostile clients.
    pub hostile: HostileFigures,
    /// Responses to requests that two readers could understand differently.
    pub cases: Vec<ChaosCase>,
    /// The client that meant well.
    pub healthy: HealthyFigures,
    /// The memory of the server's processes, where they can be seen.
    pub memory: Option<ChaosMemory>,
    /// The objectives of the server, and whether they were met.
    pub objectives: Vec<ChaosObjective>,
    /// The user ended it early.
    pub interrupted: bool,
}

impl ChaosSummary {
    /// Whether the server kept every objective.
    pub fn is_healthy(&self) -> bool {
        self.objectives.iter().all(|objective| objective.met)
    }
}

/// Requests or frames that hostile clients sent, and how the server reacted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostileFigures {
    /// The unit of `sent`: `requests`, `PING frames`.
    pub unit: String,
    /// So many of these were sent.
    pub sent: u64,
    /// Bytes that were sent, beneath TLS none counted.
    pub bytes_sent: u64,
    /// Bytes that came back.
    pub bytes_received: u64,
    /// Connections that were opened.
    pub connections: u64,
    /// Connections that could not be opened.
    pub refused: u64,
    /// Connections that the server ended.
    pub ended: u64,
    /// Responses by status; over HTTP/2 and HTTP/3 all are counted as 0.
    pub statuses: BTreeMap<u16, u64>,
    /// GOAWAY frames by the name of their code, with what the server added.
    pub goaways: BTreeMap<String, u64>,
    /// Streams that the server reset, by the name of the code.
    pub resets: BTreeMap<String, u64>,
}

/// Figures of the healthy client: one connection, a request every so often.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HealthyFigures {
    /// Requests that were answered by a status below 500.
    pub served: u64,
    /// Requests without a response, by what was wrong.
    pub failures: BTreeMap<FailureKind, u64>,
    /// Requests answered by a status from 500 on.
    pub server_errors: u64,
    /// The first failure.
    pub first_failure: Option<String>,
    /// Times from when a request was due to the end of its response.
    pub latency: Histogram,
}

impl HealthyFigures {
    /// Requests that were not served.
    pub fn failed(&self) -> u64 {
        self.failures.values().sum::<u64>() + self.server_errors
    }
}

/// Resident memory of the server's process tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChaosMemory {
    /// The observed target: `pid 4711`.
    pub target: String,
    /// Before the first hostile client, in bytes.
    pub before_bytes: u64,
    /// The most that was seen.
    pub peak_bytes: u64,
    /// After the last hostile client was gone.
    pub after_bytes: u64,
    /// The processes ended meanwhile.
    pub ended: bool,
}

/// One request that two readers could understand differently, and how it was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChaosCase {
    /// A short name.
    pub name: String,
    /// The defect of the request.
    pub about: String,
    /// Reactions that are acceptable.
    pub allowed: CaseRule,
    /// The reaction of this server.
    pub answer: CaseAnswer,
}

impl ChaosCase {
    /// Whether the answer is one that the rule allows.
    pub fn is_safe(&self) -> bool {
        match (self.allowed, self.answer) {
            (CaseRule::Refuse, answer) => {
                matches!(answer, CaseAnswer::Refused(_) | CaseAnswer::Closed)
            }
            (CaseRule::RefuseOrEnd, answer) => matches!(
                answer,
                CaseAnswer::Refused(_) | CaseAnswer::Closed | CaseAnswer::OneAndEnd(_)
            ),
            (CaseRule::RefuseOrOne, answer) => !matches!(answer, CaseAnswer::Two(_)),
            (CaseRule::One, answer) => {
                matches!(answer, CaseAnswer::One(_) | CaseAnswer::OneAndEnd(_))
            }
            (CaseRule::Two, answer) => matches!(answer, CaseAnswer::Two(_)),
        }
    }
}

/// Acceptable reactions of a server to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CaseRule {
    /// Refuse it.
    Refuse,
    /// Refuse it, or answer its head and then end the connection, because its content is broken.
    RefuseOrEnd,
    /// Refuse it, or take all of it for one request and no more.
    RefuseOrOne,
    /// It is one request.
    One,
    /// These are two requests.
    Two,
}

impl CaseRule {
    /// Name on the command line and in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Refuse => "refuse",
            Self::RefuseOrEnd => "refuse or end",
            Self::RefuseOrOne => "refuse or one",
            Self::One => "one",
            Self::Two => "two",
        }
    }
}

/// The reaction of a server to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CaseAnswer {
    /// It answered that there is something wrong with it.
    Refused(u16),
    /// It ended the connection without an answer.
    Closed,
    /// It answered it as one request.
    One(u16),
    /// It answered it as one request, and then refused more or ended the connection.
    OneAndEnd(u16),
    /// It answered twice; the first status.
    Two(u16),
    /// It did not answer, as if something were still missing.
    Waits,
}

impl CaseAnswer {
    /// Name in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Refused(_) => "refused",
            Self::Closed => "closed",
            Self::One(_) => "accepted as one",
            Self::OneAndEnd(_) => "accepted as one, then ended",
            Self::Two(_) => "accepted as two",
            Self::Waits => "waits for more",
        }
    }

    /// The status of the first answer.
    pub const fn status(self) -> Option<u16> {
        match self {
            Self::Refused(status)
            | Self::One(status)
            | Self::OneAndEnd(status)
            | Self::Two(status) => Some(status),
            Self::Closed | Self::Waits => None,
        }
    }
}

/// An objective of a server under attack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChaosObjective {
    /// The objective: `p99 of the healthy client <= 100 ms`.
    pub objective: String,
    /// The observed value.
    pub observed: String,
    /// Whether it held.
    pub met: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_safe_depends_on_the_rule() {
        use CaseAnswer::{Closed, One, OneAndEnd, Refused, Two, Waits};
        let answers = [
            Refused(400),
            Closed,
            OneAndEnd(200),
            One(200),
            Two(200),
            Waits,
        ];
        for (allowed, safe) in [
            (CaseRule::Refuse, [true, true, false, false, false, false]),
            (
                CaseRule::RefuseOrEnd,
                [true, true, true, false, false, false],
            ),
            (CaseRule::RefuseOrOne, [true, true, true, true, false, true]),
            (CaseRule::One, [false, false, true, true, false, false]),
            (CaseRule::Two, [false, false, false, false, true, false]),
        ] {
            let found = answers.map(|answer| {
                let case = ChaosCase {
                    name: String::new(),
                    about: String::new(),
                    allowed,
                    answer,
                };
                case.is_safe()
            });
            assert_eq!(found, safe, "{allowed:?}");
        }
    }
}
