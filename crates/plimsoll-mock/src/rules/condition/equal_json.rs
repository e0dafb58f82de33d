//! Whether content is the same JSON as a given one, with the configured strictness.

use std::cell::Cell;
use std::collections::HashMap;
use std::fmt;

use regex::Regex;
use serde_json::Value;

use super::value;

/// The search for elements of arrays in any order takes at most this many steps in one evaluation.
const MOST_STEPS: u64 = 2_000_000;

/// It moves at most this many elements to place one.
const DEEPEST_SEARCH: usize = 500;

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
    List(Vec<Element>),
    Object(Vec<(String, Self)>),
    Any,
    AnyText,
    AnyNumber,
    AnyFlag,
    Matching(Regex),
}

/// An element of an array.
#[derive(Debug, Clone)]
struct Element {
    expected: Expected,
    /// The one text that equal values have; absent if different texts are equal.
    canonical: Option<String>,
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
            expected: expected(value, ignores_extra)?,
            ignores_order,
            ignores_extra,
        })
    }

    /// Whether it is equal to that value; absent if a comparison in any order takes more than its limit of steps.
    pub fn judge(&self, found: &Value) -> Option<bool> {
        let comparison = Comparison {
            ignores_order: self.ignores_order,
            ignores_extra: self.ignores_extra,
            steps: Cell::new(MOST_STEPS),
            is_exceeded: Cell::new(false),
        };
        let is_equal = comparison.is_equal(&self.expected, found);
        (is_equal || !comparison.is_exceeded.get()).then_some(is_equal)
    }
}

/// One evaluation.
struct Comparison {
    ignores_order: bool,
    ignores_extra: bool,
    /// Remaining steps of the search for elements.
    steps: Cell<u64>,
    is_exceeded: Cell<bool>,
}

impl Comparison {
    fn is_equal(&self, expected: &Expected, found: &Value) -> bool {
        match (expected, found) {
            (Expected::Any, _) => true,
            (Expected::AnyText, found) => found.is_string(),
            (Expected::AnyNumber, found) => found.is_number(),
            (Expected::AnyFlag, found) => found.is_boolean(),
            (Expected::Matching(regex), found) => {
                found.as_str().is_some_and(|text| regex.is_match(text))
            }
            (Expected::Value(value), found) => value::is_equal(value, found),
            (Expected::List(expected), Value::Array(found)) => self.are_equal(expected, found),
            (Expected::Object(expected), Value::Object(found)) => {
                let mut known = 0;
                let are_there = expected.iter().all(|(key, expected)| {
                    match (found.get(key), expected) {
                        (Some(found), expected) => {
                            known += 1;
                            self.is_equal(expected, found)
                        }
                        // A value that does not matter need not be there.
                        (None, expected) => matches!(expected, Expected::Any),
                    }
                });
                are_there && (self.ignores_extra || found.len() == known)
            }
            (Expected::List(_) | Expected::Object(_), _) => false,
        }
    }

    fn are_equal(&self, expected: &[Element], found: &[Value]) -> bool {
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
            return pairs.all(|(expected, found)| self.is_equal(&expected.expected, found));
        }
        // An element with a canonical text is equal to those with the same text only. Which of them it takes makes
        // no difference to the others, so it needs no search.
        let mut by_text: HashMap<String, Vec<&Value>> = HashMap::new();
        let mut left = Vec::new();
        let has_texts = expected.iter().any(|it| it.canonical.is_some());
        for found in found {
            if has_texts && (!self.ignores_extra || is_scalar(found)) {
                let text = value::canonical(found, true);
                by_text.entry(text).or_default().push(found);
            } else {
                left.push(found);
            }
        }
        let mut searched = Vec::new();
        for element in expected {
            let Some(text) = &element.canonical else {
                searched.push(&element.expected);
                continue;
            };
            if by_text.get_mut(text).and_then(Vec::pop).is_none() {
                return false;
            }
        }
        left.extend(by_text.into_values().flatten());
        let mut search = Search {
            comparison: self,
            expected: &searched,
            found: &left,
            taken: vec![None; left.len()],
            free: (0..left.len()).collect(),
            seen: vec![usize::MAX; left.len()],
        };
        (0..searched.len()).all(|at| search.find_place(at, at, 0))
    }

    /// Counts a step of a search; whether it may be made.
    fn step(&self, cost: usize) -> bool {
        let left = self.steps.get().checked_sub(1 + cost as u64);
        self.steps.set(left.unwrap_or(0));
        if left.is_none() {
            self.is_exceeded.set(true);
        }
        left.is_some()
    }
}

/// The search for an element for each expected one: a matching of a bipartite graph by augmenting paths.
struct Search<'s> {
    comparison: &'s Comparison,
    expected: &'s [&'s Expected],
    found: &'s [&'s Value],
    /// Which expected element each one that was found stands for.
    taken: Vec<Option<usize>>,
    /// Those that stand for none.
    free: Vec<usize>,
    /// The round in which each one was last visited.
    seen: Vec<usize>,
}

