//! One condition: a subject, an operator and what to compare with.

use std::fmt;
use std::time::Duration;

use plimsoll_model::{UnitError, parse_byte_size, parse_duration};
use regex::bytes::Regex;

use crate::check::Observed;

/// A condition on a response.
///
/// ```text
/// status == 200            status >= 200          status != 404
/// time < 300ms             size <= 64KiB
/// body contains 'ok'       body == 'ok'           body matches '^ok'
/// header.content-type contains 'json'             header.etag exists
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
    Size(Comparison, u64),
    Body(TextTest),
    Header(String, TextTest),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

#[derive(Debug, Clone)]
enum TextTest {
    Equal(Vec<u8>),
    NotEqual(Vec<u8>),
    Contains(Vec<u8>),
    Matches(Regex),
    Exists,
}

/// What is wrong with a condition that somebody wrote.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConditionError {
    /// There is no subject, operator or value.
    #[error("`{0}` is not a condition; write for example `status == 200`")]
    Shape(String),
    /// The subject is not known.
    #[error("unknown subject `{0}`; known are status, time, size, body, header.NAME")]
    Subject(String),
    /// The operator is not known, or the subject does not have it.
    #[error("`{subject}` has no operator `{operator}`; it has {known}")]
    Operator {
        /// The subject.
        subject: String,
        /// What was written as its operator.
        operator: String,
        /// The operators it has.
        known: &'static str,
    },
    /// The number is not one.
    #[error("`{0}` is not a whole number")]
    Number(String),
    /// The duration or size is not one.
    #[error("{0}")]
    Unit(#[from] UnitError),
    /// The regular expression is not one.
    #[error("regular expression: {0}")]
    Regex(String),
}

const COMPARISONS: &str = "==, !=, <, <=, >, >=";
const TEXT_TESTS: &str = "==, !=, contains, matches, exists";

impl Condition {
    /// Parses one condition.
    pub fn parse(text: &str) -> Result<Self, ConditionError> {
        let text = text.trim();
        let shape = || ConditionError::Shape(text.to_owned());
        let split = text
            .find(|c: char| c.is_whitespace() || "=!<>".contains(c))
            .ok_or_else(shape)?;
        let (subject, rest) = text.split_at(split);
        let rest = rest.trim_start();
        let end = if rest.starts_with(|c: char| "=!<>".contains(c)) {
            rest.find(|c: char| !"=!<>".contains(c))
        } else {
            rest.find(char::is_whitespace)
        };
        let (operator, value) = rest.split_at(end.unwrap_or(rest.len()));
        let value = value.trim();
        if subject.is_empty() || operator.is_empty() || (value.is_empty() && operator != "exists") {
            return Err(shape());
        }
        Ok(Self {
            text: text.to_owned(),
            test: Test::parse(subject, operator, value)?,
        })
    }

    /// The condition as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether judging it needs the body.
    pub fn needs_body(&self) -> bool {
        matches!(self.test, Test::Body(_))
    }

    /// The header field it looks at, in lower case.
    pub fn header(&self) -> Option<&str> {
        match &self.test {
            Test::Header(name, _) => Some(name),
            _ => None,
        }
    }

