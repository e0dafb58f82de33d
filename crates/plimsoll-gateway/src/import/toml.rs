//! Tables and values of TOML as text.

use std::fmt::Write as _;

use plimsoll_model::document::{toml_key, toml_string};

/// Keys and values in their order; values are TOML already.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Keys(Vec<(String, String)>);

impl Keys {
    /// Sets a key, in place of an earlier value.
    pub(super) fn set(&mut self, key: &str, value: impl Into<String>) {
        let value = value.into();
        match self.0.iter_mut().find(|(known, _)| known == key) {
            Some((_, known)) => *known = value,
            None => self.0.push((key.to_owned(), value)),
        }
    }

    pub(super) fn text(&mut self, key: &str, value: &str) {
        self.set(key, toml_string(value));
    }

    pub(super) fn remove(&mut self, key: &str) {
        self.0.retain(|(known, _)| known != key);
    }

    pub(super) fn get(&self, key: &str) -> Option<&str> {
        let found = self.0.iter().find(|(known, _)| known == key);
        found.map(|(_, value)| value.as_str())
    }

    /// All keys with their values.
    pub(super) fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        let pairs = self.0.iter();
        pairs.map(|(key, value)| (key.as_str(), value.as_str()))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes over the keys that are not there yet.
    pub(super) fn inherit(&mut self, outer: &Self) {
        for (key, value) in &outer.0 {
            if self.get(key).is_none() {
                self.set(key, value.clone());
            }
        }
    }

    /// As an inline table.
    pub(super) fn inline(&self) -> String {
        let pairs: Vec<_> = self
            .0
            .iter()
            .map(|(key, value)| format!("{} = {value}", toml_key(key)))
            .collect();
        format!("{{ {} }}", pairs.join(", "))
    }

    /// A line for each.
    pub(super) fn lines(&self, out: &mut String) {
        for (key, value) in &self.0 {
            writeln!(out, "{} = {value}", toml_key(key)).ok();
        }
    }
}
