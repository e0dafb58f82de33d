//! `cargo xtask test`: every test, with what it needs.

mod programs;
mod report;
mod since;

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZero;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use clap::Args;

use self::programs::Setting;
use self::report::Report;
use self::since::Changed;
use crate::packages::{self, Package};
use crate::step;
use crate::{Failure, Outcome, bench, chaos_table, services};

/// What is tested
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Only these packages (all of them without)
    #[arg(short, long = "package", value_name = "NAME")]
    packages: Vec<String>,

    /// Only tests that are new or different since this commit; with `--repeat 20 --busy` before they are kept
    #[arg(long, value_name = "COMMIT", conflicts_with_all = ["packages", "rest"])]
    since: Option<String>,

    /// Run them this many times, and fail if one run fails
    #[arg(long, value_name = "TIMES", default_value_t = 1)]
    repeat: u32,

    /// Keep one core busy meanwhile: tests that look at a state before it is reached fail
    #[arg(long)]
    busy: bool,

    /// Let test origins accept and read this late: tests that look at a count once fail each time
    #[arg(long, value_name = "MILLISECONDS")]
    late: Option<u32>,

    /// Let tests run at this date, in UTC: a test that holds only at some hours or days fails
    #[arg(long, value_name = "2027-02-28T23:59:30")]
    at: Option<jiff::civil::DateTime>,

    /// Print how long programs and the slowest tests take, and which tests fail in some runs only
    #[arg(long, conflicts_with = "at")]
    report: bool,

    /// Build without debug information: sooner, and backtraces have no lines
    #[arg(long)]
    no_debug_info: bool,

    /// Run tests that fail once more, alone, if they are no more than this: those that pass then are named, and are no failure
    #[arg(long, value_name = "TESTS", default_value_t = 0)]
    second_chances: usize,

    /// Passed on to the tests
    #[arg(last = true)]
    rest: Vec<String>,
}

impl Arguments {
    /// All tests, once, as soon as they can be.
    pub(crate) fn once() -> Self {
        Self {
            packages: Vec::new(),
            since: None,
            repeat: 1,
            busy: false,
            late: None,
            at: None,
            report: false,
            no_debug_info: true,
            second_chances: SECOND_CHANCES,
            rest: Vec::new(),
        }
    }
}

/// Of some thousand tests: more are no chance.
const SECOND_CHANCES: usize = 2;

/// How many tests of a program run at once.
const THREADS: &str = "RUST_TEST_THREADS";

/// Programs that tests run against.
const NEEDED: [Package; 17] = [
    packages::NGINX,
    packages::NGINX_STREAM,
    packages::WRK,
    packages::NGHTTPD,
    packages::CADDY,
    packages::HAPROXY,
    packages::APACHE,
    packages::CHROMIUM,
    packages::CURL,
    packages::GIT,
    packages::PGREP,
    packages::PYTHON,
    packages::PEBBLE,
    packages::NGTCP2,
    packages::OPENSSL,
    packages::STRACE,
    packages::ZSTD,
];

/// Installs what is missing of all that tests run against.
pub(crate) fn install(root: &Path) -> Outcome {
    packages::install(root, &NEEDED)?;
    services::install(root).map(drop)
}

