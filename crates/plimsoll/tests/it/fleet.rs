//! `plimsoll load --fleet` with agents that are processes of their own, over Debian's nats-server, against an origin that counts.

use std::fs;
use std::process::Stdio;

use plimsoll_testkit::{NatsServer, Origin, eventually};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::fleet_process::{AgentProcess, agents, attach, begin, fleet, is_clean, run};
use crate::plimsoll::{CommandOutput, command, plimsoll};

#[test]
fn two_agents_make_exactly_the_requests_of_one_run() {
    let server = NatsServer::start();
    let origin = Origin::hello();
    let _agents = agents(&server, &[]);
    let output = run(
        &server,
        &["--json", "-n", "2001", "-c", "7"],
        &origin.url("/"),
    )
    .exits(0);
    let summary = output.json();
    assert_eq!(summary["counts"]["ok"], 2001);
    assert_eq!(summary["counts"]["started"], 2001);
    assert_eq!(summary["statuses"]["200"], 2001);
    assert_eq!(summary["load"]["workers"], 4);
    assert_eq!(summary["latency"]["from_started"]["count"], 2001);
    let agents = summary["agents"].as_array().unwrap();
    assert_eq!(agents.len(), 2);
    let (mut started, mut measured) = (0, 0);
    for (agent, name) in agents.iter().zip(["one", "two"]) {
        assert_eq!(agent["name"], name);
        assert_eq!(agent["workers"], 2);
        assert_eq!(agent["problem"], Value::Null);
        assert_eq!(agent["errors"], 0);
        assert!(agent["late_us"].as_f64().is_some(), "{agent}");
        started += agent["started"].as_u64().unwrap();
        measured += agent["latency"]["count"].as_u64().unwrap();
    }
    assert_eq!((started, measured), (2001, 2001));
    assert_eq!(origin.requests(), 2001);
    assert!(
        output.stderr.contains("2 agents start in half a second"),
        "{output}"
    );
    eventually(|| is_clean(&server));
}

#[test]
fn an_open_loop_of_two_agents_has_every_arrival() {
    let server = NatsServer::start();
    let origin = Origin::hello();
    let agents = agents(&server, &[]);
    let flags = ["--json", "-q", "500", "-z", "3s", "-c", "20"];
    let summary = run(&server, &flags, &origin.url("/")).exits(0).json();
    assert_eq!(summary["counts"]["ok"], 1500);
    assert_eq!(origin.requests(), 1500);
    let ticks = summary["ticks"].as_array().unwrap();
    let of_ticks: u64 = ticks.iter().map(|tick| tick["ok"].as_u64().unwrap()).sum();
    assert_eq!(of_ticks, 1500);
    // An agent is there for the next run.
    let flags = ["--json", "-n", "100", "-c", "4"];
    let summary = run(&server, &flags, &origin.url("/")).exits(0).json();
    assert_eq!(summary["counts"]["ok"], 100);
    assert_eq!(origin.requests(), 1600);
    assert!(agents.iter().all(|agent| agent.has_said("the run is over")));
}

#[cfg(all(feature = "site", target_os = "linux"))]
#[test]
fn the_coordinator_observes_servers_beside_the_load_of_all_agents() {
    use crate::served::Served;

    let server = NatsServer::start();
    let (sampling, web) = (
        Served::start(&["observe", "--listen", "127.0.0.1:0", "--allow", "pid"]),
        Served::start(&["origin"]),
    );
    let _agents = agents(&server, &[]);
    let name = format!("web={}?pid={}", sampling.url, web.child.id());
    let threshold = "server_cpu_per_request{name:web}:value<1s";
    let flags = [
        "--json",
        "-q",
        "400",
        "-z",
        "3s",
        "-c",
        "20",
        "--observe",
        &name,
        "--threshold",
        threshold,
    ];
    let summary = run(&server, &flags, &web.url).exits(0).json();
    let observed = &summary["observed"][0];
    assert_eq!(observed["whole"], true, "{observed}");
    // Responses of all agents within the window.
    let completed = &summary["counts"]["completed_in_window"];
    assert_eq!(&observed["cost"]["exchanges"], completed);
    assert!(observed["cost"]["cpu_us_per_request"].as_f64().unwrap() > 0.0);
    assert_eq!(summary["target"]["exchanges"], *completed);
    let window = observed["cost"]["window_us"].as_f64().unwrap();
    assert!((window - 3e6).abs() < 0.5e6, "{window}");
    assert_eq!(summary["thresholds"][0]["verdict"], "met");
    eventually(|| is_clean(&server));
}

