//! Conditions of Gatus, judged as Gatus judges them, accidents included.
//!
//! Conditions that pass by accident in Gatus pass here, so that a configuration gives the same verdicts; [`GatusCondition::hazard`]
//! says which conditions are in danger of that. Two things differ on purpose: an index below zero counts as missing
//! instead of ending the program, and so does one into something that is no array.

use serde_json::Value;

use crate::probe::reading::{GatusDisplay, Judged, Reading};
use crate::time::{Timestamp, go_duration};

/// One condition, such as `[STATUS] == 200`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatusCondition {
    text: String,
    operator: Operator,
}

/// A text that is no condition.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a condition; write for example `[STATUS] == 200`, with spaces around the operator"
)]
pub struct GatusConditionError(String);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Equal,
    NotEqual,
    AtMost,
    AtLeast,
    Above,
    Below,
}

/// In the order in which Gatus looks for them.
const OPERATORS: [(Operator, &str); 6] = [
    (Operator::Equal, " == "),
    (Operator::NotEqual, " != "),
    (Operator::AtMost, " <= "),
    (Operator::AtLeast, " >= "),
    (Operator::Above, " > "),
    (Operator::Below, " < "),
];

const INVALID: &str = "(INVALID)";

/// Longer values are cut where they are shown beside a pattern.
const SHOWN: usize = 25;

impl GatusCondition {
    /// Parses a condition.
    pub fn parse(text: &str) -> Result<Self, GatusConditionError> {
        let found = OPERATORS.iter().find(|(_, sign)| text.contains(sign));
        match found {
            Some((operator, _)) => Ok(Self {
                text: text.to_owned(),
                operator: *operator,
            }),
            None => Err(GatusConditionError(text.to_owned())),
        }
    }

    /// The condition as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether it looks at the content, by the name that Gatus looks for.
    pub fn needs_body(&self) -> bool {
        self.text.contains("[BODY]")
    }

    /// Whether it looks at the expiry of the domain.
    pub fn needs_domain(&self) -> bool {
        self.text.contains("[DOMAIN_EXPIRATION]")
    }

    /// Whether it looks at the certificate.
    pub fn needs_certificate(&self) -> bool {
        self.text.contains("[CERTIFICATE_EXPIRATION]")
    }

