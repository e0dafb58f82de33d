//! Parts that the plans of experiments share: names, commands with placeholders, processes.

use std::collections::HashSet;
use std::io;
use std::path::Path;

use plimsoll_model::document::{Table, Value, as_text};
use plimsoll_wire::free_port::FreePort;
use url::Url;

/// Longest name of a target, load, size or scenario.
const LONGEST_NAME: usize = 40;

/// One target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetPlan {
    /// Its name in tables and file names.
    pub name: String,
    /// URL of requests; contains `{port}`.
    pub url: String,
    /// The process that answers.
    pub process: ProcessPlan,
    /// Processes to start before it, in this order.
    pub upstreams: Vec<ProcessPlan>,
}

/// A process of a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessPlan {
    /// Of an upstream, for `{NAME.port}`; of the target itself its name.
    pub name: String,
    /// The command and its arguments with their placeholders.
    pub words: Vec<String>,
    /// It is up once this URL answers.
    pub ready: String,
}

/// The placeholders that are the same in a whole plan: `{dir}` is the folder of its file, `{plimsoll}` this program.
pub(crate) fn fixed(directory: &Path, plimsoll: &str) -> [(String, String); 2] {
    let directory = match directory.to_string_lossy() {
        empty if empty.is_empty() => ".".to_owned(),
        path => path.into_owned(),
    };
    [
        ("dir".to_owned(), directory),
        ("plimsoll".to_owned(), plimsoll.to_owned()),
    ]
}

/// Names that make the names of files, each given once.
#[derive(Default)]
pub(crate) struct Names(HashSet<String>);

impl Names {
    pub(crate) fn read_name(&mut self, table: &mut Table<'_>) -> Option<String> {
        let Some(value) = table.take_value("name") else {
            table.missing("name", "such as name = \"small\"");
            return None;
        };
        let name = as_text(&value)?.to_owned();
        let is_plain = |c: char| c.is_alphanumeric() || " ._=+-".contains(c);
        let length = name.chars().count();
        if !(1..=LONGEST_NAME).contains(&length)
            || !name.chars().all(is_plain)
            || name.starts_with(['.', ' '])
            || name.ends_with(' ')
        {
            return value.wrong(format!(
                "must be 1 to {LONGEST_NAME} letters, digits, blanks or any of . _ = + -"
            ));
        }
        if !self.0.insert(file_name(&name)) {
            return value.wrong(format!("`{name}` is taken already"));
        }
        Some(name)
    }
}

/// `name` as part of the name of a file.
pub(crate) fn file_name(name: &str) -> String {
    name.replace(' ', "-")
}

pub(crate) type Placeholders = [(String, String)];

/// `text` with each `{name}` replaced.
pub(crate) fn fill(text: &str, values: &Placeholders) -> String {
    values.iter().fold(text.to_owned(), |text, (name, value)| {
        text.replace(&format!("{{{name}}}"), value)
    })
}

/// The words of `command`, with what does not change from trial to trial filled in.
fn command(table: &mut Table<'_>, fixed: &Placeholders) -> Option<Vec<String>> {
    let Some(value) = table.take_value("command") else {
        table.missing("command", "such as command = \"./server --port {port}\"");
        return None;
    };
    split(&value, fixed)
}

pub(crate) fn split(value: &Value<'_>, fixed: &Placeholders) -> Option<Vec<String>> {
    let text = as_text(value)?;
    let words = shlex::split(text).filter(|words| !words.is_empty());
    match words {
        Some(words) => Some(words.iter().map(|word| fill(word, fixed)).collect()),
        None => value.wrong("is empty, or has a quote that is not closed"),
    }
}

/// Notes that a URL is missing, if it is.
fn need(table: &mut Table<'_>, key: &'static str) {
    if !table.has(key) {
        table.missing(
            key,
            &format!("such as {key} = \"http://127.0.0.1:{{port}}/\""),
        );
    }
}

