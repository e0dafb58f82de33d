//! The folder of a recording: `apimock.toml`, its rules, and contents that are too long for these.
//!
//! Rules for what was not asked before are put behind the others, in one write; which of two comes first is said by
//! their priorities, not by their places. What was asked before and is answered otherwise now changes its rule, so the
//! whole file is written anew and put in place of the old one: at once while it is short, else every now and then.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use super::{KeptExchange, RecorderError};
use crate::import::body;
use crate::import::entry::{Entry, Table};
use crate::import::recorded::{Asking, RecordedReply, reply};
use crate::import::redact::Redaction;

/// Longer content, in bytes, has a file of its own.
const LONGEST_INLINE: usize = 1024;

/// A file of rules up to so many bytes is written anew at once.
const SHORT: u64 = 1 << 20;

/// A longer one only once so many writes have passed since then.
const PATIENCE: u32 = 20;

const ROOT: &str = "\
[service]
rule_sets = [\"rules.toml\"]
fallback_respond_dir = \"files\"
";

/// What its rules begin with.
const HEAD: &str = "strategy = \"priority\"\n";

/// Where contents lie.
const BODIES: &str = "bodies";

/// What is written of a recording.
#[derive(Debug)]
pub(super) struct Store {
    folder: PathBuf,
    redaction: Redaction,
    /// In the order in which it was asked first.
    order: Vec<Asking>,
    rules: HashMap<Asking, Recorded>,
    /// The names of contents.
    names: HashSet<String>,
    /// Bytes of the file of rules; absent before it is there.
    length: Option<u64>,
    /// So many of `order` are in it.
    written: usize,
    /// Whether a rule in it has changed since, and how many writes ago.
    behind: Option<u32>,
}

/// What was answered to one request.
#[derive(Debug)]
struct Recorded {
    /// Of its rule, from 0.
    number: usize,
    replies: Vec<Table>,
    last: RecordedReply,
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

impl Store {
    pub(super) fn new(folder: &Path, redaction: Redaction) -> Self {
        Self {
            folder: folder.to_owned(),
            redaction,
            order: Vec::new(),
            rules: HashMap::new(),
            names: HashSet::new(),
            length: None,
            written: 0,
            behind: None,
        }
    }

    /// Takes an exchange, and writes its content if that has a file of its own; it is not taken if that fails.
    pub(super) fn add(&mut self, exchange: &KeptExchange) -> io::Result<()> {
        let asking = Asking::of(&exchange.method, &exchange.target);
        let known = self.rules.get(&asking);
        // What was always the same need not be told twice.
        if known.is_some_and(|known| known.last == exchange.reply) {
            return Ok(());
        }
        let table = self.table(&asking, &exchange.reply)?;
        if let Some(known) = self.rules.get_mut(&asking) {
            known.replies.push(table);
            known.last = exchange.reply.clone();
            if known.number < self.written {
                self.behind.get_or_insert(0);
            }
        } else {
            let recorded = Recorded {
                number: self.order.len(),
                replies: vec![table],
                last: exchange.reply.clone(),
            };
            self.order.push(asking.clone());
            self.rules.insert(asking, recorded);
        }
        Ok(())
    }

    /// Whether everything is in the folder.
    pub(super) fn is_written(&self) -> bool {
        self.behind.is_none() && self.written == self.order.len()
    }

    /// Writes what is not in the folder yet.
    ///
    /// - `is_last`: whether nothing may be left for later.
    pub(super) fn write(&mut self, is_last: bool) -> io::Result<()> {
        let Some(length) = self.length else {
            fs::create_dir_all(self.folder.join("files"))?;
            self.write_whole()?;
            return replace(&self.folder.join("apimock.toml"), ROOT.as_bytes());
        };
        if let Some(writes) = self.behind {
            if is_last || length <= SHORT || writes >= PATIENCE {
                return self.write_whole();
            }
            self.behind = Some(writes + 1);
        }
        self.append(length)
    }

    fn write_whole(&mut self) -> io::Result<()> {
        let text = HEAD.to_owned() + &self.text(0);
        fs::create_dir_all(self.folder.join(BODIES))?;
        replace(&self.rules_file(), text.as_bytes())?;
        self.length = Some(text.len() as u64);
        self.written = self.order.len();
        self.behind = None;
        Ok(())
    }

    /// Puts the rules behind the others that are not there yet.
    fn append(&mut self, length: u64) -> io::Result<()> {
        if self.written == self.order.len() {
            return Ok(());
        }
        let text = self.text(self.written);
        let mut file = File::options().append(true).open(self.rules_file())?;
        if let Err(error) = file.write_all(text.as_bytes()) {
            // Half a rule would make all of them unreadable.
            file.set_len(length)?;
            return Err(error);
        }
        self.length = Some(length + text.len() as u64);
        self.written = self.order.len();
        Ok(())
    }

    fn rules_file(&self) -> PathBuf {
        self.folder.join("rules.toml")
    }

    /// The rules from that number on.
    fn text(&self, from: usize) -> String {
        let mut text = String::new();
        for asking in self.order.iter().skip(from) {
            let Some(recorded) = self.rules.get(asking) else {
                continue;
            };
            let mut rule = asking.rule(recorded.replies.clone(), &self.redaction);
            let priority = i64::try_from(asking.parameters()).unwrap_or(i64::from(i32::MAX));
            if priority > 0 {
                rule.push("priority", Entry::Whole(priority));
            }
            text.push('\n');
            text.push_str(&rule.lines("[[rules]]"));
        }
        text
    }

    /// What a rule says of a response, whose content may have become a file.
    fn table(&mut self, asking: &Asking, given: &RecordedReply) -> io::Result<Table> {
        let mut failed = None;
        let (folder, names) = (&self.folder, &mut self.names);
        let table = reply(
            given,
            &self.redaction,
            asking.path(),
            &mut |respond, headers, kind, bytes, path| {
                if bytes.len() <= LONGEST_INLINE {
                    body::push(respond, headers, kind, bytes);
                    return;
                }
                let bodies = folder.join(BODIES);
                let name = name(path, kind, bytes, names);
                let written = fs::create_dir_all(&bodies);
                let written = written.and_then(|()| replace(&bodies.join(&name), bytes));
                if let Err(error) = written {
                    names.remove(&name);
                    failed = Some(error);
                }
                if let Some(kind) = kind {
                    headers.push("content-type", kind);
                }
                respond.push("file_path", Entry::Text(format!("{BODIES}/{name}")));
            },
        );
        failed.map_or(Ok(table), Err)
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

#[cfg(test)]
mod tests;
