//! The folder of a recording: `apimock.toml`, its rules, and contents that are too long for these.
//!
//! The file of rules is always written as a whole and renamed over the old one, so that it is never half written: at
//! once while it is short, else every now and then. Priorities decide which of two rules comes first.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use plimsoll_wire::files::replace;

use super::RecorderError;
use super::exchange::KeptExchange;
use crate::import::body;
use crate::import::entry::{Entry, Table};
use crate::import::recorded::{RecordedReply, RequestParts, reply};
use crate::proxy::record::redact::Redaction;

/// Longer content, in bytes, has a file of its own: rules stay readable up to about twenty lines of JSON.
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

/// The first line of its rule files.
const HEAD: &str = "strategy = \"priority\"\n";

/// Folders of contents.
const BODIES: &str = "bodies";

/// The written files of a recording.
#[derive(Debug)]
pub(super) struct Store {
    folder: PathBuf,
    redaction: Redaction,
    /// In the order of their first requests.
    order: Vec<RequestParts>,
    rules: HashMap<RequestParts, Recorded>,
    /// The names of contents.
    names: HashSet<String>,
    /// Bytes of the file of rules; absent before it is there.
    length: Option<u64>,
    /// Whether it has everything.
    is_written: bool,
    /// Number of writes since it was last written.
    waited: u32,
}

/// The responses to one request.
#[derive(Debug)]
struct Recorded {
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
            is_written: true,
            waited: 0,
        }
    }

    /// Takes an exchange, and writes its content if that has a separate file; it is not taken if that fails.
    pub(super) fn add(&mut self, exchange: &KeptExchange) -> io::Result<()> {
        let asking = RequestParts::new(&exchange.request.view(), &self.redaction);
        let known = self.rules.get(&asking);
        // A reply that did not change is written once.
        if known.is_some_and(|known| known.last == exchange.reply) {
            return Ok(());
        }
        let table = self.table(&asking, &exchange.reply)?;
        if let Some(known) = self.rules.get_mut(&asking) {
            known.replies.push(table);
            known.last = exchange.reply.clone();
        } else {
            let recorded = Recorded {
                replies: vec![table],
                last: exchange.reply.clone(),
            };
            self.order.push(asking.clone());
            self.rules.insert(asking, recorded);
        }
        self.is_written = false;
        Ok(())
    }

    /// Whether everything is in the folder.
    pub(super) fn is_written(&self) -> bool {
        self.is_written
    }

    /// Writes what is not in the folder yet.
    ///
    /// - `is_last`: whether nothing may be left for later.
    pub(super) fn write(&mut self, is_last: bool) -> io::Result<()> {
        let Some(length) = self.length else {
            fs::create_dir_all(self.folder.join("files"))?;
            // The file that names the rules comes before them: a folder that is left in between answers nothing,
            // but never 404 in place of what rules.toml holds.
            replace(&self.rules_file(), HEAD.as_bytes())?;
            replace(&self.folder.join("apimock.toml"), ROOT.as_bytes())?;
            return self.write_whole();
        };
        if self.is_written() {
            return Ok(());
        }
        // It is always replaced as a whole, so that it never holds half a rule.
        if is_last || length <= SHORT || self.waited >= PATIENCE {
            return self.write_whole();
        }
        self.waited += 1;
        Ok(())
    }

    fn write_whole(&mut self) -> io::Result<()> {
        let text = HEAD.to_owned() + &self.text();
        fs::create_dir_all(self.folder.join(BODIES))?;
        replace(&self.rules_file(), text.as_bytes())?;
        self.length = Some(text.len() as u64);
        self.is_written = true;
        self.waited = 0;
        Ok(())
    }

    fn rules_file(&self) -> PathBuf {
        self.folder.join("rules.toml")
    }

    fn text(&self) -> String {
        let mut text = String::new();
        for asking in &self.order {
            let Some(recorded) = self.rules.get(asking) else {
                continue;
            };
            let mut rule = asking.rule(recorded.replies.clone());
            let priority = i64::try_from(asking.parameters()).unwrap_or(i64::from(i32::MAX));
            if priority > 0 {
                rule.push("priority", Entry::Whole(priority));
            }
            text.push('\n');
            text.push_str(&rule.lines("[[rules]]"));
        }
        text
    }

    /// The table of a response, whose content may have become a file.
    fn table(&mut self, asking: &RequestParts, given: &RecordedReply) -> io::Result<Table> {
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
                headers.push("content-type", kind.unwrap_or_default());
                respond.push("file_path", Entry::Text(format!("{BODIES}/{name}")));
            },
        );
        failed.map_or(Ok(table), Err)
    }
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
    let extension = body::extension(kind.unwrap_or_default(), bytes);
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