    /// Why the condition may pass or fail by accident, if it may.
    pub fn hazard(&self) -> Option<&'static str> {
        let (left, right) = self.sides();
        let rest = self
            .text
            .split_once(self.operator.sign())
            .map_or("", |x| x.1);
        if OPERATORS.iter().any(|(_, sign)| rest.contains(sign)) {
            return Some("has two operators: what stands behind the second is ignored");
        }
        let is_ordered = !matches!(self.operator, Operator::Equal | Operator::NotEqual);
        let is_body = |side: &str| side.to_ascii_uppercase().contains("[BODY]");
        if is_ordered && (is_body(left) || is_body(right)) {
            return Some("compares a missing path as 0, and numbers without their fractions");
        }
        if self.operator == Operator::NotEqual && (is_body(left) || is_body(right)) {
            return Some("holds if the path is missing");
        }
        let is_large = |side: &str| number(side).is_some_and(|number| number.abs() >= 1_000_000);
        if (is_body(left) && is_large(right)) || (is_body(right) && is_large(left)) {
            return Some(
                "fails for a number of JSON, which is written as `1.5e+06` from a million on",
            );
        }
        let is_number = |side: &str| {
            side.starts_with('[') || number(side).is_some() || go_duration::parse(side).is_some()
        };
        if is_ordered && !(is_number(left) && is_number(right)) {
            return Some("compares what is no number as 0");
        }
        let is_lower = |side: &str| {
            let upper = side.to_ascii_uppercase();
            ["[BODY]", "[IP]", "[DOMAIN_EXPIRATION]"]
                .iter()
                .any(|name| upper.contains(name) && !side.contains(name))
        };
        if is_lower(left) || is_lower(right) {
            return Some("names a placeholder in lower case, which Gatus then does not fill");
        }
        None
    }

    /// The outcome: one entry, or one for each failing element of a wildcard.
    pub fn judge(
        &self,
        reading: &Reading,
        at: Timestamp,
        shows: GatusDisplay,
        errors: &mut Vec<String>,
    ) -> Vec<Judged> {
        let Some((path, position)) = wildcard(&self.text) else {
            return vec![self.judge_one(reading, at, shows, errors)];
        };
        let length = match parsed(&reading.body)
            .as_ref()
            .and_then(|body| find(path, body))
        {
            Some(Value::Array(items)) => items.len(),
            _ => 0,
        };
        if length == 0 {
            return vec![Judged {
                condition: format!("{} (no elements matched)", self.text),
                met: false,
            }];
        }
        let (before, after) = self.text.split_at(position);
        let after = after.strip_prefix(WILDCARD).unwrap_or(after);
        let judged = (0..length).map(|index| {
            let text = format!("{before}[{index}]{after}");
            let one = Self {
                text,
                operator: self.operator,
            };
            one.judge(reading, at, shows, errors)
        });
        let judged: Vec<_> = judged.flatten().collect();
        let failed: Vec<_> = judged.iter().filter(|one| !one.met).cloned().collect();
        if !failed.is_empty() {
            return failed;
        }
        let condition = if shows.resolve_successful {
            format!("{} ({} elements)", self.text, judged.len())
        } else {
            self.text.clone()
        };
        vec![Judged {
            condition,
            met: true,
        }]
    }

    fn sides(&self) -> (&str, &str) {
        let mut parts = self.text.split(self.operator.sign());
        let left = parts.next().unwrap_or_default().trim();
        (left, parts.next().unwrap_or_default().trim())
    }

    fn judge_one(
        &self,
        reading: &Reading,
        at: Timestamp,
        shows: GatusDisplay,
        errors: &mut Vec<String>,
    ) -> Judged {
        let (left, right) = self.sides();
        let mut resolve = |side: &str| {
            resolved(side, reading, at).unwrap_or_else(|error| {
                errors.extend(error);
                format!("{side} {INVALID}")
            })
        };
        let (found_left, found_right) = (resolve(left), resolve(right));
        let (left_number, right_number) = (ordinal(&found_left), ordinal(&found_right));
        let met = match self.operator {
            Operator::Equal => is_equal(&found_left, &found_right),
            Operator::NotEqual => !is_equal(&found_left, &found_right),
            Operator::AtMost => left_number <= right_number,
            Operator::AtLeast => left_number >= right_number,
            Operator::Above => left_number > right_number,
            Operator::Below => left_number < right_number,
        };
        let is_resolved = if met {
            shows.resolve_successful
        } else {
            !shows.keep_failed
        };
        if !is_resolved {
            return Judged {
                condition: self.text.clone(),
                met,
            };
        }
        let (found_left, found_right) = match self.operator {
            Operator::Equal | Operator::NotEqual => (found_left, found_right),
            _ => (
                number_shown(left, left_number),
                number_shown(right, right_number),
            ),
        };
        let sign = self.operator.sign();
        let left = side_shown(left, &found_left, right);
        let right = side_shown(right, &found_right, self.sides().0);
        Judged {
            condition: format!("{left}{sign}{right}"),
            met,
        }
    }
}

impl Operator {
    fn sign(self) -> &'static str {
        let found = OPERATORS.iter().find(|(operator, _)| *operator == self);
        found.map_or("", |(_, sign)| sign)
    }
}

const WILDCARD: &str = "[*]";

/// The path of the array that the first wildcard behind `[BODY]` stands for, and where the wildcard is.
fn wildcard(text: &str) -> Option<(&str, usize)> {
    let position = text.find(WILDCARD)?;
    let before = text.get(..position)?;
    let start = before.to_ascii_uppercase().rfind("[BODY]")?;
    let path = before.get(start + "[BODY]".len()..)?;
    (!path.contains(' ')).then(|| (path.strip_prefix('.').unwrap_or(path), position))
}

/// The value of a placeholder, if it has one.
pub(super) fn value_of(placeholder: &str, reading: &Reading, at: Timestamp) -> Option<String> {
    resolved(placeholder.trim(), reading, at).ok()
}

/// What a side names of a suite.
enum Named<'r> {
    /// A value.
    Value(&'r Value),
    /// A path without one.
    Nothing,
}

