//! Other tools' monitors as a file of ours.

mod kuma;

mod kuma_notifications;

mod kuma_store;

mod kuma_targets;

mod kuma_history;

mod statuspage;

mod hosted;

mod uptimerobot;

mod better_stack;

mod blackbox;

use std::fmt::Write as _;
use std::io::Read as _;
use std::path::Path;

use plimsoll_model::document::toml_string;
use serde_json::Value;

use crate::yaml;

pub use crate::config::import::kuma_history::{History, HistoryError, import_history};

/// A file of ours, and what could not be taken over.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Imported {
    /// TOML.
    pub text: String,
    /// Differences and missing parts of each monitor.
    pub remarks: Vec<String>,
    /// The numbers of monitors there, and their keys here.
    numbers: Vec<(i64, String)>,
}

/// The kinds of imported files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The JSON backup of Uptime Kuma, or its SQLite store.
    UptimeKuma,
    /// `summary.json` or `components.json` of Statuspage.
    Statuspage,
    /// Monitors of `UptimeRobot`, as its API returns them.
    UptimeRobot,
    /// Monitors or heartbeats of Better Stack, as its API returns them.
    BetterStack,
    /// Targets of `blackbox_exporter`, as service discovery of Prometheus by files has them (JSON or YAML).
    Blackbox,
}

/// Why a file cannot be imported.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ImportError {
    /// It cannot be read.
    #[error("cannot be read: {0}")]
    Read(String),
    /// It is neither JSON nor YAML.
    #[error("line {line}: is not JSON: {reason}")]
    Json {
        /// Counted from 1.
        line: usize,
        /// Why.
        reason: String,
    },
    /// It has modules of `blackbox_exporter`, which have no targets.
    #[error(
        "has modules of blackbox_exporter, which check nothing by themselves; write `probe_modules = \"blackbox.yml\"` in the configuration, or import the targets of Prometheus"
    )]
    Modules,
    /// It is JSON of something else.
    #[error(
        "is not a known file: a backup of Uptime Kuma has `monitorList` and its store is `kuma.db`, Statuspage has `components`, UptimeRobot `monitors` with `friendly_name`, Better Stack `data` with `attributes`, and targets of Prometheus are a list of objects with `targets`"
    )]
    Unknown,
}

/// Recognises a file of text or a store of Uptime Kuma, and makes a file of ours of it.
pub fn import_file(path: &Path) -> Result<(Source, Imported), ImportError> {
    /// The first bytes of every database of SQLite.
    const SQLITE: &[u8; 16] = b"SQLite format 3\0";

    let unreadable = |error: std::io::Error| ImportError::Read(error.to_string());
    let mut file = std::fs::File::open(path).map_err(unreadable)?;
    let mut first = Vec::new();
    file.by_ref()
        .take(SQLITE.len() as u64)
        .read_to_end(&mut first)
        .map_err(unreadable)?;
    if first == SQLITE {
        let backup = kuma_store::read(path).map_err(|error| {
            ImportError::Read(format!("it is no store of Uptime Kuma: {error}"))
        })?;
        return Ok((Source::UptimeKuma, kuma::import(&backup)));
    }
    let text = std::fs::read(path).map_err(unreadable)?;
    import(&String::from_utf8_lossy(&text))
}

/// Recognises a file and makes one of ours of it.
pub fn import(text: &str) -> Result<(Source, Imported), ImportError> {
    let json: Value = match serde_json::from_str(text) {
        Ok(json) => json,
        Err(error) => {
            let wrong = || ImportError::Json {
                line: error.line(),
                reason: error.to_string(),
            };
            let is_json = text.trim_start().starts_with(['{', '[']);
            if is_json {
                return Err(wrong());
            }
            // Targets of Prometheus are written in YAML too.
            let node = yaml::parse(text).map_err(|_| wrong())?;
            node.to_json()
        }
    };
    if json.get("modules").is_some_and(Value::is_object) {
        return Err(ImportError::Modules);
    }
    if json.get("monitorList").is_some_and(Value::is_array) {
        return Ok((Source::UptimeKuma, kuma::import(&json)));
    }
    let list = |key: &str| json.get(key).and_then(Value::as_array);
    if let Some(monitors) = list("monitors")
        .or_else(|| list("data"))
        .or(json.as_array())
    {
        if uptimerobot::is_list(monitors) {
            return Ok((Source::UptimeRobot, uptimerobot::import(monitors)));
        }
        if better_stack::is_list(monitors) {
            return Ok((Source::BetterStack, better_stack::import(monitors)));
        }
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
        self.pair("name", &toml_string(&unique));
        if !group.is_empty() {
            self.pair("group", &toml_string(group));
        }
        unique
    }

    fn pair(&mut self, key: &str, value: &str) {
        self.line(format_args!("{key} = {value}"));
    }

    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        writeln!(self.text, "{line}").expect("text can be written to memory");
    }

    /// A line of a comment for each of a text.
    fn comment(&mut self, text: &str) {
        for line in text.lines() {
            let line: String = line.chars().filter(|c| !c.is_control()).collect();
            self.line(format_args!("# {}", line.trim()));
        }
    }

    fn remark(&mut self, name: &str, what: impl std::fmt::Display) {
        self.remarks.push(format!("{name}: {what}"));
    }
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
