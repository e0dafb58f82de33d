//! A broker that is away while a run goes on: nothing that was counted is lost, and the run does not wait for ever.

use plimsoll_testkit::{NatsServer, Origin, eventually};
use serde_json::Value;

use crate::fleet_kinds::loadtest;
use crate::fleet_process::{AgentProcess, RunProcess, agents, attach, begin, is_clean};

/// Whether the agents have stopped by themselves.
fn have_left(agents: &[AgentProcess]) -> bool {
    let has_left = |agent: &AgentProcess| agent.has_said("has left the run");
    agents.iter().all(has_left)
}

fn warnings(summary: &Value) -> String {
    summary["conditions"]["warnings"].to_string()
}

#[test]
fn a_broker_that_is_away_for_a_time_is_said_and_loses_nothing() {
    let mut server = NatsServer::start();
    let origin = Origin::hello();
    let _agents = agents(&server, &["--orphan-timeout", "60s"]);
    let run = begin(&server, &["--json", "-q", "200", "-z", "8s"], &origin);
    eventually(|| origin.requests() >= 300);
    server.stop();
    run.says("the broker is away; the run waits for it for up to 30s");
    // Agents go on without it.
    let before = origin.requests();
    eventually(|| origin.requests() >= before + 300);
    server.resume();
    run.says("the broker is back after");
    let output = run.end().exits(0);
    assert_eq!(output.json()["counts"]["ok"], 1600);
    assert_eq!(origin.requests(), 1600);
    eventually(|| is_clean(&server));
}

#[test]
fn a_broker_that_stays_away_ends_the_run_as_incomplete_and_the_rest_is_read_later() {
    let mut server = NatsServer::start();
    let origin = Origin::hello();
    let agents = agents(&server, &["--orphan-timeout", "5s"]);
    let flags = ["--json", "-q", "200", "-z", "60s", "--broker-timeout", "2s"];
    let run = begin(&server, &flags, &origin);
    let name = run.name();
    eventually(|| origin.requests() >= 300);
    server.stop();
    let output = run.end().exits(4);
    for line in [
        "the broker is away; the run waits for it for up to 2s",
        "the run ends with what was counted: the broker was away for 2s",
        "stay on the broker for a day: cannot delete the log: the broker is away",
    ] {
        assert!(output.stderr.contains(line), "no {line} in {output}");
    }
    assert!(
        output.stderr.contains(&format!("--attach {name}")),
        "{output}"
    );
    let summary = output.json();
    let counted = summary["counts"]["started"].as_u64().unwrap();
    assert!(counted > 0 && counted <= origin.requests(), "{counted}");
    let said = warnings(&summary);
    for agent in ["one", "two"] {
        let caution = format!("incomplete: agent {agent}: the broker was away for 2s");
        assert!(said.contains(&caution), "no {caution} in {said}");
    }
    // Agents stop by themselves. What they counted is in the log once the broker is back.
    eventually(|| have_left(&agents));
    let made = origin.requests();
    assert!(made < 60 * 200 && made > counted, "{made}");
    server.resume();
    let summary = attach(&server, &name).exits(4).json();
    assert_eq!(summary["counts"]["ok"], made);
    assert_eq!(origin.requests(), made);
    let said = warnings(&summary);
    assert!(
        said.contains("nothing was heard of the coordinator for 5s"),
        "{said}"
    );
    eventually(|| is_clean(&server));
}

#[test]
fn ctrl_c_ends_a_run_whose_broker_is_away_with_what_was_counted() {
    for (is_urgent, reason) in [
        (false, "the broker was away for "),
        (true, "the broker was away when the run was ended"),
    ] {
        let mut server = NatsServer::start();
        let origin = Origin::hello();
        let agents = agents(&server, &["--orphan-timeout", "5s"]);
        let flags = [
            "--json",
            "-q",
            "200",
            "-z",
            "60s",
            "--broker-timeout",
            "300s",
        ];
        let mut run = begin(&server, &flags, &origin);
        eventually(|| origin.requests() >= 300);
        server.stop();
        run.says("the broker is away");
        if is_urgent {
            run.interrupt_to_the_end();
        } else {
            run.interrupt();
        }
        let output = run.end().exits(130);
        let line = format!("the run ends with what was counted: {reason}");
        assert!(output.stderr.contains(&line), "no {line} in {output}");
        let summary = output.json();
        assert_eq!(summary["interrupted"], true);
        let counted = summary["counts"]["started"].as_u64().unwrap();
        assert!(counted > 0 && counted <= origin.requests(), "{counted}");
        let said = warnings(&summary);
        assert!(
            said.contains("incomplete: agent one: the broker was away"),
            "{said}"
        );
        eventually(|| have_left(&agents));
    }
}

#[test]
fn a_broker_that_stays_away_before_the_start_is_the_reason() {
    let mut server = NatsServer::start();
    let origin = Origin::hello();
    let _agent = AgentProcess::start(&server, "one", &[]).waits();
    let run = begin(&server, &["-n", "100", "--broker-timeout", "1s"], &origin);
    run.says("agent one (");
    server.stop();
    let output = run.end().exits(3);
    let line = "the broker was away for 1s before the start";
    assert!(output.stderr.contains(line), "{output}");
    assert_eq!(origin.requests(), 0);
}

#[test]
fn a_loadtest_whose_broker_stays_away_is_incomplete() {
    let mut server = NatsServer::start();
    let agents = agents(&server, &["--orphan-timeout", "5s"]);
    let flags = ["--json", "-c", "20", "-z", "60s", "--broker-timeout", "2s"];
    let run = RunProcess::start(&mut loadtest(&server, &flags));
    run.says("/s  two ");
    server.stop();
    let output = run.end().exits(4);
    let line = "the run ends with what was counted: the broker was away for 2s";
    assert!(output.stderr.contains(line), "{output}");
    let summary = output.json();
    let caution = summary["cautions"][0].as_str().unwrap();
    assert_eq!(caution, "incomplete: agent one: the broker was away for 2s");
    for agent in summary["agents"].as_array().unwrap() {
        assert!(agent["ok"].as_u64().unwrap() > 0, "{summary}");
    }
    eventually(|| have_left(&agents));
}
