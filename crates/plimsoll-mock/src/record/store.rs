//! The folder of a recording: `apimock.toml`, its rules, and contents that are too long for these.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::{KeptExchange, RecorderError};
use crate::import::body;
use crate::import::entry::{Entry, Table};
use crate::import::recorded::Exchanges;
use crate::import::redact::Redaction;

/// Longer content, in bytes, has a file of its own.
const LONGEST_INLINE: usize = 1024;

const ROOT: &str = "\
[service]
rule_sets = [\"rules.toml\"]
fallback_respond_dir = \"files\"
";

/// Where contents lie.
const BODIES: &str = "bodies";

/// Writes recordings.
pub(super) struct Store<'s> {
    folder: &'s Path,
    redaction: &'s Redaction,
}

/// Whether the folder holds no rules yet.
pub(super) fn is_free(folder: &Path) -> Result<(), RecorderError> {
    for name in ["apimock.toml", "rules.toml", BODIES] {
        let path = folder.join(name);
        if path.exists() {
            return Err(RecorderError::Exists(path));
        }
    }
    Ok(())
}

impl<'s> Store<'s> {
    pub(super) fn new(folder: &'s Path, redaction: &'s Redaction) -> Self {
        Self { folder, redaction }
    }

    /// Writes the rules of all exchanges, and contents that are not there yet.
    pub(super) fn write(&self, all: Vec<KeptExchange>) -> io::Result<()> {
        for name in [BODIES, "files"] {
            fs::create_dir_all(self.folder.join(name))?;
        }
        let mut exchanges = Exchanges::default();
        for exchange in all {
            exchanges.push(&exchange.method, &exchange.target, exchange.reply);
        }
        let mut names = HashSet::new();
        let mut failed = None;
        let rules = exchanges.rules(
            self.redaction,
            &mut |respond, headers, kind, bytes, path| {
                if bytes.len() <= LONGEST_INLINE {
                    body::push(respond, headers, kind, bytes);
                    return;
                }
                let name = name(path, kind, bytes, &mut names);
                let file = self.folder.join(BODIES).join(&name);
                let is_there = fs::metadata(&file).is_ok_and(|it| it.len() == bytes.len() as u64);
                if !is_there && let Err(error) = replace(&file, bytes) {
                    failed.get_or_insert(error);
                }
                if let Some(kind) = kind {
                    headers.push("content-type", kind);
                }
                respond.push("file_path", Entry::Text(format!("{BODIES}/{name}")));
            },
        );
        if let Some(error) = failed {
            return Err(error);
        }
        let tables: Vec<String> = rules
            .iter()
            .map(|rule: &Table| rule.lines("[[rules]]"))
            .collect();
        replace(
            &self.folder.join("rules.toml"),
            tables.join("\n").as_bytes(),
        )?;
        replace(&self.folder.join("apimock.toml"), ROOT.as_bytes())
    }
}

/// Writes a file as a whole in place of the old one.
fn replace(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let new: PathBuf = file.with_file_name(name);
    fs::write(&new, bytes)?;
    fs::rename(&new, file)
}

/// The name of a content: of its path, which it is recognised by, and of what it is.
fn name(path: &str, kind: Option<&str>, bytes: &[u8], names: &mut HashSet<String>) -> String {
    let plain = |it: char| it.is_ascii_alphanumeric() || matches!(it, '-' | '_');
    let name: String = path
        .trim_matches('/')
        .chars()
        .map(|it| if plain(it) { it } else { '-' })
        .take(60)
        .collect();
    let name = name.trim_matches('-');
    let name = if name.is_empty() { "index" } else { name };
    let is_json = serde_json::from_slice::<serde::de::IgnoredAny>(bytes).is_ok();
    // JSON5 and CSV would be sent as JSON.
    let extension = match kind
        .unwrap_or_default()
        .split(';')
        .next()
        .unwrap_or_default()
    {
        "text/html" => "html",
        "text/css" => "css",
        "image/png" => "png",
        "image/jpeg" => "jpg",
        "image/svg+xml" => "svg",
        kind if body::is_json(kind) && is_json => "json",
        _ if std::str::from_utf8(bytes).is_ok() => "txt",
        _ => "bin",
    };
    let mut number = 1;
    loop {
        let full = match number {
            1 => format!("{name}.{extension}"),
            number => format!("{name}-{number}.{extension}"),
        };
        if names.insert(full.clone()) {
            return full;
        }
        number += 1;
    }
}
