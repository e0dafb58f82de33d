//! Tests of values of JSON: the operators for content.

use std::fmt;

use serde_json::Value;

use super::equal_json::EqualJson;
use super::text::{TextOperator, TextTest};
use super::value::is_equal;

/// A test of a value at a place.
#[derive(Debug, Clone)]
pub enum JsonTest {
    /// `exists`: it is there; null is.
    Exists,
    /// `absent`: it is not there.
    Absent,
    /// It as text: of a string what it says, of others their JSON.
    Text(TextTest, Option<Value>),
    /// `equal_typed`: it is this value, whose type counts too.
    EqualTyped(String, Option<Value>),
    /// As a number, which a string may hold too.
    Number(NumberOperator, String, Option<f64>),
    /// `equal_integer`: as a whole number, which a string may hold too.
    EqualInteger(String, Option<i64>),
    /// `array_length_equal`, `array_length_at_least`
    Length(LengthOperator, String, Option<usize>),
    /// `array_contains`: one of its elements is this value.
    ArrayContains(String, Value),
    /// `map_has_key`, or `map_does_not_have_key` if false.
    Key(String, bool),
    /// `structural_contains`: one of its elements has all of this value.
    StructuralContains(String, Value),
    /// `equal_json`: it, or the JSON that a string holds, is equal to this value.
    EqualJson(Box<EqualJson>),
}

/// The operator whose value is compared as the whole content is.
pub const EQUAL_JSON: &str = "equal_json";

/// Comparison of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NumberOperator {
    /// `equal_number`
    Equal,
    /// `greater_than`
    Greater,
    /// `less_than`
    Less,
    /// `greater_or_equal`
    GreaterOrEqual,
    /// `less_or_equal`
    LessOrEqual,
}

/// Comparison of lengths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LengthOperator {
    /// `array_length_equal`
    Equal,
    /// `array_length_at_least`
    AtLeast,
}

/// The names of the operators.
pub const OPERATORS: [&str; 25] = [
    "equal",
    "equal_string",
    "contains",
    "not_contains",
    "starts_with",
    "not_starts_with",
    "ends_with",
    "not_ends_with",
    "regex",
    "not_regex",
    "equal_typed",
    "equal_number",
    "greater_than",
    "less_than",
    "greater_or_equal",
    "less_or_equal",
    "equal_integer",
    "exists",
    "absent",
    "array_length_equal",
    "array_length_at_least",
    "array_contains",
    "map_has_key",
    "map_does_not_have_key",
    "structural_contains",
];

impl JsonTest {
    /// The test of that name; `None` if there is no such test, an error if the value is not a regular expression.
    pub fn new(operator: &str, value: &str) -> Option<Result<Self, regex::Error>> {
        let text = |operator| {
            // Numbers are equal by value, and objects whatever the order of their keys.
            let json = serde_json::from_str(value).ok();
            let json = json.filter(|it: &Value| it.is_object() || it.is_array() || it.is_number());
            Some(TextTest::new(operator, value).map(|test| Self::Text(test, json)))
        };
        let owned = value.to_owned();
        let number = |operator| Self::Number(operator, value.to_owned(), value.parse().ok());
        let length = |operator| Self::Length(operator, value.to_owned(), value.parse().ok());
        Some(Ok(match operator {
            "equal" | "equal_string" => return text(TextOperator::Equal),
            "contains" => return text(TextOperator::Contains),
            "not_contains" => return text(TextOperator::NotContains),
            "starts_with" => return text(TextOperator::StartsWith),
            "not_starts_with" => return text(TextOperator::NotStartsWith),
            "ends_with" => return text(TextOperator::EndsWith),
            "not_ends_with" => return text(TextOperator::NotEndsWith),
            "regex" => return text(TextOperator::Regex),
            "not_regex" => return text(TextOperator::NotRegex),
            "equal_typed" => Self::EqualTyped(owned, serde_json::from_str(value).ok()),
            "equal_integer" => Self::EqualInteger(owned, value.parse().ok()),
            "exists" => Self::Exists,
            "absent" => Self::Absent,
            "array_length_equal" => length(LengthOperator::Equal),
            "array_length_at_least" => length(LengthOperator::AtLeast),
            "array_contains" => Self::ArrayContains(owned, json_or_text(value)),
            "map_has_key" => Self::Key(owned, true),
            "map_does_not_have_key" => Self::Key(owned, false),
            "structural_contains" => Self::StructuralContains(owned, json_or_text(value)),
            name => {
                let mut numbers = NumberOperator::ALL.into_iter();
                number(numbers.find(|it| it.name() == name)?)
            }
        }))
    }