/// The value of the suite that a side names; `None` if the side is about something else.
fn of_context<'r>(side: &str, reading: &'r Reading) -> Option<Named<'r>> {
    const NAME: &str = "[CONTEXT]";

    let context = reading.context.as_deref()?;
    let is_named = side.get(..NAME.len())?.eq_ignore_ascii_case(NAME);
    is_named.then(|| {
        // Names in lower case have no value in Gatus.
        let path = side.strip_prefix(NAME).unwrap_or(side);
        let found = context.get(path.strip_prefix('.').unwrap_or(path));
        found.map_or(Named::Nothing, Named::Value)
    })
}

/// A value as Go writes it.
pub(super) fn shown(value: &Value) -> String {
    match value {
        Value::Number(number) if !number.is_f64() => number.to_string(),
        Value::Object(_) => go_map(value),
        other => text_of(other).unwrap_or_else(|| "<nil>".to_owned()),
    }
}

/// A side with its value; `Err` if it has none, with an error to report if there is one.
fn resolved(side: &str, reading: &Reading, at: Timestamp) -> Result<String, Option<String>> {
    let millis = |date: Option<Timestamp>| date.map_or(0, |date| date.0 - at.0).to_string();
    if let Some(inner) = side
        .strip_prefix("len(")
        .and_then(|it| it.strip_suffix(')'))
    {
        return length(inner, reading, at);
    }
    if let Some(inner) = side
        .strip_prefix("has(")
        .and_then(|it| it.strip_suffix(')'))
    {
        return Ok(has(inner, reading, at).to_string());
    }
    match of_context(side, reading) {
        Some(Named::Value(value)) => return Ok(shown(value)),
        Some(Named::Nothing) => return Err(None),
        None => {}
    }
    let upper = side.to_ascii_uppercase();
    Ok(match upper.as_str() {
        "[STATUS]" => reading.code.unwrap_or(0).to_string(),
        "[IP]" => reading.peer.map_or(String::new(), |peer| peer.to_string()),
        "[RESPONSE_TIME]" => reading.took.as_millis().to_string(),
        "[DNS_RCODE]" => reading.dns_rcode.clone().unwrap_or_default(),
        "[CONNECTED]" => reading.connected.to_string(),
        "[CERTIFICATE_EXPIRATION]" => {
            let certificate = reading.certificate.as_ref();
            millis(certificate.map(|certificate| Timestamp::from_system(certificate.not_after)))
        }
        "[DOMAIN_EXPIRATION]" => millis(reading.domain_expires),
        "[BODY]" => String::from_utf8_lossy(&reading.body).trim().to_owned(),
        _ if upper.starts_with("[BODY].") || upper.starts_with("[BODY][") => {
            let body = parsed(&reading.body).ok_or(None)?;
            let found = find(body_path(side), &body).ok_or(None)?;
            text_of(found).ok_or(None)?
        }
        _ => side.to_owned(),
    })
}

/// The path behind `[BODY]`, whose name is matched in any case.
fn body_path(side: &str) -> &str {
    let path = side.get("[BODY]".len()..).unwrap_or_default();
    path.strip_prefix('.').unwrap_or(path)
}

fn length(inner: &str, reading: &Reading, at: Timestamp) -> Result<String, Option<String>> {
    match of_context(inner, reading) {
        Some(Named::Value(value)) => {
            let length = match value {
                Value::Array(items) => items.len(),
                Value::Object(entries) => entries.len(),
                other => shown(other).len(),
            };
            return Ok(length.to_string());
        }
        Some(Named::Nothing) => return Err(None),
        None => {}
    }
    let upper = inner.to_ascii_uppercase();
    let body = parsed(&reading.body);
    let found = if upper == "[BODY]" {
        body.as_ref()
    } else if upper.starts_with("[BODY].") || upper.starts_with("[BODY][") {
        let body = body.as_ref().ok_or(None)?;
        Some(find(body_path(inner), body).ok_or(None)?)
    } else {
        return resolved(inner, reading, at).map(|text| text.len().to_string());
    };
    let length = match found {
        Some(Value::Array(items)) => items.len(),
        Some(other) if upper != "[BODY]" => text_of(other).ok_or(None)?.len(),
        _ => String::from_utf8_lossy(&reading.body).trim().len(),
    };
    Ok(length.to_string())
}

