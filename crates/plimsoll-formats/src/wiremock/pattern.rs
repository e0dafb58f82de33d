//! Matchers of a request's values.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use super::{Notes, text};

/// The matcher of a value.
#[derive(Debug, Clone, PartialEq)]
pub enum Pattern {
    /// Anything that is there.
    Anything,
    /// Nothing is there.
    Absent,
    /// This text, in any case if so.
    Equal(String, bool),
    /// Contains this text.
    Contains(String),
    /// Wholly matches a regular expression.
    Matches(String),
    /// A number that stands so to this one.
    Number(NumberOrder, f64),
    /// It is JSON equal to this one.
    EqualToJson {
        /// The value.
        value: Value,
        /// Elements of arrays may have another order.
        ignores_order: bool,
        /// Objects may have more keys, arrays more elements.
        ignores_extra: bool,
    },
    /// It is JSON in which a JSONPath finds something, which must meet a pattern if there is one.
    JsonPath(String, Option<Box<Self>>),
    /// It is JSON that a JSON Schema accepts.
    JsonSchema(Value),
    /// It is XML equal to this one; elements of one name may have another order if so.
    EqualToXml(String, bool),
    /// It is XML in which an XPath finds something, which must meet a pattern if there is one; prefixes with their namespaces.
    XPath(String, Vec<(String, String)>, Option<Box<Self>>),
    /// A time that stands so to this one, which may be relative to now.
    Time(TimeOrder, String, TimeOptions),
    /// As many values as these, each of which one of them meets.
    Exactly(Vec<Self>),
    /// All of them.
    All(Vec<Self>),
    /// One of them.
    Any(Vec<Self>),
    /// Not this one.
    Not(Box<Self>),
}

/// The comparison of times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeOrder {
    /// `before`
    Before,
    /// `after`
    After,
    /// `equalToDateTime`
    Equal,
}

/// The format and offset of times before they are compared.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TimeOptions {
    /// `actualFormat`: the format of times in requests.
    pub format: Option<String>,
    /// `truncateActual`, such as `first day of month`
    pub truncate: Option<String>,
    /// `truncateExpected`
    pub truncate_value: Option<String>,
}

/// The comparison of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NumberOrder {
    /// `equalToNumber`
    Equal,
    /// `greaterThanNumber`
    Greater,
    /// `greaterThanEqualNumber`
    GreaterOrEqual,
    /// `lessThanNumber`
    Less,
    /// `lessThanEqualNumber`
    LessOrEqual,
}

/// Patterns are not nested deeper.
const DEEPEST: usize = 32;

/// The pattern at a place; everything that is wrong with it is noted.
pub(super) fn pattern(value: Value, at: &str, notes: &mut Notes) -> Option<Pattern> {
    pattern_within(value, at, notes, DEEPEST)
}

