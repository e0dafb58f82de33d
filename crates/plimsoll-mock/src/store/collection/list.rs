//! Lists: filtered, sorted, and one page of them.

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

use http::header::HeaderValue;
use regex::{Regex, RegexBuilder};
use serde_json::Value;

use crate::request::{Pairs, RequestView, values};
use crate::rules::condition::json::DottedPath;

/// Objects of a page without `_per_page`, as in json-server.
const PER_PAGE: usize = 10;

/// How a value is compared, by what stands behind its name: as json-server 0.17 has it and, behind a colon, version 1.
const COMPARISONS: [(&str, Comparison); 16] = [
    ("_ne", Comparison::NotEqual),
    ("_gte", Comparison::AtLeast),
    ("_gt", Comparison::Above),
    ("_lte", Comparison::AtMost),
    ("_lt", Comparison::Below),
    ("_like", Comparison::Like),
    (":eq", Comparison::Equal),
    (":ne", Comparison::NotEqual),
    (":gte", Comparison::AtLeast),
    (":gt", Comparison::Above),
    (":lte", Comparison::AtMost),
    (":lt", Comparison::Below),
    (":in", Comparison::OneOf),
    (":contains", Comparison::Contains),
    (":startsWith", Comparison::StartsWith),
    (":endsWith", Comparison::EndsWith),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Equal,
    NotEqual,
    AtLeast,
    Above,
    AtMost,
    Below,
    Like,
    OneOf,
    Contains,
    StartsWith,
    EndsWith,
}

/// One page of a list.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) objects: Vec<Arc<Value>>,
    /// Number of objects on all pages.
    pub(super) total: usize,
    /// Its number and the number of the last one, if the request has pages.
    numbers: Option<(usize, usize)>,
}

/// What is wrong with the parameters of a list.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum ListError {
    #[error("`_order` is asc or desc, not {0:?}")]
    Order(String),
    #[error("`{name}` must be a number, not {text:?}")]
    NotANumber { name: &'static str, text: String },
    #[error("`{0}` begins at 1")]
    Zero(&'static str),
}

/// The objects that the parameters ask for; fails with what is wrong with them.
pub(super) fn page_of(all: &[Arc<Value>], parameters: &Pairs) -> Result<Page, ListError> {
    let filters = Filters::from_parameters(parameters);
    let mut found: Vec<&Arc<Value>> = all.iter().filter(|it| filters.accept(it)).collect();
    let keys = sort_keys(parameters)?;
    if !keys.is_empty() {
        found.sort_by(|one, other| order(one, other, &keys));
    }
    let total = found.len();
    let (range, numbers) = range(total, parameters)?;
    let objects = found.into_iter().skip(range.start).take(range.len());
    Ok(Page {
        objects: objects.cloned().collect(),
        total,
        numbers,
    })
}

impl Page {
    /// Links to the other pages (RFC 8288).
    pub(super) fn link(&self, request: &RequestView<'_>) -> Option<HeaderValue> {
        let (page, last) = self.numbers?;
        let others: Vec<String> = request
            .query
            .unwrap_or_default()
            .split('&')
            .filter(|pair| !pair.is_empty() && pair.split('=').next() != Some("_page"))
            .map(|pair| format!("&{pair}"))
            .collect();
        let others = others.concat();
        let scheme = if request.is_tls { "https" } else { "http" };
        let base = format!("{scheme}://{}{}", request.authority, request.target_path);
        let pages = [
            ("first", Some(1)),
            ("prev", page.checked_sub(1).filter(|it| *it > 0)),
            ("next", page.checked_add(1).filter(|it| *it <= last)),
            ("last", Some(last)),
        ];
        let links: Vec<String> = pages
            .into_iter()
            .filter_map(|(name, page)| {
                let page = page?;
                Some(format!("<{base}?_page={page}{others}>; rel=\"{name}\""))
            })
            .collect();
        HeaderValue::from_str(&links.join(", ")).ok()
    }
}

/// Conditions on objects: of several values for one key, one must be equal.
struct Filters<'p> {
    by_name: Vec<(&'p str, Vec<Comparand<'p>>)>,
    search: Vec<String>,
}

