//! Differences between two configurations, as paths with a value before and after.

use std::fmt;

use plimsoll_model::document::toml_key;
use serde_json::{Map, Value};

use super::{inline, masking};

/// One value that is different; secrets are masked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The path of the key, such as `upstream.api.servers[2]`; items of lists are counted from 1.
    pub path: String,
    /// As TOML on one line; absent if there was none.
    pub before: Option<String>,
    /// The same afterwards.
    pub after: Option<String>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            path,
            before,
            after,
        } = self;
        match (before, after) {
            (Some(before), Some(after)) => write!(f, "~ {path}: {before} -> {after}"),
            (Some(before), None) => write!(f, "- {path}: {before}"),
            (None, Some(after)) => write!(f, "+ {path}: {after}"),
            (None, None) => write!(f, "~ {path}"),
        }
    }
}

/// What is different between two configurations, in the order of the newer one.
pub(super) fn differences(
    older: &Map<String, Value>,
    newer: &Map<String, Value>,
) -> Vec<Difference> {
    let mut found = Vec::new();
    tables(&Place::default(), older, newer, &mut found);
    found
}

/// Where two values stand.
#[derive(Debug, Clone, Default)]
struct Place {
    path: String,
    /// The last key, without an index.
    key: String,
    /// Whether the table around is secret.
    is_within_secret: bool,
    /// Whether what is here is, too.
    is_secret: bool,
    depth: usize,
}

impl Place {
    fn at(&self, key: &str, value: &Value) -> Self {
        let dot = if self.path.is_empty() { "" } else { "." };
        Self {
            path: format!("{}{dot}{}", self.path, toml_key(key)),
            key: key.to_owned(),
            is_within_secret: self.is_secret,
            is_secret: masking::is_secret_value(key, value, self.is_secret),
            depth: self.depth + 1,
        }
    }

    /// - `index`: counted from 0.
    fn item(&self, index: usize) -> Self {
        Self {
            path: format!("{}[{}]", self.path, index + 1),
            ..self.clone()
        }
    }

    fn shown(&self, value: &Value) -> String {
        let mut shown = value.clone();
        masking::mask(&self.key, &mut shown, self.is_within_secret);
        inline(&shown)
    }

    fn difference(&self, older: Option<&Value>, newer: Option<&Value>) -> Difference {
        Difference {
            path: self.path.clone(),
            before: older.map(|it| self.shown(it)),
            after: newer.map(|it| self.shown(it)),
        }
    }
}

fn values(place: &Place, older: &Value, newer: &Value, found: &mut Vec<Difference>) {
    match (older, newer) {
        (Value::Object(older), Value::Object(newer)) => tables(place, older, newer, found),
        (Value::Array(older), Value::Array(newer)) => lists(place, older, newer, found),
        (older, newer) if older == newer => {}
        (older, newer) => found.push(place.difference(Some(older), Some(newer))),
    }
}

fn tables(
    place: &Place,
    older: &Map<String, Value>,
    newer: &Map<String, Value>,
    found: &mut Vec<Difference>,
) {
    for (key, value) in older.iter().filter(|(key, _)| !newer.contains_key(*key)) {
        found.push(place.at(key, value).difference(Some(value), None));
    }
    for (key, value) in newer {
        let place = place.at(key, value);
        match older.get(key) {
            Some(before) => values(&place, before, value, found),
            None => found.push(place.difference(None, Some(value))),
        }
    }
    let common = |one: &Map<String, Value>, other: &Map<String, Value>| {
        let keys = one.keys().filter(|key| other.contains_key(*key));
        keys.map(|key| toml_key(key)).collect::<Vec<_>>()
    };
    let (before, after) = (common(older, newer), common(newer, older));
    // Rows of maps and header fields are tried and sent in their order; that of keys of the file does not matter.
    if place.depth > 1 && before != after {
        found.push(order(place, &before, &after));
    }
}

fn order(place: &Place, before: &[String], after: &[String]) -> Difference {
    Difference {
        path: place.path.clone(),
        before: Some(format!("in the order {}", before.join(", "))),
        after: Some(format!("in the order {}", after.join(", "))),
    }
}

/// What names an item of a list: a route or listener, a server.
fn name(item: &Value) -> Option<&str> {
    match item {
        Value::String(text) => Some(text),
        Value::Object(table) => {
            let mut keys = ["name", "url", "address"].iter();
            keys.find_map(|key| table.get(*key)?.as_str())
        }
        _ => None,
    }
}

fn lists(place: &Place, older: &[Value], newer: &[Value], found: &mut Vec<Difference>) {
    if older == newer {
        // Tables are equal whatever the order of their keys is.
        for (index, (before, after)) in older.iter().zip(newer).enumerate() {
            values(&place.item(index), before, after, found);
        }
        return;
    }
    let mut left: Vec<_> = older.iter().enumerate().map(Some).collect();
    let mut take = |is_same: &dyn Fn(&Value) -> bool| {
        let slot = left
            .iter_mut()
            .find(|slot| slot.is_some_and(|(_, item)| is_same(item)));
        slot.and_then(Option::take)
    };
    // First what is the same, then what has the same name.
    let mut pairs: Vec<_> = newer
        .iter()
        .map(|item| take(&|it: &Value| it == item))
        .collect();
    for (pair, item) in pairs.iter_mut().zip(newer) {
        if pair.is_none() && name(item).is_some() {
            *pair = take(&|it: &Value| name(it) == name(item));
        }
    }
    let left = left.into_iter().flatten();
    let (named, mut unnamed): (Vec<_>, Vec<_>) = left.partition(|(_, item)| name(item).is_some());
    let mut added: Vec<_> = pairs
        .iter_mut()
        .zip(newer)
        .filter(|(pair, item)| pair.is_none() && name(item).is_none())
        .collect();
    // As many as were removed, and without names: each is taken for one that was changed.
    if added.len() == unnamed.len() {
        for ((pair, _), before) in added.iter_mut().zip(unnamed.drain(..)) {
            **pair = Some(before);
        }
    }
    for (index, item) in named.into_iter().chain(unnamed) {
        found.push(place.item(index).difference(Some(item), None));
    }
    for (index, (pair, item)) in pairs.iter().zip(newer).enumerate() {
        let place = place.item(index);
        match pair {
            Some((_, before)) => values(&place, before, item, found),
            None => found.push(place.difference(None, Some(item))),
        }
    }
    let kept: Vec<_> = pairs.iter().flatten().map(|(index, _)| index + 1).collect();
    let mut sorted = kept.clone();
    sorted.sort_unstable();
    if kept != sorted {
        let shown = |indices: &[usize]| indices.iter().map(usize::to_string).collect::<Vec<_>>();
        found.push(order(place, &shown(&sorted), &shown(&kept)));
    }
}
