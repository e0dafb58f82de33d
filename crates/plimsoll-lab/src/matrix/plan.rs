//! The file of a matrix, compiled: every mistake is told with its place.

use std::collections::HashSet;
use std::path::Path;
use std::time::Duration;

use plimsoll_model::document::{ConfigProblem, Document, Table, Value, as_text};
use plimsoll_model::{Rate, parse_duration, parse_rate};
use plimsoll_wire::cores;
use url::Url;

use crate::cgroup::Allowance;

const WARM_UP: Duration = Duration::from_secs(5);
const WINDOW: Duration = Duration::from_secs(15);
const REPEATS: usize = 3;
const SEED: usize = 1979;

/// Longest name of a target, load or size.
const LONGEST_NAME: usize = 40;

/// What is to be measured.
#[derive(Debug, Clone)]
pub struct MatrixPlan {
    /// What the whole is called.
    pub name: String,
    /// Start of the random order.
    pub seed: u64,
    /// Trials of each cell.
    pub repeats: u32,
    /// Load before each window that is not counted.
    pub warm_up: Duration,
    /// What is measured.
    pub window: Duration,
    /// Cores of the targets; none leaves them to the scheduler.
    pub target_cores: Vec<usize>,
    /// Cores of the upstreams.
    pub upstream_cores: Vec<usize>,
    /// Cores of the generator.
    pub generator_cores: Vec<usize>,
    /// What is measured; at least one.
    pub targets: Vec<TargetPlan>,
    /// By what; at least one.
    pub loads: Vec<LoadPlan>,
    /// Within which bounds; at least one.
    pub sizes: Vec<SizePlan>,
}

/// One target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetPlan {
    /// Its name in tables and file names.
    pub name: String,
    /// Where requests go; `{port}` stands in it.
    pub url: String,
    /// The process that answers.
    pub process: ProcessPlan,
    /// What is started before it, in this order.
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

/// One load.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadPlan {
    /// Its name in tables and file names.
    pub name: String,
    /// Connections, unless the size says how many.
    pub connections: u32,
    /// Arrivals per second of an open loop; a closed one if absent.
    pub rate: Option<Rate>,
    /// What makes it.
    pub loader: Loader,
}

/// What makes a load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Loader {
    /// `plimsoll load` with these flags.
    Plimsoll(Vec<String>),
    /// Another tool whose output is known, with its placeholders.
    Command(Vec<String>),
}

/// Bounds within which trials run.
#[derive(Debug, Clone, PartialEq)]
pub struct SizePlan {
    /// Its name in tables and file names.
    pub name: String,
    /// Cores, if they are bounded.
    pub cpus: Option<f64>,
    /// Bytes of memory, if they are bounded.
    pub memory_bytes: Option<u64>,
    /// Who is bounded.
    pub limited: Limited,
    /// Connections of every load within it.
    pub connections: Option<u32>,
}

/// Who is bounded by a size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Limited {
    /// The target, without its upstreams.
    #[default]
    Target,
    /// The generator.
    Generator,
    /// The two together, as on one small machine.
    Both,
}

impl Limited {
    /// The name used in plans, text and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Target => "target",
            Self::Generator => "generator",
            Self::Both => "both",
        }
    }
}

impl SizePlan {
    /// No bounds.
    fn free() -> Self {
        Self {
            name: "unlimited".to_owned(),
            cpus: None,
            memory_bytes: None,
            limited: Limited::Target,
            connections: None,
        }
    }

    /// Whether anything is bounded.
    pub fn is_limited(&self) -> bool {
        self.cpus.is_some() || self.memory_bytes.is_some()
    }

    pub(crate) fn allowance(&self) -> Allowance {
        Allowance {
            cpus: self.cpus,
            memory_bytes: self.memory_bytes,
        }
    }
}

