//! Tests on what a JSON path selects of a body (RFC 9535).

use std::fmt;

use regex::bytes::Regex;
use serde_json::{Number, Value};
use serde_json_path::JsonPath;

use super::compare::Comparison;
use super::text::{excerpt, regex, unquote, unquoted};
use super::unmet::bound;
use super::{ConditionError, Test};

/// A path is parsed by descent, and the time that takes doubles with each filter within a filter.
const LONGEST_PATH: usize = 256;
const DEEPEST_PATH: usize = 8;

const KNOWN: &str = "==, !=, <, <=, >, >=, contains, matches, exists";

/// A path and what the values that it selects must be.
///
/// There must be at least one, and all of them must hold; only `!=` holds of none.
#[derive(Clone)]
pub(super) struct JsonTest {
    path: JsonPath,
    /// The path as it was written.
    text: String,
    test: ValueTest,
}

#[derive(Debug, Clone)]
enum ValueTest {
    Compare(Comparison, Value),
    Contains(String),
    Matches(Regex),
    Exists,
}

impl JsonTest {
    pub(super) fn parse(path: &str, operator: &str, value: &str) -> Result<Test, ConditionError> {
        let parsed = parse_path(path)?;
        let test = match operator {
            "contains" => ValueTest::Contains(unquote(value).to_owned()),
            "matches" => ValueTest::Matches(regex(unquote(value))?),
            "exists" => ValueTest::Exists,
            _ => {
                let comparison = Comparison::from_operator(operator).ok_or_else(|| {
                    ConditionError::Operator {
                        subject: "body.json".to_owned(),
                        operator: operator.to_owned(),
                        known: KNOWN,
                    }
                })?;
                ValueTest::Compare(comparison, literal(value))
            }
        };
        Ok(Test::Json(Self {
            path: parsed,
            text: path.trim().to_owned(),
            test,
        }))
    }

    /// - `document`: `None` if the body is not JSON.
    pub(super) fn holds(&self, document: Option<&Value>) -> bool {
        let selected = document.map(|document| self.path.query(document).all());
        match selected.as_deref() {
            None | Some([]) => {
                matches!(self.test, ValueTest::Compare(Comparison::NotEqual, _))
            }
            Some(values) => values.iter().all(|value| self.test.holds(value)),
        }
    }

    /// The path as it was written.
    pub(super) fn path(&self) -> &str {
        &self.text
    }

    /// What the selected values have to be, for people.
    ///
    /// - `expected`: whether the test should hold; false within `not(…)`.
    pub(super) fn wanted(&self, expected: bool) -> String {
        match (&self.test, expected) {
            (ValueTest::Compare(comparison, value), true) => bound(*comparison, &value.to_string()),
            (ValueTest::Compare(comparison, value), false) => {
                bound(comparison.opposite(), &value.to_string())
            }
            (ValueTest::Contains(text), true) => format!("text with '{text}'"),
            (ValueTest::Contains(text), false) => format!("text without '{text}'"),
            (ValueTest::Matches(regex), true) => format!("a match of {regex}"),
            (ValueTest::Matches(regex), false) => format!("no match of {regex}"),
            (ValueTest::Exists, true) => "a value".to_owned(),
            (ValueTest::Exists, false) => "none".to_owned(),
        }
    }

    pub(super) fn observe(&self, document: Option<&Value>) -> Option<String> {
        let Some(document) = document else {
            return Some("not JSON".to_owned());
        };
        let values = self.path.query(document).all();
        let texts: Vec<String> = values.iter().map(ToString::to_string).collect();
        (!texts.is_empty()).then(|| excerpt(texts.join(", ").as_bytes()))
    }
}

impl fmt::Debug for JsonTest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JsonTest({}, {:?})", self.path, self.test)
    }
}

impl ValueTest {
    fn holds(&self, value: &Value) -> bool {
        match self {
            Self::Compare(comparison, with) => compare(*comparison, value, with),
            Self::Contains(text) => value.as_str().is_some_and(|value| value.contains(text)),
            Self::Matches(regex) => value
                .as_str()
                .is_some_and(|value| regex.is_match(value.as_bytes())),
            Self::Exists => true,
        }
    }
}

/// A path, unless it takes too long to parse.
pub(in crate::check) fn parse_path(path: &str) -> Result<JsonPath, ConditionError> {
    let path = path.trim();
    let wrong = |reason: String| ConditionError::Path {
        path: path.to_owned(),
        reason,
    };
    if path.is_empty() {
        return Err(ConditionError::NoPath);
    }
    if path.len() > LONGEST_PATH {
        return Err(wrong(format!("longer than {LONGEST_PATH} bytes")));
    }
    if depth(path) > DEEPEST_PATH {
        return Err(wrong(format!(
            "brackets are nested more than {DEEPEST_PATH} deep"
        )));
    }
    JsonPath::parse(path).map_err(|error| wrong(error.to_string()))
}

/// Nesting depth of brackets and parentheses outside of quotes.
fn depth(path: &str) -> usize {
    let mut depth: usize = 0;
    let mut deepest = 0;
    let mut quote = None;
    let mut bytes = path.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' if quote.is_some() => {
                bytes.next();
            }
            _ if quote == Some(byte) => quote = None,
            _ if quote.is_some() => {}
            b'\'' | b'"' => quote = Some(byte),
            b'[' | b'(' => depth += 1,
            b']' | b')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}

/// A number, `true`, `false` or `null` as in JSON; anything else, or something in quotes, is a
/// string.
fn literal(value: &str) -> Value {
    if let Some(text) = unquoted(value) {
        return Value::String(text.to_owned());
    }
    match serde_json::from_str(value) {
        Ok(literal @ (Value::Null | Value::Bool(_) | Value::Number(_))) => literal,
        _ => Value::String(value.to_owned()),
    }
}

/// Numbers and strings have an order among themselves; everything else is equal or not.
fn compare(comparison: Comparison, left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => match (whole(left), whole(right)) {
            (Some(left), Some(right)) => comparison.holds(&left, &right),
            _ => comparison.holds(&left.as_f64(), &right.as_f64()),
        },
        (Value::String(left), Value::String(right)) => comparison.holds(left, right),
        _ => match comparison {
            Comparison::Equal => left == right,
            Comparison::NotEqual => left != right,
            _ => false,
        },
    }
}

/// Beyond 2^53 a fraction cannot represent neighbouring numbers.
fn whole(number: &Number) -> Option<i128> {
    number
        .as_i64()
        .map(i128::from)
        .or_else(|| number.as_u64().map(i128::from))
}
