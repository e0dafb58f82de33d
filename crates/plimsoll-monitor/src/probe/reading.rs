//! The reading of a probe, and the result that it becomes.

use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_client::check::{Condition, Facts, Observed};
use plimsoll_model::{
    Certificate, Failure, FailureKind, GrpcStatus, Phase, Phases, Side, masked_urls,
};

use crate::detect::status::Status;
use crate::probe::gatus_condition::GatusCondition;
use crate::probe::known_secrets::KnownSecrets;
use crate::probe::suite_context::SuiteContext;
use crate::time::Timestamp;

/// The reading of a probe: plain facts without a verdict.
#[derive(Debug, Clone)]
pub struct Reading {
    /// Why no complete answer came, if none did.
    pub failure: Option<Failure>,
    /// Whether the target could be reached.
    pub connected: bool,
    /// The status of HTTP, or the exit status of a command.
    pub code: Option<u16>,
    /// The phases that were completed, even if a later one failed.
    pub phases: Phases,
    /// How long all of it took.
    pub took: Duration,
    /// The target's address.
    pub peer: Option<IpAddr>,
    /// Header fields, names in lower case.
    pub fields: Vec<(String, Vec<u8>)>,
    /// The content, as far as it was kept.
    pub body: Vec<u8>,
    /// Bytes of the whole content.
    pub size: u64,
    /// The target's own certificate.
    pub certificate: Option<Certificate>,
    /// When the registration of the domain ends.
    pub domain_expires: Option<Timestamp>,
    /// The response code of a name server, such as `NOERROR`.
    pub dns_rcode: Option<String>,
    /// Status of a gRPC call.
    pub grpc_status: Option<GrpcStatus>,
    /// Something that is wrong without being an outage.
    pub warning: Option<String>,
    /// An expectation of the probe itself that was not met, such as a check of a script.
    pub unmet: Option<String>,
    /// Conditions that the probe judged itself, such as those of the steps of a suite.
    pub judged: Vec<Judged>,
    /// The values of the suite that this is a step of.
    pub context: Option<Arc<SuiteContext>>,
    /// When the time of the check is over.
    pub until: Option<tokio::time::Instant>,
}

impl Default for Reading {
    fn default() -> Self {
        Self {
            failure: None,
            connected: false,
            code: None,
            phases: Phases::default(),
            took: Duration::ZERO,
            peer: None,
            fields: Vec::new(),
            body: Vec::new(),
            size: 0,
            certificate: None,
            domain_expires: None,
            dns_rcode: None,
            grpc_status: None,
            warning: None,
            unmet: None,
            judged: Vec::new(),
            context: None,
            until: None,
        }
    }
}

impl Reading {
    /// One that failed before anything was learned.
    pub fn failed(failure: Failure) -> Self {
        Self {
            failure: Some(failure),
            ..Self::default()
        }
    }

    /// The first header field of that lower-case name.
    pub fn field(&self, name: &str) -> Option<&[u8]> {
        let found = self.fields.iter().find(|(field, _)| field == name);
        found.map(|(_, value)| value.as_slice())
    }

    /// What may be shown of the answer; the rest stays away.
    fn shown(&self, secrets: &KnownSecrets) -> Self {
        let hide = |value: &[u8]| secrets.hide_bytes(value).into_owned();
        Self {
            fields: self
                .fields
                .iter()
                .map(|(name, value)| (name.clone(), hide(value)))
                .collect(),
            body: hide(&self.body),
            context: self
                .context
                .as_ref()
                .map(|context| Arc::new(context.shown(secrets))),
            ..self.clone()
        }
    }

    fn certificate_expires(&self) -> Option<Timestamp> {
        let certificate = self.certificate.as_ref()?;
        Some(Timestamp::from_system(certificate.not_after))
    }
}

/// The expected reading.
#[derive(Debug, Clone)]
pub enum Expectation {
    /// Conditions of `plimsoll check`.
    Conditions {
        /// All must hold, otherwise the target is down.
        expect: Vec<Condition>,
        /// All should hold, otherwise the target is degraded.
        warn_unless: Vec<Condition>,
    },
    /// Conditions of Gatus, all of which must hold.
    Gatus {
        /// The conditions.
        conditions: Vec<GatusCondition>,
        /// Whether a target that cannot be reached is left to the conditions, as Gatus does for TCP, UDP and ICMP.
        leaves_failures: bool,
        /// Display of failed conditions.
        shows: GatusDisplay,
    },
    /// What the probe judges itself, as a suite does.
    OfProbe {
        /// Its conditions where all of them hold.
        conditions: Vec<String>,
    },
    /// The opposite of another expectation: up is down.
    UpsideDown(Box<Self>),
}

