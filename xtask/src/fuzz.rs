//! `cargo xtask fuzz`: run all fuzz targets, each as long as it still grows coverage, until a number of executions is reached.
//!
//! A run can stop at any time and be resumed: corpora lie under `fuzz/corpus`, and the executions so far in `fuzz/executions.json`.
//! With `--write` each corpus is minimised and packed, so a later run starts from it on any machine.

mod corpora;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;

use clap::Args;
use serde::{Deserialize, Serialize};

use crate::bench::target_directory;
use crate::step::{self, cargo};
use crate::{Failure, Outcome};

/// How much and how long
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Stop when all targets together have had this many executions, those of earlier runs included
    #[arg(long, default_value_t = 1_000_000_000)]
    executions: u64,

    /// Stop after this many minutes
    #[arg(long, default_value_t = 60)]
    minutes: u64,

    /// Length of a round, in which every target runs, in seconds
    #[arg(long, default_value_t = 600)]
    round: u64,

    /// Targets that run at the same time [default: one per core]
    #[arg(long)]
    jobs: Option<usize>,

    /// Run only these targets
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,

    /// Minimise the corpora, pack them into fuzz/corpus/TARGET.tar.zst and write the counts into docs/conformance.md
    #[arg(long)]
    write: bool,
}

/// What is known of a target, over all runs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Tally {
    executions: u64,
    seconds: u64,
    /// Features that libFuzzer counts: edges, with how often each was taken.
    features: u64,
    /// Inputs of the corpus.
    inputs: u64,
}

type Tallies = BTreeMap<String, Tally>;

/// The end of one run of a target.
#[derive(Debug, Default, PartialEq, Eq)]
struct Slice {
    executions: u64,
    features: u64,
    inputs: u64,
}

/// The least time a target runs in a round: below it, loading the corpus takes a large share.
const LEAST: Duration = Duration::from_secs(5);

/// Half of a round is divided equally, so a target that found nothing lately still finds what needs luck.
const EQUAL: f64 = 0.5;

const BEGIN: &str = "<!-- fuzz: begin -->";
const END: &str = "<!-- fuzz: end -->";

/// Runs the task; fails if a target does.
pub(crate) fn run(root: &Path, arguments: &Arguments) -> Outcome {
    let folder = root.join("fuzz");
    install(root)?;
    corpora::install(root)?;
    step::run(
        &folder,
        &mut cargo(&["fuzz", "build", "--sanitizer", "none"]),
    )?;
    let targets = targets(&folder, &arguments.only)?;
    for target in &targets {
        corpora::unpack(&folder, target)?;
    }
    let state = folder.join("executions.json");
    let mut tallies = read(&state)?;
    let jobs = arguments
        .jobs
        .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, std::num::NonZero::get));
    let jobs = jobs.max(1);
    let mut growth: BTreeMap<String, u64> = BTreeMap::new();
    let mut left = Duration::from_secs(arguments.minutes * 60);
    let round = Duration::from_secs(arguments.round.max(1));
    let mut failed = Vec::new();
    while !left.is_zero() && total(&tallies) < arguments.executions && failed.is_empty() {
        let time = round.min(left);
        let busy = time * u32::try_from(jobs).unwrap_or(1);
        let plan = lengths(&targets, &growth, busy);
        for (target, length, outcome) in all(&folder, plan, jobs) {
            let tally = tallies.entry(target.clone()).or_default();
            match outcome {
                Ok(slice) => {
                    println!(
                        "{target:<18} {:>12} executions in {:>4} s, {:>6} features, {:>5} inputs",
                        slice.executions,
                        length.as_secs(),
                        slice.features,
                        slice.inputs
                    );
                    // The first slice on a machine finds what earlier ones knew.
                    let new = slice.features.saturating_sub(tally.features);
                    growth.insert(target, new);
                    tally.executions += slice.executions;
                    tally.seconds += length.as_secs();
                    tally.features = slice.features.max(tally.features);
                    tally.inputs = slice.inputs;
                }
                Err(Failure(message)) => failed.push(message),
            }
        }
        write(&state, &tallies)?;
        println!("{} executions in all", total(&tallies));
        left = left.saturating_sub(time);
    }
    if arguments.write {
        for target in &targets {
            minimise(&folder, target)?;
        }
        document(root, &tallies)?;
    }
    if failed.is_empty() {
        Ok(())
    } else {
        Err(failed.join("\n").into())
    }
}