#[test]
fn an_agent_that_is_killed_makes_the_run_incomplete() {
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
    agents[1].signal(Signal::KILL);
    let output = CommandOutput::from_output(child.wait_with_output().unwrap()).exits(4);
    assert!(
        output
            .stderr
            .contains("agent two is lost: nothing was heard of it for 5s; the run ends"),
        "{output}"
    );
    let summary = output.json();
    let warnings = summary["conditions"]["warnings"].to_string();
    assert!(
        warnings.contains("incomplete: agent two: nothing was heard"),
        "{warnings}"
    );
    assert_eq!(summary["agents"][0]["problem"], Value::Null);
    assert_eq!(
        summary["agents"][1]["problem"],
        "nothing was heard of it for 5s"
    );
    // What was counted is there, without the last ticks of the one that was killed.
    let counted = summary["counts"]["started"].as_u64().unwrap();
    let made = origin.requests();
    assert!(counted > 100 && counted <= made, "{counted} of {made}");
    assert!(made < 60 * 200, "the other one was stopped: {made}");
    eventually(|| agents[0].has_said("the run is over"));
}

#[test]
fn two_agents_of_one_name_are_refused_with_both_processes() {
    let server = NatsServer::start();
    let origin = Origin::hello();
    let agents = ["same", "same"].map(|name| AgentProcess::start(&server, name, &[]).waits());
    let output = run(&server, &["-n", "100", "-c", "4"], &origin.url("/")).exits(3);
    assert!(
        output.stderr.contains("two agents are named same"),
        "{output}"
    );
    for agent in &agents {
        let process = format!(".{}.", agent.id());
        assert!(output.stderr.contains(&process), "{process}: {output}");
    }
    assert_eq!(origin.requests(), 0);
    eventually(|| is_clean(&server));
}

#[test]
fn a_log_that_is_full_ends_the_run_with_what_was_counted() {
    let server = NatsServer::start();
    let origin = Origin::hello();
    let agents = agents(&server, &[]);
    let flags = ["--json", "-q", "400", "-z", "120s", "--fleet-log", "64KiB"];
    let output = run(&server, &flags, &origin.url("/")).exits(4);
    assert!(
        output
            .stderr
            .contains("the log may be too small: 240 ticks"),
        "{output}"
    );
    assert!(
        output
            .stderr
            .contains("the log of the run is full: allow more with `load --fleet-log SIZE`"),
        "{output}"
    );
    let summary = output.json();
    let warnings = summary["conditions"]["warnings"].to_string();
    assert!(warnings.contains("incomplete: agent"), "{warnings}");
    let counted = summary["counts"]["started"].as_u64().unwrap();
    let made = origin.requests();
    assert!(counted > 100 && counted <= made, "{counted} of {made}");
    assert!(made < 120 * 400, "{made}");
    eventually(|| {
        agents
            .iter()
            .all(|agent| agent.has_said("has left the run"))
    });
    eventually(|| is_clean(&server));
}

#[test]
fn a_dry_run_prints_the_parts_and_sends_nothing() {
    let server = NatsServer::start();
    let origin = Origin::hello();
    let agents = agents(&server, &[]);
    let flags = ["--dry-run", "-q", "300", "-c", "20"];
    let output = run(&server, &flags, &origin.url("/")).exits(0);
    for agent in ["one", "two"] {
        let line = output.stdout.lines().find(|line| line.starts_with(agent));
        let words: Vec<_> = line.unwrap().split_whitespace().collect();
        assert_eq!(words, [agent, "2", "of", "4", "10", "150"], "{output}");
    }
    assert_eq!(origin.requests(), 0);
    eventually(|| is_clean(&server));
    // They are there for the run itself.
    let flags = ["--json", "-n", "40", "-c", "4"];
    let summary = run(&server, &flags, &origin.url("/")).exits(0).json();
    assert_eq!(summary["counts"]["ok"], 40);
    drop(agents);
}