    /// Whether the value at the place meets it; `None` is a place that is not there.
    pub fn is_met_by(&self, value: Option<&Value>) -> bool {
        let Some(value) = value else {
            return matches!(self, Self::Absent);
        };
        match self {
            Self::Exists => true,
            Self::Absent => false,
            Self::Text(test, json) => match (value, json) {
                (Value::String(string), _) => test.is_met_by(string),
                (value, Some(json)) if test.operator() == TextOperator::Equal => {
                    is_equal(value, json)
                }
                (value, _) => test.is_met_by(&value.to_string()),
            },
            Self::EqualTyped(_, wanted) => wanted
                .as_ref()
                .is_some_and(|wanted| is_equal(wanted, value)),
            Self::Number(operator, _, wanted) => match (as_number(value), wanted) {
                (Some(number), Some(wanted)) => operator.is_met_by(number, *wanted),
                _ => false,
            },
            Self::EqualInteger(_, wanted) => {
                let integer = match value {
                    Value::Number(number) => number.as_i64(),
                    Value::String(text) => text.parse().ok(),
                    _ => None,
                };
                integer.is_some() && integer == *wanted
            }
            Self::Length(operator, _, wanted) => match (value, wanted) {
                (Value::Array(items), Some(wanted)) => match operator {
                    LengthOperator::Equal => items.len() == *wanted,
                    LengthOperator::AtLeast => items.len() >= *wanted,
                },
                _ => false,
            },
            Self::ArrayContains(_, wanted) => {
                let items = value.as_array();
                items.is_some_and(|items| items.iter().any(|item| is_equal(item, wanted)))
            }
            Self::Key(key, is_wanted) => value
                .as_object()
                .is_some_and(|object| object.contains_key(key) == *is_wanted),
            Self::EqualJson(test) => {
                let parsed = value.as_str().map(serde_json::from_str::<Value>);
                match parsed {
                    Some(Ok(parsed)) => test.judge(&parsed) == Some(true),
                    _ => test.judge(value) == Some(true),
                }
            }
            Self::StructuralContains(_, wanted) => value
                .as_array()
                .is_some_and(|items| items.iter().any(|item| has_all(item, wanted))),
        }
    }
}

impl JsonTest {
    /// Whether any of the values meets it; of a negated operator, whether there is one and all do.
    pub fn is_met_by_all(&self, values: &[&Value]) -> bool {
        let is_negated = match self {
            Self::Absent => return values.is_empty(),
            Self::Text(test, _) => test.operator().is_negated(),
            Self::Key(_, is_wanted) => !is_wanted,
            _ => false,
        };
        if is_negated {
            return !values.is_empty() && values.iter().all(|value| self.is_met_by(Some(value)));
        }
        values.iter().any(|value| self.is_met_by(Some(value)))
    }
}

impl NumberOperator {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Equal,
        Self::Greater,
        Self::Less,
        Self::GreaterOrEqual,
        Self::LessOrEqual,
    ];

    /// As files call it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Equal => "equal_number",
            Self::Greater => "greater_than",
            Self::Less => "less_than",
            Self::GreaterOrEqual => "greater_or_equal",
            Self::LessOrEqual => "less_or_equal",
        }
    }

    pub(super) fn is_met_by(self, number: f64, wanted: f64) -> bool {
        match self {
            Self::Equal => (number - wanted).abs() < f64::EPSILON,
            Self::Greater => number > wanted,
            Self::Less => number < wanted,
            Self::GreaterOrEqual => number >= wanted,
            Self::LessOrEqual => number <= wanted,
        }
    }
}

impl fmt::Display for JsonTest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, value) = match self {
            Self::Exists => return f.write_str("exists"),
            Self::Absent => return f.write_str("absent"),
            Self::Text(test, _) => return test.fmt(f),
            Self::EqualTyped(value, _) => ("equal_typed", value),
            Self::Number(operator, value, _) => (operator.name(), value),
            Self::EqualInteger(value, _) => ("equal_integer", value),
            Self::Length(LengthOperator::Equal, value, _) => ("array_length_equal", value),
            Self::Length(LengthOperator::AtLeast, value, _) => ("array_length_at_least", value),
            Self::ArrayContains(value, _) => ("array_contains", value),
            Self::Key(value, true) => ("map_has_key", value),
            Self::Key(value, false) => ("map_does_not_have_key", value),
            Self::StructuralContains(value, _) => ("structural_contains", value),
            Self::EqualJson(test) => return write!(f, "{EQUAL_JSON} {test}"),
        };
        write!(f, "{name} {value:?}")
    }
}

/// A place in JSON: keys of objects and numbers of elements, with dots between them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DottedPath(String);

impl DottedPath {
    /// `user.names.0`
    pub fn new(path: impl Into<String>) -> Self {
        Self(path.into())
    }

    /// The value there.
    pub fn find<'v>(&self, value: &'v Value) -> Option<&'v Value> {
        self.0
            .split('.')
            .try_fold(value, |value, segment| match value {
                Value::Object(object) => object.get(segment),
                Value::Array(items) => items.get(segment.parse::<usize>().ok()?),
                _ => None,
            })
    }
}

impl fmt::Display for DottedPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn as_number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.parse().ok(),
        _ => None,
    }
}

fn json_or_text(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::from(text))
}