fn pattern_within(value: Value, at: &str, notes: &mut Notes, levels: usize) -> Option<Pattern> {
    let Some(levels) = levels.checked_sub(1) else {
        return notes.wrong(at, "is nested too deeply");
    };
    let Value::Object(mut table) = value else {
        let message = "must be an object such as { \"equalTo\": \"a\" }";
        return notes.wrong(at, message);
    };
    let ignores_case = flag_of(&mut table, "caseInsensitive");
    let ignores_order = flag_of(&mut table, "ignoreArrayOrder");
    let ignores_extra = flag_of(&mut table, "ignoreExtraElements");
    table.remove("schemaVersion");
    let namespaces = table.remove("xPathNamespaces");
    let times = time_options(&mut table, at, notes);
    let ignores_order_of_same = flag_of(&mut table, "ignoreOrderOfSameNode");
    if table.get("enablePlaceholders").is_none_or(says_nothing) {
        // They are of placeholders alone.
        table.remove("placeholderOpeningDelimiterRegex");
        table.remove("placeholderClosingDelimiterRegex");
    }
    let of_xml = XML_OPTIONS.iter().filter(|option| {
        let value = table.remove(**option);
        value.is_some_and(|value| !says_nothing(&value))
    });
    let of_xml: Vec<_> = of_xml.collect();
    let keys: Vec<String> = table.keys().cloned().collect();
    if keys.is_empty() {
        return notes.wrong(at, "has no operator");
    }
    let mut all = Vec::new();
    for key in keys {
        let operand = table.remove(&key).unwrap_or_default();
        let found = match (key.as_str(), operand) {
            ("equalTo", Value::Number(number)) => Pattern::Equal(number.to_string(), false),
            ("equalTo", Value::Bool(flag)) => Pattern::Equal(flag.to_string(), false),
            ("equalTo", Value::String(text)) => Pattern::Equal(text, ignores_case),
            ("contains", Value::String(text)) => Pattern::Contains(text),
            ("doesNotContain", Value::String(text)) => not(Pattern::Contains(text)),
            ("binaryEqualTo", Value::String(text)) => match plain(&text) {
                Some(text) => Pattern::Equal(text, false),
                None => return notes.wrong(at, "`binaryEqualTo` is not base64 of text in UTF-8"),
            },
            ("matches", Value::String(text)) => Pattern::Matches(text),
            ("doesNotMatch", Value::String(text)) => not(Pattern::Matches(text)),
            ("absent", Value::Bool(true)) => Pattern::Absent,
            ("absent", Value::Bool(false)) | ("anything", _) => Pattern::Anything,
            ("equalToJson", value) => Pattern::EqualToJson {
                value: json(value, at, &key, notes)?,
                ignores_order,
                ignores_extra,
            },
            ("matchesJsonPath", Value::String(path)) => Pattern::JsonPath(path, None),
            ("matchesJsonPath", Value::Object(mut inner)) => {
                let path = expression(&mut inner, at, notes)?;
                let inner = pattern_within(Value::Object(inner), at, notes, levels)?;
                Pattern::JsonPath(path, Some(Box::new(inner)))
            }
            ("matchesJsonSchema", value @ (Value::String(_) | Value::Object(_))) => {
                Pattern::JsonSchema(json(value, at, &key, notes)?)
            }
            ("equalToXml", Value::String(text)) => {
                // Options that make different documents equal are refused rather than guessed.
                if let Some(option) = of_xml.first() {
                    let message =
                        format!("`{option}` is not known here, so the mapping is left out");
                    return notes.wrong(at, message);
                }
                Pattern::EqualToXml(text, ignores_order_of_same)
            }
            ("matchesXPath", Value::String(path)) => {
                Pattern::XPath(path, prefixes(namespaces.as_ref()), None)
            }
            ("matchesXPath", Value::Object(mut inner)) => {
                let path = expression(&mut inner, at, notes)?;
                let inner = pattern_within(Value::Object(inner), at, notes, levels)?;
                Pattern::XPath(path, prefixes(namespaces.as_ref()), Some(Box::new(inner)))
            }
            ("not", value) => not(pattern_within(value, at, notes, levels)?),
            ("before", Value::String(text)) => Pattern::Time(
                TimeOrder::Before,
                offset(text, &times),
                times.options.clone(),
            ),
            ("after", Value::String(text)) => Pattern::Time(
                TimeOrder::After,
                offset(text, &times),
                times.options.clone(),
            ),
            ("equalToDateTime", Value::String(text)) => Pattern::Time(
                TimeOrder::Equal,
                offset(text, &times),
                times.options.clone(),
            ),
            ("and" | "or" | "includes" | "hasExactly", Value::Array(all)) => {
                let patterns = all
                    .into_iter()
                    .map(|value| pattern_within(value, at, notes, levels))
                    .collect::<Vec<_>>();
                let patterns: Vec<Pattern> = patterns.into_iter().collect::<Option<_>>()?;
                match key.as_str() {
                    "or" => Pattern::Any(patterns),
                    "hasExactly" => Pattern::Exactly(patterns),
                    _ => Pattern::All(patterns),
                }
            }
            (name, operand) => {
                if let Some(pattern) = number(name, &operand) {
                    pattern
                } else {
                    // Without the condition the mapping would answer what it is not for.
                    let message = format!(
                        "`{name}` is not known here with that value, so the mapping is left out"
                    );
                    return notes.wrong(at, message);
                }
            }
        };
        all.push(found);
    }
    // Several operators must all be met.
    Some(if all.len() == 1 {
        all.remove(0)
    } else {
        Pattern::All(all)
    })
}

