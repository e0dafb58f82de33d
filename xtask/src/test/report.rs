//! `cargo xtask test --report`: where the time of the tests goes, and which of them fail now and then.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::step;
use crate::{Failure, Outcome};

/// Tests in the table of the slowest.
const SLOWEST: usize = 20;

/// What each test came to, by its program and name, over all runs.
#[derive(Debug, Default)]
pub(super) struct Report(BTreeMap<String, Tests>);

type Tests = BTreeMap<String, Seen>;

#[derive(Debug, Default, Clone, Copy, PartialEq)]
struct Seen {
    /// The longest run, in seconds.
    longest: f64,
    passed: u32,
    failed: u32,
}

impl Report {
    /// Has a command of cargo start test programs by [`run_program`]. Documentation tests have no times.
    pub(super) fn prepare(command: &mut Command) -> Outcome {
        let own = std::env::current_exe().map_err(|error| error.to_string())?;
        let runner = format!("{} test-program", own.display());
        command
            .args(["--lib", "--bins", "--tests", "--examples"])
            .env("CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER", &runner)
            .env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER", &runner);
        Ok(())
    }

    /// Runs it, shows what it prints, and keeps the times.
    pub(super) fn run(&mut self, root: &Path, command: &mut Command) -> Outcome {
        let shown = step::shown(command);
        println!("$ {shown}");
        let cannot = |error| Failure(format!("cannot run `{shown}`: {error}"));
        let mut child = command
            .current_dir(root)
            .stdout(Stdio::piped())
            .spawn()
            .map_err(cannot)?;
        if let Some(output) = child.stdout.take() {
            self.read(output);
        }
        let status = child.wait().map_err(|error| error.to_string())?;
        if status.success() {
            Ok(())
        } else {
            Err(format!("tests failed ({status})").into())
        }
    }

    fn read(&mut self, output: impl Read) {
        let mut program = String::new();
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            println!("{line}");
            if let Some(name) = line.strip_prefix(PROGRAM) {
                program = name_of(name);
            } else if let Some((test, passed, seconds)) = result(&line) {
                let tests = self.0.entry(program.clone()).or_default();
                tests
                    .entry(test.to_owned())
                    .or_default()
                    .add(passed, seconds);
            }
        }
    }

    /// The tables.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        let mut programs: Vec<(f64, &str, usize)> = Vec::new();
        let mut all: Vec<(f64, String)> = Vec::new();
        let mut flaky = Vec::new();
        for (program, tests) in &self.0 {
            programs.push((
                tests.values().map(|seen| seen.longest).sum(),
                program,
                tests.len(),
            ));
            for (test, seen) in tests {
                all.push((seen.longest, format!("{program} {test}")));
                if seen.failed > 0 && seen.passed > 0 {
                    let runs = seen.failed + seen.passed;
                    flaky.push(format!("{} of {runs}  {program} {test}", seen.failed));
                }
            }
        }
        programs.sort_by(|a, b| b.0.total_cmp(&a.0));
        all.sort_by(|a, b| b.0.total_cmp(&a.0));
        writeln!(
            text,
            "seconds of all tests of a program, as if one ran after the other"
        )
        .ok();
        for (seconds, program, tests) in programs {
            writeln!(text, "{seconds:>9.1}  {program}, {tests} tests").ok();
        }
        writeln!(text, "\nslowest tests, in seconds").ok();
        for (seconds, test) in all.iter().take(SLOWEST) {
            writeln!(text, "{seconds:>9.1}  {test}").ok();
        }
        if !flaky.is_empty() {
            writeln!(text, "\nfailed in some runs").ok();
            for line in flaky {
                writeln!(text, "{line}").ok();
            }
        }
        text
    }
}

impl Seen {
    fn add(&mut self, passed: bool, seconds: f64) {
        self.longest = self.longest.max(seconds);
        if passed {
            self.passed += 1;
        } else {
            self.failed += 1;
        }
    }
}

/// Before the name of a test's program.
const PROGRAM: &str = "== program ";

/// Becomes a test's program, which is to print how long each test takes. Its harness has that behind a variable, which is
/// not for cargo: it would build again what depends on it.
pub(crate) fn run_program(words: &[OsString]) -> Outcome {
    let (program, arguments) = words.split_first().ok_or("no program is given")?;
    let name = Path::new(program).file_name().unwrap_or(program);
    let package = std::env::var_os("CARGO_PKG_NAME").unwrap_or_default();
    println!("{PROGRAM}{} {}", package.display(), name.display());
    let mut command = Command::new(program);
    command
        .args(arguments)
        .args(["-Zunstable-options", "--report-time"])
        .env("RUSTC_BOOTSTRAP", "1");
    Err(format!("cannot run `{}`: {}", step::shown(&command), command.exec()).into())
}

/// `plimsoll-monitor it-0f3a…` is `plimsoll-monitor it`.
fn name_of(program: &str) -> String {
    let name = program.rsplit_once('-').map_or(program, |(name, _)| name);
    name.to_owned()
}

/// `test a::b ... ok <0.012s>`: name, whether it passed, seconds.
fn result(line: &str) -> Option<(&str, bool, f64)> {
    let rest = line.strip_prefix("test ")?;
    let (name, rest) = rest.split_once(" ... ")?;
    let (outcome, time) = rest.split_once(" <")?;
    let passed = match outcome {
        "ok" => true,
        "FAILED" => false,
        _ => return None,
    };
    let seconds = time.strip_suffix("s>")?.parse().ok()?;
    Some((name, passed, seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: &str = "\
== program plimsoll-wire plimsoll_wire-0f3a

running 3 tests
test h1::a ... ok <0.500s>
test h1::b ... FAILED <2.250s>
test h1::c ... ignored
test result: FAILED. 1 passed; 1 failed
== program plimsoll it-77
test a ... ok <1.000s>
";

    #[test]
    fn slow_and_flaky_tests_are_named() {
        let mut report = Report::default();
        report.read(RUN.as_bytes());
        report.read(RUN.replace("FAILED <2.250s>", "ok <1.000s>").as_bytes());
        assert_eq!(
            report.text(),
            "seconds of all tests of a program, as if one ran after the other
      2.8  plimsoll-wire plimsoll_wire, 2 tests
      1.0  plimsoll it, 1 tests

slowest tests, in seconds
      2.2  plimsoll-wire plimsoll_wire h1::b
      1.0  plimsoll it a
      0.5  plimsoll-wire plimsoll_wire h1::a

failed in some runs
1 of 2  plimsoll-wire plimsoll_wire h1::b
"
        );
    }
}
