//! The harness as its user meets it, with few workers.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use plimsoll_testkit::eventually;
use serde_json::Value;

use crate::plimsoll::{CommandOutput, command, plimsoll, run};

const SCHEMA: &str = include_str!("../../../../schemas/loadtest.v1.json");

/// The environment of the test run sets nothing.
pub(crate) fn without_variables(mut command: Command) -> Command {
    for name in [
        "CONCURRENCY",
        "DURATION_SECS",
        "TIMEOUT_MS",
        "MOCK_PORTS",
        "RAMP_SECS",
        "HTTP2",
    ] {
        command.env_remove(name);
    }
    command
}

const SMALL: [&str; 6] = ["-c", "200", "-z", "2s", "--ramp-up", "200ms"];

fn loadtest(flags: &[&str]) -> CommandOutput {
    run(&mut without_variables(command(
        &[&["loadtest"], flags].concat(),
    )))
}

/// The document of a run that went well, valid and with counts that add up.
pub(crate) fn document(output: &CommandOutput, least: u64) -> Value {
    let document = output.json();
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<_> = validator
        .iter_errors(&document)
        .map(|error| error.to_string())
        .collect();
    assert_eq!(errors, [""; 0], "{document}");
    let count = |name: &str| document["counts"][name].as_u64().unwrap();
    assert_eq!(
        count("started"),
        count("ok") + count("failed") + count("aborted")
    );
    assert_eq!(count("failed") + count("unmet") + count("aborted"), 0);
    assert!(count("ok") >= least, "{document}");
    document
}

#[test]
fn over_http2_workers_share_connections_in_one_process() {
    let flags = [&SMALL[..], &["--http2", "--json", "--threads", "1"]].concat();
    let document = document(&loadtest(&flags).exits(0), 200);
    let shape = &document["shape"];
    assert_eq!(shape["workers"], 200);
    assert_eq!(shape["connections"], "shared");
    assert_eq!(
        (&shape["processes"], &shape["listeners"]),
        (&1.into(), &16.into())
    );
    assert_eq!(document["connections_opened"], 16);
    assert!(document["peak_memory_bytes"].as_u64().unwrap() > 1 << 20);
    let ticks = document["ticks"].as_array().unwrap();
    assert!(ticks[0]["ok"].as_u64().unwrap() > 0, "{document}");
}

#[test]
fn over_http1_workers_keep_connections_in_several_processes() {
    // A limit on open files of its own, so that more processes are needed.
    let flags = "loadtest -c 200 -z 2s --ramp-up 200ms --json";
    let program = env!("CARGO_BIN_EXE_plimsoll");
    let mut shell = Command::new("sh");
    shell
        .arg("-c")
        .arg(format!("ulimit -n 244; exec {program} {flags}"));
    let document = document(&run(&mut without_variables(shell)).exits(0), 200);
    let shape = &document["shape"];
    assert_eq!(shape["connections"], "kept");
    assert_eq!(shape["client_processes"], 2);
    assert_eq!(shape["origin_processes"], 2);
    assert_eq!(shape["processes"], 5);
    assert_eq!(document["connections_opened"], 200);
}

#[test]
fn fresh_connections_are_one_for_each_check() {
    for flags in [&["--json"][..], &["--json", "--http2"]] {
        let flags = [&SMALL, flags, &["--disable-keepalive"]].concat();
        let document = document(&loadtest(&flags).exits(0), 200);
        assert_eq!(document["shape"]["connections"], "fresh");
        assert_eq!(document["connections_opened"], document["counts"]["ok"]);
    }
}

#[test]
fn the_program_loadtest_takes_the_variables_of_the_harness() {
    for (variable, protocol, processes) in [("1", "HTTP/2", 1), ("0", "HTTP/1.1", 3)] {
        let mut command = without_variables(Command::new(env!("CARGO_BIN_EXE_loadtest")));
        command
            .env("CONCURRENCY", "64")
            .env("DURATION_SECS", "1")
            .env("TIMEOUT_MS", "4000")
            .env("MOCK_PORTS", "3")
            .env("RAMP_SECS", "0.1")
            .env("HTTP2", variable);
        let document = document(&run(command.arg("--json")).exits(0), 64);
        let shape = &document["shape"];
        assert_eq!(shape["protocol"], protocol);
        assert_eq!(shape["workers"], 64);
        assert_eq!(shape["listeners"], 3);
        assert_eq!(shape["timeout_us"], 4e6);
        assert_eq!(shape["processes"], processes);
    }
}