/// A value to compare with.
struct Comparand<'p> {
    text: &'p str,
    number: Option<f64>,
    /// Of `_like`, if it is a regular expression.
    pattern: Option<Regex>,
}

impl<'p> Filters<'p> {
    fn from_parameters(parameters: &'p Pairs) -> Self {
        let mut filters = Self {
            by_name: Vec::new(),
            search: Vec::new(),
        };
        for (name, value) in parameters {
            if name == "_q" || name == "q" {
                filters.search.push(value.to_lowercase());
                continue;
            }
            if name.starts_with('_') {
                continue;
            }
            let pattern = name.ends_with("_like").then(|| {
                let mut builder = RegexBuilder::new(value);
                builder
                    .case_insensitive(true)
                    .size_limit(1 << 16)
                    .build()
                    .ok()
            });
            let wanted = Comparand {
                text: value,
                number: value.parse().ok(),
                pattern: pattern.flatten(),
            };
            match filters.by_name.iter_mut().find(|(known, _)| known == name) {
                Some((_, all)) => all.push(wanted),
                None => filters.by_name.push((name, vec![wanted])),
            }
        }
        filters
    }

    fn accept(&self, row: &Value) -> bool {
        self.search.iter().all(|wanted| contains(row, wanted))
            && self
                .by_name
                .iter()
                .all(|(name, wanted)| is_accepted(row, name, wanted))
    }
}

/// Whether a value, or one within it, has a text; as in json-server, what is false, 0 or nothing has none.
fn contains(value: &Value, wanted: &str) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::Number(number) if number.as_f64() == Some(0.0) => false,
        Value::Array(all) => all.iter().any(|value| contains(value, wanted)),
        Value::Object(all) => all.values().any(|value| contains(value, wanted)),
        value => text(value).to_lowercase().contains(wanted),
    }
}