/// Options of `before`, `after` and `equalToDateTime`.
#[derive(Default)]
struct Times {
    options: TimeOptions,
    /// Such as `3 days`.
    offset: Option<String>,
}

fn time_options(table: &mut Map<String, Value>, at: &str, notes: &mut Notes) -> Times {
    let at = format!("{at}.");
    let mut of = |key: &str| text(table, key, &at, notes).filter(|text| !text.is_empty());
    let options = TimeOptions {
        format: of("actualFormat"),
        truncate: of("truncateActual"),
        truncate_value: of("truncateExpected"),
    };
    let unit = of("expectedOffsetUnit");
    let count = table.remove("expectedOffset");
    let count = count.and_then(|it| it.as_i64()).filter(|it| *it != 0);
    // The other order is that of truncating first.
    if flag_of(table, "applyTruncationLast") && count.is_some() && options.truncate_value.is_some()
    {
        notes.wrong::<()>(&format!("{at}applyTruncationLast"), "is not known here");
    }
    let unit = unit.unwrap_or_else(|| "days".to_owned());
    Times {
        options,
        offset: count.map(|count| format!("{count:+} {}", unit.to_lowercase())),
    }
}

/// A time relative to now with the offset that stands beside it.
fn offset(text: String, times: &Times) -> String {
    match &times.offset {
        Some(offset) if text == "now" => format!("now {offset}"),
        _ => text,
    }
}

fn number(name: &str, operand: &Value) -> Option<Pattern> {
    let order = match name {
        "equalToNumber" => NumberOrder::Equal,
        "greaterThanNumber" => NumberOrder::Greater,
        "greaterThanEqualNumber" => NumberOrder::GreaterOrEqual,
        "lessThanNumber" => NumberOrder::Less,
        "lessThanEqualNumber" => NumberOrder::LessOrEqual,
        _ => return None,
    };
    let number = match operand {
        Value::String(text) => text.trim().parse().ok(),
        operand => operand.as_f64(),
    };
    Some(Pattern::Number(order, number?))
}

/// Options of `equalToXml` that make documents equal which are not.
const XML_OPTIONS: [&str; 5] = [
    "enablePlaceholders",
    "placeholderOpeningDelimiterRegex",
    "placeholderClosingDelimiterRegex",
    "exemptedComparisons",
    "namespaceAwareness",
];

fn flag_of(table: &mut Map<String, Value>, key: &str) -> bool {
    let value = table.remove(key);
    value.is_some_and(|value| value == Value::Bool(true) || value == "true")
}

/// The default of an option.
fn says_nothing(value: &Value) -> bool {
    matches!(value, Value::Null | Value::Bool(false)) || super::is_empty(value)
}

/// The text that is written in base64.
fn plain(text: &str) -> Option<String> {
    String::from_utf8(STANDARD.decode(text.trim()).ok()?).ok()
}

fn expression(inner: &mut Map<String, Value>, at: &str, notes: &mut Notes) -> Option<String> {
    let path = text(inner, "expression", &format!("{at}."), notes);
    path.or_else(|| notes.wrong(at, "has no `expression`"))
}

/// A value, or a text that holds one.
fn json(value: Value, at: &str, key: &str, notes: &mut Notes) -> Option<Value> {
    let Value::String(text) = value else {
        return Some(value);
    };
    match serde_json::from_str(&text) {
        Ok(value) => Some(value),
        Err(error) => notes.wrong(&format!("{at}.{key}"), format!("is no JSON: {error}")),
    }
}

fn prefixes(namespaces: Option<&Value>) -> Vec<(String, String)> {
    let table = namespaces.and_then(Value::as_object);
    table
        .into_iter()
        .flatten()
        .filter_map(|(prefix, name)| Some((prefix.clone(), name.as_str()?.to_owned())))
        .collect()
}

fn not(pattern: Pattern) -> Pattern {
    Pattern::Not(Box::new(pattern))
}