/// cargo-fuzz, which is installed below the target directory if it is missing.
fn install(root: &Path) -> Outcome {
    let there = cargo(&["fuzz", "--version"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if there.is_ok_and(|status| status.success()) {
        return Ok(());
    }
    target_directory(root)?;
    step::run(root, &mut cargo(&["install", "--locked", "cargo-fuzz"]))
}

/// The targets by name, those of `only` if it has any.
fn targets(folder: &Path, only: &[String]) -> Result<Vec<String>, Failure> {
    let entries = fs::read_dir(folder.join("fuzz_targets")).map_err(|error| error.to_string())?;
    let mut names: Vec<String> = entries
        .filter_map(Result::ok)
        .filter_map(|entry| Some(entry.path().file_stem()?.to_str()?.to_owned()))
        .collect();
    names.sort();
    if let Some(unknown) = only.iter().find(|name| !names.contains(name)) {
        return Err(format!(
            "there is no target `{unknown}`; known are {}",
            names.join(", ")
        )
        .into());
    }
    names.retain(|name| only.is_empty() || only.contains(name));
    Ok(names)
}

/// How long each target runs in a round with `time` for all: half of it equally, half by the features that each found in the round
/// before.
fn lengths(
    targets: &[String],
    growth: &BTreeMap<String, u64>,
    time: Duration,
) -> Vec<(String, Duration)> {
    let grown = |target: &String| growth.get(target).copied().unwrap_or(0) as f64;
    let sum: f64 = targets.iter().map(grown).sum();
    let number = targets.len().max(1) as f64;
    let share = |target: &String| {
        let equal = 1.0 / number;
        if sum > 0.0 {
            EQUAL * equal + (1.0 - EQUAL) * grown(target) / sum
        } else {
            equal
        }
    };
    targets
        .iter()
        .map(|target| (target.clone(), time.mul_f64(share(target)).max(LEAST)))
        .collect()
}

/// Runs all targets of a plan, `jobs` at a time.
fn all(
    folder: &Path,
    mut plan: Vec<(String, Duration)>,
    jobs: usize,
) -> Vec<(String, Duration, Result<Slice, Failure>)> {
    // The longest first, so that none is left alone at the end.
    plan.sort_by_key(|(_, length)| *length);
    let (plan, results) = (Mutex::new(plan), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                loop {
                    let next = plan.lock().expect("no job panics").pop();
                    let Some((target, length)) = next else { break };
                    let outcome = one(folder, &target, length);
                    let mut results = results.lock().expect("no job panics");
                    results.push((target, length, outcome));
                }
            });
        }
    });
    results.into_inner().expect("no job panics")
}

/// Runs one target.
fn one(folder: &Path, target: &str, length: Duration) -> Result<Slice, Failure> {
    let artifacts = folder.join("artifacts").join(target);
    fs::create_dir_all(&artifacts).map_err(|error| error.to_string())?;
    let output = program(folder, target)
        .args(inputs(folder, target))
        .arg(format!("-max_total_time={}", length.as_secs()))
        .arg(format!("-artifact_prefix={}/", artifacts.display()))
        .args(["-print_final_stats=1", "-timeout=10", "-rss_limit_mb=2048"])
        .output()
        .map_err(|error| format!("cannot run `{target}`: {error}"))?;
    let text = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        let tail: Vec<_> = text.lines().rev().take(20).collect();
        let tail: Vec<_> = tail.into_iter().rev().collect();
        return Err(format!("{target} failed:\n{}", tail.join("\n")).into());
    }
    slice(&text).ok_or_else(|| format!("{target} printed no figures").into())
}

/// The figures that libFuzzer prints at its end.
fn slice(text: &str) -> Option<Slice> {
    let statistic = |name: &str| -> Option<u64> {
        let line = text.lines().find(|line| line.starts_with(name))?;
        line.rsplit(' ').next()?.parse().ok()
    };
    let status = text.lines().rev().find(|line| line.contains(" ft: "))?;
    let after = |name: &str| -> Option<u64> {
        let rest = status.split_once(name)?.1;
        rest.split([' ', '/']).next()?.parse().ok()
    };
    Some(Slice {
        executions: statistic("stat::number_of_executed_units:")?,
        features: after(" ft: ")?,
        inputs: after(" corp: ")?,
    })
}

/// Replaces the corpus of a target by the smallest set of inputs that has the coverage of corpus and seeds, and packs it.
fn minimise(folder: &Path, target: &str) -> Outcome {
    let minimised = folder.join("corpus").join(format!("{target}.minimised"));
    // What a run that was interrupted left covers less.
    fs::remove_dir_all(&minimised).ok();
    fs::create_dir_all(&minimised).map_err(|error| error.to_string())?;
    let output = program(folder, target)
        .args(["-merge=1", "-timeout=10", "-rss_limit_mb=2048"])
        .arg(&minimised)
        .args(inputs(folder, target))
        .output()
        .map_err(|error| format!("cannot run `{target}`: {error}"))?;
    if !output.status.success() {
        return Err(format!("the corpus of {target} could not be minimised").into());
    }
    corpora::replace(folder, target, &minimised)
}