/// A URL in which ports may stand.
pub(crate) fn url(
    table: &mut Table<'_>,
    key: &'static str,
    ports: &Placeholders,
    fixed: &Placeholders,
) -> Option<String> {
    let value = table.take_value(key)?;
    let text = fill(as_text(&value)?, fixed);
    let filled = fill(&text, ports);
    if filled.contains(['{', '}']) {
        let known: Vec<String> = ports
            .iter()
            .map(|(name, _)| format!("{{{name}}}"))
            .collect();
        return value.wrong(format!(
            "`{text}` has a placeholder that is not known; there are {}",
            known.join(", ")
        ));
    }
    // Messages of WebSockets are loaded too (`key` is `url`); readiness is checked by HTTP.
    match parse_url(&filled).or_else(|| parse_url(&over_http(&filled)).filter(|_| key == "url")) {
        Some(_) => Some(text),
        None => value.wrong(format!("`{text}` is not an http or https URL")),
    }
}

/// The URL of HTTP at the same place as one of WebSockets; others as they are.
fn over_http(text: &str) -> String {
    match text.strip_prefix("ws") {
        Some(rest) if rest.starts_with("://") || rest.starts_with("s://") => format!("http{rest}"),
        _ => text.to_owned(),
    }
}

pub(crate) fn parse_url(text: &str) -> Option<Url> {
    let url = Url::parse(text).ok()?;
    (matches!(url.scheme(), "http" | "https") && url.has_host()).then_some(url)
}

/// The name, the processes and the URL of a target, and the placeholders that its other keys may have.
pub(crate) fn target(
    table: &mut Table<'_>,
    fixed: &Placeholders,
    names: &mut Names,
) -> Option<(TargetPlan, Vec<(String, String)>)> {
    let name = names.read_name(table);
    let (upstreams, ports) = upstreams(table, fixed);
    let words = command(table, fixed);
    need(table, "url");
    let goes_to = url(table, "url", &ports, fixed);
    let ready = url(table, "ready", &ports, fixed).or_else(|| goes_to.as_deref().map(over_http));
    let name = name?;
    let target = TargetPlan {
        url: goes_to?,
        process: ProcessPlan {
            name: name.clone(),
            words: words?,
            ready: ready?,
        },
        upstreams: upstreams?,
        name,
    };
    Some((target, ports))
}

/// The `[[….upstream]]` tables of a target, and the placeholders of all ports with a port that stands for any.
fn upstreams(
    table: &mut Table<'_>,
    fixed: &Placeholders,
) -> (Option<Vec<ProcessPlan>>, Vec<(String, String)>) {
    let mut names = Names::default();
    let mut ports = OWN_PORTS
        .map(|name| (name.to_owned(), "1".to_owned()))
        .to_vec();
    let mut upstreams = Vec::new();
    for mut table in table.tables("upstream") {
        let name = names.read_name(&mut table);
        ports.extend(
            name.iter()
                .map(|name| (format!("{name}.port"), "1".to_owned())),
        );
        let words = command(&mut table, fixed);
        need(&mut table, "ready");
        let ready = url(&mut table, "ready", &ports, fixed);
        table.finish();
        upstreams.push((|| {
            Some(ProcessPlan {
                name: name?,
                words: words?,
                ready: ready?,
            })
        })());
    }
    (upstreams.into_iter().collect(), ports)
}

/// The placeholders of a target's ports: where requests go, and its admin page.
const OWN_PORTS: [&str; 2] = ["port", "admin.port"];

/// Free ports for the target and one for each upstream, by the names of their placeholders.
pub(crate) fn free_ports(upstreams: &[ProcessPlan]) -> io::Result<Vec<(String, String)>> {
    let names = upstreams
        .iter()
        .map(|upstream| format!("{}.port", upstream.name));
    // All are held until the last one is found, so that none is found twice.
    let mut held = Vec::new();
    let mut ports = Vec::new();
    for name in names.chain(OWN_PORTS.map(str::to_owned)) {
        let port = FreePort::find()?;
        ports.push((name, port.number().to_string()));
        held.push(port);
    }
    Ok(ports)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_of_a_plan_differ() {
        let ports = free_ports(&[]).unwrap();
        assert_eq!(ports.len(), OWN_PORTS.len());
        assert_ne!(ports[0].1, ports[1].1);
    }
}
