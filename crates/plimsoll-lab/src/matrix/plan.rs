//! The file of a matrix, compiled: every mistake is reported with its place.

use std::path::Path;
use std::time::Duration;

use plimsoll_model::document::{ConfigProblem, Document, Table, as_text};
use plimsoll_model::{Rate, parse_duration, parse_rate};
use plimsoll_wire::cores;

use crate::cgroup::Allowance;
use crate::plans::{Names, Placeholders, TargetPlan, fill, fixed, split, target};

/// Warm-up, window and repeats of the gateway's source: 5 s until pools and caches are full, then 15 s, three times so
/// that one outlier does not decide.
const WARM_UP: Duration = Duration::from_secs(5);
const WINDOW: Duration = Duration::from_secs(15);
const REPEATS: usize = 3;
const SEED: usize = 1979;

/// The plan of a matrix.
#[derive(Debug, Clone)]
pub struct MatrixPlan {
    /// The name of the matrix.
    pub name: String,
    /// Start of the random order.
    pub seed: u64,
    /// Trials of each cell.
    pub repeats: u32,
    /// Load before each window that is not counted.
    pub warm_up: Duration,
    /// The measured window.
    pub window: Duration,
    /// Cores of the targets; none leaves them to the scheduler.
    pub target_cores: Vec<usize>,
    /// Cores of the upstreams.
    pub upstream_cores: Vec<usize>,
    /// Cores of the generator.
    pub generator_cores: Vec<usize>,
    /// The targets; at least one.
    pub targets: Vec<TargetPlan>,
    /// By what; at least one.
    pub loads: Vec<LoadPlan>,
    /// Within which bounds; at least one.
    pub sizes: Vec<SizePlan>,
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
    /// The generator.
    pub loader: Loader,
}

/// The kinds of generators.
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
    /// The bounded side.
    pub limited: Limited,
    /// Connections of every load within it.
    pub connections: Option<u32>,
}

/// The side that a size bounds.
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
    let fixed = fixed(directory, plimsoll);
    let name = root.text("name");
    let seed = root.count("seed", 0..=usize::MAX);
    let repeats = root.count("repeats", 1..=1000);
    let warm_up = root.duration("warm_up");
    let window = root.take_value("window").and_then(|value| {
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
        .filter_map(|mut table| {
            let target = target(&mut table, &fixed, &mut names);
            table.finish();
            target.map(|(target, _)| target)
        })
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

fn cores_of(table: &mut Table<'_>, key: &'static str) -> Vec<usize> {
    let cores = table.take_value(key).and_then(|value| {
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

fn load(mut table: Table<'_>, fixed: &Placeholders, names: &mut Names) -> Option<LoadPlan> {
    let name = names.read_name(&mut table);
    let connections = table.count("connections", 1..=1_000_000);
    let rate = table.take_value("rate").and_then(|value| {
        let text = as_text(&value)?;
        let rate = value.check(parse_rate(text))?;
        if rate.per_second() <= 0.0 {
            return value.wrong("must be more than zero");
        }
        Some(rate)
    });
    let command = table.take_value("command");
    let flags = table.take_value("flags");
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
    let name = names.read_name(&mut table);
    let cpus = table.positive("cpus");
    let memory = table.bytes("memory");
    let limited = match table.take_value("limits") {
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