/// Compiles the text of a plan.
///
/// - `directory`: that of the file, for `{dir}`.
/// - `plimsoll`: this program, for `{plimsoll}`.
pub fn compile(
    text: &str,
    directory: &Path,
    plimsoll: &str,
) -> Result<MatrixPlan, Vec<ConfigProblem>> {
    let mut document = Document::parse(text);
    let mut root = document.root();
    let fixed = [
        ("dir".to_owned(), shown(directory)),
        ("plimsoll".to_owned(), plimsoll.to_owned()),
    ];
    let name = root.text("name");
    let seed = root.count("seed", 0..=usize::MAX);
    let repeats = root.count("repeats", 1..=1000);
    let warm_up = root.duration("warm_up");
    let window = root.take("window").and_then(|value| {
        let text = as_text(&value)?;
        let window = value.check(parse_duration(text))?;
        if window < Duration::from_millis(100) {
            return value.wrong("must be 100ms or longer");
        }
        Some(window)
    });
    let target_cores = cores_of(&mut root, "target_cores");
    let upstream_cores = cores_of(&mut root, "upstream_cores");
    let generator_cores = cores_of(&mut root, "generator_cores");

    let mut names = Names::default();
    let targets = root.tables("target");
    if targets.is_empty() {
        root.missing("target", "at least one [[target]] says what is measured");
    }
    let targets: Vec<_> = targets
        .into_iter()
        .filter_map(|table| target(table, &fixed, &mut names))
        .collect();
    let mut names = Names::default();
    let loads = root.tables("load");
    if loads.is_empty() {
        root.missing("load", "at least one [[load]] says by what");
    }
    let loads: Vec<_> = loads
        .into_iter()
        .filter_map(|table| load(table, &fixed, &mut names))
        .collect();
    let mut names = Names::default();
    let mut sizes: Vec<_> = root
        .tables("size")
        .into_iter()
        .filter_map(|table| size(table, &mut names))
        .collect();
    if sizes.is_empty() {
        sizes.push(SizePlan::free());
    }
    root.finish();
    let problems = document.into_problems();
    if !problems.is_empty() {
        return Err(problems);
    }
    Ok(MatrixPlan {
        name: name.unwrap_or_else(|| "matrix".to_owned()),
        seed: seed.unwrap_or(SEED) as u64,
        repeats: u32::try_from(repeats.unwrap_or(REPEATS)).unwrap_or(u32::MAX),
        warm_up: warm_up.unwrap_or(WARM_UP),
        window: window.unwrap_or(WINDOW),
        target_cores,
        upstream_cores,
        generator_cores,
        targets,
        loads,
        sizes,
    })
}

fn shown(directory: &Path) -> String {
    match directory.to_string_lossy() {
        empty if empty.is_empty() => ".".to_owned(),
        path => path.into_owned(),
    }
}

fn cores_of(table: &mut Table<'_>, key: &'static str) -> Vec<usize> {
    let cores = table.take(key).and_then(|value| {
        let text = as_text(&value)?;
        let cores = value.check(cores::parse(text))?;
        let available = cores::available();
        match cores.iter().find(|core| !available.contains(core)) {
            Some(core) => value.wrong(format!("core {core} is not one that may be used here")),
            None => Some(cores),
        }
    });
    cores.unwrap_or_default()
}

/// Names that make the names of files, each given once.
#[derive(Default)]
struct Names(HashSet<String>);

