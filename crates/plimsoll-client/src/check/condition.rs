//! One condition: a subject, an operator and what to compare with.

mod parse;

mod error;

mod compare;

mod text;

pub(super) mod json;

mod address;

mod hash;

mod unmet;

use std::fmt;
use std::time::Duration;

use plimsoll_model::{DurationText, GrpcStatus, Phase};

use self::address::AddressTest;
use self::compare::Comparison;
pub use self::error::ConditionError;
use self::hash::HashTest;
use self::json::JsonTest;
use self::text::TextTest;
use crate::check::Observed;

/// A condition on a response.
///
/// ```text
/// status == 200            status >= 200          status != 404
/// time < 300ms             wait < 100ms           size <= 64KiB
/// body contains 'ok'       body == 'ok'           body matches '^ok'
/// body.sha256 == 2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824
/// body.json($.ok) == true  body.json($.items[0]) exists
/// header.content-type contains 'json'             header.etag exists
/// cert.days > 14           ip in 10.0.0.0/8       grpc.status == NOT_FOUND
/// any(status == 200, status == 204)               not(body contains 'error')
/// ```
#[derive(Debug, Clone)]
pub struct Condition {
    text: String,
    test: Test,
}

#[derive(Debug, Clone)]
enum Test {
    Status(Comparison, u64),
    Time(Comparison, Duration),
    /// A phase that did not happen took no time.
    Phase(Phase, Comparison, Duration),
    Size(Comparison, u64),
    Address(AddressTest),
    CertificateDays(Comparison, i64),
    /// A call of gRPC that has another status, or none, is not equal.
    GrpcStatus(bool, GrpcStatus),
    Body(TextTest),
    Hash(HashTest),
    Json(JsonTest),
    Header(String, TextTest),
    Any(Vec<Condition>),
    Not(Box<Condition>),
}

impl Condition {
    /// Parses one condition.
    pub fn parse(text: &str) -> Result<Self, ConditionError> {
        parse::condition(text, 0)
    }

    /// The condition as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether judging it needs the body.
    pub fn needs_body(&self) -> bool {
        self.needs(&|test| matches!(test, Test::Body(_) | Test::Hash(_) | Test::Json(_)))
    }

    /// Whether judging it needs the peer's certificate.
    pub fn needs_certificate(&self) -> bool {
        self.needs(&|test| matches!(test, Test::CertificateDays(..)))
    }

    /// Whether it looks at the status of a call of gRPC.
    pub fn needs_grpc(&self) -> bool {
        self.needs(&|test| matches!(test, Test::GrpcStatus(..)))
    }

    /// Whether it looks at the status.
    pub fn needs_status(&self) -> bool {
        self.needs(&|test| matches!(test, Test::Status(..)))
    }

    fn needs(&self, which: &impl Fn(&Test) -> bool) -> bool {
        which(&self.test)
            || self
                .test
                .parts()
                .iter()
                .any(|condition| condition.needs(which))
    }

    /// Adds the header fields that it looks at, in lower case.
    pub(super) fn collect_headers(&self, names: &mut Vec<String>) {
        if let Test::Header(name, _) = &self.test {
            names.push(name.clone());
        }
        for part in self.test.parts() {
            part.collect_headers(names);
        }
    }

    /// Whether `observed` meets the condition.
    pub fn is_met(&self, observed: &Observed<'_>) -> bool {
        let facts = &observed.facts;
        match &self.test {
            Test::Status(comparison, status) => comparison.holds(&u64::from(facts.status), status),
            Test::Time(comparison, limit) => comparison.holds(&facts.time, limit),
            Test::Phase(phase, comparison, limit) => {
                comparison.holds(&facts.phases.get(*phase).unwrap_or_default(), limit)
            }
            Test::Size(comparison, limit) => comparison.holds(&observed.size, limit),
            Test::Address(test) => test.holds(facts.peer),
            Test::CertificateDays(comparison, days) => facts
                .certificate_days
                .is_some_and(|left| comparison.holds(&left, days)),
            Test::GrpcStatus(is_equal, status) => (facts.grpc_status == Some(*status)) == *is_equal,
            Test::Body(test) => test.holds(Some(observed.body)),
            Test::Hash(test) => test.holds(observed.sha256()),
            Test::Json(test) => test.holds(observed.json()),
            Test::Header(name, test) => test.holds(observed.header(name)),
            Test::Any(conditions) => conditions
                .iter()
                .any(|condition| condition.is_met(observed)),
            Test::Not(condition) => !condition.is_met(observed),
        }
    }

    /// The value that the condition is about, for people; `None` if there is none.
    pub fn observe(&self, observed: &Observed<'_>) -> Option<String> {
        let facts = &observed.facts;
        match &self.test {
            Test::Status(..) => Some(facts.status.to_string()),
            Test::Time(..) => Some(DurationText(facts.time).to_string()),
            Test::Phase(phase, ..) => facts
                .phases
                .get(*phase)
                .map(|duration| DurationText(duration).to_string()),
            Test::Size(..) => Some(format!("{} bytes", observed.size)),
            Test::Address(_) => facts.peer.map(|address| address.to_string()),
            Test::CertificateDays(..) => facts.certificate_days.map(|days| days.to_string()),
            Test::GrpcStatus(..) => facts.grpc_status.map(|status| status.to_string()),
            Test::Body(_) => Some(text::excerpt(observed.body)),
            Test::Hash(_) => observed.sha256().map(hash::text),
            Test::Json(test) => test.observe(observed.json()),
            Test::Header(name, _) => observed.header(name).map(text::excerpt),
            Test::Any(_) | Test::Not(_) => {
                let mut all: Vec<String> = Vec::new();
                for found in self
                    .test
                    .parts()
                    .iter()
                    .filter_map(|part| part.observe(observed))
                {
                    if !all.contains(&found) {
                        all.push(found);
                    }
                }
                (!all.is_empty()).then(|| all.join("; "))
            }
        }
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Test {
    /// The conditions that it is made of.
    fn parts(&self) -> &[Condition] {
        match self {
            Self::Any(conditions) => conditions,
            Self::Not(condition) => std::slice::from_ref(condition),
            _ => &[],
        }
    }
}

#[cfg(test)]
mod tests;
