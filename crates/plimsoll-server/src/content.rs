//! The content of a configuration as a tree of values, in the order of its file: to be shown, compared and changed.
//!
//! Compiling reads the text itself, with the places of errors. A text made of this tree means the same as the one it was
//! parsed from: order within tables is kept, since that of expressions and of header fields counts.

pub(crate) mod changes;

mod difference;

mod masking;

use std::str::FromStr as _;

use plimsoll_model::document::{toml_key, toml_string};
use serde_json::{Map, Number, Value};
use toml::de::{DeTable, DeValue};

pub use self::difference::Difference;

/// Everything that a configuration says.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ConfigContent(Map<String, Value>);

/// A text that is not TOML.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("this is not TOML: {0}")]
pub struct NotToml(String);

impl ConfigContent {
    /// The content of a text. Compiling reports errors of syntax; what can be understood nevertheless is kept.
    pub fn parse(text: &str) -> Self {
        let (root, _) = DeTable::parse_recoverable(text);
        Self(table(root.get_ref()))
    }

    /// The content of a text that has to be TOML.
    pub fn try_parse(text: &str) -> Result<Self, NotToml> {
        match DeTable::parse(text) {
            Ok(root) => Ok(Self(table(root.get_ref()))),
            Err(error) => Err(NotToml(error.message().to_owned())),
        }
    }

    /// The same as TOML: a table for each listener, route and upstream, with one line for each of its keys.
    pub fn to_toml(&self) -> String {
        let mut text = String::new();
        for (key, value) in self
            .0
            .iter()
            .filter(|(_, value)| !is_written_as_tables(value))
        {
            push_line(key, value, &mut text);
        }
        for (key, value) in self
            .0
            .iter()
            .filter(|(_, value)| is_written_as_tables(value))
        {
            push_tables(key, value, &mut text);
        }
        text
    }

    /// The same with a mask in place of each secret.
    #[must_use]
    pub fn masked(&self) -> Self {
        let mut masked = self.clone();
        for (key, value) in &mut masked.0 {
            masking::mask(key, value, false);
        }
        masked
    }

    /// The value of a key with a mask in place of each secret.
    fn masked_value(key: &str, value: &Value) -> Value {
        let mut masked = value.clone();
        masking::mask(key, &mut masked, false);
        masked
    }

    /// What `newer` has otherwise; secrets are masked.
    pub fn differences(&self, newer: &Self) -> Vec<Difference> {
        difference::differences(&self.0, &newer.0)
    }

    /// All of it as one table.
    pub(crate) fn into_value(self) -> Value {
        Value::Object(self.0)
    }

    /// The value at a key of the top.
    pub(crate) fn get(&self, key: &str) -> Option<&Value> {
        self.0.get(key)
    }
}

/// A value as TOML on one line.
pub(crate) fn inline(value: &Value) -> String {
    let mut text = String::new();
    push_inline(value, &mut text);
    text
}

fn table(entries: &DeTable<'_>) -> Map<String, Value> {
    let mut entries: Vec<_> = entries.iter().collect();
    // As they are written: the parser sorts them by their names.
    entries.sort_by_key(|(key, _)| key.span().start);
    let entries = entries.into_iter().map(|(key, entry)| {
        let key = key.get_ref().clone().into_owned();
        (key, value(entry.get_ref()))
    });
    entries.collect()
}

fn value(value: &DeValue<'_>) -> Value {
    match value {
        DeValue::String(text) => Value::String(text.to_string()),
        DeValue::Boolean(boolean) => Value::Bool(*boolean),
        DeValue::Integer(integer) => {
            let number = i64::from_str_radix(integer.as_str(), integer.radix());
            number.map_or_else(|_| Value::String(integer.to_string()), Value::from)
        }
        // No key of a configuration takes one that JSON does not have.
        DeValue::Float(float) => Number::from_str(float.as_str().trim_start_matches('+'))
            .map_or_else(|_| Value::String(float.to_string()), Value::Number),
        DeValue::Datetime(datetime) => Value::String(datetime.to_string()),
        DeValue::Array(array) => array
            .iter()
            .map(|item| self::value(item.get_ref()))
            .collect(),
        DeValue::Table(entries) => Value::Object(table(entries)),
    }
}

fn is_written_as_tables(value: &Value) -> bool {
    match value {
        Value::Object(_) => true,
        Value::Array(items) => !items.is_empty() && items.iter().all(Value::is_object),
        _ => false,
    }
}

fn push_tables(key: &str, value: &Value, text: &mut String) {
    let key = toml_key(key);
    let mut push = |header: String, table: &Map<String, Value>| {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&header);
        text.push('\n');
        for (key, value) in table {
            push_line(key, value, text);
        }
    };
    match value {
        Value::Object(table) if !table.is_empty() && table.values().all(Value::is_object) => {
            for (name, value) in table {
                if let Value::Object(table) = value {
                    push(format!("[{key}.{}]", toml_key(name)), table);
                }
            }
        }
        Value::Object(table) => push(format!("[{key}]"), table),
        Value::Array(items) => {
            for item in items.iter().filter_map(Value::as_object) {
                push(format!("[[{key}]]"), item);
            }
        }
        _ => {}
    }
}

fn push_line(key: &str, value: &Value, text: &mut String) {
    text.push_str(&toml_key(key));
    text.push_str(" = ");
    push_inline(value, text);
    text.push('\n');
}

fn push_inline(value: &Value, text: &mut String) {
    match value {
        // There is none: values of JSON that have one are rejected.
        Value::Null => text.push_str("\"\""),
        Value::Bool(boolean) => text.push_str(if *boolean { "true" } else { "false" }),
        Value::Number(number) => text.push_str(number.as_str()),
        Value::String(string) => text.push_str(&toml_string(string)),
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    text.push_str(", ");
                }
                push_inline(item, text);
            }
            text.push(']');
        }
        Value::Object(table) if table.is_empty() => text.push_str("{}"),
        Value::Object(table) => {
            for (index, (key, value)) in table.iter().enumerate() {
                text.push_str(if index > 0 { ", " } else { "{ " });
                text.push_str(&toml_key(key));
                text.push_str(" = ");
                push_inline(value, text);
            }
            text.push_str(" }");
        }
    }
}

#[cfg(test)]
mod tests;