#[test]
fn manifests_are_printed_without_a_broker_and_have_no_password() {
    let flags = [
        "load",
        "--fleet",
        "nats://user:word@broker.invalid:4222",
        "--kubernetes",
        "3",
        "--kubernetes-name",
        "shop",
        "-q",
        "300",
        "http://shop.example.org/",
    ];
    let output = plimsoll(&flags).exits(0);
    for part in [
        "completions: 3",
        "\"shop-agents\"",
        "--allow=shop.example.org",
    ] {
        assert!(output.stdout.contains(part), "{part}\n{output}");
    }
    assert!(!output.stdout.contains("word"), "{output}");
    assert!(
        output.stderr.contains("--from-literal=nats=URL"),
        "{output}"
    );
    let refused = plimsoll(&[&flags[..], &["--out", "/nowhere"]].concat()).exits(2);
    assert!(refused.stderr.contains("--out"), "{refused}");
    let output = plimsoll(&[&flags[..], &["--dry-run", "-c", "10"]].concat()).exits(0);
    assert_eq!(output.stdout.matches("1 of 3").count(), 3, "{output}");
}

#[test]
fn too_few_agents_are_an_error_with_their_number() {
    let server = NatsServer::start();
    let origin = Origin::hello();
    let _agent = AgentProcess::start(&server, "one", &[]).waits();
    let output = run(&server, &["--agent-wait", "1s"], &origin.url("/")).exits(3);
    assert!(
        output.stderr.contains("1 of 2 agents are there after 1s"),
        "{output}"
    );
    assert!(
        output.stderr.contains("plimsoll agent --nats URL"),
        "{output}"
    );
    assert_eq!(origin.requests(), 0);
    eventually(|| is_clean(&server));
}

#[test]
fn a_threshold_is_judged_over_all_agents_and_ends_the_run() {
    let server = NatsServer::start();
    let origin = Origin::hello();
    let _agents = agents(&server, &[]);
    let flags = [
        "--json",
        "-q",
        "100",
        "-z",
        "60s",
        "--threshold",
        "http_reqs:rate>=100000/s abort after 2s",
    ];
    let summary = run(&server, &flags, &origin.url("/")).exits(1).json();
    assert_eq!(summary["thresholds"][0]["ended_run"], true);
    assert!(origin.requests() < 3000, "{}", origin.requests());
}

#[test]
fn rows_that_are_used_once_are_used_once_over_all_agents() {
    let server = NatsServer::start();
    let origin = Origin::hello();
    let _agents = agents(&server, &[]);
    let folder = tempfile::tempdir().unwrap();
    let rows = folder.path().join("rows.csv");
    let names: Vec<_> = (0..101).map(|number| format!("row-{number:03}")).collect();
    fs::write(&rows, format!("name\n{}\n", names.join("\n"))).unwrap();
    let rows = rows.to_string_lossy().into_owned();
    let flags = [
        "--json",
        "--feeder",
        &rows,
        "--feeder-order",
        "sequential",
        "-c",
        "6",
    ];
    let target = origin.url("/{{name}}");
    let summary = run(&server, &flags, &target).exits(0).json();
    assert_eq!(summary["counts"]["ok"], 101);
    let heads = origin.heads().concat();
    for name in &names {
        assert_eq!(heads.matches(name.as_str()).count(), 1, "{name}");
    }
}

