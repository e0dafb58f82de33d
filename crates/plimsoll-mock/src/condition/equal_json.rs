//! Whether content is the same JSON as a given one, as strictly as is asked.

use std::fmt;

use regex::Regex;
use serde_json::Value;

/// JSON that content must be equal to.
///
/// Texts such as `${json-unit.any-string}` stand for any value of a kind, as JsonUnit and WireMock have them: `ignore`,
/// `ignore-element`, `any-string`, `any-number`, `any-boolean`, and `regex` with an expression behind it.
#[derive(Debug, Clone)]
pub struct EqualJson {
    /// As it was written.
    text: String,
    expected: Expected,
    /// Elements of arrays may have another order.
    ignores_order: bool,
    /// Objects may have more keys, and arrays more elements at their end.
    ignores_extra: bool,
}

#[derive(Debug, Clone)]
enum Expected {
    Value(Value),
    List(Vec<Self>),
    Object(Vec<(String, Self)>),
    Any,
    AnyText,
    AnyNumber,
    AnyFlag,
    Matching(Regex),
}

/// Why a text cannot be compared with.
#[derive(Debug, thiserror::Error)]
pub enum EqualJsonError {
    /// It is no JSON.
    #[error("is no JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// A place for a regular expression holds none.
    #[error("`{0}` is no regular expression")]
    Regex(String),
}

impl EqualJson {
    /// - `text`: JSON.
    pub fn new(
        text: &str,
        ignores_order: bool,
        ignores_extra: bool,
    ) -> Result<Self, EqualJsonError> {
        let value: Value = serde_json::from_str(text)?;
        Ok(Self {
            text: value.to_string(),
            expected: expected(value)?,
            ignores_order,
            ignores_extra,
        })
    }

    /// Whether it is equal to that value.
    pub fn is_met_by(&self, found: &Value) -> bool {
        self.is_equal(&self.expected, found)
    }

    fn is_equal(&self, expected: &Expected, found: &Value) -> bool {
        match (expected, found) {
            (Expected::Any, _) => true,
            (Expected::AnyText, found) => found.is_string(),
            (Expected::AnyNumber, found) => found.is_number(),
            (Expected::AnyFlag, found) => found.is_boolean(),
            (Expected::Matching(regex), found) => {
                found.as_str().is_some_and(|text| regex.is_match(text))
            }
            (Expected::Value(Value::Number(one)), Value::Number(other)) => {
                one == other || one.as_f64() == other.as_f64()
            }
            (Expected::Value(value), found) => value == found,
            (Expected::List(expected), Value::Array(found)) => self.are_equal(expected, found),
            (Expected::Object(expected), Value::Object(found)) => {
                let are_there = expected.iter().all(|(key, expected)| {
                    match (found.get(key), expected) {
                        (Some(found), expected) => self.is_equal(expected, found),
                        // A value that does not matter need not be there.
                        (None, expected) => matches!(expected, Expected::Any),
                    }
                });
                let known = |key: &String| expected.iter().any(|(known, _)| known == key);
                are_there && (self.ignores_extra || found.keys().all(known))
            }
            (Expected::List(_) | Expected::Object(_), _) => false,
        }
    }

    fn are_equal(&self, expected: &[Expected], found: &[Value]) -> bool {
        let has_length = if self.ignores_extra {
            found.len() >= expected.len()
        } else {
            found.len() == expected.len()
        };
        if !has_length {
            return false;
        }
        if !self.ignores_order {
            let mut pairs = expected.iter().zip(found);
            return pairs.all(|(expected, found)| self.is_equal(expected, found));
        }
        // Which expected element each one that was found stands for.
        let mut taken = vec![None; found.len()];
        (0..expected.len()).all(|at| {
            let mut seen = vec![false; found.len()];
            self.find_place(at, expected, found, &mut taken, &mut seen)
        })
    }

    /// Finds an element for an expected one, moving others where that helps (augmenting paths).
    fn find_place(
        &self,
        at: usize,
        expected: &[Expected],
        found: &[Value],
        taken: &mut [Option<usize>],
        seen: &mut [bool],
    ) -> bool {
        for place in 0..found.len() {
            if seen[place] || !self.is_equal(&expected[at], &found[place]) {
                continue;
            }
            seen[place] = true;
            let is_free = match taken[place] {
                None => true,
                Some(other) => self.find_place(other, expected, found, taken, seen),
            };
            if is_free {
                taken[place] = Some(at);
                return true;
            }
        }
        false
    }
}

