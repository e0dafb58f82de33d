//! nginx's own tests, with `plimsoll` in nginx's place: its configurations are imported and served.
//!
//! The checkout is the repository `nginx-tests`. Each file runs twice, in a network namespace of its own: with nginx, whose
//! passing cases are the ones that count, and with a stand-in for nginx's command line. Three habits of the suite's helper
//! have nothing to do with what is tested and are changed for both: heads of requests end lines with a bare LF, names of fields are
//! compared letter by letter, and the TCP port beside one of QUIC is kept as a lock.

mod reference;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use regex::Regex;

use super::{Bench, Results};
use crate::packages::{self, Package};
use crate::{Failure, Outcome};

/// Cases that passed: none may fail again.
const PASSING: &str = include_str!("nginx_tests/passing.txt");

/// Causes by the files of which cases fail although the import says nothing about them.
const SILENT: &str = include_str!("nginx_tests/silent.toml");

/// Modules of nginx that the gateway does not stand for: mail, and programs in other languages.
const LEFT_OUT: &str = "^(mail_|imap|pop3|smtp|js_|perl|ssl_engine|image_filter)";

/// What the suite needs beside nginx.
const NEEDED: [Package; 3] = [
    Package {
        program: "/usr/share/perl5/IO/Socket/SSL.pm",
        name: "libio-socket-ssl-perl libcryptx-perl libfcgi-perl libscgi-perl libcache-memcached-perl",
    },
    Package {
        program: "/usr/share/perl5/Protocol/WebSocket.pm",
        name: "libprotocol-websocket-perl",
    },
    Package {
        program: "memcached",
        name: "memcached",
    },
];

/// Runs the suite.
pub(super) fn run(bench: &Bench<'_>) -> Result<Results, Failure> {
    packages::install(bench.checkout, &NEEDED)?;
    let suite = bench.scratch.join("nginx-tests");
    prepare(bench.checkout, &suite)?;
    let stand_in = bench.scratch.join("nginx");
    fs::write(&stand_in, include_str!("nginx_tests/stand_in.py"))
        .and_then(|()| fs::set_permissions(&stand_in, fs::Permissions::from_mode(0o755)))
        .map_err(|error| error.to_string())?;
    let files = files(&suite)?;
    let nginx = reference::build(bench.checkout, &bench.target)?;
    let notes = bench.scratch.join("notes");
    fs::create_dir_all(&notes).map_err(|error| error.to_string())?;
    let runs = Mutex::new(Vec::new());
    let next = AtomicUsize::new(0);
    // Tests wait more than they compute.
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(file) = files.get(number) else {
                        break;
                    };
                    if number.is_multiple_of(50) {
                        println!("{number} of {} files", files.len());
                    }
                    let program = Program {
                        nginx: &nginx,
                        plimsoll: &bench.plimsoll,
                        suite: &suite,
                        notes: &notes.join(file),
                    };
                    let run = program.compare(file, &stand_in);
                    let mut runs = runs
                        .lock()
                        .unwrap_or_else(std::sync::PoisonError::into_inner);
                    runs.push(run);
                }
            });
        }
    });
    let mut runs = runs.into_inner().unwrap_or_default();
    runs.sort_by(|one, other| one.file.cmp(&other.file));
    let silent: BTreeMap<String, String> = toml::from_str(SILENT)
        .map_err(|error| format!("xtask/src/outside/nginx_tests/silent.toml: {error}"))?;
    let results = judge(&runs, &silent);
    println!("{}", by_group(&runs));
    println!("{}", by_cause(&runs));
    // To take over into passing.txt.
    let cases = runs.iter().flat_map(|run| &run.cases);
    let mut passing: Vec<_> = cases.filter(|(_, is_passed)| *is_passed).collect();
    passing.sort();
    let passing: String = passing
        .into_iter()
        .flat_map(|(case, _)| [case.as_str(), "\n"])
        .collect();
    let file = bench.plimsoll.with_file_name("nginx-tests-passing.txt");
    fs::write(&file, passing).map_err(|error| format!("{}: {error}", file.display()))?;
    println!("the cases that pass are in {}", file.display());
    Ok(results)
}

/// What came of one file of the suite.
struct FileRun {
    file: String,
    /// The cases that nginx passes, and whether `plimsoll` does.
    cases: Vec<(String, bool)>,
    /// The directives that notes of the import are about.
    noted: BTreeSet<String>,
}

impl FileRun {
    /// The first word of its name, such as `proxy`.
    fn group(&self) -> &str {
        self.file.split(['_', '.']).next().unwrap_or_default()
    }

    fn missed(&self) -> usize {
        self.cases
            .iter()
            .filter(|(_, is_passed)| !is_passed)
            .count()
    }
}