/// Whether objects have all keys of the other's, and these what they hold; all else is equal.
fn has_all(value: &Value, wanted: &Value) -> bool {
    match (value, wanted) {
        (Value::Object(value), Value::Object(wanted)) => wanted
            .iter()
            .all(|(key, wanted)| value.get(key).is_some_and(|value| has_all(value, wanted))),
        _ => is_equal(value, wanted),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn is_met(operator: &str, wanted: &str, value: &Value) -> bool {
        JsonTest::new(operator, wanted)
            .unwrap()
            .unwrap()
            .is_met_by(Some(value))
    }

    fn number(text: &str) -> Value {
        serde_json::from_str(text).unwrap()
    }

    /// As a float it is the same as the next number.
    const LONG: &str = "12345678901234567890123";

    fn longer() -> Value {
        number("12345678901234567890124")
    }

    #[test]
    fn every_operator_tests_what_its_name_says() {
        let met = [
            ("equal", "a", json!("a")),
            ("equal", "1", json!(1)),
            ("equal", "{\"b\":1,\"a\":null}", json!({"a": null, "b": 1})),
            ("equal_string", "true", json!(true)),
            ("equal", "1.0", number("1.00")),
            ("equal", "[1.0]", json!([number("1.00")])),
            ("equal_typed", "1.0", number("1.00")),
            ("equal_typed", "{\"a\":1.0}", json!({ "a": 1 })),
            ("array_contains", "1.0", json!([0, number("1.00")])),
            (
                "structural_contains",
                "{\"a\":1.0}",
                json!([{ "a": 1, "b": 2 }]),
            ),
            ("contains", "b", json!("abc")),
            ("contains", "\"a\"", json!(["a"])),
            ("not_contains", "x", json!("abc")),
            ("starts_with", "a", json!("abc")),
            ("not_starts_with", "b", json!("abc")),
            ("ends_with", "c", json!("abc")),
            ("not_ends_with", "b", json!("abc")),
            ("regex", "^[0-9]+$", json!(12)),
            ("not_regex", "^[0-9]+$", json!("a")),
            ("equal_typed", "1", json!(1)),
            ("equal_typed", "\"1\"", json!("1")),
            ("equal_number", "1.0", json!("1")),
            ("greater_than", "1", json!(1.5)),
            ("less_than", "2", json!("1.5")),
            ("greater_or_equal", "1", json!(1)),
            ("less_or_equal", "1", json!(1)),
            ("equal_integer", "7", json!("7")),
            ("exists", "", json!(null)),
            ("array_length_equal", "0", json!([])),
            ("array_length_at_least", "2", json!([1, 2, 3])),
            ("array_contains", "2", json!([1, 2])),
            ("array_contains", "x", json!(["x"])),
            ("map_has_key", "a", json!({"a": 1})),
            ("map_does_not_have_key", "b", json!({"a": 1})),
            (
                "structural_contains",
                "{\"a\":{\"b\":1}}",
                json!([0, {"a": {"b": 1, "c": 2}, "d": 3}]),
            ),
        ];
        for (operator, wanted, value) in &met {
            assert!(
                is_met(operator, wanted, value),
                "{operator} {wanted} {value}"
            );
        }
        for operator in OPERATORS {
            let is_tried = met.iter().any(|(tried, ..)| *tried == operator);
            assert!(is_tried || operator == "absent", "{operator}");
        }
        for (operator, wanted, value) in [
            ("equal", "1", json!("1 ")),
            ("equal", LONG, longer()),
            ("equal_typed", LONG, longer()),
            ("array_contains", LONG, json!([longer()])),
            ("structural_contains", LONG, json!([longer()])),
            ("equal_typed", "1", json!("1")),
            ("equal_typed", "x", json!("x")),
            ("equal_number", "x", json!(1)),
            ("greater_than", "1", json!([2])),
            ("equal_integer", "7", json!(7.0)),
            ("equal_integer", "x", json!("x")),
            ("absent", "", json!(null)),
            ("array_length_equal", "1", json!("a")),
            ("array_length_at_least", "-1", json!([1])),
            ("array_contains", "2", json!(["2"])),
            ("map_has_key", "0", json!(["a"])),
            ("map_does_not_have_key", "a", json!([1])),
            ("structural_contains", "{\"a\":[1]}", json!([{"a": [1, 2]}])),
            ("structural_contains", "{}", json!({})),
        ] {
            assert!(
                !is_met(operator, wanted, &value),
                "{operator} {wanted} {value}"
            );
        }
    }

    #[test]
    fn what_is_not_there_meets_only_absent() {
        for operator in OPERATORS {
            let test = JsonTest::new(operator, "1").unwrap().unwrap();
            assert_eq!(test.is_met_by(None), operator == "absent", "{operator}");
        }
        assert!(JsonTest::new("equals", "").is_none());
        assert!(JsonTest::new("regex", "(").unwrap().is_err());
    }

    #[test]
    fn dotted_paths_lead_through_objects_and_arrays() {
        let value = json!({"a": [{"b": 1}], "$": 2, "0": 3});
        let find = |path| DottedPath::new(path).find(&value).cloned();
        assert_eq!(find("a.0.b"), Some(json!(1)));
        assert_eq!(find("$"), Some(json!(2)));
        assert_eq!(find("0"), Some(json!(3)));
        for path in ["a.-1", "a.1", "a.b", "x", "a.0.b.c", ""] {
            assert_eq!(find(path), None, "{path}");
        }
    }
}
