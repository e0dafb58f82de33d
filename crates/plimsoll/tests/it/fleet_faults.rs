//! Agents that are stopped, or killed at other moments than the middle of a run, or ended by a signal; and runs that are kept.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use plimsoll_testkit::{NatsServer, Origin, eventually};
use rustix::process::Signal;

use crate::fleet_process::{AgentProcess, agents, attach, begin, fleet, is_clean};
use crate::plimsoll::{CommandOutput, command};

#[test]
fn an_agent_that_is_stopped_is_lost_and_leaves_when_it_goes_on() {
    let server = NatsServer::start();
    let origin = Origin::hello();
    let agents = agents(&server, &[]);
    let (broker, url) = (server.url(), origin.url("/"));
    let flags = ["--json", "-q", "200", "-z", "60s", "--agent-timeout", "5s"];
    let child = command(&fleet(&broker, &flags, &url))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    eventually(|| origin.requests() >= 300);
    agents[1].signal(Signal::STOP);
    let output = CommandOutput::from_output(child.wait_with_output().unwrap()).exits(4);
    assert!(
        output
            .stderr
            .contains("agent two is lost: nothing was heard of it for 5s; the run ends"),
        "{output}"
    );
    let summary = output.json();
    assert_eq!(
        summary["agents"][1]["problem"],
        "nothing was heard of it for 5s"
    );
    // What it made after its last tick is in no figure.
    let counted = summary["counts"]["started"].as_u64().unwrap();
    let made = origin.requests();
    assert!(counted > 100 && counted <= made, "{counted} of {made}");
    agents[1].signal(Signal::CONT);
    // It heard no coordinator for a time, and the run is gone.
    eventually(|| agents[1].has_said("has left the run"));
    eventually(|| agents[0].has_said("has left the run"));
    eventually(|| is_clean(&server));
}

#[test]
fn an_agent_that_is_lost_before_the_start_ends_the_run_before_anything_is_sent() {
    for how in [Signal::KILL, Signal::STOP] {
        let server = NatsServer::start();
        let origin = Origin::hello();
        let agents = agents(&server, &[]);
        let (broker, url) = (server.url(), origin.url("/"));
        let mut arguments = fleet(&broker, &["--agent-timeout", "5s", "-n", "100"], &url);
        let number = arguments.iter().position(|it| *it == "2").unwrap();
        arguments[number] = "3";
        let mut child = command(&arguments)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        // It has offered itself, and the coordinator waits for the third one.
        let joined = lines.by_ref().map_while(Result::ok);
        let joined = joined
            .take_while(|line| !line.contains("agent one ("))
            .count();
        assert!(joined < 3, "{joined}");
        agents[0].signal(how);
        let _third = AgentProcess::start(&server, "zero", &[]).waits();
        let rest: Vec<_> = lines.map_while(Result::ok).collect();
        assert_eq!(child.wait().unwrap().code(), Some(3));
        let is_named = |line: &String| line.contains("agent one was lost before the start");
        assert!(rest.iter().any(is_named), "{rest:?}");
        assert_eq!(origin.requests(), 0);
        // One that is stopped leaves the run when it goes on; a killed one is gone.
        agents[0].signal(Signal::CONT);
        eventually(|| is_clean(&server));
    }
}

#[test]
fn an_agent_that_is_lost_near_the_end_makes_the_run_incomplete() {
    for how in [Signal::KILL, Signal::STOP] {
        let server = NatsServer::start();
        let origin = Origin::hello();
        let agents = agents(&server, &[]);
        let (broker, url) = (server.url(), origin.url("/"));
        let flags = ["--json", "-q", "200", "-z", "5s", "--agent-timeout", "5s"];
        let child = command(&fleet(&broker, &flags, &url))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // Of a thousand; the last tick of the agent and its end are to come.
        eventually(|| origin.requests() >= 850);
        agents[1].signal(how);
        let output = CommandOutput::from_output(child.wait_with_output().unwrap()).exits(4);
        let summary = output.json();
        assert_eq!(summary["agents"][0]["problem"], serde_json::Value::Null);
        assert_eq!(summary["agents"][0]["started"], 500);
        assert!(
            summary["agents"][1]["problem"].is_string(),
            "{}",
            summary["agents"]
        );
        let counted = summary["counts"]["started"].as_u64().unwrap();
        let made = origin.requests();
        assert!(counted >= 700 && counted <= made, "{counted} of {made}");
        // One that is stopped leaves the run when it goes on; a killed one is gone.
        agents[1].signal(Signal::CONT);
        eventually(|| is_clean(&server));
    }
}