#[test]
fn each_user_of_all_agents_keeps_a_row_of_its_own() {
    let server = NatsServer::start();
    let origin = Origin::hello();
    let _agents = agents(&server, &[]);
    let folder = tempfile::tempdir().unwrap();
    let rows = folder.path().join("rows.csv");
    let names: Vec<_> = (0..7).map(|number| format!("row-{number}")).collect();
    fs::write(&rows, format!("name\n{}\n", names.join("\n"))).unwrap();
    let rows = rows.to_string_lossy().into_owned();
    let flags = ["--json", "--feeder", &rows, "--feeder-order", "per-user"];
    let flags = [&flags[..], &["-c", "7", "-z", "2s", "--think", "100ms"]].concat();
    let summary = run(&server, &flags, &origin.url("/{{name}}")).exits(0);
    let ok = summary.json()["counts"]["ok"].as_u64();
    // Each row is that of one user: with numbers of its own, an agent would use the first ones alone.
    let heads = origin.heads().concat();
    let counts = names
        .iter()
        .map(|name| heads.matches(name.as_str()).count());
    let counts: Vec<_> = counts.collect();
    assert!(counts.iter().all(|count| *count > 0), "{counts:?}");
    assert_eq!(Some(counts.iter().sum::<usize>() as u64), ok);
}

#[test]
fn ctrl_c_ends_all_agents_and_prints_what_they_counted() {
    let server = NatsServer::start();
    let origin = Origin::hello();
    let agents = agents(&server, &[]);
    let (broker, url) = (server.url(), origin.url("/"));
    let child = command(&fleet(&broker, &["--json", "-q", "200", "-z", "60s"], &url))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    eventually(|| origin.requests() >= 300);
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let output = CommandOutput::from_output(child.wait_with_output().unwrap()).exits(130);
    let summary = output.json();
    assert_eq!(summary["interrupted"], true);
    assert_eq!(summary["counts"]["ok"].as_u64(), Some(origin.requests()));
    eventually(|| agents.iter().all(|agent| agent.has_said("the run is over")));
    eventually(|| is_clean(&server));
}

#[test]
fn an_agent_without_its_coordinator_stops() {
    let server = NatsServer::start();
    let origin = Origin::hello();
    let agents = agents(&server, &["--orphan-timeout", "5s", "--once"]);
    let (broker, url) = (server.url(), origin.url("/"));
    let mut child = command(&fleet(&broker, &["-q", "200", "-z", "60s"], &url))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    eventually(|| origin.requests() >= 300);
    child.kill().unwrap();
    child.wait().unwrap();
    for mut agent in agents {
        let status = agent.code();
        assert!(
            agent.has_said("nothing was heard of the coordinator"),
            "{status:?}"
        );
    }
    assert!(origin.requests() < 60 * 200);
}

#[test]
fn a_broker_that_restarts_in_the_middle_loses_nothing() {
    let mut server = NatsServer::start();
    let origin = Origin::hello();
    let _agents = agents(&server, &[]);
    let (broker, url) = (server.url(), origin.url("/"));
    let child = command(&fleet(&broker, &["--json", "-q", "200", "-z", "8s"], &url))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    eventually(|| origin.requests() >= 300);
    server.restart();
    let output = CommandOutput::from_output(child.wait_with_output().unwrap()).exits(0);
    assert_eq!(output.json()["counts"]["ok"], 1600);
    assert_eq!(origin.requests(), 1600);
}

/// Starts a run, and kills its coordinator in the middle. Returns the name of the run.
fn abandoned(server: &NatsServer, origin: &Origin, flags: &[&str]) -> String {
    let run = begin(server, flags, origin);
    eventually(|| origin.requests() >= 300);
    run.kill()
}

#[test]
fn a_run_whose_coordinator_was_killed_is_attached_again_and_whole() {
    let server = NatsServer::start();
    let origin = Origin::hello();
    let _agents = agents(&server, &[]);
    let run = abandoned(&server, &origin, &["-q", "200", "-z", "6s"]);
    let summary = attach(&server, &run).exits(0).json();
    assert_eq!(summary["counts"]["ok"], 1200);
    assert_eq!(summary["load"]["rate_per_second"], 200.0);
    assert_eq!(origin.requests(), 1200);
    eventually(|| is_clean(&server));
    let output = attach(&server, &run).exits(3);
    assert!(output.stderr.contains("has no run"), "{output}");
}

