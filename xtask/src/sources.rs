//! `cargo xtask sources`: what the source documents measure, measured again, into docs/performance.md.
//!
//! examples/sources/ says what is run and which figure belongs into which cell of which table.

mod document;
mod plan;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;
use serde_json::Value;

use crate::step;
use crate::{Failure, Outcome};
use plan::{Kind, Plan, Run};

/// How long, and where to
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The durations of the source documents; without it the whole takes about five minutes
    #[arg(long)]
    full: bool,

    /// Only these plans of examples/sources; the document is not written
    #[arg(long)]
    only: Vec<String>,

    /// Tell what would be run, and run nothing
    #[arg(long)]
    dry: bool,
}

/// The plans, in the order of the document.
const PLANS: [&str; 4] = ["checks", "loadtest", "sampler", "site"];

/// Runs the task.
pub(crate) fn run(root: &Path, arguments: &Arguments) -> Outcome {
    let folder = root.join("examples/sources");
    let mut plans = Vec::new();
    for name in PLANS {
        if arguments.only.is_empty() || arguments.only.iter().any(|only| only == name) {
            plans.push(Plan::read(&folder, name)?);
        }
    }
    let target = crate::bench::target_directory(root)?;
    let bench = Bench {
        root,
        folder,
        release: target.join("release"),
        criterion: target.join("criterion"),
        out: target.join(format!("sources-{}", std::process::id())),
        full: arguments.full,
    };
    if arguments.dry {
        for run in plans.iter().flat_map(|plan| &plan.run) {
            println!("$ {}", step::shown(&bench.command(run)));
        }
        return Ok(());
    }
    step::run(
        root,
        &mut step::cargo(&["build", "--release", "--locked", "-p", "plimsoll"]),
    )?;
    for build in plans.iter().flat_map(|plan| &plan.build) {
        let mut command = step::cargo(&["build", "--release", "--locked"]);
        step::run(root, command.args(build))?;
    }
    let mut found = BTreeMap::new();
    for plan in &plans {
        for run in &plan.run {
            // What cannot be run leaves its cells empty, with the reason; the others stand.
            let result = bench.run(run).map_err(|Failure(message)| message);
            if let Err(message) = &result {
                eprintln!("{}: {message}", run.name);
            }
            found.insert((plan.name.clone(), run.name.clone()), result);
        }
    }
    // It may not have been made.
    fs::remove_dir_all(&bench.out).ok();
    let text = document::render(&plans, &found, &bench.machine()?, arguments.full)?;
    if !arguments.only.is_empty() {
        println!("\n{text}");
        return Ok(());
    }
    let file = root.join("docs/performance.md");
    fs::write(&file, text).map_err(|error| format!("cannot write {}: {error}", file.display()))?;
    println!("wrote {}", file.display());
    Ok(())
}

/// What all runs share.
struct Bench<'a> {
    root: &'a Path,
    folder: PathBuf,
    release: PathBuf,
    criterion: PathBuf,
    out: PathBuf,
    full: bool,
}

impl Bench<'_> {
    fn command(&self, run: &Run) -> Command {
        let more = if self.full { &run.full } else { &run.quick };
        let words = run.command.iter().chain(more);
        let words: Vec<String> = words.map(|word| self.filled(word, &run.name)).collect();
        match run.kind {
            Kind::Json | Kind::Profile => {
                let mut command = Command::new(&words[0]);
                command.args(&words[1..]);
                command
            }
            Kind::Criterion => {
                let arguments = ["bench", "-p", "plimsoll-bench", "--locked", "--"];
                let mut command = step::cargo(&arguments);
                command.args(&words);
                command
            }
        }
    }

    fn filled(&self, word: &str, run: &str) -> String {
        word.replace(
            "{plimsoll}",
            &self.release.join("plimsoll").to_string_lossy(),
        )
        .replace("{dir}", &self.folder.to_string_lossy())
        .replace("{out}", &self.out.join(run).to_string_lossy())
    }

    /// Runs it and returns the document that it has printed, or that criterion has left.
    fn run(&self, run: &Run) -> Result<Value, Failure> {
        let mut command = self.command(run);
        match run.kind {
            Kind::Json => {
                println!("$ {}", step::shown(&command));
                let json = step::output(self.root, &mut command)?;
                serde_json::from_str(&json)
                    .map_err(|error| format!("{}: no JSON was printed: {error}", run.name).into())
            }
            Kind::Profile => {
                println!("$ {}", step::shown(&command));
                step::output(self.root, &mut command)?;
                let file = self.out.join(&run.name).join("profile.folded");
                let folded = fs::read_to_string(&file)
                    .map_err(|error| format!("cannot read {}: {error}", file.display()))?;
                shares(&folded, run)
            }
            Kind::Criterion => {
                step::run(self.root, &mut command)?;
                estimates(&self.criterion)
            }
        }
    }

    /// The machine as plimsoll tells it.
    fn machine(&self) -> Result<Value, Failure> {
        let mut command = Command::new(self.release.join("plimsoll"));
        command.args(["load", "--no-tui", "--json", "-n", "1", "-c", "1"]);
        let json = step::output(self.root, &mut command)?;
        let summary: Value = serde_json::from_str(&json).map_err(|error| error.to_string())?;
        Ok(summary["conditions"].clone())
    }
}

