//! Equality of JSON values: numbers by value (`1.0` is `1.00` and `1`), objects in any order of their keys.
//!
//! Numbers are compared by their digits, so integers beyond the range of floats differ where their digits differ.

use std::fmt::Write as _;

use serde_json::{Number, Value};

/// Whether two values are equal.
pub(super) fn is_equal(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            one == other || canonical_number(one) == canonical_number(other)
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len()
                && one
                    .iter()
                    .zip(other)
                    .all(|(one, other)| is_equal(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one
                    .iter()
                    .all(|(key, one)| other.get(key).is_some_and(|other| is_equal(one, other)))
        }
        _ => one == other,
    }
}

/// A text that equal values share and others do not have.
///
/// - `ignores_order`: arrays are equal if they hold the same elements in any order.
pub(super) fn canonical(value: &Value, ignores_order: bool) -> String {
    let mut text = String::new();
    write_canonical(value, ignores_order, &mut text);
    text
}

fn write_canonical(value: &Value, ignores_order: bool, text: &mut String) {
    match value {
        Value::Number(number) => text.push_str(&canonical_number(number)),
        Value::Array(elements) => {
            let elements = elements.iter();
            let mut elements: Vec<String> =
                elements.map(|it| canonical(it, ignores_order)).collect();
            if ignores_order {
                elements.sort_unstable();
            }
            text.push('[');
            text.push_str(&elements.join(","));
            text.push(']');
        }
        Value::Object(object) => {
            let mut keys: Vec<_> = object.iter().collect();
            keys.sort_unstable_by_key(|(key, _)| key.as_str());
            text.push('{');
            for (key, value) in keys {
                // The key as JSON, so that no key can look like the text behind it.
                write!(text, "{}:", Value::from(key.as_str())).expect("a string takes all");
                write_canonical(value, ignores_order, text);
                text.push(',');
            }
            text.push('}');
        }
        value => write!(text, "{value}").expect("a string takes all"),
    }
}

/// The sign, the digits without zeros at either end, and the exponent of the last digit: `-125e-1` for -12.50.
fn canonical_number(number: &Number) -> String {
    let text = number.to_string();
    let (sign, unsigned) = match text.strip_prefix('-') {
        Some(unsigned) => ("-", unsigned),
        None => ("", text.as_str()),
    };
    let (mantissa, exponent) = unsigned.split_once(['e', 'E']).unwrap_or((unsigned, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let trimmed = digits.trim_end_matches('0');
    let significant = trimmed.trim_start_matches('0');
    if significant.is_empty() {
        return "0".to_owned();
    }
    // An exponent that needs more than 127 bits stays as it is written.
    let Ok(exponent) = exponent.parse::<i128>() else {
        return text;
    };
    let shift = (digits.len() - trimmed.len()) as i128 - fraction.len() as i128;
    format!("{sign}{significant}e{}", exponent.saturating_add(shift))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Value {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn values_are_equal_whatever_the_spelling_of_numbers_and_the_order_of_keys() {
        for (one, other, are_equal) in [
            ("1.0", "1.00", true),
            ("1", "1.00", true),
            ("100", "1e2", true),
            ("-12.50", "-125E-1", true),
            ("0", "-0.0e7", true),
            ("1", "-1", false),
            ("12345678901234567890123", "12345678901234567890124", false),
            ("12345678901234567890123", "12345678901234567890123.0", true),
            ("0.1", "0.10000000000000000000000001", false),
            ("1e99999999999999999999", "1e99999999999999999998", false),
            ("1", "\"1\"", false),
            (
                r#"{"a": [1, {"b": 1.10}], "c": null}"#,
                r#"{"c": null, "a": [1.0, {"b": 1.1}]}"#,
                true,
            ),
            (r#"{"a": 1}"#, r#"{"a": 1, "b": 2}"#, false),
            (r#"{"a": null}"#, r#"{"b": null}"#, false),
            ("[1, 2]", "[2, 1]", false),
            (r#"{"a\":1,\"b": 1}"#, r#"{"a": 1, "b": 1}"#, false),
        ] {
            let (left, right) = (value(one), value(other));
            assert_eq!(is_equal(&left, &right), are_equal, "{one} {other}");
            let has_text = canonical(&left, false) == canonical(&right, false);
            assert_eq!(has_text, are_equal, "{one} {other}");
        }
        let nested = |text| canonical(&value(text), true);
        assert_eq!(nested("[[1,2],[3]]"), nested("[[3.0],[2,1]]"));
        assert_ne!(nested("[[1,2],[3]]"), nested("[[1],[2,3]]"));
    }
}