#[test]
fn a_run_is_attached_too_late_where_its_agents_have_stopped() {
    let server = NatsServer::start();
    let origin = Origin::hello();
    let agents = agents(&server, &["--orphan-timeout", "5s"]);
    let run = abandoned(&server, &origin, &["-q", "200", "-z", "60s"]);
    let has_left = |agent: &AgentProcess| agent.has_said("has left the run");
    eventually(|| agents.iter().all(has_left));
    let output = attach(&server, &run).exits(4);
    let summary = output.json();
    assert_eq!(summary["counts"]["ok"].as_u64(), Some(origin.requests()));
    let warnings = summary["conditions"]["warnings"].to_string();
    assert!(
        warnings.contains("nothing was heard of the coordinator for 5s"),
        "{warnings}"
    );
}

#[test]
fn an_agent_runs_what_its_operator_signed_and_nothing_else() {
    let server = NatsServer::start();
    let origin = Origin::hello();
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    // RFC 8410, section 10.
    fs::write(at("key.pem"), PRIVATE).unwrap();
    fs::write(at("trust.pem"), PUBLIC).unwrap();
    fs::write(at("other.pem"), OTHER).unwrap();
    let (key, trust, other) = (at("key.pem"), at("trust.pem"), at("other.pem"));
    {
        let _agents = agents(&server, &["--trust", &trust]);
        let flags = ["--json", "-n", "50", "-c", "4", "--sign", &key];
        let summary = run(&server, &flags, &origin.url("/")).exits(0).json();
        assert_eq!(summary["counts"]["ok"], 50);
        let output = run(&server, &["-n", "50", "-c", "4"], &origin.url("/")).exits(3);
        assert!(
            output.stderr.contains("the order is not signed"),
            "{output}"
        );
    }
    {
        let _agents = agents(&server, &["--trust", &other]);
        let flags = ["-n", "50", "-c", "4", "--sign", &key];
        let output = run(&server, &flags, &origin.url("/")).exits(3);
        assert!(
            output
                .stderr
                .contains("none of the keys of --trust signed the order"),
            "{output}"
        );
    }
    {
        // Signed, but against a host that is not allowed.
        let _agents = agents(&server, &["--trust", &trust]);
        let flags = ["-n", "50", "-c", "4", "--sign", &key];
        let output = run(&server, &flags, "http://192.0.2.1/").exits(3);
        assert!(output.stderr.contains("cannot make its part"), "{output}");
    }
    assert_eq!(origin.requests(), 50);
}

#[test]
fn unsigned_runs_stay_on_this_machine() {
    let output = plimsoll(&[
        "load",
        "--fleet",
        "nats://127.0.0.1:1",
        "--agents",
        "1",
        "http://192.0.2.1/",
    ])
    .exits(2);
    assert!(output.stderr.contains("needs --sign KEY"), "{output}");
    let output = plimsoll(&["agent", "--nats", "nats://192.0.2.1:4222"]).exits(2);
    assert!(output.stderr.contains("needs --trust FILE"), "{output}");
}

#[test]
fn result_files_have_the_figures_of_all_agents() {
    let server = NatsServer::start();
    let origin = Origin::hello();
    let _agents = agents(&server, &[]);
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let out = out.to_string_lossy().into_owned();
    let flags = ["-n", "300", "-c", "4", "--out", &out];
    let output = run(&server, &flags, &origin.url("/")).exits(0);
    assert!(output.stdout.contains("agents\n"), "{output}");
    let page = fs::read_to_string(folder.path().join("out/report.html")).unwrap();
    assert!(page.contains("<h2>Agents</h2>"), "{page}");
    let summary = fs::read(folder.path().join("out/summary.json")).unwrap();
    let summary: Value = serde_json::from_slice(&summary).unwrap();
    assert_eq!(summary["counts"]["ok"], 300);
    let merged = plimsoll(&["report", &out]).exits(0);
    assert!(merged.stdout.contains("300"), "{merged}");
}

const PRIVATE: &str = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n-----END PRIVATE KEY-----\n";

const PUBLIC: &str = "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n-----END PUBLIC KEY-----\n";

const OTHER: &str = "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=\n-----END PUBLIC KEY-----\n";