#[test]
fn a_person_reads_a_line_each_second_and_a_summary() {
    let output = loadtest(&[&SMALL[..], &["--http2"]].concat()).exits(0);
    assert!(output.stderr.contains(" req/s "), "{output}");
    for part in [
        "200 workers over HTTP/2",
        "total",
        "success",
        "rps",
        "p50",
        "p95",
        "p99",
        "connections",
        "processes",
        "rss",
    ] {
        assert!(output.stdout.contains(part), "{part}: {output}");
    }
}

#[test]
fn timeouts_are_counted_by_name_and_decide_the_exit_code() {
    let flags = ["-c", "50", "-z", "3s", "--timeout", "200ms"];
    let (child, children) = started(&flags);
    let is_origin = |pid: &u32| {
        let line = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap();
        line.contains("loadtest-origins")
    };
    let origin = children.into_iter().find(is_origin).unwrap();
    signal("STOP", origin);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let [failure] = &document["failures"].as_array().unwrap()[..] else {
        panic!("{document}")
    };
    assert_eq!(failure["kind"], "timeout", "{document}");
    let count = |name: &str| document["counts"][name].as_u64().unwrap();
    assert_eq!(failure["count"], count("failed"));
    assert_eq!(
        count("started"),
        count("ok") + count("failed") + count("aborted")
    );
    assert!(!is_running(origin), "a stopped process is ended too");
}

#[test]
fn it_runs_in_a_network_of_its_own_or_says_why_not() {
    let output = loadtest(&["--netns", "--json", "-c", "20", "-z", "1s"]);
    if output.code == Some(3) {
        assert!(
            output.stderr.contains("--netns: this process may not"),
            "{output}"
        );
    } else {
        let document = document(&output.exits(0), 20);
        assert_eq!(document["shape"]["own_network"], true);
    }
}

#[test]
fn mistakes_are_reported_all_at_once() {
    let output = plimsoll(&[
        "loadtest",
        "-z",
        "1s",
        "--ramp-up",
        "2s",
        "--mock-ports",
        "5000",
    ]);
    let output = output.exits(2);
    for flag in ["--ramp-up", "--mock-ports"] {
        assert!(output.stderr.contains(flag), "{output}");
    }
}

/// The processes that `parent` has started, by their stat (proc(5)).
fn children_of(parent: u32) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|&pid| state(pid).is_some_and(|(_, of)| of == parent))
        .collect()
}

/// Its state, a letter, and its parent.
fn state(pid: u32) -> Option<(String, u32)> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(") ")?;
    let mut fields = rest.split(' ');
    Some((fields.next()?.to_owned(), fields.next()?.parse().ok()?))
}

fn is_running(pid: u32) -> bool {
    state(pid).is_some_and(|(state, _)| state != "Z")
}

#[test]
fn an_interrupt_ends_all_processes_and_prints_what_there_is() {
    ends_by("INT", Some(130));
}

#[test]
fn processes_end_with_the_one_that_started_them() {
    ends_by("KILL", None);
}

fn ends_by(name: &str, code: Option<i32>) {
    let (child, children) = started(&["-c", "50", "-z", "10m"]);
    signal(name, child.id());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), code);
    eventually(|| children.iter().all(|pid| !is_running(*pid)));
    if code.is_some() {
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(document["interrupted"], true);
        assert!(document["counts"]["ok"].as_u64().unwrap() > 0, "{document}");
        assert_eq!(document["counts"]["failed"], 0);
    }
}

/// A run that has printed its first line, and the two processes it started.
fn started(flags: &[&str]) -> (Child, Vec<u32>) {
    let flags = [&["loadtest", "--json"], flags].concat();
    let mut child = without_variables(command(&flags))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.as_mut().unwrap()).lines();
    assert!(lines.next().unwrap().unwrap().contains("req/s"));
    let children = children_of(child.id());
    assert_eq!(children.len(), 2);
    (child, children)
}

fn signal(name: &str, process: u32) {
    let mut kill = Command::new("kill");
    let status = kill.args(["-s", name, &process.to_string()]).status();
    assert!(status.unwrap().success());
}
