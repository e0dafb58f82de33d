//! Other tools' monitors as a file of ours: text in, text out.

mod kuma;

mod statuspage;

mod blackbox;

use std::fmt::Write as _;

use serde_json::Value;

/// A file of ours, and what could not be taken over.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Imported {
    /// TOML.
    pub text: String,
    /// Differences and missing parts of each monitor.
    pub remarks: Vec<String>,
}

/// The kinds of imported files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The JSON backup of Uptime Kuma.
    UptimeKuma,
    /// `summary.json` or `components.json` of Statuspage.
    Statuspage,
    /// Targets of `blackbox_exporter`, as service discovery of Prometheus by files has them (JSON).
    Blackbox,
}

/// Why a file cannot be imported.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ImportError {
    /// It is not JSON.
    #[error("line {line}: is not JSON: {reason}")]
    Json {
        /// Counted from 1.
        line: usize,
        /// Why.
        reason: String,
    },
    /// It is JSON of something else.
    #[error(
        "is not a known file: a backup of Uptime Kuma has `monitorList`, Statuspage has `components`, and targets of Prometheus are a list of objects with `targets`"
    )]
    Unknown,
}

/// Recognises a file and makes one of ours of it.
pub fn import(text: &str) -> Result<(Source, Imported), ImportError> {
    let json: Value = serde_json::from_str(text).map_err(|error| ImportError::Json {
        line: error.line(),
        reason: error.to_string(),
    })?;
    if let Some(monitors) = json.get("monitorList").and_then(Value::as_array) {
        return Ok((Source::UptimeKuma, kuma::import(monitors)));
    }
    if let Some(components) = json.get("components").and_then(Value::as_array) {
        return Ok((Source::Statuspage, statuspage::import(components)));
    }
    match json.as_array() {
        Some(groups)
            if groups.iter().all(|group| group.get("targets").is_some()) && !groups.is_empty() =>
        {
            Ok((Source::Blackbox, blackbox::import(groups)))
        }
        _ => Err(ImportError::Unknown),
    }
}

impl Imported {
    /// Begins a monitor; its name is made unique in its group.
    fn begin(&mut self, name: &str, group: &str, taken: &mut Vec<String>) -> String {
        let key = |name: &str| crate::config::key_of(group, name);
        let mut unique = name.trim().to_owned();
        let mut number = 2;
        while taken.contains(&key(&unique)) {
            unique = format!("{} {number}", name.trim());
            number += 1;
        }
        taken.push(key(&unique));
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.line(format_args!("[[monitor]]"));
        self.pair("name", &quoted(&unique));
        if !group.is_empty() {
            self.pair("group", &quoted(group));
        }
        unique
    }

    fn pair(&mut self, key: &str, value: &str) {
        self.line(format_args!("{key} = {value}"));
    }

    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        writeln!(self.text, "{line}").expect("text can be written to memory");
    }

    fn remark(&mut self, name: &str, what: impl std::fmt::Display) {
        self.remarks.push(format!("{name}: {what}"));
    }
}

/// A basic string of TOML: one of JSON, but for the character of U+007F, which TOML wants escaped (TOML 1.0, "String").
fn quoted(text: &str) -> String {
    let json = Value::String(text.to_owned()).to_string();
    json.replace('\u{7f}', "\\u007F")
}

/// An inline table.
fn table(pairs: &[(&str, String)]) -> String {
    let pairs: Vec<_> = pairs
        .iter()
        .map(|(key, value)| format!("{key} = {value}"))
        .collect();
    format!("{{ {} }}", pairs.join(", "))
}

/// The text of a key, unless it is empty.
fn text_of<'v>(value: &'v Value, key: &str) -> Option<&'v str> {
    value
        .get(key)?
        .as_str()
        .map(str::trim)
        .filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests;
