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
    let cases = Mutex::new(BTreeMap::new());
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
                    };
                    let wanted = program.cases(file, &nginx);
                    let seen = program.cases(file, &stand_in);
                    let mut cases = cases
                        .lock()
                        .unwrap_or_else(std::sync::PoisonError::into_inner);
                    for case in wanted.into_iter().filter(|it| it.passed) {
                        let is_passed = seen.iter().any(|it| it.number == case.number && it.passed);
                        cases.insert(format!("{file} {} {}", case.number, case.name), is_passed);
                    }
                }
            });
        }
    });
    let cases = cases.into_inner().unwrap_or_default();
    judge(&cases, bench)
}

/// A case that passed before must pass again; of others nothing is expected.
fn judge(cases: &BTreeMap<String, bool>, bench: &Bench<'_>) -> Result<Results, Failure> {
    let known: BTreeSet<_> = PASSING.lines().collect();
    let mut results = Results::default();
    let mut groups: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for (case, is_passed) in cases {
        let group = case.split(['_', '.']).next().unwrap_or_default();
        let (passed, all) = groups.entry(group).or_default();
        *passed += usize::from(*is_passed);
        *all += 1;
        if *is_passed {
            results.add_result(case, Ok(()));
        } else if known.contains(case.as_str()) {
            results.add_result(case, Err("it passed before".to_owned()));
        } else {
            results.skip("a case of what the import leaves out or does otherwise");
        }
    }
    for (group, (passed, all)) in groups {
        println!("{group:<16} {passed:>4} of {all:>4}");
    }
    // To take over into passing.txt.
    let passing = cases.iter().filter(|(_, is_passed)| **is_passed);
    let passing: Vec<_> = passing.map(|(case, _)| case.as_str()).collect();
    let passing = passing.join("\n") + "\n";
    let file = bench.plimsoll.with_file_name("nginx-tests-passing.txt");
    fs::write(&file, passing).map_err(|error| format!("{}: {error}", file.display()))?;
    println!("the cases that pass are in {}", file.display());
    Ok(results)
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
}

struct Case {
    number: usize,
    name: String,
    passed: bool,
}

impl Program<'_> {
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
