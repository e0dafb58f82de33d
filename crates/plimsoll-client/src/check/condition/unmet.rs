//! Why a condition is not met, for people who did not write it.
//!
//! ```text
//! status 500, expected 200–299
//! took 1,240 ms, limit 500 ms
//! certificate expires in 5 days, expected more than 14 days
//! header content-type is 'text/html', expected text with 'json'
//! body does not contain 'ok': <html>…
//! ```

use std::time::Duration;

use plimsoll_model::{Phase, grouped};

use super::address::AddressTest;
use super::compare::Comparison;
use super::hash;
use super::text::{TextTest, excerpt};
use super::{Condition, Test};
use crate::check::Observed;

impl Condition {
    /// Why `observed` does not meet this condition, which it must not: the value and what was expected of it.
    ///
    /// - `all`: every condition of the check, this one included. Those on the status are shown as one range.
    pub fn unmet_text(&self, all: &[Self], observed: &Observed<'_>) -> String {
        match &self.test {
            Test::Status(..) => {
                let tests = all.iter().filter_map(|condition| match &condition.test {
                    Test::Status(comparison, status) => Some((*comparison, *status)),
                    _ => None,
                });
                status_text(observed, &StatusRange::of_all(tests).to_string())
            }
            test => unmet(test, true, observed),
        }
    }
}

/// - `expected`: whether the test should hold; false within `not(…)`.
fn unmet(test: &Test, expected: bool, observed: &Observed<'_>) -> String {
    let facts = &observed.facts;
    let turned = |comparison: Comparison| {
        if expected {
            comparison
        } else {
            comparison.opposite()
        }
    };
    match test {
        Test::Status(comparison, status) => {
            let range = StatusRange::of_all([(turned(*comparison), *status)].into_iter());
            status_text(observed, &range.to_string())
        }
        Test::Time(comparison, limit) => time_text("took", facts.time, turned(*comparison), *limit),
        Test::Phase(phase, comparison, limit) => {
            let took = facts.phases.get(*phase).unwrap_or_default();
            let what = format!("{} took", phase_text(*phase));
            time_text(&what, took, turned(*comparison), *limit)
        }
        Test::Size(comparison, limit) => {
            let bytes = |count: u64| format!("{} bytes", grouped(count));
            let expected = expectation(turned(*comparison), &bytes(*limit), true);
            format!("size {}, {expected}", bytes(observed.size))
        }
        Test::Address(test) => {
            let found = facts
                .peer
                .map_or_else(|| "no address".to_owned(), |peer| format!("address {peer}"));
            let wanted = match (test, expected) {
                (AddressTest::Equal(address), true) | (AddressTest::NotEqual(address), false) => {
                    address.to_string()
                }
                (AddressTest::NotEqual(_), true) | (AddressTest::Equal(_), false) => {
                    "another".to_owned()
                }
                (AddressTest::In(network), true) => format!("one in {network}"),
                (AddressTest::In(network), false) => format!("none in {network}"),
            };
            format!("{found}, expected {wanted}")
        }
        Test::CertificateDays(comparison, limit) => {
            let found = facts
                .certificate_days
                .map_or_else(|| "no certificate".to_owned(), certificate_text);
            let expected = expectation(turned(*comparison), &days_text(*limit), false);
            format!("{found}, {expected}")
        }
        Test::GrpcStatus(is_equal, status) => {
            let found = facts.grpc_status.map_or_else(
                || "no gRPC status".to_owned(),
                |status| format!("gRPC status {status}"),
            );
            if *is_equal == expected {
                format!("{found}, expected {status}")
            } else {
                format!("{found}, expected another")
            }
        }
        Test::Body(test) => body_text(test, expected, observed.body),
        Test::Hash(test) => {
            let found = observed
                .sha256()
                .map_or_else(|| "not known".to_owned(), hash::text);
            let wanted = if test.is_equal() == expected {
                hash::text(test.expected())
            } else {
                "another".to_owned()
            };
            format!("SHA-256 of the body is {found}, expected {wanted}")
        }
        Test::Json(test) => {
            let path = test.path();
            if observed.json().is_none() {
                return format!("body is not JSON, expected JSON with {path}");
            }
            let found = test.observe(observed.json());
            let found = found.unwrap_or_else(|| "missing".to_owned());
            format!("{path} is {found}, expected {}", test.wanted(expected))
        }
        Test::Header(name, test) => header_text(name, test, expected, observed.header(name)),
        // All of them are unmet. Within `not(…)` one that is met is to blame.
        Test::Any(conditions) if expected => {
            let statuses = conditions.iter().map(|one| match &one.test {
                Test::Status(Comparison::Equal, status) => Some(status.to_string()),
                _ => None,
            });
            if let Some(statuses) = statuses.collect::<Option<Vec<_>>>() {
                return status_text(observed, &listed(&statuses));
            }
            let texts = conditions
                .iter()
                .map(|one| unmet(&one.test, true, observed));
            texts.collect::<Vec<_>>().join("; ")
        }
        Test::Any(conditions) => {
            let met = conditions.iter().find(|one| one.is_met(observed));
            let met = met.or(conditions.first());
            met.map_or_else(String::new, |one| unmet(&one.test, false, observed))
        }
        Test::Not(condition) => unmet(&condition.test, !expected, observed),
    }
}