fn has(inner: &str, reading: &Reading, at: Timestamp) -> bool {
    if let Some(found) = of_context(inner, reading) {
        return matches!(found, Named::Value(_));
    }
    let upper = inner.to_ascii_uppercase();
    if upper.starts_with("[BODY].") || upper.starts_with("[BODY][") {
        let body = parsed(&reading.body);
        return body.is_some_and(|body| find(body_path(inner), &body).is_some());
    }
    let is_known = [
        "[STATUS]",
        "[IP]",
        "[RESPONSE_TIME]",
        "[DNS_RCODE]",
        "[CONNECTED]",
        "[CERTIFICATE_EXPIRATION]",
        "[DOMAIN_EXPIRATION]",
        "[BODY]",
    ]
    .contains(&upper.as_str());
    is_known && resolved(inner, reading, at).is_ok_and(|text| !text.is_empty())
}

fn parsed(body: &[u8]) -> Option<Value> {
    serde_json::from_slice(body).ok()
}

/// The value at a path of keys and indexes: `a.b[0].c`, `[0].a`; empty for the whole.
fn find<'v>(path: &str, value: &'v Value) -> Option<&'v Value> {
    let mut value = value;
    for step in path.split('.').filter(|step| !step.is_empty()) {
        let (key, indexes) = match step.split_once('[') {
            Some((key, rest)) => (key, Some(rest)),
            None => (step, None),
        };
        if !key.is_empty() {
            value = value.as_object()?.get(key)?;
        }
        for index in indexes.into_iter().flat_map(|rest| rest.split('[')) {
            let index: usize = index.strip_suffix(']')?.parse().ok()?;
            value = value.as_array()?.get(index)?;
        }
    }
    Some(value)
}

/// A value as Go prints it: arrays as `[a b]`, objects as JSON, numbers by way of a float.
fn text_of(value: &Value) -> Option<String> {
    Some(match value {
        Value::Null => return None,
        Value::String(text) => text.clone(),
        Value::Bool(boolean) => boolean.to_string(),
        Value::Number(number) => number_text(number.as_f64()?),
        Value::Array(items) => {
            let items = items.iter().map(|item| match item {
                Value::Null => "<nil>".to_owned(),
                Value::Object(_) => go_map(item),
                other => text_of(other).unwrap_or_default(),
            });
            format!("[{}]", items.collect::<Vec<_>>().join(" "))
        }
        Value::Object(_) => value.to_string(),
    })
}

/// An object within an array: `map[a:1 b:2]`, keys in order.
fn go_map(value: &Value) -> String {
    let Value::Object(object) = value else {
        return text_of(value).unwrap_or_else(|| "<nil>".to_owned());
    };
    let mut entries: Vec<_> = object.iter().collect();
    entries.sort_by_key(|(key, _)| key.as_str());
    let entries = entries
        .iter()
        .map(|(key, value)| format!("{key}:{}", go_map(value)));
    format!("map[{}]", entries.collect::<Vec<_>>().join(" "))
}

/// `%v` of a float64: exponents from seven digits on, and below 1e-4.
fn number_text(number: f64) -> String {
    let size = number.abs();
    if size != 0.0 && !(1e-4..1e6).contains(&size) {
        let text = format!("{number:e}");
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let exponent: i32 = exponent.parse().unwrap_or(0);
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{mantissa}e{sign}{:02}", exponent.abs());
    }
    number.to_string()
}

/// A whole number with the prefixes of Go: `0x`, `0o`, `0b`, `0` for octal, and underscores.
fn number(text: &str) -> Option<i64> {
    let (is_negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let lower = digits.to_ascii_lowercase();
    let (digits, radix) = match lower.get(..2) {
        Some("0x") => (lower.get(2..)?, 16),
        Some("0o") => (lower.get(2..)?, 8),
        Some("0b") => (lower.get(2..)?, 2),
        Some(_) if lower.starts_with('0') => (lower.get(1..)?, 8),
        _ => (lower.as_str(), 10),
    };
    let digits = digits.replace('_', "");
    if digits.is_empty() || digits.starts_with(['+', '-']) {
        return None;
    }
    let value = i128::from_str_radix(&digits, radix).ok()?;
    i64::try_from(if is_negative { -value } else { value }).ok()
}

/// The number that an ordering compares: a duration in milliseconds, a whole number, a fraction cut off, or 0.
fn ordinal(text: &str) -> i64 {
    if let Some(nanos) = go_duration::parse(text).filter(|nanos| *nanos != 0) {
        return nanos / 1_000_000;
    }
    if let Some(number) = number(text) {
        return number;
    }
    #[expect(
        clippy::cast_possible_truncation,
        reason = "Go cuts the fraction off as well"
    )]
    let fraction = text.parse::<f64>().map_or(0, |number| number as i64);
    fraction
}