/// The folders whose inputs a target starts from; libFuzzer writes new ones into the first.
fn inputs(folder: &Path, target: &str) -> Vec<PathBuf> {
    let seeds = folder.join("seeds").join(target);
    let mut folders = vec![corpora::folder(folder, target)];
    // A new target has no seeds yet, and libFuzzer fails if a folder does not exist.
    folders.extend(seeds.is_dir().then_some(seeds));
    folders
}

fn program(folder: &Path, target: &str) -> Command {
    let triple = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let mut command = Command::new(
        folder
            .join("target")
            .join(triple)
            .join("release")
            .join(target),
    );
    command
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    command
}

fn total(tallies: &Tallies) -> u64 {
    tallies.values().map(|tally| tally.executions).sum()
}

fn read(state: &PathBuf) -> Result<Tallies, Failure> {
    match fs::read(state) {
        Ok(text) => serde_json::from_slice(&text)
            .map_err(|error| format!("{}: {error}", state.display()).into()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Tallies::new()),
        Err(error) => Err(format!("{}: {error}", state.display()).into()),
    }
}

fn write(state: &Path, tallies: &Tallies) -> Outcome {
    let mut text = serde_json::to_string_pretty(tallies).map_err(|error| error.to_string())?;
    text.push('\n');
    fs::write(state, text).map_err(|error| format!("{}: {error}", state.display()).into())
}

/// Writes the counts between the marks in docs/conformance.md.
fn document(root: &Path, tallies: &Tallies) -> Outcome {
    let file = root.join("docs/conformance.md");
    let text = fs::read_to_string(&file).map_err(|error| error.to_string())?;
    let (before, rest) = text
        .split_once(BEGIN)
        .ok_or("docs/conformance.md has no place for the counts of fuzzing")?;
    let (_, after) = rest
        .split_once(END)
        .ok_or("docs/conformance.md has no end for the counts of fuzzing")?;
    let table = table(tallies);
    let text = format!("{before}{BEGIN}\n{table}{END}{after}");
    fs::write(&file, text).map_err(|error| error.to_string().into())
}

fn table(tallies: &Tallies) -> String {
    let mut lines = vec![
        "| target | executions | minutes | features | inputs |".to_owned(),
        "|---|---|---|---|---|".to_owned(),
    ];
    lines.extend(tallies.iter().map(|(target, tally)| {
        format!(
            "| {target} | {} | {} | {} | {} |",
            grouped(tally.executions),
            tally.seconds.div_ceil(60),
            grouped(tally.features),
            grouped(tally.inputs)
        )
    }));
    lines.push(format!("| all | {} | | | |\n", grouped(total(tallies))));
    lines.join("\n")
}

/// `number` with a comma before each three digits.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figures_of_a_run_are_read() {
        let text = "#2\tINITED cov: 5 ft: 6 corp: 1/1b exec/s: 0 rss: 30Mb\n\
                    #91833\tDONE   cov: 412 ft: 1733 corp: 208/9021b lim: 43 exec/s: 30611 rss: 61Mb\n\
                    Done 91833 runs in 3 second(s)\n\
                    stat::number_of_executed_units: 91833\n\
                    stat::average_exec_per_sec:     30611\n";
        let expected = Slice {
            executions: 91_833,
            features: 1733,
            inputs: 208,
        };
        assert_eq!(slice(text), Some(expected));
        assert_eq!(slice("Done 0 runs\n"), None);
    }

    #[test]
    fn targets_that_grow_run_longer() {
        let targets = ["a", "b", "c", "d"].map(str::to_owned);
        let seconds = |growth: &[(&str, u64)]| -> Vec<u64> {
            let growth = growth.iter().map(|(name, new)| ((*name).to_owned(), *new));
            let plan = lengths(&targets, &growth.collect(), Duration::from_secs(800));
            plan.iter().map(|(_, length)| length.as_secs()).collect()
        };
        assert_eq!(seconds(&[]), [200, 200, 200, 200]);
        assert_eq!(seconds(&[("a", 30), ("c", 10)]), [400, 100, 200, 100]);
    }

    #[test]
    fn a_target_runs_for_some_seconds_at_least() {
        let targets = ["a", "b"].map(str::to_owned);
        let plan = lengths(&targets, &BTreeMap::new(), Duration::from_secs(2));
        assert!(plan.iter().all(|(_, length)| *length == LEAST));
    }

    #[test]
    fn numbers_are_grouped() {
        assert_eq!(grouped(1_000_000_000), "1,000,000,000");
        assert_eq!(grouped(999), "999");
    }
}
