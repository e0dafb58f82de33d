//! Errors in written conditions.

use std::fmt;

use plimsoll_model::UnitError;

/// Every subject, as messages list them.
const KNOWN: &str = "status, time, dns, connect, tls, send, wait, receive, size, ip, cert.days, \
                     grpc.status, body, body.sha256, body.json(PATH), header.NAME, any(…), \
                     not(…)";

/// Names to suggest for a misspelled one.
const NAMES: [&str; 17] = [
    "status",
    "time",
    "dns",
    "connect",
    "tls",
    "send",
    "wait",
    "receive",
    "size",
    "ip",
    "cert.days",
    "grpc.status",
    "body",
    "body.sha256",
    "body.json",
    "any",
    "not",
];

/// An error in a written condition.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConditionError {
    /// There is no subject, operator or value.
    #[error("`{0}` is not a condition; write for example `status == 200`")]
    Shape(String),
    /// The subject is not known.
    #[error("unknown subject `{0}`; {meant}known are {KNOWN}", meant = Meant(.0))]
    Subject(String),
    /// The operator is not known, or the subject does not have it.
    #[error("`{subject}` has no operator `{operator}`; it has {known}")]
    Operator {
        /// The subject.
        subject: String,
        /// The operator as written.
        operator: String,
        /// The operators it has.
        known: &'static str,
    },
    /// The status of gRPC is none.
    #[error("`{0}` is no status of gRPC; write for example `NOT_FOUND`, or its code 5")]
    GrpcStatus(String),
    /// The hash is not one.
    #[error("`{0}` is not a SHA-256 hash; write its 64 digits, as `sha256sum` prints them")]
    Hash(String),
    /// The number is not one.
    #[error("`{0}` is not a whole number")]
    Number(String),
    /// The duration or size is not one.
    #[error(transparent)]
    Unit(#[from] UnitError),
    /// The regular expression is not one.
    #[error("regular expression: {0}")]
    Regex(String),
    /// The JSON path is not one.
    #[error("JSON path `{path}`: {reason}; write for example `$.items[0].name`")]
    Path {
        /// The path as written.
        path: String,
        /// The error.
        reason: String,
    },
    /// `body.json` without a path.
    #[error("`body.json` needs a path; write for example `body.json($.ok) == true`")]
    NoPath,
    /// The address or network is not one.
    #[error("`{0}` is not an address; write for example `127.0.0.1`, or `in 10.0.0.0/8`")]
    Address(String),
    /// A parenthesis or a quote within one is not closed.
    #[error("a parenthesis or a quote in `{0}` is not closed")]
    Unclosed(String),
    /// Something stands behind `any(…)` or `not(…)`.
    #[error("nothing may stand behind `{name}(…)`, but `{rest}` does")]
    Trailing {
        /// `any` or `not`.
        name: String,
        /// The remaining text.
        rest: String,
    },
    /// `any` or `not` without parentheses.
    #[error("`{0}` needs conditions in parentheses; write for example `{0}(status == 200)`")]
    NoParts(String),
    /// `not` of several conditions.
    #[error("`not` takes one condition; write for example `not(any(A, B))`")]
    NotOfSeveral,
    /// Conditions within conditions, too deep.
    #[error("conditions are nested more than {0} deep")]
    Depth(usize),
}

struct Meant<'a>(&'a str);

impl fmt::Display for Meant<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const ALIKE: f64 = 0.75;

        let closest = NAMES
            .into_iter()
            .map(|name| (strsim::jaro_winkler(self.0, name), name))
            .max_by(|a, b| a.0.total_cmp(&b.0))
            .filter(|(likeness, _)| *likeness > ALIKE);
        match closest {
            Some((_, name)) => write!(f, "did you mean `{name}`? "),
            None => Ok(()),
        }
    }
}
