//! The values that steps of a suite of Gatus store and use: `[CONTEXT].NAME`.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::probe::gatus_condition::shown;
use crate::probe::known_secrets::KnownSecrets;

/// The values of a suite, which its steps store and use.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SuiteContext(Map<String, Value>);

impl SuiteContext {
    /// Those that a file begins with.
    pub fn new(values: Map<String, Value>) -> Self {
        Self(values)
    }

    /// Sets the value of a path such as `user.id`; what is in its way gives way.
    pub(super) fn set(&mut self, path: &str, value: Value) {
        let mut parts = path.split('.');
        let last = parts.next_back().unwrap_or_default();
        let mut entries = &mut self.0;
        for part in parts {
            let next = entries.entry(part).or_insert(Value::Null);
            if !next.is_object() {
                *next = Value::Object(Map::new());
            }
            let Value::Object(inner) = next else {
                return;
            };
            entries = inner;
        }
        entries.insert(last.to_owned(), value);
    }

    /// With credentials hidden, to be shown.
    pub(super) fn shown(&self, secrets: &KnownSecrets) -> Self {
        fn hide(value: &mut Value, secrets: &KnownSecrets) {
            match value {
                Value::String(text) => *text = secrets.hide(text).into_owned(),
                Value::Array(items) => items.iter_mut().for_each(|item| hide(item, secrets)),
                Value::Object(entries) => {
                    entries.values_mut().for_each(|item| hide(item, secrets));
                }
                Value::Null | Value::Bool(_) | Value::Number(_) => {}
            }
        }
        let mut shown = Value::Object(self.0.clone());
        hide(&mut shown, secrets);
        match shown {
            Value::Object(entries) => Self(entries),
            _ => Self::default(),
        }
    }

    pub(super) fn get(&self, path: &str) -> Option<&Value> {
        let mut parts = path.split('.');
        let first = self.0.get(parts.next()?)?;
        parts.try_fold(first, |value, part| value.as_object()?.get(part))
    }

    /// A text with its places such as `[CONTEXT].user.id` filled.
    ///
    /// - `missing`: receives the paths that have no value.
    pub(super) fn fill(&self, text: &str, missing: &mut BTreeSet<String>) -> String {
        let mut filled = String::new();
        let mut rest = text;
        while let Some((before, behind)) = rest.split_once(PLACE) {
            let is_path = |letter: char| letter.is_ascii_alphanumeric() || "_.-".contains(letter);
            let end = behind.find(|letter| !is_path(letter));
            let (path, behind) = behind.split_at(end.unwrap_or(behind.len()));
            filled.push_str(before);
            if let Some(value) = self.get(path) {
                filled.push_str(&shown(value));
            } else {
                filled.extend([PLACE, path]);
                if !path.is_empty() {
                    missing.insert(path.to_owned());
                }
            }
            rest = behind;
        }
        filled + rest
    }
}

/// Before the path of a value.
const PLACE: &str = "[CONTEXT].";

/// Whether a text has places for values of a suite.
pub(crate) fn has_places(text: &str) -> bool {
    text.contains(PLACE)
}