fn status_text(observed: &Observed<'_>, expected: &str) -> String {
    match observed.facts.status {
        0 => format!("no status, expected {expected}"),
        status => format!("status {status}, expected {expected}"),
    }
}

/// `200, 204 or 206`.
fn listed(texts: &[String]) -> String {
    match texts {
        [] => String::new(),
        [one] => one.clone(),
        [all @ .., last] => format!("{} or {last}", all.join(", ")),
    }
}

/// The statuses that several tests allow together.
#[derive(Debug, Default)]
struct StatusRange {
    equal: Option<u64>,
    least: Option<u64>,
    most: Option<u64>,
    except: Vec<u64>,
}

impl StatusRange {
    fn of_all(tests: impl Iterator<Item = (Comparison, u64)>) -> Self {
        let mut range = Self::default();
        let higher = |known: Option<u64>, least: u64| Some(known.unwrap_or(0).max(least));
        let lower = |known: Option<u64>, most: u64| Some(known.unwrap_or(u64::MAX).min(most));
        for (comparison, status) in tests {
            match comparison {
                Comparison::Equal => range.equal = Some(status),
                Comparison::NotEqual => range.except.push(status),
                Comparison::Less => range.most = lower(range.most, status.saturating_sub(1)),
                Comparison::LessOrEqual => range.most = lower(range.most, status),
                Comparison::Greater => range.least = higher(range.least, status.saturating_add(1)),
                Comparison::GreaterOrEqual => range.least = higher(range.least, status),
            }
        }
        range
    }
}

impl std::fmt::Display for StatusRange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let except: Vec<_> = self.except.iter().map(ToString::to_string).collect();
        match (self.equal, self.least, self.most) {
            (Some(equal), ..) => return write!(f, "{equal}"),
            (None, Some(least), Some(most)) if least == most => write!(f, "{least}")?,
            (None, Some(least), Some(most)) => write!(f, "{least}–{most}")?,
            (None, Some(least), None) => write!(f, "at least {least}")?,
            (None, None, Some(most)) => write!(f, "at most {most}")?,
            (None, None, None) => return write!(f, "any but {}", listed(&except)),
        }
        if except.is_empty() {
            return Ok(());
        }
        write!(f, " but not {}", listed(&except))
    }
}

/// - `is_limit`: whether an upper bound is called a limit.
fn expectation(comparison: Comparison, value: &str, is_limit: bool) -> String {
    match comparison {
        Comparison::Less | Comparison::LessOrEqual if is_limit => format!("limit {value}"),
        _ => format!("expected {}", bound(comparison, value)),
    }
}

/// What a value has to be: `at least 5`.
pub(super) fn bound(comparison: Comparison, value: &str) -> String {
    match comparison {
        Comparison::Equal => value.to_owned(),
        Comparison::NotEqual => format!("anything but {value}"),
        Comparison::Less => format!("less than {value}"),
        Comparison::LessOrEqual => format!("at most {value}"),
        Comparison::Greater => format!("more than {value}"),
        Comparison::GreaterOrEqual => format!("at least {value}"),
    }
}