/// Display of conditions in Gatus's interface, by `ui` of an endpoint.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent switches of Gatus"
)]
pub struct GatusDisplay {
    /// Failed conditions as they were written.
    pub keep_failed: bool,
    /// Conditions that hold with their values.
    pub resolve_successful: bool,
    /// No conditions at all.
    pub hide_conditions: bool,
    /// No host name in results.
    pub hide_hostname: bool,
    /// No errors in results.
    pub hide_errors: bool,
}

impl Default for Expectation {
    fn default() -> Self {
        Self::Conditions {
            expect: Vec::new(),
            warn_unless: Vec::new(),
        }
    }
}

/// One condition and how a reading met it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judged {
    /// The condition, for people; one of Gatus has its values in it.
    pub condition: String,
    /// Whether it holds.
    pub met: bool,
}

/// The result of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckResult {
    /// When the check started.
    pub at: Timestamp,
    /// The verdict.
    pub status: Status,
    /// How long it took.
    pub took: Duration,
    /// The phases that were completed.
    pub phases: Phases,
    /// The status of HTTP, or the like.
    pub code: Option<u16>,
    /// Why it is not up, for people.
    pub reason: Option<String>,
    /// Whether the target could be reached.
    pub connected: bool,
    /// The conditions in the order they were given.
    pub conditions: Vec<Judged>,
    /// When the target's certificate expires.
    pub certificate_expires: Option<Timestamp>,
    /// When the registration of the domain ends.
    pub domain_expires: Option<Timestamp>,
}

impl CheckResult {
    /// The result without credentials, which an operator, a job or an agent may have put into its texts.
    #[must_use]
    pub fn without(mut self, secrets: &KnownSecrets) -> Self {
        let shown = |text: String| match secrets.hide(&text) {
            Cow::Borrowed(_) => text,
            Cow::Owned(hidden) => hidden,
        };
        // Stores, notices, pages and the API show it.
        self.reason = self.reason.map(shown).map(without_secrets);
        for judged in &mut self.conditions {
            judged.condition = shown(std::mem::take(&mut judged.condition));
        }
        self
    }

    /// A result without a probe: of a heartbeat, an operator, other monitors.
    pub fn plain(at: Timestamp, status: Status, took: Duration, reason: Option<String>) -> Self {
        Self {
            at,
            status,
            took,
            phases: Phases::default(),
            code: None,
            reason,
            connected: status == Status::Up,
            conditions: Vec::new(),
            certificate_expires: None,
            domain_expires: None,
        }
    }
}

/// A reason whose URLs show no credentials.
fn without_secrets(reason: String) -> String {
    match masked_urls(&reason) {
        Cow::Borrowed(_) => reason,
        Cow::Owned(masked) => masked,
    }
}

impl Expectation {
    /// Judges a reading of a check that started at `at`. Its reason shows none of the credentials that were sent.
    pub fn judge(&self, reading: &Reading, at: Timestamp, secrets: &KnownSecrets) -> CheckResult {
        let (status, reason, conditions) = match self {
            Self::Conditions {
                expect,
                warn_unless,
            } => by_conditions(expect, warn_unless, reading, at, secrets),
            Self::Gatus {
                conditions,
                leaves_failures,
                shows,
            } => by_gatus(conditions, *leaves_failures, *shows, reading, at, secrets),
            Self::OfProbe { .. } => by_probe(reading),
            Self::UpsideDown(other) => {
                let result = other.judge(reading, at, secrets);
                let (status, reason) = match result.status {
                    Status::Up | Status::Degraded => {
                        (Status::Down, Some("it is up, and should not be".to_owned()))
                    }
                    Status::Down => (Status::Up, None),
                    Status::Error => (Status::Error, result.reason),
                };
                (status, reason, result.conditions)
            }
        };
        let result = CheckResult {
            at,
            status,
            took: reading.took,
            phases: reading.phases,
            code: reading.code,
            reason,
            connected: reading.connected,
            conditions,
            certificate_expires: reading.certificate_expires(),
            domain_expires: reading.domain_expires,
        };
        result.without(secrets)
    }

    /// Whether the target's certificate must be read.
    pub fn needs_certificate(&self) -> bool {
        match self {
            Self::Conditions {
                expect,
                warn_unless,
            } => expect
                .iter()
                .chain(warn_unless)
                .any(Condition::needs_certificate),
            Self::Gatus { .. } | Self::OfProbe { .. } => true,
            Self::UpsideDown(other) => other.needs_certificate(),
        }
    }
}

