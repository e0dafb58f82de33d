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
            (name, outcome.is_ok(), began.elapsed())
        })
    });
    println!("\n{}", summary(&results));
    let failed: Vec<&str> = results
        .iter()
        .filter(|(_, passed, _)| !passed)
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

fn summary(results: &[(&str, bool, Duration)]) -> String {
    let line = |&(name, passed, took): &(&str, bool, Duration)| {
        let result = if passed { "ok" } else { "FAILED" };
        format!("{name:<12}{result:<8}{:>7.1} s", took.as_secs_f64())
    };
    results.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_has_a_line_per_step() {
        let results = [
            ("fmt", true, Duration::from_millis(1240)),
            ("clippy", false, Duration::from_secs(100)),
        ];
        assert_eq!(
            summary(&results),
            "fmt         ok          1.2 s\nclippy      FAILED    100.0 s"
        );
    }
}