/// A case that passed before must pass again. So must one of a file about which the import says nothing, unless the file is
/// among those that are known for that.
fn judge(runs: &[FileRun], silent: &BTreeMap<String, String>) -> Results {
    let known: BTreeSet<_> = PASSING.lines().collect();
    let mut results = Results::default();
    for run in runs {
        for (case, is_passed) in &run.cases {
            if *is_passed {
                results.add_result(case, Ok(()));
            } else if known.contains(case.as_str()) {
                results.add_result(case, Err("it passed before".to_owned()));
            } else if !run.noted.is_empty() {
                results.skip("a case of a file about which the import has a note");
            } else if let Some(cause) = silent.get(&run.file) {
                results.skip(if cause.is_empty() {
                    "a case of a file without a note, and the cause is not known yet"
                } else {
                    "a case of a file without a note, whose cause is known"
                });
            } else {
                let seen = "it fails, and the import has no note about its file";
                results.add_result(case, Err(seen.to_owned()));
            }
        }
    }
    results
}

/// A table of what passes, of what the import has a note about, and of what differs without one.
fn by_group(runs: &[FileRun]) -> String {
    let mut groups: BTreeMap<&str, [usize; 3]> = BTreeMap::new();
    for run in runs {
        let [passed, noted, differs] = groups.entry(run.group()).or_default();
        *passed += run.cases.len() - run.missed();
        let missed = if run.noted.is_empty() { differs } else { noted };
        *missed += run.missed();
    }
    let mut sum = [0; 3];
    let mut table =
        "| group | passed | left out, with a note | differs |\n|---|---|---|---|\n".to_owned();
    let row = |name: &str, [passed, noted, differs]: [usize; 3]| {
        format!("| {name} | {passed} | {noted} | {differs} |\n")
    };
    for (group, counts) in groups {
        for (sum, count) in sum.iter_mut().zip(counts) {
            *sum += count;
        }
        table.push_str(&row(group, counts));
    }
    table.push_str(&row("all", sum));
    table
}

/// A table of the directives that notes are about, by how many cases of their files fail. A file may have several.
fn by_cause(runs: &[FileRun]) -> String {
    let mut causes: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for run in runs.iter().filter(|run| run.missed() > 0) {
        for name in &run.noted {
            let (files, missed) = causes.entry(name).or_default();
            *files += 1;
            *missed += run.missed();
        }
    }
    let mut causes: Vec<_> = causes.into_iter().collect();
    causes.sort_by_key(|(name, (files, missed))| (usize::MAX - missed, *files, *name));
    let rows = causes
        .iter()
        .map(|(name, (files, missed))| format!("| `{name}` | {files} | {missed} |\n"));
    let head = "| note about | files | cases that fail there |\n|---|---|---|\n".to_owned();
    head + &rows.collect::<String>()
}

/// The directive that a line is a note about; an error is one about the whole file.
fn noted(line: &str) -> Option<&str> {
    let Some(note) = line.strip_prefix("note: ") else {
        return line.starts_with("error").then_some("the whole file");
    };
    // The file and the line come first.
    let mut parts = note.split(": ");
    parts.nth(1).filter(|name| !name.contains(' '))
}

/// Copies the suite, with the habits of its helper changed.
fn prepare(checkout: &Path, suite: &Path) -> Outcome {
    let copied = Command::new("cp")
        .args(["-rL", "--"])
        .args([checkout, suite])
        .status();
    if !copied.is_ok_and(|it| it.success()) {
        return Err(format!("cannot copy {}", checkout.display()).into());
    }
    let helper = suite.join("lib/Test/Nginx.pm");
    let text =
        fs::read_to_string(&helper).map_err(|error| format!("{}: {error}", helper.display()))?;
    let begin = "\tmy ($request, %extra) = @_;\n\tmy $s;\n";
    let end = "\tlog_in($reply);\n\treturn $reply;\n}\n\n###";
    if text.matches(begin).count() != 1 || text.matches(end).count() != 1 {
        return Err(format!("{} is another one than expected", helper.display()).into());
    }
    let text = text.replace(
        begin,
        &format!("{begin}{}", include_str!("nginx_tests/heads.pl")),
    );
    let text = text.replace(
        end,
        &format!("{}{end}", include_str!("nginx_tests/names.pl")),
    );
    // It keeps the TCP port of the same number as a lock, which a server of HTTP/3 listens on, too. A namespace needs none.
    let lock = "\t\tsocket => $lock\n";
    let no_lock = "\t\tsocket => $opts{udp} && is_quic() ? undef : $lock\n";
    let is_quic = "sub is_quic { open my $test, '<', $0 or return; local $/; <$test> =~ / quic\\b/ }\n\nsub port {";
    if text.matches(lock).count() != 1 {
        return Err(format!("{} is another one than expected", helper.display()).into());
    }
    let text = text
        .replace(lock, no_lock)
        .replacen("sub port {", is_quic, 1);
    fs::write(&helper, text).map_err(|error| error.to_string().into())
}