/// Runs the task.
pub(crate) fn run(root: &Path, arguments: &Arguments) -> Outcome {
    install(root)?;
    if arguments.at.is_some() {
        packages::install(root, &[packages::FAKETIME])?;
    }
    let chaos = bench::target_directory(root)?.join("tmp/chaos");
    chaos_table::clear(&chaos);
    let _busy = arguments.busy.then(BusyCore::new);
    let mut report = arguments.report.then(Report::default);
    let mut failed = Vec::new();
    let mut reasons = Vec::new();
    let mut flaky = Vec::new();
    let changed = match &arguments.since {
        Some(commit) => Some(since::changed(root, commit)?),
        None => None,
    };
    let mut built = programs::build(root, &mut of_cargo(arguments, changed.as_ref()))?;
    if let Some(changed) = &changed {
        built.keep(root, changed);
    }
    for run in 1..=arguments.repeat {
        if arguments.repeat > 1 {
            println!("\n== run {run} of {}", arguments.repeat);
        }
        let ran = programs::run(
            &built.programs,
            cores(),
            &setting(arguments),
            |program, output| {
                if let Some(report) = &mut report {
                    report.read(&program.title(), output);
                }
            },
        );
        // They have no times.
        let documented = match report {
            Some(_) => Ok(()),
            None => documentation(root, &built.libraries, arguments),
        };
        let ran = ran.map(|said| flaky.push(said));
        if let Err(Failure(message)) = ran.and(documented) {
            failed.push(run);
            reasons.push(message);
        }
    }
    if let Some(report) = &report {
        println!("\n{}", report.text());
    }
    let table = chaos_table::table(&chaos);
    if !table.is_empty() {
        println!("\nhostile clients, and what the server does about them\n\n{table}\n");
    }
    for said in flaky.iter().filter(|it| !it.is_empty()) {
        println!("\n{said}");
    }
    match failed.as_slice() {
        [] => Ok(()),
        _ if arguments.repeat == 1 => Err(reasons.concat().into()),
        runs => Err(format!(
            "{}\n\n{} of {} runs failed: {runs:?}",
            reasons.join("\n\n"),
            runs.len(),
            arguments.repeat
        )
        .into()),
    }
}

/// Cargo with what chooses and builds tests.
fn of_cargo(arguments: &Arguments, changed: Option<&Changed>) -> Command {
    // All failures of a run are reported, not those of the first crate that has one.
    let mut command = step::cargo(&["test", "--locked", "--no-fail-fast"]);
    if arguments.packages.is_empty() && changed.is_none() {
        command.arg("--workspace");
    }
    // The name of a package is that of its folder.
    for folder in changed.into_iter().flat_map(BTreeMap::keys) {
        let name = folder.rsplit('/').next().unwrap_or(folder);
        command.args(["--package", name]);
    }
    for package in &arguments.packages {
        command.args(["--package", package]);
    }
    if arguments.no_debug_info {
        command.env("CARGO_PROFILE_DEV_DEBUG", "false");
    }
    command
}

/// Variables and words with which each program runs.
fn setting(arguments: &Arguments) -> Setting<'_> {
    let mut before = Vec::new();
    let mut variables = Vec::new();
    if let Some(late) = arguments.late {
        variables.push(("PLIMSOLL_LATE_ORIGINS", format!("{late}ms")));
    }
    if let Some(at) = arguments.at {
        // Waits are as long as ever.
        before.extend(["faketime", "--exclude-monotonic", "-f"].map(str::to_owned));
        before.push(format!("@{at}"));
        variables.push(("FAKETIME_FMT", "%Y-%m-%dT%H:%M:%S".to_owned()));
        variables.push(("TZ", "UTC".to_owned()));
    }
    if std::env::var_os(THREADS).is_none() {
        // Tests mostly wait, so more of them run at once than there are cores.
        variables.push((THREADS, (3 * cores()).div_ceil(2).to_string()));
    }
    Setting {
        before,
        arguments: &arguments.rest,
        times: arguments.report,
        second_chances: arguments.second_chances,
        variables,
    }
}

/// The tests in the documentation of libraries, which cargo alone can build.
fn documentation(root: &Path, libraries: &BTreeSet<String>, arguments: &Arguments) -> Outcome {
    if libraries.is_empty() {
        return Ok(());
    }
    let mut command = step::cargo(&["test", "--locked", "--no-fail-fast", "--doc"]);
    for library in libraries {
        command.args(["--package", library]);
    }
    if arguments.no_debug_info {
        command.env("CARGO_PROFILE_DEV_DEBUG", "false");
    }
    if !arguments.rest.is_empty() {
        command.arg("--").args(&arguments.rest);
    }
    step::run(root, &mut command)
}

fn cores() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get)
}

/// A thread that computes until this is dropped.
struct BusyCore(Arc<AtomicBool>);

impl BusyCore {
    fn new() -> Self {
        let ends = Arc::new(AtomicBool::new(false));
        let thread_ends = Arc::clone(&ends);
        thread::spawn(move || {
            while !thread_ends.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        });
        Self(ends)
    }
}

impl Drop for BusyCore {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
