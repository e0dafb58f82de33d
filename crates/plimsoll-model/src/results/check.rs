//! One exchange looked at closely, and what it was expected to be.

use std::time::{Duration, SystemTime};

use crate::{Exchange, GrpcStatus};

/// One exchange, what was seen of it, and how each condition was judged.
#[derive(Debug, Clone)]
pub struct Checked {
    /// The URL, credentials left out.
    pub url: String,
    /// The request method.
    pub method: String,
    /// When it started, as a date.
    pub at: SystemTime,
    /// The exchange.
    pub exchange: Exchange,
    /// The fields of the response head in the order they came, names in lower case; bytes that are
    /// not UTF-8 are replaced.
    pub fields: Vec<(String, String)>,
    /// Bytes of content.
    pub content_bytes: u64,
    /// The outcome of a completed gRPC call.
    pub call: Option<CheckedCall>,
    /// The redirects that led to it, in order.
    pub redirects: Vec<CheckedRedirect>,
    /// The TLS session of the connection.
    pub tls: Option<TlsSession>,
    /// The conditions in the order they were given.
    pub judgements: Vec<Judgement>,
}

impl Checked {
    /// The verdict over all conditions.
    pub fn verdict(&self) -> Verdict {
        if self.exchange.outcome.is_err() {
            Verdict::Failed
        } else if self
            .judgements
            .iter()
            .all(|judgement| judgement.met == Some(true))
        {
            Verdict::Met
        } else {
            Verdict::Unmet
        }
    }
}

/// One response that led elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckedRedirect {
    /// The URL of its request, credentials left out.
    pub url: String,
    /// Its status.
    pub status: u16,
    /// From the start of its request to the end of its response.
    pub took: Duration,
}

/// The answer to a call of gRPC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckedCall {
    /// The status of the call.
    pub status: GrpcStatus,
    /// The message beside the status.
    pub message: Option<String>,
    /// Number of response messages.
    pub messages: u64,
    /// The message as JSON, or the list of them where the method answers with a stream; empty if
    /// there is none.
    pub json: String,
}

/// The verdict of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verdict {
    /// A complete response came and met every condition.
    Met,
    /// A complete response came and did not meet a condition.
    Unmet,
    /// No complete response came.
    Failed,
}

impl Verdict {
    /// The name used in text, JSON and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Met => "met",
            Self::Unmet => "unmet",
            Self::Failed => "failed",
        }
    }
}

/// Verdict of one condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement {
    /// The condition as it was written.
    pub condition: String,
    /// Whether it was met; `None` if there was no complete response to judge.
    pub met: Option<bool>,
    /// The value that the condition was about; `None` if there was none.
    pub observed: Option<String>,
}

/// The parameters of a TLS session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsSession {
    /// The version: `TLS 1.3`.
    pub version: String,
    /// The cipher suite by its IANA name, such as `TLS13_AES_128_GCM_SHA256`; QUIC does not show it.
    pub cipher: Option<String>,
    /// The protocol that the peer chose by ALPN.
    pub alpn: Option<String>,
    /// Whether an earlier session was resumed.
    pub resumed: bool,
    /// The peer's own certificate, where it can be read.
    pub certificate: Option<Certificate>,
}

/// Fields of a certificate (RFC 5280, section 4.1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Certificate {
    /// The subject's distinguished name; may be empty.
    pub subject: String,
    /// The issuer's distinguished name.
    pub issuer: String,
    /// The host names and addresses that it is for.
    pub names: Vec<String>,
    /// When it becomes valid.
    pub not_before: SystemTime,
    /// When it ceases to be valid.
    pub not_after: SystemTime,
}

impl Certificate {
    /// Whole days from `now` until it expires; negative once it has.
    pub fn days_left(&self, now: SystemTime) -> i64 {
        const DAY: u64 = Duration::from_hours(24).as_secs();

        let days = |duration: Duration| i64::try_from(duration.as_secs() / DAY).unwrap_or(i64::MAX);
        match self.not_after.duration_since(now) {
            Ok(left) => days(left),
            Err(error) => -days(error.duration()) - 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::{Failure, FailureKind, Phase, Phases, Protocol};

    const DAY: Duration = Duration::from_hours(24);

    #[test]
    fn days_left_are_whole_and_negative_once_over() {
        let not_after = SystemTime::UNIX_EPOCH + 1_000 * DAY;
        let certificate = Certificate {
            subject: String::new(),
            issuer: String::new(),
            names: Vec::new(),
            not_before: SystemTime::UNIX_EPOCH,
            not_after,
        };
        let second = Duration::from_secs(1);
        for (now, expected) in [
            (not_after - 14 * DAY, 14),
            (not_after - 14 * DAY + second, 13),
            (not_after - second, 0),
            (not_after, 0),
            (not_after + second, -1),
            (not_after + 2 * DAY + second, -3),
        ] {
            assert_eq!(certificate.days_left(now), expected);
        }
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "any moment will do")]
    fn a_verdict_follows_from_the_outcome_and_every_judgement() {
        let now = Instant::now();
        let judgement = |met| Judgement {
            condition: "status == 200".to_owned(),
            met,
            observed: None,
        };
        let verdict = |outcome, judgements| {
            Checked {
                url: String::new(),
                method: String::new(),
                at: SystemTime::UNIX_EPOCH,
                exchange: Exchange {
                    intended: now,
                    started: now,
                    done: now,
                    phases: Phases::default(),
                    bytes_sent: 0,
                    bytes_received: 0,
                    peer: None,
                    protocol: Protocol::Http1,
                    outcome,
                },
                fields: Vec::new(),
                content_bytes: 0,
                call: None,
                redirects: Vec::new(),
                tls: None,
                judgements,
            }
            .verdict()
        };
        let failure = Failure::new(Phase::Connect, FailureKind::Refused);
        assert_eq!(verdict(Ok(500), vec![]), Verdict::Met);
        assert_eq!(verdict(Ok(200), vec![judgement(Some(true))]), Verdict::Met);
        assert_eq!(
            verdict(Ok(200), vec![judgement(Some(true)), judgement(Some(false))]),
            Verdict::Unmet
        );
        assert_eq!(verdict(Err(failure.clone()), vec![]), Verdict::Failed);
        assert_eq!(
            verdict(Err(failure), vec![judgement(None)]),
            Verdict::Failed
        );
    }
}