impl Names {
    fn take(&mut self, table: &mut Table<'_>) -> Option<String> {
        let Some(value) = table.take("name") else {
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
pub(super) fn file_name(name: &str) -> String {
    name.replace(' ', "-")
}

type Placeholders = [(String, String)];

/// `text` with each `{name}` replaced.
pub(super) fn fill(text: &str, values: &Placeholders) -> String {
    values.iter().fold(text.to_owned(), |text, (name, value)| {
        text.replace(&format!("{{{name}}}"), value)
    })
}

fn target(mut table: Table<'_>, fixed: &Placeholders, names: &mut Names) -> Option<TargetPlan> {
    let name = names.take(&mut table);
    let mut upstream_names = Names::default();
    let tables = table.tables("upstream");
    let mut ports = vec![("port".to_owned(), "1".to_owned())];
    let mut upstreams = Vec::new();
    for mut table in tables {
        let name = upstream_names.take(&mut table);
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
    let words = command(&mut table, fixed);
    need(&mut table, "url");
    let goes_to = url(&mut table, "url", &ports, fixed);
    let ready = url(&mut table, "ready", &ports, fixed).or_else(|| goes_to.clone());
    table.finish();
    let name = name?;
    Some(TargetPlan {
        url: goes_to?,
        process: ProcessPlan {
            name: name.clone(),
            words: words?,
            ready: ready?,
        },
        upstreams: upstreams.into_iter().collect::<Option<_>>()?,
        name,
    })
}

/// The words of `command`, with what does not change from trial to trial filled in.
fn command(table: &mut Table<'_>, fixed: &Placeholders) -> Option<Vec<String>> {
    let Some(value) = table.take("command") else {
        table.missing("command", "such as command = \"./server --port {port}\"");
        return None;
    };
    split(&value, fixed)
}

fn split(value: &Value<'_>, fixed: &Placeholders) -> Option<Vec<String>> {
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
fn url(
    table: &mut Table<'_>,
    key: &'static str,
    ports: &Placeholders,
    fixed: &Placeholders,
) -> Option<String> {
    let value = table.take(key)?;
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
    match parse_url(&filled) {
        Some(_) => Some(text),
        None => value.wrong(format!("`{text}` is not an http or https URL")),
    }
}

pub(super) fn parse_url(text: &str) -> Option<Url> {
    let url = Url::parse(text).ok()?;
    (matches!(url.scheme(), "http" | "https") && url.has_host()).then_some(url)
}

fn load(mut table: Table<'_>, fixed: &Placeholders, names: &mut Names) -> Option<LoadPlan> {
    let name = names.take(&mut table);
    let connections = table.count("connections", 1..=1_000_000);
    let rate = table.take("rate").and_then(|value| {
        let text = as_text(&value)?;
        let rate = value.check(parse_rate(text))?;
        if rate.per_second() <= 0.0 {
            return value.wrong("must be more than zero");
        }
        Some(rate)
    });
    let command = table.take("command");
    let flags = table.take("flags");
    if command.is_some() && flags.is_some() {
        table.wrong(
            "both `command` and `flags` are given",
            Some("flags are those of plimsoll load".to_owned()),
        );
    }
    let loader = match (command, flags) {
        (Some(value), _) => split(&value, fixed).map(Loader::Command),
        (None, Some(value)) => value
            .texts_with(|flag| {
                let owned = [
                    "-c",
                    "-z",
                    "-n",
                    "-q",
                    "--json",
                    "--warm-up",
                    "--pid",
                    "--spawn",
                ];
                owned
                    .contains(&flag)
                    .then(|| format!("`{flag}` is set by the plan itself"))
            })
            .map(|flags| Loader::Plimsoll(flags.iter().map(|flag| fill(flag, fixed)).collect())),
        (None, None) => Some(Loader::Plimsoll(Vec::new())),
    };
    table.finish();
    Some(LoadPlan {
        name: name?,
        connections: u32::try_from(connections.unwrap_or(50)).unwrap_or(u32::MAX),
        rate,
        loader: loader?,
    })
}

fn size(mut table: Table<'_>, names: &mut Names) -> Option<SizePlan> {
    let name = names.take(&mut table);
    let cpus = table.positive("cpus");
    let memory = table.bytes("memory");
    let limited = match table.take("limits") {
        None => Some(Limited::default()),
        Some(value) => as_text(&value).and_then(|text| {
            let all = [Limited::Target, Limited::Generator, Limited::Both];
            match all.into_iter().find(|limited| limited.name() == text) {
                Some(limited) => Some(limited),
                None => value.wrong(format!(
                    "`{text}` is none of \"target\", \"generator\" and \"both\""
                )),
            }
        }),
    };
    let connections = table.count("connections", 1..=1_000_000);
    table.finish();
    Some(SizePlan {
        name: name?,
        cpus,
        memory_bytes: memory,
        limited: limited?,
        connections: connections.and_then(|number| u32::try_from(number).ok()),
    })
}

#[cfg(test)]
mod tests;