fn time_text(what: &str, took: Duration, comparison: Comparison, limit: Duration) -> String {
    let (took, limit) = milliseconds(took, limit);
    format!("{what} {took}, {}", expectation(comparison, &limit, true))
}

/// Two times in milliseconds, with as many decimals as tell them apart.
fn milliseconds(one: Duration, other: Duration) -> (String, String) {
    let text = |duration: Duration, decimals: usize| {
        let nanos = duration.as_nanos();
        let whole = grouped(nanos / 1_000_000);
        if decimals == 0 {
            return format!("{} ms", grouped((nanos + 500_000) / 1_000_000));
        }
        let fraction = format!("{:06}", nanos % 1_000_000);
        let fraction: String = fraction.chars().take(decimals).collect();
        let fraction = fraction.trim_end_matches('0');
        if fraction.is_empty() {
            return format!("{whole} ms");
        }
        format!("{whole}.{fraction} ms")
    };
    // A tenth of a millisecond matters below ten.
    let least = usize::from(one.min(other) < Duration::from_millis(10));
    let pair = |decimals| (text(one, decimals), text(other, decimals));
    (least..6)
        .map(pair)
        .find(|(one, other)| one != other)
        .unwrap_or_else(|| pair(6))
}

const fn phase_text(phase: Phase) -> &'static str {
    match phase {
        Phase::Dns => "DNS",
        Phase::Tls => "TLS",
        other => other.name(),
    }
}

fn days_text(days: i64) -> String {
    match days {
        1 => "1 day".to_owned(),
        days => format!("{days} days"),
    }
}

/// - `days`: whole days until it expires, rounded down.
fn certificate_text(days: i64) -> String {
    match days {
        0 => "certificate expires within a day".to_owned(),
        1.. => format!("certificate expires in {}", days_text(days)),
        -1 => "certificate expired within the last day".to_owned(),
        _ => {
            let ago = days.saturating_add(1).saturating_abs();
            format!("certificate expired {} ago", days_text(ago))
        }
    }
}

fn quoted(text: &[u8]) -> String {
    format!("'{}'", excerpt(text))
}

/// The statement, and the beginning of the body unless it is the value of the condition itself.
fn body_text(test: &TextTest, expected: bool, body: &[u8]) -> String {
    let statement = match (test, expected) {
        (TextTest::Equal(given), true) | (TextTest::NotEqual(given), false) => {
            format!("body is not {}", quoted(given))
        }
        (TextTest::Equal(given), false) | (TextTest::NotEqual(given), true) => {
            return format!("body is {}", quoted(given));
        }
        (TextTest::Contains(given), true) => format!("body does not contain {}", quoted(given)),
        (TextTest::Contains(given), false) => format!("body contains {}", quoted(given)),
        (TextTest::Matches(regex), true) => format!("body does not match {regex}"),
        (TextTest::Matches(regex), false) => format!("body matches {regex}"),
        (TextTest::Exists, _) => "there is a body".to_owned(),
    };
    if body.is_empty() {
        return format!("{statement}; it is empty");
    }
    format!("{statement}: {}", excerpt(body))
}

fn header_text(name: &str, test: &TextTest, expected: bool, value: Option<&[u8]>) -> String {
    let found = value.map_or_else(|| "missing".to_owned(), quoted);
    let wanted = match (test, expected) {
        (TextTest::Equal(given), true) | (TextTest::NotEqual(given), false) => quoted(given),
        (TextTest::Equal(_), false) | (TextTest::NotEqual(_), true) => "another value".to_owned(),
        (TextTest::Contains(given), true) => format!("text with {}", quoted(given)),
        (TextTest::Contains(given), false) => format!("text without {}", quoted(given)),
        (TextTest::Matches(regex), true) => format!("a match of {regex}"),
        (TextTest::Matches(regex), false) => format!("no match of {regex}"),
        (TextTest::Exists, true) => return format!("header {name} is {found}"),
        (TextTest::Exists, false) => "none".to_owned(),
    };
    format!("header {name} is {found}, expected {wanted}")
}

#[cfg(test)]
mod tests;
