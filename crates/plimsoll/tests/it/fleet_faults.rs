//! Agents that are stopped, or killed at other moments than the middle of a run.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use plimsoll_testkit::{NatsServer, Origin, eventually};
use rustix::process::Signal;

use crate::fleet::{AgentProcess, agents, fleet, is_clean};
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
