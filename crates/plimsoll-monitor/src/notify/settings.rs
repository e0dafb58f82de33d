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

    pub(super) fn optional(&mut self, key: &'static str) -> Option<String> {
        self.table.text(key)
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

    /// A URL that must be there.
    pub(super) fn url(&mut self, key: &'static str) -> Option<Url> {
        let value = self.table.take_value(key);
        self.demand(key);
        let value = value?;
        web(&value, as_text(&value)?)
    }

    /// A URL that is a secret by itself.
    pub(super) fn secret_url(&mut self, key: &'static str) -> Option<Url> {
        let value = self.table.take_value(key);
        self.demand(key);
        let value = value?;
        if !value.is_table() {
            return web(&value, as_text(&value)?);
        }
        let mut table = value.table()?;
        let name = table.take_value("env");
        if name.is_none() {
            table.missing("env", "the name of a variable");
        }
        table.finish();
        let name = name?;
        let text = self.variable(&name)?;
        web(&name, &text)
    }

    /// A URL, or the vendor's.
    pub(super) fn url_or(&mut self, key: &'static str, default: &str) -> Option<Url> {
        match self.table.take_value(key) {
            Some(value) => web(&value, as_text(&value)?),
            None => Url::parse(default).ok(),
        }
    }

    pub(super) fn one_of(&mut self, key: &'static str, known: &[&str]) -> Option<String> {
        let value = self.table.take_value(key)?;
        let text = as_text(&value)?;
        if known.contains(&text) {
            Some(text.to_owned())
        } else {
            value.wrong(format!("`{text}` is not one of {}", known.join(", ")))
        }
    }

    pub(super) fn port(&mut self, key: &'static str) -> Option<u16> {
        let port = self.table.count(key, 1..=65_535)?;
        u16::try_from(port).ok()
    }

    /// A text that must be there and that `parse` understands.
    pub(super) fn checked<T>(
        &mut self,
        key: &'static str,
        parse: fn(&str) -> Option<T>,
    ) -> Option<T> {
        let value = self.table.take_value(key);
        self.demand(key);
        let value = value?;
        checked(&value, parse)
    }

    /// One or several of them.
    pub(super) fn list<T>(
        &mut self,
        key: &'static str,
        parse: fn(&str) -> Option<T>,
    ) -> Option<Vec<T>> {
        let value = self.table.take_value(key);
        self.demand(key);
        let value = value?;
        let values = value.elements();
        if values.is_empty() {
            self.table.missing(key, "the list is empty");
        }
        let parsed = values.iter().map(|value| checked(value, parse));
        parsed.collect::<Vec<_>>().into_iter().collect()
    }

    fn demand(&mut self, key: &'static str) {
        if !self.table.was_given(key) {
            self.table.missing(key, "it is needed here");
        }
    }

    fn revealed(&self, value: Value<'t>) -> Option<String> {
        if !value.is_table() {
            return Some(as_text(&value)?.to_owned());
        }
        let mut table = value.table()?;
        let name = table.take_value("env");
        if name.is_none() {
            table.missing("env", "the name of a variable");
        }
        table.finish();
        self.variable(&name?)
    }

    fn variable(&self, name: &Value<'_>) -> Option<String> {
        let text = as_text(name)?;
        match (self.environment)(text) {
            Some(found) if !found.is_empty() => Some(found),
            _ => name.wrong(format!("the environment has no variable `{text}`")),
        }
    }
}

fn checked<T>(value: &Value<'_>, parse: fn(&str) -> Option<T>) -> Option<T> {
    let text = as_text(value)?;
    match parse(text) {
        Some(parsed) => Some(parsed),
        None => value.wrong(format!("`{text}` is not understood")),
    }
}

fn web(value: &Value<'_>, text: &str) -> Option<Url> {
    match Url::parse(text) {
        Ok(url) if matches!(url.scheme(), "http" | "https") && url.has_host() => Some(url),
        _ => value.wrong("must be a URL that begins with `https://` or `http://`"),
    }
}