fn is_accepted(object: &Value, name: &str, wanted: &[Comparand<'_>]) -> bool {
    let suffixed = COMPARISONS
        .iter()
        .find_map(|(suffix, comparison)| Some((name.strip_suffix(suffix)?, *comparison)));
    // A key may be called so itself.
    let (key, comparison) = match suffixed {
        Some(suffixed) if matches!(at(object, name), None | Some(Value::Null)) => suffixed,
        _ => (name, Comparison::Equal),
    };
    let Some(value) = at(object, key).filter(|value| !value.is_null()) else {
        // In json-server 0.17 (`_ne`) what has no value is not different either; in version 1 (`:ne`) it is.
        return comparison == Comparison::NotEqual && name.ends_with(":ne");
    };
    let mut met = wanted
        .iter()
        .map(|wanted| is_met(value, comparison, wanted));
    if comparison == Comparison::NotEqual {
        met.all(|it| it)
    } else {
        met.any(|it| it)
    }
}

fn is_met(value: &Value, comparison: Comparison, wanted: &Comparand<'_>) -> bool {
    let is_equal = |wanted: &str| match (value, wanted.parse::<f64>()) {
        // 1 and 1.0 are one number.
        (Value::Number(number), Ok(wanted)) => number.as_f64() == Some(wanted),
        _ => text(value) == wanted,
    };
    // Nothing is neither above nor below anything, and what is no number is not compared with numbers.
    let order = || match (value, wanted.number) {
        (Value::Null, _) => None,
        (value, Some(wanted)) => number(value)?.partial_cmp(&wanted),
        (Value::String(value), None) => Some(value.as_str().cmp(wanted.text)),
        _ => None,
    };
    match comparison {
        Comparison::Equal => is_equal(wanted.text),
        Comparison::NotEqual => !is_equal(wanted.text),
        Comparison::OneOf => wanted.text.split(',').any(is_equal),
        Comparison::Contains => text(value).contains(wanted.text),
        Comparison::StartsWith => text(value).starts_with(wanted.text),
        Comparison::EndsWith => text(value).ends_with(wanted.text),
        Comparison::Like => match &wanted.pattern {
            Some(pattern) => pattern.is_match(&text(value)),
            None => text(value).contains(wanted.text),
        },
        Comparison::AtLeast => order().is_some_and(Ordering::is_ge),
        Comparison::Above => order().is_some_and(Ordering::is_gt),
        Comparison::AtMost => order().is_some_and(Ordering::is_le),
        Comparison::Below => order().is_some_and(Ordering::is_lt),
    }
}

/// The keys of `_sort`, each with whether it is backwards: by a minus before it, or by `_order` at the same place.
fn sort_keys(parameters: &Pairs) -> Result<Vec<(&str, bool)>, ListError> {
    let Some(keys) = values(parameters, "_sort").next() else {
        return Ok(Vec::new());
    };
    let mut orders = values(parameters, "_order").flat_map(|orders| orders.split(','));
    keys.split(',')
        .filter(|key| !key.is_empty())
        .map(|key| {
            let is_descending = match orders.next() {
                None => false,
                Some(order) if order.eq_ignore_ascii_case("asc") => false,
                Some(order) if order.eq_ignore_ascii_case("desc") => true,
                Some(other) => return Err(ListError::Order(other.to_owned())),
            };
            Ok(match key.strip_prefix('-') {
                Some(key) => (key, true),
                None => (key, is_descending),
            })
        })
        .collect()
}

fn order(one: &Value, other: &Value, keys: &[(&str, bool)]) -> Ordering {
    let mut orders = keys.iter().map(|(key, is_backwards)| {
        let value = |row| at(row, key).filter(|value| !value.is_null());
        let order = match (value(one), value(other)) {
            (None, None) => Ordering::Equal,
            // Missing values come last, backwards too.
            (None, Some(_)) => return Ordering::Greater,
            (Some(_), None) => return Ordering::Less,
            // A text is one, whatever it holds: else 10, "9" and "a" would have no order.
            (Some(one), Some(other)) => match (one.as_f64(), other.as_f64()) {
                (Some(one), Some(other)) => one.total_cmp(&other),
                // Numbers come before texts, so that the order is one.
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (None, None) => text(one).cmp(&text(other)),
            },
        };
        if *is_backwards {
            order.reverse()
        } else {
            order
        }
    });
    orders
        .find(|order| order.is_ne())
        .unwrap_or(Ordering::Equal)
}

/// The numbers of a page and of the last one.
type PageNumbers = Option<(usize, usize)>;

/// The range of objects that the request selects, and its page.
fn range(total: usize, parameters: &Pairs) -> Result<(Range<usize>, PageNumbers), ListError> {
    let number = |name: &'static str| match values(parameters, name).next() {
        None => Ok(None),
        Some(text) => match text.parse::<usize>() {
            Ok(number) => Ok(Some(number)),
            // More digits than fit: more than there is.
            Err(_) if !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit()) => {
                Ok(Some(usize::MAX))
            }
            Err(_) => Err(ListError::NotANumber {
                name,
                text: text.to_owned(),
            }),
        },
    };
    let limit = number("_limit")?;
    let per_page = number("_per_page")?.or(limit);
    if let Some(page) = number("_page")?.or(number("_per_page")?.map(|_| 1)) {
        let count = per_page.unwrap_or(PER_PAGE);
        if page == 0 || count == 0 {
            let name = if page == 0 { "_page" } else { "_per_page" };
            return Err(ListError::Zero(name));
        }
        let start = (page - 1).saturating_mul(count).min(total);
        let end = start.saturating_add(count).min(total);
        let last = total.div_ceil(count).max(1);
        return Ok((start..end, Some((page, last))));
    }
    let start = number("_start")?.unwrap_or(0).min(total);
    let end = match (number("_end")?, limit) {
        (Some(end), _) => end.min(total),
        (None, limit) => start.saturating_add(limit.unwrap_or(total)).min(total),
    };
    Ok((start..end.max(start), None))
}

fn at<'v>(object: &'v Value, path: &str) -> Option<&'v Value> {
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
