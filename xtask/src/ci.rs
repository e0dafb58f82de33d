//! `cargo xtask ci`: all that must hold for a change to be taken.

use std::path::Path;
use std::thread;
use std::time::Duration;

use crate::clock::now;
use crate::packages;
use crate::step::{self, cargo};
use crate::{Failure, Outcome, advisories, deploy, instructions, test, tidy};

/// Version of cargo-deny that is installed where there is none.
const CARGO_DENY: &str = "0.20.2";

type Step = (&'static str, fn(&Path) -> Outcome);

/// The step that needs what is installed.
const TEST: &str = "test";

const STEPS: [Step; 10] = [
    ("fmt", fmt),
    ("clippy", clippy),
    ("deny", deny),
    ("advisories", advisories::check),
    ("features", features),
    ("docs", docs),
    ("tidy", tidy::run),
    (TEST, all_tests),
    ("instructions", counts),
    ("deploy", deploy::without_chart),
];

/// Runs every step, also after one has failed, and sums up.
pub(crate) fn run(root: &Path) -> Outcome {
    let results = thread::scope(|scope| {
        // While the steps before compile: it waits for the network and the disk. Where it fails, the tests fail by it.
        let mut installation = Some(scope.spawn(|| test::install(root)));
        STEPS.map(|(name, step)| {
            println!("\n== {name}");
            let began = now();
            if name == TEST
                && let Some(installation) = installation.take()
            {
                drop(installation.join());
            }
            let outcome = step(root);
            if let Err(Failure(message)) = &outcome {
                eprintln!("error: {message}");
            }
            (name, outcome, began.elapsed())
        })
    });
    // Of a long output often only the end is kept: it says all.
    let failures = failures(&results);
    if !failures.is_empty() {
        println!("\n{failures}");
    }
    println!("\n{}", summary(&results));
    let failed: Vec<&str> = results
        .iter()
        .filter(|(_, outcome, _)| outcome.is_err())
        .map(|&(name, _, _)| name)
        .collect();
    if failed.is_empty() {
        Ok(())
    } else {
        Err(format!("failed: {}", failed.join(", ")).into())
    }
}

fn fmt(root: &Path) -> Outcome {
    step::run(root, &mut cargo(&["fmt", "--all", "--check"]))
}

fn clippy(root: &Path) -> Outcome {
    // Behind `--`, so that only this workspace's crates are held to it and nothing is built twice.
    let arguments = [
        "clippy",
        "--workspace",
        "--all-targets",
        "--locked",
        "--",
        "-D",
        "warnings",
    ];
    step::run(root, &mut cargo(&arguments))
}

/// The smallest program compiles too: every test has all features.
fn features(root: &Path) -> Outcome {
    let arguments = [
        "check",
        "--package",
        "plimsoll",
        "--no-default-features",
        "--locked",
    ];
    step::run(root, &mut cargo(&arguments))
}

fn deny(root: &Path) -> Outcome {
    if packages::find("cargo-deny", &[]).is_none() {
        // It runs for seconds, and takes three times as long to compile with optimisation.
        let install = [
            "install",
            "--locked",
            "--debug",
            "--no-default-features",
            "cargo-deny",
            "--version",
            CARGO_DENY,
        ];
        step::run(
            root,
            cargo(&install).env("CARGO_PROFILE_DEV_DEBUG", "false"),
        )?;
    }
    let arguments = [
        "deny",
        "--workspace",
        "check",
        "bans",
        "licenses",
        "sources",
    ];
    step::run(root, &mut cargo(&arguments))
}

fn docs(root: &Path) -> Outcome {
    let mut command = cargo(&["doc", "--workspace", "--no-deps", "--locked"]);
    step::run(root, command.env("RUSTDOCFLAGS", "-D warnings"))
}

fn all_tests(root: &Path) -> Outcome {
    test::run(root, &test::Arguments::once())
}

fn counts(root: &Path) -> Outcome {
    instructions::run(root, &instructions::Arguments::of_tests())
}

/// A step, how it went, and how long it took.
type Finished = (&'static str, Outcome, Duration);

/// Why each step failed that did.
fn failures(results: &[Finished]) -> String {
    let reason = |(name, outcome, _): &Finished| match outcome {
        Ok(()) => None,
        Err(Failure(message)) => Some(format!("{name}: {message}")),
    };
    results
        .iter()
        .filter_map(reason)
        .collect::<Vec<_>>()
        .join("\n")
}

fn summary(results: &[Finished]) -> String {
    let line = |(name, outcome, took): &Finished| {
        let result = if outcome.is_ok() { "ok" } else { "FAILED" };
        format!("{name:<12}{result:<8}{:>7.1} s", took.as_secs_f64())
    };
    results.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_has_what_failed_and_a_line_per_step() {
        let results = [
            ("fmt", Ok(()), Duration::from_millis(1240)),
            ("clippy", Err("a warning".into()), Duration::from_secs(100)),
        ];
        assert_eq!(failures(&results), "clippy: a warning");
        assert_eq!(
            summary(&results),
            "fmt         ok          1.2 s\nclippy      FAILED    100.0 s"
        );
    }
}