fn expected(value: Value) -> Result<Expected, EqualJsonError> {
    Ok(match value {
        Value::String(text) => match text.strip_prefix("${json-unit.") {
            Some("ignore}" | "ignore-element}") => Expected::Any,
            Some("any-string}") => Expected::AnyText,
            Some("any-number}") => Expected::AnyNumber,
            Some("any-boolean}") => Expected::AnyFlag,
            Some(rest) if rest.starts_with("regex}") => {
                let pattern = rest.trim_start_matches("regex}");
                let regex = Regex::new(&format!("^(?:{pattern})$"));
                Expected::Matching(regex.map_err(|_| EqualJsonError::Regex(pattern.to_owned()))?)
            }
            _ => Expected::Value(Value::String(text)),
        },
        Value::Array(all) => {
            Expected::List(all.into_iter().map(expected).collect::<Result<_, _>>()?)
        }
        Value::Object(all) => {
            let pairs = all.into_iter();
            let pairs = pairs.map(|(key, value)| Ok((key, expected(value)?)));
            Expected::Object(pairs.collect::<Result<_, EqualJsonError>>()?)
        }
        value => Expected::Value(value),
    })
}

impl fmt::Display for EqualJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)?;
        if self.ignores_order {
            f.write_str(" in any order")?;
        }
        if self.ignores_extra {
            f.write_str(" and more")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_met(expected: &str, order: bool, extra: bool, found: &str) -> bool {
        let test = EqualJson::new(expected, order, extra).unwrap();
        test.is_met_by(&serde_json::from_str(found).unwrap())
    }

    #[test]
    fn values_are_compared_as_strictly_as_is_asked() {
        for (expected, order, extra, found, is_equal) in [
            (
                r#"{"a":1,"b":[1,2]}"#,
                false,
                false,
                r#"{"b":[1,2],"a":1.0}"#,
                true,
            ),
            (r#"{"a":1}"#, false, false, r#"{"a":"1"}"#, false),
            (r#"{"a":1}"#, false, false, r#"{"a":1,"b":2}"#, false),
            (r#"{"a":1}"#, false, true, r#"{"a":1,"b":2}"#, true),
            ("[1,2]", false, false, "[2,1]", false),
            ("[1,2]", true, false, "[2,1]", true),
            ("[1,1]", true, false, "[1,2]", false),
            ("[1,2]", false, true, "[1,2,3]", true),
            ("[1,2]", false, true, "[0,1,2]", false),
            ("[2,1]", true, true, "[0,1,2]", true),
            ("[1]", true, true, "[]", false),
            // The first expected one must give way to the second.
            (
                r#"["${json-unit.any-number}", 1]"#,
                true,
                false,
                "[1, 2]",
                true,
            ),
            (
                r#"["${json-unit.any-number}", 1]"#,
                true,
                false,
                "[2, 2]",
                false,
            ),
            (r#"{"a":"${json-unit.ignore}"}"#, false, false, "{}", true),
            (
                r#"{"a":"${json-unit.any-string}"}"#,
                false,
                false,
                r#"{"a":1}"#,
                false,
            ),
            (
                r#"{"a":"${json-unit.any-boolean}"}"#,
                false,
                false,
                r#"{"a":true}"#,
                true,
            ),
            (
                r#""${json-unit.regex}[a-z]+""#,
                false,
                false,
                r#""abc""#,
                true,
            ),
            (
                r#""${json-unit.regex}[a-z]+""#,
                false,
                false,
                r#""abc1""#,
                false,
            ),
            (r#"{"a":{}}"#, false, false, r#"{"a":[]}"#, false),
            ("null", false, false, "null", true),
        ] {
            assert_eq!(
                is_met(expected, order, extra, found),
                is_equal,
                "{expected} {order} {extra} {found}"
            );
        }
        assert!(EqualJson::new("{", false, false).is_err());
        assert!(EqualJson::new(r#""${json-unit.regex}(""#, false, false).is_err());
    }
}
