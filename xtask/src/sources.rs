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
    /// The durations of the source documents, about six hours with the burn-in; without it the whole takes about half an hour
    #[arg(long)]
    full: bool,

    /// Only these plans of examples/sources; the document is not written
    #[arg(long)]
    only: Vec<String>,

    /// Print what would be run, and run nothing
    #[arg(long)]
    dry: bool,
}

/// The plans, in the order of the document.
const PLANS: [&str; 8] = [
    "checks",
    "loadtest",
    "status-page",
    "sampler",
    "site",
    "gateway",
    "burn-in",
    "others",
];

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
        release: target.join("dist"),
        criterion: target.join("criterion"),
        peers: target.join("peers"),
        out: target.join(format!("sources-{}", std::process::id())),
        full: arguments.full,
    };
    if arguments.dry {
        for plan in &plans {
            for run in &plan.run {
                println!(
                    "$ {}",
                    step::shown(&bench.command(run, &bench.out(plan, run)))
                );
            }
        }
        return Ok(());
    }
    step::run(
        root,
        &mut step::cargo(&["build", "--profile", "dist", "--locked", "-p", "plimsoll"]),
    )?;
    for build in plans.iter().flat_map(|plan| &plan.build) {
        let mut command = step::cargo(&["build", "--profile", "dist", "--locked"]);
        step::run(root, command.args(build))?;
    }
    let mut found = BTreeMap::new();
    for plan in &plans {
        for run in &plan.run {
            // What cannot be run leaves its cells empty, with the reason; the others stand.
            let result = bench.run(run, &bench.out(plan, run));
            let result = result.map_err(|Failure(message)| {
                eprintln!("{}: {message}", run.name);
                bench.without_paths(&message)
            });
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
    peers: PathBuf,
    out: PathBuf,
    full: bool,
}

impl Bench<'_> {
    /// Where a run leaves its files.
    fn out(&self, plan: &Plan, run: &Run) -> PathBuf {
        self.out.join(&plan.name).join(&run.name)
    }

    fn command(&self, run: &Run, out: &Path) -> Command {
        let more = if self.full { &run.full } else { &run.quick };
        let words = run.command.iter().chain(more);
        let words: Vec<String> = words.map(|word| self.filled(word, out)).collect();
        match run.kind {
            Kind::Json | Kind::Profile => {
                let mut command = Command::new(&words[0]);
                command.args(&words[1..]);
                command
            }
            Kind::Criterion => {
                // By the profile of the program, whose crates are built then.
                let arguments = ["bench", "--profile", "dist", "-p", "plimsoll-bench"];
                let mut command = step::cargo(&arguments);
                command.args(["--locked", "--"]);
                command.args(&words);
                command
            }
        }
    }

    fn filled(&self, word: &str, out: &Path) -> String {
        word.replace(
            "{plimsoll}",
            &self.release.join("plimsoll").to_string_lossy(),
        )
        .replace("{dir}", &self.folder.to_string_lossy())
        .replace("{out}", &out.to_string_lossy())
    }

    /// The message as readers of another machine can use it.
    fn without_paths(&self, message: &str) -> String {
        let release = format!("{}/", self.release.display());
        message
            .replace(&*self.out.to_string_lossy(), "result")
            .replace(&*self.folder.to_string_lossy(), "examples/sources")
            .replace(&release, "")
    }

    /// Runs it and returns the document that it has printed, or that criterion has left.
    fn run(&self, run: &Run, out: &Path) -> Result<Value, Failure> {
        let mut command = self.command(run, out);
        match run.kind {
            Kind::Json => {
                println!("$ {}", step::shown(&command));
                // A trial that failed and a drift end the program with a code; their document has the other cells.
                let output = command
                    .current_dir(self.root)
                    .env("PATH", self.search_path()?)
                    .stderr(std::process::Stdio::inherit())
                    .output()
                    .map_err(|error| format!("{}: {error}", run.name))?;
                serde_json::from_slice(&output.stdout).map_err(|error| {
                    let status = output.status;
                    format!("{}: no JSON was printed ({status}): {error}", run.name).into()
                })
            }
            Kind::Profile => {
                println!("$ {}", step::shown(&command));
                step::output(self.root, &mut command)?;
                let file = out.join("profile.folded");
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

    /// Peers that `cargo xtask bench --install-peers` has installed are found first.
    fn search_path(&self) -> Result<std::ffi::OsString, Failure> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::iter::once(self.peers.join("bin")).chain(std::env::split_paths(&path));
        std::env::join_paths(folders).map_err(|error| error.to_string().into())
    }

    /// The machine as plimsoll reports it.
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
        // The sum of nothing would be -0.
        within
            .map(|(_, count)| count)
            .fold(0.0, |sum, count| sum + count)
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

/// The mean of every benchmark of ours that criterion has estimates of, in nanoseconds, by the names of its folders: those of peers have
/// the peer's behind the benchmark's.
fn estimates(criterion: &Path) -> Result<Value, Failure> {
    let mut means = serde_json::Map::new();
    add_estimates(criterion, "", &mut means)?;
    Ok(Value::Object(means))
}

fn add_estimates(folder: &Path, name: &str, means: &mut serde_json::Map<String, Value>) -> Outcome {
    let cannot = |error: &dyn std::fmt::Display| {
        Failure(format!("cannot read {}: {error}", folder.display()))
    };
    if let Ok(json) = fs::read(folder.join("new/estimates.json")) {
        let estimates: Value = serde_json::from_slice(&json).map_err(|error| cannot(&error))?;
        if let Some(mean) = estimates.pointer("/mean/point_estimate") {
            let name = name.strip_suffix("_plimsoll").unwrap_or(name);
            means.insert(name.to_owned(), mean.clone());
        }
        return Ok(());
    }
    for entry in fs::read_dir(folder).map_err(|error| cannot(&error))? {
        let entry = entry.map_err(|error| cannot(&error))?;
        if entry.path().is_dir() {
            let part = entry.file_name();
            let part = part.to_string_lossy();
            let name = match name {
                "" => part.into_owned(),
                name => format!("{name}_{part}"),
            };
            add_estimates(&entry.path(), &name, means)?;
        }
    }
    Ok(())
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
    fn what_could_not_be_run_is_a_reason_in_every_cell() {
        let folder = root().join("examples/sources");
        let plans: Vec<Plan> = PLANS
            .iter()
            .map(|name| {
                Plan::read(&folder, name).unwrap_or_else(|Failure(message)| panic!("{message}"))
            })
            .collect();
        let mut found = BTreeMap::new();
        for plan in &plans {
            for run in &plan.run {
                let key = (plan.name.clone(), run.name.clone());
                found.insert(key, Err("there is no machine".to_owned()));
            }
        }
        let text = document::render(&plans, &found, &Value::Null, false)
            .unwrap_or_else(|Failure(message)| panic!("{message}"));
        for table in plans.iter().flat_map(|plan| &plan.table) {
            assert!(
                text.contains(&format!("### {}\n", table.title)),
                "{}",
                table.title
            );
        }
        // Rows of tables have a mark in every cell but the first.
        let rows = text
            .lines()
            .skip_while(|line| !line.starts_with("### "))
            .filter(|line| line.starts_with("| "));
        for row in rows.filter(|row| row.contains("; *")) {
            let cells = row.trim_matches('|').split(" | ").count();
            assert_eq!(row.matches(" because* (").count() + 1, cells, "{row}");
        }
    }

    #[test]
    fn runs_of_one_name_leave_their_files_apart() {
        let bench = Bench {
            root: Path::new("/home/somebody/plimsoll"),
            folder: "/home/somebody/plimsoll/examples/sources".into(),
            release: "/home/somebody/plimsoll/target/release".into(),
            criterion: PathBuf::new(),
            peers: PathBuf::new(),
            out: "/home/somebody/plimsoll/target/sources-1".into(),
            full: false,
        };
        let plan = |name| {
            Plan::read(&root().join("examples/sources"), name)
                .unwrap_or_else(|Failure(message)| panic!("{message}"))
        };
        let mut outs = Vec::new();
        for plan in PLANS.map(plan) {
            for run in &plan.run {
                let out = bench.out(&plan, run);
                let shown = step::shown(&bench.command(run, &out));
                assert!(!bench.without_paths(&shown).contains("somebody"), "{shown}");
                outs.push(out);
            }
        }
        let all = outs.len();
        outs.sort();
        outs.dedup();
        assert_eq!(outs.len(), all);
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
        assert!(shares["none"].as_f64().is_some_and(f64::is_sign_positive));
        assert!(super::shares("main;read 5\n", &run).is_err());
    }

    #[test]
    fn estimates_are_found_by_their_folders() {
        let folder = std::env::temp_dir().join(format!("plimsoll-xtask-{}", std::process::id()));
        for (name, mean) in [
            ("http_check_single_1c/plimsoll", 37000.0),
            ("routing_find_matched_exact/last_rule_hit/100", 60.5),
        ] {
            let new = folder.join(name).join("new");
            fs::create_dir_all(&new).expect("a temporary folder can be made");
            let json = format!(r#"{{"mean":{{"point_estimate":{mean}}}}}"#);
            fs::write(new.join("estimates.json"), json).expect("and written to");
        }
        let found = estimates(&folder).unwrap_or_else(|Failure(message)| panic!("{message}"));
        fs::remove_dir_all(&folder).expect("and removed");
        assert_eq!(found["http_check_single_1c"], 37000.0);
        assert_eq!(found["routing_find_matched_exact_last_rule_hit_100"], 60.5);
    }
}
