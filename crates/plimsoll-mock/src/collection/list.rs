//! Lists: filtered, sorted, and one page of them.

use std::cmp::Ordering;

use http::StatusCode;
use http::header::{HeaderName, HeaderValue};
use serde_json::{Map, Value};

use super::Said;
use crate::asked::{Pairs, values};
use crate::condition::json::DottedPath;

/// On a page, unless `_per_page` says otherwise.
const PER_PAGE: usize = 10;

/// How a value is compared, by what stands behind its name.
const COMPARISONS: [(&str, Comparison); 6] = [
    ("_ne", Comparison::NotEqual),
    ("_gte", Comparison::AtLeast),
    ("_gt", Comparison::Above),
    ("_lte", Comparison::AtMost),
    ("_lt", Comparison::Below),
    ("_like", Comparison::Contains),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Equal,
    NotEqual,
    AtLeast,
    Above,
    AtMost,
    Below,
    Contains,
}

/// The objects that the parameters ask for, and in a field how many there are on all pages.
pub(super) fn list(all: &[Map<String, Value>], parameters: &Pairs) -> Said {
    let mut found: Vec<&Map<String, Value>> = all
        .iter()
        .filter(|object| is_asked_for(object, parameters))
        .collect();
    if let Some(keys) = values(parameters, "_sort").next() {
        found.sort_by(|one, other| order(one, other, keys));
    }
    let total = found.len();
    let page = page(found, parameters);
    let mut said = Said::json(StatusCode::OK, &page);
    let name = HeaderName::from_static("x-total-count");
    said.fields.push((name, HeaderValue::from(total)));
    said
}

fn is_asked_for(object: &Map<String, Value>, parameters: &Pairs) -> bool {
    parameters.iter().all(|(name, wanted)| {
        if name == "_q" {
            let wanted = wanted.to_lowercase();
            return object
                .values()
                .any(|value| text(value).to_lowercase().contains(&wanted));
        }
        if name.starts_with('_') {
            return true;
        }
        let has = |name: &str| !matches!(at(object, name), None | Some(Value::Null));
        let suffixed = COMPARISONS
            .iter()
            .find_map(|(suffix, comparison)| Some((name.strip_suffix(suffix)?, *comparison)));
        // A key may be called so itself.
        let (key, comparison) = match suffixed {
            Some(suffixed) if !has(name) => suffixed,
            _ => (name.as_str(), Comparison::Equal),
        };
        let Some(value) = at(object, key) else {
            return comparison == Comparison::NotEqual;
        };
        is_met(value, comparison, wanted)
    })
}

fn is_met(value: &Value, comparison: Comparison, wanted: &str) -> bool {
    let order = || match (number(value), wanted.parse::<f64>()) {
        (Some(number), Ok(wanted)) => number.partial_cmp(&wanted),
        _ => Some(text(value).as_str().cmp(wanted)),
    };
    match comparison {
        Comparison::Equal => text(value) == wanted,
        Comparison::NotEqual => text(value) != wanted,
        Comparison::Contains => text(value).contains(wanted),
        Comparison::AtLeast => order().is_some_and(Ordering::is_ge),
        Comparison::Above => order().is_some_and(Ordering::is_gt),
        Comparison::AtMost => order().is_some_and(Ordering::is_le),
        Comparison::Below => order().is_some_and(Ordering::is_lt),
    }
}

/// By keys with commas between them, backwards by those with a minus before them.
fn order(one: &Map<String, Value>, other: &Map<String, Value>, keys: &str) -> Ordering {
    let mut orders = keys.split(',').map(|key| {
        let (key, is_backwards) = match key.strip_prefix('-') {
            Some(key) => (key, true),
            None => (key, false),
        };
        let order = match (at(one, key), at(other, key)) {
            (None, None) => Ordering::Equal,
            // What is missing comes last.
            (None, Some(_)) => return Ordering::Greater,
            (Some(_), None) => return Ordering::Less,
            (Some(one), Some(other)) => match (number(one), number(other)) {
                (Some(one), Some(other)) => one.total_cmp(&other),
                _ => text(one).cmp(&text(other)),
            },
        };
        if is_backwards { order.reverse() } else { order }
    });
    orders
        .find(|order| order.is_ne())
        .unwrap_or(Ordering::Equal)
}

fn page<T>(found: Vec<T>, parameters: &Pairs) -> Vec<T> {
    let number = |name: &str| values(parameters, name).next()?.parse::<usize>().ok();
    let (start, count) = match (number("_page"), number("_per_page")) {
        (None, None) => (
            number("_start").unwrap_or(0),
            number("_limit").unwrap_or(usize::MAX),
        ),
        (page, per_page) => {
            let count = per_page.unwrap_or(PER_PAGE);
            let before = page.unwrap_or(1).saturating_sub(1);
            (before.saturating_mul(count), count)
        }
    };
    found.into_iter().skip(start).take(count).collect()
}

fn at<'v>(object: &'v Map<String, Value>, path: &str) -> Option<&'v Value> {
    if let Some(value) = object.get(path) {
        return Some(value);
    }
    let (first, rest) = path.split_once('.')?;
    DottedPath::new(rest).find(object.get(first)?)
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.parse().ok(),
        _ => None,
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}