#[test]
fn the_others_go_on_without_a_lost_agent_and_the_run_is_incomplete() {
    let server = NatsServer::start();
    let origin = Origin::hello();
    let agents = agents(&server, &[]);
    let flags = [
        "--json",
        "-q",
        "200",
        "-z",
        "8s",
        "--agent-timeout",
        "3s",
        "--on-agent-loss",
        "continue",
    ];
    let run = begin(&server, &flags, &origin);
    eventually(|| origin.requests() >= 300);
    agents[1].signal(Signal::KILL);
    let output = run.end().exits(4);
    let line = "agent two is lost: nothing was heard of it for 3s; the others go on";
    assert!(output.stderr.contains(line), "{output}");
    let summary = output.json();
    // The other one has made its own share, and nothing of the lost one's.
    assert_eq!(summary["agents"][0]["started"], 800);
    assert_eq!(summary["agents"][0]["problem"], serde_json::Value::Null);
    assert_eq!(
        summary["agents"][1]["problem"],
        "nothing was heard of it for 3s"
    );
    let counted = summary["counts"]["started"].as_u64().unwrap();
    let made = origin.requests();
    assert!(
        counted > 800 && counted <= made && made < 1600,
        "{counted} of {made}"
    );
    let warnings = summary["conditions"]["warnings"].to_string();
    assert!(warnings.contains("incomplete: agent two"), "{warnings}");
    eventually(|| is_clean(&server));
}

#[test]
fn an_agent_that_a_signal_ends_is_named_and_its_figures_are_whole() {
    for signal in [Signal::INT, Signal::TERM] {
        let server = NatsServer::start();
        let origin = Origin::hello();
        let mut agents = agents(&server, &[]);
        let run = begin(&server, &["--json", "-q", "200", "-z", "60s"], &origin);
        eventually(|| origin.requests() >= 300);
        agents[1].signal(signal);
        assert_eq!(agents[1].code(), Some(130));
        let output = run.end().exits(4);
        let line = "agent two is lost: it was ended by a signal; the run ends";
        assert!(output.stderr.contains(line), "{output}");
        let summary = output.json();
        // It has finished what it had begun, and said so.
        let made = origin.requests();
        assert_eq!(summary["counts"]["ok"], made);
        assert!(made < 60 * 200, "{made}");
        assert_eq!(summary["agents"][1]["problem"], "it was ended by a signal");
        let first = summary["conditions"]["warnings"][0].as_str();
        assert_eq!(
            first,
            Some("incomplete: agent two: it was ended by a signal")
        );
        eventually(|| is_clean(&server));
    }
}

#[test]
fn a_run_that_is_kept_is_reported_again() {
    let server = NatsServer::start();
    let origin = Origin::hello();
    let _agents = agents(&server, &[]);
    let folder = tempfile::tempdir().unwrap();
    let body = folder.path().join("body");
    std::fs::write(&body, "hello").unwrap();
    let body = body.to_string_lossy();
    let flags = ["--json", "-n", "300", "-c", "4", "-D", &body, "--keep"];
    let run = begin(&server, &flags, &origin);
    let name = run.name();
    let output = run.end().exits(0);
    assert!(
        output.stderr.contains("stay on the broker for a day"),
        "{output}"
    );
    let (first, [log, files]) = (
        output.json(),
        ["", "-files"].map(|end| format!("plimsoll-{name}{end}")),
    );
    let mut kept: Vec<_> = server.streams();
    kept.sort();
    let kept: Vec<_> = kept
        .iter()
        .map(|it| it.file_name().unwrap().to_str())
        .collect();
    assert_eq!(kept, [Some(&*log), Some(&*files)]);
    let again = attach(&server, &name).exits(0).json();
    for part in ["counts", "statuses", "agents"] {
        assert_eq!(again[part], first[part], "{part}");
    }
    assert_eq!(origin.requests(), 300);
    // It was to be kept once.
    eventually(|| is_clean(&server));
}