type Verdict = (Status, Option<String>, Vec<Judged>);

fn by_conditions(
    expect: &[Condition],
    warn_unless: &[Condition],
    reading: &Reading,
    at: Timestamp,
    secrets: &KnownSecrets,
) -> Verdict {
    if let Some(failure) = &reading.failure {
        // Not known to be met, so not met.
        let unjudged = expect.iter().map(|condition| Judged {
            condition: condition.text().to_owned(),
            met: false,
        });
        let status = status_of(failure);
        return (status, Some(explain(failure)), unjudged.collect());
    }
    let days = reading.certificate_expires().map(|expires| {
        const DAY: i64 = 86_400_000;
        (expires.0 - at.0).div_euclid(DAY)
    });
    let facts = Facts {
        status: reading.code.unwrap_or(0),
        time: reading.took,
        phases: reading.phases,
        peer: reading.peer,
        certificate_days: days,
        grpc_status: reading.grpc_status,
    };
    let observed = Observed::new(facts, &reading.fields, &reading.body, reading.size);
    let judge = |condition: &Condition| Judged {
        condition: condition.text().to_owned(),
        met: condition.is_met(&observed),
    };
    let mut judged: Vec<_> = expect.iter().map(judge).collect();
    let unmet = |condition: &Condition, all: &[Condition]| {
        // Before it is cut: the rest of a credential would not be recognised.
        let shown = reading.shown(secrets);
        let is_altered = shown.body != reading.body;
        let mut shown = Observed::new(facts, &shown.fields, &shown.body, reading.size);
        if is_altered {
            shown = shown.altered();
        }
        condition.unmet_text(all, &shown)
    };
    let failed: Vec<_> = expect.iter().filter(|it| !it.is_met(&observed)).collect();
    if let Some(first) = failed.first() {
        let is_about_status = failed.iter().any(|condition| condition.needs_status());
        if is_about_status && reading.code == Some(429) {
            let after = reading.field("retry-after").map(String::from_utf8_lossy);
            let after = after.map_or(String::new(), |after| format!(", retry after {after}"));
            let reason = format!("the target limits the rate of requests (429{after})");
            return (Status::Degraded, Some(reason), judged);
        }
        return (Status::Down, Some(unmet(first, expect)), judged);
    }
    if let Some(unmet) = &reading.unmet {
        return (Status::Down, Some(unmet.clone()), judged);
    }
    judged.extend(warn_unless.iter().map(judge));
    let warned = warn_unless.iter().find(|it| !it.is_met(&observed));
    match (warned, &reading.warning) {
        (None, None) => (Status::Up, None, judged),
        (Some(condition), _) => {
            let reason = unmet(condition, warn_unless);
            (Status::Degraded, Some(reason), judged)
        }
        (None, Some(warning)) => (Status::Degraded, Some(warning.clone()), judged),
    }
}

fn by_probe(reading: &Reading) -> Verdict {
    let judged = reading.judged.clone();
    if let Some(failure) = &reading.failure {
        return (status_of(failure), Some(explain(failure)), judged);
    }
    match &reading.unmet {
        None => (Status::Up, None, judged),
        Some(unmet) => (Status::Down, Some(unmet.clone()), judged),
    }
}

fn by_gatus(
    conditions: &[GatusCondition],
    leaves_failures: bool,
    shows: GatusDisplay,
    reading: &Reading,
    at: Timestamp,
    secrets: &KnownSecrets,
) -> Verdict {
    let mut errors = Vec::new();
    // A failure of this machine says nothing about the target, whatever the conditions are.
    let ours = reading
        .failure
        .as_ref()
        .filter(|failure| status_of(failure) == Status::Error);
    if let Some(failure) = reading.failure.as_ref().filter(|_| !leaves_failures) {
        errors.push(explain(failure));
    }
    let judged: Vec<_> = conditions
        .iter()
        .flat_map(|condition| {
            let judged = condition.judge(reading, at, shows, &mut errors);
            if judged.iter().all(|one| one.met) && !shows.resolve_successful {
                return judged;
            }
            // Gatus's conditions have the values in them, which are cut.
            let masked = condition.judge(&reading.shown(secrets), at, shows, &mut Vec::new());
            if masked.len() != judged.len() {
                return judged;
            }
            let with_text = |(judged, masked): (Judged, Judged)| Judged {
                condition: masked.condition,
                met: judged.met,
            };
            judged.into_iter().zip(masked).map(with_text).collect()
        })
        .collect();
    if let Some(failure) = ours {
        return (Status::Error, Some(explain(failure)), judged);
    }
    let unmet = judged.iter().find(|judged| !judged.met);
    match (errors.first(), unmet) {
        (None, None) => (Status::Up, None, judged),
        (Some(error), _) => (Status::Down, Some(error.clone()), judged),
        (None, Some(unmet)) => {
            let reason = format!("{} is not met", unmet.condition);
            (Status::Down, Some(reason), judged)
        }
    }
}