fn is_equal(left: &str, right: &str) -> bool {
    let function = |side: &'_ str, name: &str| -> Option<String> {
        let inner = side.strip_prefix(name)?.strip_suffix(')')?;
        Some(inner.to_owned())
    };
    match (function(left, "pat("), function(right, "pat(")) {
        (Some(pattern), None) => return matches(&pattern, right),
        (None, Some(pattern)) => return matches(&pattern, left),
        _ => {}
    }
    let is_one_of = |options: &str, value: &str| {
        let mut options = options.split(',');
        options.any(|option| option.trim() == value)
    };
    match (function(left, "any("), function(right, "any(")) {
        (Some(options), None) => return is_one_of(&options, right),
        (None, Some(options)) => return is_one_of(&options, left),
        _ => {}
    }
    match (number(left), number(right)) {
        (Some(left), Some(right)) => left == right,
        _ => left == right,
    }
}

/// A glob of `*`, `?` and `[…]` over the whole text; slashes are left out of both.
fn matches(pattern: &str, text: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().filter(|c| *c != '/').collect();
    let text: Vec<char> = text.chars().filter(|c| *c != '/').collect();
    let (mut p, mut t) = (0, 0);
    // Where to go on after the last star: behind it in the pattern, and one further in the text.
    let mut retry = None;
    while t < text.len() {
        let step = match pattern.get(p) {
            Some('*') => {
                retry = Some((p + 1, t));
                p += 1;
                continue;
            }
            Some(_) => one_of(&pattern, p, text[t]),
            None => None,
        };
        match (step, retry) {
            (Some(next), _) => {
                p = next;
                t += 1;
            }
            (None, Some((after, from))) => {
                p = after;
                t = from + 1;
                retry = Some((after, from + 1));
            }
            (None, None) => return false,
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

/// Behind the element of the pattern at `p` if it matches `c`.
fn one_of(pattern: &[char], p: usize, c: char) -> Option<usize> {
    match pattern[p] {
        '?' => Some(p + 1),
        '\\' => (pattern.get(p + 1) == Some(&c)).then_some(p + 2),
        '[' => {
            let mut at = p + 1;
            let is_negated = pattern.get(at) == Some(&'^');
            at += usize::from(is_negated);
            let first = at;
            let mut is_in = false;
            while let Some(low) = pattern.get(at).filter(|c| **c != ']' || at == first) {
                let high = match (pattern.get(at + 1), pattern.get(at + 2)) {
                    (Some('-'), Some(high)) if *high != ']' => {
                        at += 2;
                        high
                    }
                    _ => low,
                };
                is_in |= (low..=high).contains(&&c);
                at += 1;
            }
            (pattern.get(at) == Some(&']') && is_in != is_negated).then_some(at + 1)
        }
        other => (other == c).then_some(p + 1),
    }
}

/// A number beside its side: expiries and durations as durations.
fn number_shown(side: &str, number: i64) -> String {
    let is_expiry = ["[CERTIFICATE_EXPIRATION]", "[DOMAIN_EXPIRATION]"].contains(&side);
    if is_expiry || go_duration::parse(side).is_some() {
        go_duration::shown(number)
    } else {
        number.to_string()
    }
}

/// A side with its value behind it where they differ.
fn side_shown(side: &str, found: &str, other: &str) -> String {
    if found == side || *found == format!("{side} {INVALID}") {
        return found.to_owned();
    }
    let is_beside_pattern = other.starts_with("pat(") && other.ends_with(')');
    if is_beside_pattern && found.len() > SHOWN {
        let cut: String = found.chars().take(SHOWN).collect();
        return format!("{side} ({cut}...(truncated))");
    }
    format!("{side} ({found})")
}

#[cfg(test)]
mod tests;