impl Search<'_> {
    /// Finds an element for an expected one, moving others where that helps.
    ///
    /// - `round`: the number of the expected element that is placed, whatever has to move for it.
    fn find_place(&mut self, at: usize, round: usize, depth: usize) -> bool {
        if depth > DEEPEST_SEARCH {
            self.comparison.is_exceeded.set(true);
            return false;
        }
        // A free element first, which spares moving others.
        for number in 0..self.free.len() {
            let place = self.free[number];
            match self.fits(at, place) {
                None => return false,
                Some(false) => {}
                Some(true) => {
                    self.free.swap_remove(number);
                    self.taken[place] = Some(at);
                    return true;
                }
            }
        }
        for place in 0..self.found.len() {
            if !self.comparison.step(0) {
                return false;
            }
            let Some(other) = self.taken[place].filter(|_| self.seen[place] != round) else {
                continue;
            };
            match self.fits(at, place) {
                None => return false,
                Some(false) => continue,
                Some(true) => self.seen[place] = round,
            }
            if self.find_place(other, round, depth + 1) {
                self.taken[place] = Some(at);
                return true;
            }
        }
        false
    }

    /// Whether an element is equal to an expected one; `None` if no step is left.
    fn fits(&self, at: usize, place: usize) -> Option<bool> {
        let found = self.found[place];
        let may_step = self.comparison.step(cost(found));
        may_step.then(|| self.comparison.is_equal(self.expected[at], found))
    }
}

/// About how much of a value a comparison reads, in steps.
fn cost(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len() / 16,
        Value::Array(elements) => elements.iter().map(|it| 1 + cost(it)).sum(),
        Value::Object(object) => object.values().map(|it| 1 + cost(it)).sum(),
        _ => 0,
    }
}

fn is_scalar(value: &Value) -> bool {
    !value.is_array() && !value.is_object()
}

fn expected(value: Value, ignores_extra: bool) -> Result<Expected, EqualJsonError> {
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
            let all = all.into_iter().map(|value| {
                // With more keys or elements than expected, other objects and arrays are equal too.
                let is_exact = !has_places(&value) && (!ignores_extra || is_scalar(&value));
                Ok(Element {
                    canonical: is_exact.then(|| value::canonical(&value, true)),
                    expected: expected(value, ignores_extra)?,
                })
            });
            Expected::List(all.collect::<Result<_, EqualJsonError>>()?)
        }
        Value::Object(all) => {
            let pairs = all.into_iter();
            let pairs = pairs.map(|(key, value)| Ok((key, expected(value, ignores_extra)?)));
            Expected::Object(pairs.collect::<Result<_, EqualJsonError>>()?)
        }
        value => Expected::Value(value),
    })
}

/// Whether a value holds a text that stands for others.
fn has_places(value: &Value) -> bool {
    match value {
        Value::String(text) => text.starts_with("${json-unit."),
        Value::Array(elements) => elements.iter().any(has_places),
        Value::Object(object) => object.values().any(has_places),
        _ => false,
    }
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
        test.judge(&serde_json::from_str(found).unwrap()) == Some(true)
    }

    #[test]
    fn values_are_compared_as_strictly_as_is_requested() {
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
            ("[1.0]", false, false, "[1.00]", true),
            (
                "[12345678901234567890123]",
                false,
                false,
                "[12345678901234567890124]",
                false,
            ),
            (
                "[[1,2],{\"a\":[3,1.0]}]",
                true,
                false,
                "[{\"a\":[1,3]},[2,1]]",
                true,
            ),
            ("[[1,2],[1,2]]", true, false, "[[2,1],[1,3]]", false),
            ("[[1],[1,2]]", true, true, "[[1,2],[3,1]]", true),
            ("[[1,2],[1,2]]", true, true, "[[1,2],[3,1]]", false),
            (
                r#"["${json-unit.any-string}", "a", ["${json-unit.ignore}"]]"#,
                true,
                false,
                r#"[[7], "a", "b"]"#,
                true,
            ),
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

    fn steps_of(expected: &str, found: &str) -> (bool, u64) {
        let test = EqualJson::new(expected, true, false).unwrap();
        let comparison = Comparison {
            ignores_order: true,
            ignores_extra: false,
            steps: Cell::new(MOST_STEPS),
            is_exceeded: Cell::new(false),
        };
        let found = serde_json::from_str(found).unwrap();
        let is_met = comparison.is_equal(&test.expected, &found);
        (is_met, MOST_STEPS - comparison.steps.get())
    }

    #[test]
    fn arrays_of_plain_values_in_any_order_need_no_search() {
        let numbers = |range: &mut dyn Iterator<Item = u32>| {
            let texts: Vec<String> = range.map(|it| format!("{{\"a\":{it}}}")).collect();
            format!("[{}]", texts.join(","))
        };
        let (expected, found) = (numbers(&mut (0..20_000)), numbers(&mut (0..20_000).rev()));
        assert_eq!(steps_of(&expected, &found), (true, 0));
    }

    #[test]
    fn a_search_ends_at_its_limit() {
        let all = |element: &str| format!("[{}]", vec![element; 4000].join(","));
        let (is_met, steps) = steps_of(&all("\"${json-unit.regex}a*\""), &all("\"b\""));
        assert!(!is_met && steps < 10_000, "{steps}");
        let (is_met, steps) = steps_of(&all("\"${json-unit.any-number}\""), &all("1"));
        assert_eq!((is_met, steps), (true, 4000));
        let objects = |text: &str, range: &mut dyn Iterator<Item = u32>| {
            let texts: Vec<String> = range
                .map(|it| format!("{{\"id\":{it},\"x\":{text}}}"))
                .collect();
            format!("[{}]", texts.join(","))
        };
        let expected = objects("\"${json-unit.any-number}\"", &mut (0..4000).rev());
        let (is_met, steps) = steps_of(&expected, &objects("1", &mut (0..4000)));
        assert_eq!((is_met, steps), (false, MOST_STEPS));
        // Each one must move all before it.
        let chain = |count: usize| format!("[{}1]", "\"${json-unit.any-number}\",".repeat(count));
        let (is_met, _) = steps_of(&chain(300), &format!("[{}1]", "2,".repeat(300)));
        assert!(is_met);
    }
}