fn files(suite: &Path) -> Result<Vec<String>, Failure> {
    let left_out = Regex::new(LEFT_OUT).expect("it is a pattern");
    let entries = fs::read_dir(suite).map_err(|error| error.to_string())?;
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut files: Vec<_> = names
        .filter(|name| Path::new(name).extension().is_some_and(|it| it == "t"))
        .filter(|name| !left_out.is_match(name))
        .collect();
    files.sort();
    Ok(files)
}

struct Program<'a> {
    nginx: &'a Path,
    plimsoll: &'a Path,
    suite: &'a Path,
    /// Where the stand-in writes the notes of the import.
    notes: &'a Path,
}

struct Case {
    number: usize,
    name: String,
    passed: bool,
}

impl Program<'_> {
    /// Runs a file with nginx, and with a stand-in for it.
    fn compare(&self, file: &str, stand_in: &Path) -> FileRun {
        let wanted = self.cases(file, self.nginx);
        let seen = self.cases(file, stand_in);
        let cases = wanted.into_iter().filter(|it| it.passed).map(|case| {
            let is_passed = seen.iter().any(|it| it.number == case.number && it.passed);
            (format!("{file} {} {}", case.number, case.name), is_passed)
        });
        let notes = fs::read_to_string(self.notes).unwrap_or_default();
        FileRun {
            file: file.to_owned(),
            cases: cases.collect(),
            noted: notes.lines().filter_map(noted).map(str::to_owned).collect(),
        }
    }

    /// The cases of a file with this program as nginx.
    fn cases(&self, file: &str, program: &Path) -> Vec<Case> {
        let script = format!("ip link set lo up; exec timeout 120 prove -v {file}");
        let output = Command::new("unshare")
            .args(["-n", "sh", "-c", &script])
            .current_dir(self.suite)
            .env("TEST_NGINX_BINARY", program)
            .env("TEST_NGINX_GLOBALS", " user root; ")
            .env("REFERENCE", self.nginx)
            .env("PLIMSOLL", self.plimsoll)
            .env("NOTES", self.notes)
            .output();
        let output = output.map_or_else(|_| Vec::new(), |it| it.stdout);
        let text = String::from_utf8_lossy(&output);
        text.lines().filter_map(case).collect()
    }
}

/// A line such as `ok 3 - a name`; `None` of cases that are skipped or expected to fail.
fn case(line: &str) -> Option<Case> {
    let (passed, rest) = match line.strip_prefix("not ok ") {
        Some(rest) => (false, rest),
        None => (true, line.strip_prefix("ok ")?),
    };
    let (number, name) = rest.split_once(" - ").unwrap_or((rest, ""));
    let is_of_helper = ["no alerts", "no sanitizer errors"].contains(&name);
    if is_of_helper || name.contains("# skip") || name.contains("# TODO") {
        return None;
    }
    Some(Case {
        number: number.trim().parse().ok()?,
        name: name.trim().to_owned(),
        passed,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(file: &str, cases: &[(&str, bool)], notes: &str) -> FileRun {
        let cases = cases
            .iter()
            .map(|(case, is_passed)| ((*case).to_owned(), *is_passed));
        FileRun {
            file: file.to_owned(),
            cases: cases.collect(),
            noted: notes.lines().filter_map(noted).map(str::to_owned).collect(),
        }
    }

    #[test]
    fn a_miss_is_a_failure_where_the_import_says_nothing() {
        let runs = [
            run(
                "proxy_a.t",
                &[("proxy_a.t 1 x", true), ("proxy_a.t 2 y", false)],
                "",
            ),
            run(
                "proxy_b.t",
                &[("proxy_b.t 1 x", false), ("proxy_b.t 2 y", false)],
                "note: /tmp/x/nginx.conf:3: slice: left out: kept whole\nwrote it\n",
            ),
            run("map.t", &[("map.t 1 x", false)], ""),
            run(
                "ssi.t",
                &[("ssi.t 1 x", false)],
                "error: /tmp/x/nginx.conf:1: no\n",
            ),
        ];
        let silent = [("map.t".to_owned(), "a cause".to_owned())].into();
        let results = judge(&runs, &silent);
        assert_eq!(results.passed, 1);
        assert_eq!(results.failed.len(), 1);
        assert_eq!(results.failed[0].0, "proxy_a.t 2 y");
        assert_eq!(results.skipped.values().sum::<usize>(), 4);
        let groups = by_group(&runs);
        for row in [
            "| proxy | 1 | 2 | 1 |",
            "| ssi | 0 | 1 | 0 |",
            "| all | 1 | 3 | 2 |",
        ] {
            assert!(groups.contains(row), "{groups}");
        }
        let causes = by_cause(&runs);
        assert!(
            causes.contains("| `slice` | 1 | 2 |\n| `the whole file` | 1 | 1 |"),
            "{causes}"
        );
    }
}