    /// Whether `observed` meets the condition.
    pub fn is_met(&self, observed: &Observed<'_>) -> bool {
        match &self.test {
            Test::Status(comparison, status) => {
                comparison.holds(&u64::from(observed.status), status)
            }
            Test::Time(comparison, limit) => comparison.holds(&observed.time, limit),
            Test::Size(comparison, limit) => comparison.holds(&observed.size, limit),
            Test::Body(test) => test.holds(Some(observed.body)),
            Test::Header(name, test) => test.holds(observed.header(name)),
        }
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Test {
    fn parse(subject: &str, operator: &str, value: &str) -> Result<Self, ConditionError> {
        let comparison = || {
            Comparison::parse(operator).ok_or_else(|| ConditionError::Operator {
                subject: subject.to_owned(),
                operator: operator.to_owned(),
                known: COMPARISONS,
            })
        };
        match subject {
            "status" => {
                let status = value
                    .parse()
                    .map_err(|_| ConditionError::Number(value.to_owned()))?;
                Ok(Self::Status(comparison()?, status))
            }
            "time" => Ok(Self::Time(comparison()?, parse_duration(value)?)),
            "size" => Ok(Self::Size(comparison()?, parse_byte_size(value)?.0)),
            "body" => Ok(Self::Body(TextTest::parse(subject, operator, value)?)),
            _ => match subject.strip_prefix("header.") {
                Some(name) if !name.is_empty() => Ok(Self::Header(
                    name.to_ascii_lowercase(),
                    TextTest::parse(subject, operator, value)?,
                )),
                _ => Err(ConditionError::Subject(subject.to_owned())),
            },
        }
    }
}

impl Comparison {
    fn parse(operator: &str) -> Option<Self> {
        Some(match operator {
            "==" | "=" => Self::Equal,
            "!=" => Self::NotEqual,
            "<" => Self::Less,
            "<=" => Self::LessOrEqual,
            ">" => Self::Greater,
            ">=" => Self::GreaterOrEqual,
            _ => return None,
        })
    }

    fn holds<T: PartialOrd>(self, left: &T, right: &T) -> bool {
        match self {
            Self::Equal => left == right,
            Self::NotEqual => left != right,
            Self::Less => left < right,
            Self::LessOrEqual => left <= right,
            Self::Greater => left > right,
            Self::GreaterOrEqual => left >= right,
        }
    }
}

impl TextTest {
    fn parse(subject: &str, operator: &str, value: &str) -> Result<Self, ConditionError> {
        let text = unquote(value);
        Ok(match operator {
            "==" | "=" => Self::Equal(text.into()),
            "!=" => Self::NotEqual(text.into()),
            "contains" => Self::Contains(text.into()),
            "matches" => Self::Matches(
                Regex::new(text).map_err(|error| ConditionError::Regex(error.to_string()))?,
            ),
            "exists" => Self::Exists,
            _ => {
                return Err(ConditionError::Operator {
                    subject: subject.to_owned(),
                    operator: operator.to_owned(),
                    known: TEXT_TESTS,
                });
            }
        })
    }

    fn holds(&self, value: Option<&[u8]>) -> bool {
        let Some(value) = value else {
            return matches!(self, Self::NotEqual(_));
        };
        match self {
            Self::Equal(text) => value == text,
            Self::NotEqual(text) => value != text,
            Self::Contains(text) => {
                text.is_empty() || value.windows(text.len()).any(|part| part == text)
            }
            Self::Matches(regex) => regex.is_match(value),
            Self::Exists => true,
        }
    }
}

/// Takes off one pair of quotes.
fn unquote(value: &str) -> &str {
    ['\'', '"']
        .into_iter()
        .find_map(|quote| value.strip_prefix(quote)?.strip_suffix(quote))
        .unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn met(text: &str) -> bool {
        let headers = [("content-type".to_owned(), b"application/json".to_vec())];
        let observed = Observed {
            status: 200,
            time: Duration::from_millis(250),
            size: 9,
            body: b"all is ok",
            headers: &headers,
        };
        Condition::parse(text).unwrap().is_met(&observed)
    }

    #[test]
    fn each_subject_and_operator() {
        for text in [
            "status == 200",
            "status==200",
            "status < 300",
            "status != 404",
            "time < 300ms",
            "time >= 0.25s",
            "size == 9",
            "size < 1KiB",
            "body contains 'is ok'",
            "body contains is ok",
            "body matches '^all .* ok$'",
            "body == \"all is ok\"",
            "body != 'ok'",
            "header.Content-Type contains 'json'",
            "header.content-type exists",
            "header.etag != 'x'",
        ] {
            assert!(met(text), "{text}");
        }
        for text in [
            "status == 404",
            "time < 100ms",
            "size > 9",
            "body contains 'fail'",
            "body matches '^ok'",
            "header.etag exists",
            "header.etag == ''",
        ] {
            assert!(!met(text), "{text}");
        }
    }

    #[test]
    fn mistakes_are_explained() {
        let error = |text| Condition::parse(text).unwrap_err().to_string();
        assert_eq!(
            error("statu == 200"),
            "unknown subject `statu`; known are status, time, size, body, header.NAME"
        );
        assert_eq!(
            error("status ~ 200"),
            "`status` has no operator `~`; it has ==, !=, <, <=, >, >="
        );
        assert_eq!(error("status == ok"), "`ok` is not a whole number");
        assert_eq!(
            error("status"),
            "`status` is not a condition; write for example `status == 200`"
        );
        assert!(error("time < 3 apples").starts_with("unknown unit"));
        assert!(error("body matches '('").starts_with("regular expression"));
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(text in "\\PC*") {
            drop(Condition::parse(&text));
        }
    }
}