/// A failure of this machine says nothing about the target.
fn status_of(failure: &Failure) -> Status {
    match failure.side {
        Side::Ours => Status::Error,
        Side::Theirs | Side::Network | Side::Config => Status::Down,
    }
}

/// The failure as a sentence for people who do not know phases.
pub fn explain(failure: &Failure) -> String {
    let what = match (failure.kind, failure.phase) {
        (FailureKind::Refused, Phase::Connect) => "the connection was refused",
        (FailureKind::Reset, _) => "the target reset the connection",
        (FailureKind::Timeout, Phase::Dns) => "no name server answered in time",
        (FailureKind::Timeout, Phase::Connect) => "no connection was made in time",
        (FailureKind::Timeout, Phase::Tls) => "the TLS handshake took too long",
        (FailureKind::Timeout, _) => "no complete answer came in time",
        (FailureKind::Closed, _) => "the target closed the connection without a complete answer",
        (FailureKind::CertificateExpired, _) => "the certificate is not valid at this time",
        (FailureKind::CertificateUntrusted, _) => "the certificate's issuer is not trusted",
        (FailureKind::CertificateHostname, _) => "the certificate is for another name",
        (FailureKind::CertificateSelfSigned, _) => "the certificate is self-signed",
        (FailureKind::CertificateOther, _) => "the certificate cannot be used",
        (FailureKind::NameNotFound, _) => "the name has no address",
        (FailureKind::TooLarge, _) => "the answer is larger than the limit",
        _ => return failure.to_string(),
    };
    match &failure.cause {
        // Some causes say the same.
        Some(cause) if cause.as_str() != what => format!("{what}: {cause}"),
        _ => what.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_of_this_machine_is_an_error_by_conditions_of_gatus_too() {
        let condition = GatusCondition::parse("[CONNECTED] == true").unwrap();
        for leaves_failures in [false, true] {
            let expectation = Expectation::Gatus {
                conditions: vec![condition.clone()],
                leaves_failures,
                shows: GatusDisplay::default(),
            };
            let judged = |side| {
                let failure = Failure::new(Phase::Connect, FailureKind::ResourceLimit).on(side);
                expectation
                    .judge(
                        &Reading::failed(failure),
                        Timestamp(0),
                        &KnownSecrets::default(),
                    )
                    .status
            };
            assert_eq!(judged(Side::Ours), Status::Error);
            assert_eq!(judged(Side::Theirs), Status::Down);
        }
    }

    #[test]
    fn upside_down_turns_the_verdict_of_the_target_alone() {
        let expect = vec![Condition::parse("status == 200").unwrap()];
        let expectation = Expectation::UpsideDown(Box::new(Expectation::Conditions {
            expect,
            warn_unless: Vec::new(),
        }));
        let judged = |reading: Reading| {
            let result = expectation.judge(&reading, Timestamp(0), &KnownSecrets::default());
            (result.status, result.reason)
        };
        let answered = |code| Reading {
            connected: true,
            code: Some(code),
            ..Reading::default()
        };
        let (status, reason) = judged(answered(200));
        assert_eq!(status, Status::Down);
        assert_eq!(reason.as_deref(), Some("it is up, and should not be"));
        assert_eq!(judged(answered(404)), (Status::Up, None));
        let refused = Failure::new(Phase::Connect, FailureKind::Refused);
        assert_eq!(judged(Reading::failed(refused.clone())), (Status::Up, None));
        // An error here is none of the target.
        let ours = Reading::failed(refused.on(Side::Ours));
        assert_eq!(judged(ours).0, Status::Error);
    }

    #[test]
    fn a_cause_that_says_the_same_is_not_repeated() {
        let failure = |kind, cause: &str| Failure::new(Phase::Tls, kind).because(cause);
        let same = failure(
            FailureKind::CertificateSelfSigned,
            "the certificate is self-signed",
        );
        assert_eq!(explain(&same), "the certificate is self-signed");
        let other = failure(FailureKind::CertificateOther, "bad encoding");
        assert_eq!(
            explain(&other),
            "the certificate cannot be used: bad encoding"
        );
    }
}