/// How much of the samples within a function is within others too, by the names of those.
///
/// - `folded`: lines of a stack, its functions separated by semicolons, and a count.
fn shares(folded: &str, run: &Run) -> Result<Value, Failure> {
    let stacks: Vec<(Vec<&str>, f64)> = folded
        .lines()
        .filter_map(|line| line.rsplit_once(' '))
        .filter_map(|(stack, count)| Some((stack.split(';').collect(), count.parse().ok()?)))
        .collect();
    let count = |function: &str| -> f64 {
        let within = stacks
            .iter()
            .filter(|(stack, _)| stack.contains(&run.within.as_str()) && stack.contains(&function));
        within.map(|(_, count)| count).sum()
    };
    let all = count(&run.within);
    if all <= 0.0 {
        let Run { name, within, .. } = run;
        return Err(format!("{name}: no samples in {within}").into());
    }
    let share =
        |(name, function): (&String, &String)| (name.clone(), (count(function) / all).into());
    Ok(Value::Object(run.shares.iter().map(share).collect()))
}

/// The mean of every benchmark that criterion has estimates of, in nanoseconds, by its folder's name.
fn estimates(criterion: &Path) -> Result<Value, Failure> {
    let cannot = |error: &dyn std::fmt::Display| {
        Failure(format!("cannot read {}: {error}", criterion.display()))
    };
    let mut means = serde_json::Map::new();
    for group in fs::read_dir(criterion).map_err(|error| cannot(&error))? {
        let group = group.map_err(|error| cannot(&error))?;
        let file = group.path().join("plimsoll/new/estimates.json");
        let Ok(json) = fs::read(&file) else { continue };
        let estimates: Value = serde_json::from_slice(&json).map_err(|error| cannot(&error))?;
        if let Some(mean) = estimates.pointer("/mean/point_estimate") {
            let name = group.file_name().to_string_lossy().into_owned();
            means.insert(name, mean.clone());
        }
    }
    Ok(Value::Object(means))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root() -> PathBuf {
        crate::root()
    }

    #[test]
    fn every_plan_is_whole() {
        for name in PLANS {
            let plan = Plan::read(&root().join("examples/sources"), name)
                .unwrap_or_else(|Failure(message)| panic!("{message}"));
            plan.check()
                .unwrap_or_else(|Failure(message)| panic!("{message}"));
        }
    }

    #[test]
    fn shares_are_of_the_samples_within_a_function() {
        let run: Run = toml::from_str(
            "name = \"x\"\nkind = \"profile\"\ncommand = []\nwithin = \"answer\"\nshares = { read = \"read\", none = \"hash\" }",
        )
        .expect("it is a run");
        let folded = "main;answer;read 30\nmain;answer;write 10\nother;read 60\n";
        let shares = shares(folded, &run).unwrap_or_else(|Failure(message)| panic!("{message}"));
        assert_eq!(shares, serde_json::json!({ "read": 0.75, "none": 0.0 }));
        assert!(super::shares("main;read 5\n", &run).is_err());
    }

    #[test]
    fn estimates_are_found_by_their_folders() {
        let folder = std::env::temp_dir().join(format!("plimsoll-xtask-{}", std::process::id()));
        let group = folder.join("http_check_single_1c/plimsoll/new");
        fs::create_dir_all(&group).expect("a temporary folder can be made");
        let json = r#"{"mean":{"point_estimate":37000.0}}"#;
        fs::write(group.join("estimates.json"), json).expect("and written to");
        let found = estimates(&folder).unwrap_or_else(|Failure(message)| panic!("{message}"));
        fs::remove_dir_all(&folder).expect("and removed");
        assert_eq!(found["http_check_single_1c"], 37000.0);
    }
}
