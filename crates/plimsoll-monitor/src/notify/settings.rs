//! The table of a channel: texts, URLs and secrets, each checked.

use plimsoll_model::Secret;
use plimsoll_model::document::{Table, Value, as_text};
use url::Url;

/// A table whose secrets may come from the environment.
pub(crate) struct Settings<'t> {
    pub(crate) table: Table<'t>,
    environment: &'t dyn Fn(&str) -> Option<String>,
}

impl<'t> Settings<'t> {
    pub(crate) fn new(table: Table<'t>, environment: &'t dyn Fn(&str) -> Option<String>) -> Self {
        Self { table, environment }
    }

    /// A text that must be there.
    pub(crate) fn text(&mut self, key: &'static str) -> Option<String> {
        let text = self.table.text(key);
        self.demand(key);
        text
    }

    /// Several secrets, or none.
    pub(crate) fn secrets(&mut self, key: &'static str) -> Vec<Secret> {
        let values = self
            .table
            .take_value(key)
            .map(Value::elements)
            .unwrap_or_default();
        let revealed = values.into_iter().map(|value| self.revealed(value));
        revealed.flatten().map(Secret::new).collect()
    }

    /// A secret that must be there: a text, or `{ env = "NAME" }`.
    pub(crate) fn secret(&mut self, key: &'static str) -> Option<Secret> {
        let secret = self.optional_secret(key);
        self.demand(key);
        secret
    }

    pub(crate) fn optional_secret(&mut self, key: &'static str) -> Option<Secret> {
        let value = self.table.take_value(key)?;
        self.revealed(value).map(Secret::new)
    }

    /// A URL that is a secret by itself: a text, or `{ env = "NAME" }`.
    pub(super) fn web_of(&self, value: Value<'t>) -> Option<Url> {
        if !value.is_table() {
            return web(&value, as_text(&value)?);
        }
        let name = name_of_variable(value)?;
        let text = self.variable(&name)?;
        web(&name, &text)
    }

    fn demand(&mut self, key: &'static str) {
        if !self.table.was_given(key) {
            self.table.missing(key, "it is needed here");
        }
    }

    /// The text of a secret: itself, or that of the variable which it names.
    pub(super) fn revealed(&self, value: Value<'t>) -> Option<String> {
        if !value.is_table() {
            return Some(as_text(&value)?.to_owned());
        }
        self.variable(&name_of_variable(value)?)
    }

    fn variable(&self, name: &Value<'_>) -> Option<String> {
        let text = as_text(name)?;
        match (self.environment)(text) {
            Some(found) if !found.is_empty() => Some(found),
            _ => name.wrong(format!("the environment has no variable `{text}`")),
        }
    }
}

fn name_of_variable(value: Value<'_>) -> Option<Value<'_>> {
    let mut table = value.table()?;
    let name = table.take_value("env");
    if name.is_none() {
        table.missing("env", "the name of a variable");
    }
    table.finish();
    name
}

pub(super) fn web(value: &Value<'_>, text: &str) -> Option<Url> {
    match Url::parse(text) {
        Ok(url) if matches!(url.scheme(), "http" | "https") && url.has_host() => Some(url),
        _ => value.wrong("must be a URL that begins with `https://` or `http://`"),
    }
}
