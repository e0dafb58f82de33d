//! `cargo xtask test --report`: where the time of the tests goes, and which of them fail now and then.

use std::collections::BTreeMap;
use std::fmt::Write as _;

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
    /// Takes the times from what a program has printed.
    pub(super) fn read(&mut self, program: &str, output: &str) {
        let tests = self.0.entry(program.to_owned()).or_default();
        for (test, passed, seconds) in output.lines().filter_map(result) {
            tests
                .entry(test.to_owned())
                .or_default()
                .add(passed, seconds);
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

    const WIRE: &str = "
running 3 tests
test h1::a ... ok <0.500s>
test h1::b ... FAILED <2.250s>
test h1::c ... ignored
test result: FAILED. 1 passed; 1 failed
";

    #[test]
    fn slow_and_flaky_tests_are_named() {
        let mut report = Report::default();
        let again = WIRE.replace("FAILED <2.250s>", "ok <1.000s>");
        for output in [WIRE, &again] {
            report.read("plimsoll-wire plimsoll_wire", output);
            report.read("plimsoll it", "test a ... ok <1.000s>\n");
        }
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
