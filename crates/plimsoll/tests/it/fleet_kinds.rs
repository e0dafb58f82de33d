//! Every kind of load over two agents: what both made is what one run makes.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;
use std::{fs, thread};

use plimsoll_testkit::{NatsServer, Origin, WebSocketOrigin, eventually};

use crate::events::EventServer;
use crate::fleet_process::{RunProcess, agents, is_clean, run};
use crate::plimsoll::{CommandOutput, plimsoll, run as finish};
use crate::tonic_server::{Reflection, TonicServer};

#[test]
fn messages_of_websockets_are_counted_over_both() {
    let server = NatsServer::start();
    let origin = WebSocketOrigin::echo();
    let _agents = agents(&server, &[]);
    let flags = ["--json", "-n", "101", "-c", "5", "-d", "hello"];
    let summary = run(&server, &flags, &origin.url("/")).exits(0).json();
    assert_eq!(summary["counts"]["ok"], 101);
    assert_eq!(summary["load"]["protocol"], "WebSocket");
    assert_eq!(summary["messages"]["sent"], 101);
    assert_eq!(summary["messages"]["received"], 101);
    assert_eq!(origin.messages(), 101);
    eventually(|| is_clean(&server));
}

#[test]
fn event_streams_are_counted_over_both() {
    let server = NatsServer::start();
    let origin = EventServer::start();
    let _agents = agents(&server, &[]);
    let flags = ["--sse", "--json", "-n", "20", "-c", "4"];
    let summary = run(&server, &flags, &origin.url("/short")).exits(0).json();
    assert_eq!(summary["load"]["exchanges"], "streams");
    assert_eq!(summary["counts"]["ok"], 20);
    assert_eq!(summary["events"]["opened"], 20);
    assert_eq!(summary["events"]["received"], 60);
    eventually(|| is_clean(&server));
}

#[test]
fn calls_of_grpc_are_counted_over_both() {
    let server = NatsServer::start();
    let origin = TonicServer::start(Reflection::V1);
    let _agents = agents(&server, &[]);
    let flags = [
        "--json",
        "-n",
        "200",
        "-c",
        "4",
        "-p",
        "4",
        "--grpc",
        "plimsoll.test.Echo/Repeat",
        "-d",
        r#"{"line": {"text": "a"}, "times": 3}"#,
    ];
    let before = origin.calls();
    let summary = run(&server, &flags, &origin.url()).exits(0).json();
    assert_eq!(summary["counts"]["ok"], 200);
    assert_eq!(summary["grpc"]["statuses"]["OK"], 200);
    assert_eq!(summary["grpc"]["messages_received"], 600);
    assert_eq!(origin.calls() - before, 200);
    eventually(|| is_clean(&server));
}

#[test]
fn requests_of_a_file_go_along_with_their_names() {
    let server = NatsServer::start();
    let origin = Origin::hello();
    let _agents = agents(&server, &[]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("requests.http");
    let text = format!(
        "### first\nGET {0}\n\n### second\nPOST {1}\n\nbody\n",
        origin.url("/first"),
        origin.url("/second")
    );
    fs::write(&file, text).unwrap();
    let file = file.to_string_lossy().into_owned();
    let mut flags = vec!["load", "--fleet"];
    let url = server.url();
    flags.extend([&*url, "--agents", "2", "--most-spread", "5s", "--json"]);
    flags.extend(["--no-tui", "-n", "90", "-c", "6", "--from", &file]);
    let summary = plimsoll(&flags).exits(0).json();
    assert_eq!(summary["counts"]["ok"], 90);
    let requests = summary["requests"].as_array().unwrap();
    let heads = origin.heads().concat();
    let mut sum = 0;
    for name in ["first", "second"] {
        let request = requests.iter().find(|it| it["name"] == name).unwrap();
        let count = request["count"].as_u64().unwrap();
        assert_eq!(heads.matches(&format!(" /{name} ")).count() as u64, count);
        assert!(count > 0, "{request}");
        sum += count;
    }
    assert_eq!(sum, 90);
    eventually(|| is_clean(&server));
}

#[test]
fn longer_ticks_have_the_same_figures_in_fewer_rows() {
    let server = NatsServer::start();
    let origin = Origin::hello();
    let _agents = agents(&server, &[]);
    let flags = ["--json", "-q", "100", "-z", "4s", "--fleet-tick", "2s"];
    let summary = run(&server, &flags, &origin.url("/")).exits(0).json();
    assert_eq!(summary["counts"]["ok"], 400);
    assert_eq!(summary["latency"]["from_intended"]["count"], 400);
    let ticks = summary["ticks"].as_array().unwrap();
    let counts: Vec<_> = ticks.iter().map(|it| it["ok"].as_u64().unwrap()).collect();
    assert_eq!(counts.iter().sum::<u64>(), 400);
    assert!((2..=3).contains(&ticks.len()), "{counts:?}");
    let output = run(&server, &["--fleet-tick", "1500ms"], &origin.url("/")).exits(2);
    assert!(output.stderr.contains("whole seconds"), "{output}");
}

#[test]
fn stages_of_both_are_those_of_one_run() {
    let server = NatsServer::start();
    let origin = Origin::hello();
    let _agents = agents(&server, &[]);
    let target = origin.url("/");
    let flags = ["--json", "--stages", "1s:150/s,1s:150/s,1s:7/s", "-c", "20"];
    let alone = plimsoll(&[&["load", "--no-tui"][..], &flags, &[&target]].concat());
    let alone = alone.exits(0).json();
    let made_alone = origin.requests();
    let both = run(&server, &flags, &target).exits(0).json();
    assert_eq!(both["counts"]["started"], alone["counts"]["started"]);
    assert_eq!(both["counts"]["ok"], alone["counts"]["ok"]);
    assert_eq!(origin.requests() - made_alone, made_alone);
    assert!(made_alone > 200, "{made_alone}");
    eventually(|| is_clean(&server));
}

/// `plimsoll loadtest` over two agents, with its variables unset.
pub(crate) fn loadtest(server: &NatsServer, flags: &[&str]) -> std::process::Command {
    let url = server.url();
    let mut arguments = vec!["loadtest", "--fleet", &url, "--agents", "2"];
    arguments.extend(["--most-spread", "5s", "--ramp-up", "200ms"]);
    arguments.extend(flags);
    crate::loadtest::without_variables(crate::plimsoll::command(&arguments))
}

#[test]
fn workers_of_loadtest_are_spread_over_both() {
    for (flags, connections, opened) in [(&[][..], "kept", 40), (&["--http2"], "shared", 32)] {
        let server = NatsServer::start();
        let _agents = agents(&server, &[]);
        let flags = [&["--json", "-c", "40", "-z", "2s"], flags].concat();
        let output = finish(&mut loadtest(&server, &flags)).exits(0);
        let summary = crate::loadtest::document(&output, 40);
        let shape = &summary["shape"];
        assert_eq!(
            (&shape["workers"], &shape["connections"]),
            (&40.into(), &connections.into())
        );
        assert_eq!(shape["processes"], 6);
        assert_eq!(summary["connections_opened"], opened);
        let (mut started, mut measured) = (0, 0);
        for (agent, (name, workers)) in summary["agents"]
            .as_array()
            .unwrap()
            .iter()
            .zip([("one", 20), ("two", 20)])
        {
            assert_eq!(
                (&agent["name"], &agent["workers"]),
                (&name.into(), &workers.into())
            );
            assert_eq!(agent["problem"], serde_json::Value::Null);
            started += agent["started"].as_u64().unwrap();
            measured += agent["latency"]["count"].as_u64().unwrap();
        }
        assert_eq!(summary["counts"]["started"], started);
        assert_eq!(summary["latency"]["count"], measured);
        assert_eq!(summary["counts"]["ok"], measured);
        assert!(summary["ticks"][0]["ok"].as_u64().unwrap() > 0, "{summary}");
        assert!(output_has_agents(&output), "{output}");
        eventually(|| is_clean(&server));
    }
}

/// Whether the lines of each second have the agents side by side.
fn output_has_agents(output: &CommandOutput) -> bool {
    let mut lines = output.stderr.lines();
    lines.any(|line| line.contains("one ") && line.contains("/s  two "))
}

#[test]
fn a_loadtest_that_loses_an_agent_is_incomplete_and_keeps_what_it_had() {
    let server = NatsServer::start();
    let [one, two] = agents(&server, &[]);
    let flags = ["--json", "-c", "20", "-z", "60s", "--agent-timeout", "2s"];
    let mut command = loadtest(&server, &flags);
    let running = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut running = running.spawn().unwrap();
    let mut lines = BufReader::new(running.stderr.take().unwrap()).lines();
    let mut two = Some(two);
    // It reports its first tick before it is killed.
    let is_lost = lines.by_ref().map_while(Result::ok).any(|line| {
        if line.contains("/s  two ") {
            drop(two.take());
        }
        line.contains("agent two is lost")
    });
    assert!(is_lost && two.is_none());
    let rest = thread::spawn(move || lines.map_while(Result::ok).count());
    let output = running.wait_with_output().unwrap();
    rest.join().unwrap();
    assert_eq!(output.status.code(), Some(4));
    let summary: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let count = |name: &str| summary["counts"][name].as_u64().unwrap();
    assert_eq!(
        count("started"),
        count("ok") + count("failed") + count("aborted")
    );
    let cautions = summary["cautions"][0].as_str().unwrap();
    assert!(cautions.starts_with("incomplete: agent two: "), "{summary}");
    for agent in summary["agents"].as_array().unwrap() {
        assert!(agent["ok"].as_u64().unwrap() > 0, "{summary}");
    }
    assert_eq!(summary["agents"][1]["late_us"], serde_json::Value::Null);
    // The one that is left waits for the next run.
    eventually(|| one.has_said("has left the run"));
    eventually(|| is_clean(&server));
}

/// Goes on with a run of `loadtest`.
fn attach_loadtest(server: &NatsServer, name: &str) -> CommandOutput {
    let url = server.url();
    let arguments = ["loadtest", "--fleet", &url, "--attach", name, "--json"];
    finish(&mut crate::loadtest::without_variables(
        crate::plimsoll::command(&arguments),
    ))
}

#[test]
fn a_loadtest_whose_coordinator_was_killed_is_attached_again_and_whole() {
    let server = NatsServer::start();
    let _agents = agents(&server, &[]);
    let run = RunProcess::start(&mut loadtest(&server, &["-c", "20", "-z", "6s"]));
    run.says("/s  two ");
    let name = run.kill();
    let output = attach_loadtest(&server, &name).exits(0);
    let summary = crate::loadtest::document(&output, 100);
    assert_eq!(summary["shape"]["workers"], 20);
    // The seconds before it are there too.
    let at = summary["ticks"][0]["at_us"].as_f64().unwrap();
    assert!((at - 1e6).abs() < 0.5e6, "{at}");
    for agent in summary["agents"].as_array().unwrap() {
        assert_eq!(agent["problem"], serde_json::Value::Null);
        assert_eq!(agent["workers"], 10);
    }
    eventually(|| is_clean(&server));
    let output = attach_loadtest(&server, &name).exits(3);
    assert!(output.stderr.contains("has no run"), "{output}");
}

#[test]
fn ctrl_c_ends_a_loadtest_on_all_agents() {
    let server = NatsServer::start();
    let agents = agents(&server, &[]);
    let flags = ["--json", "-c", "20", "-z", "60s"];
    let run = RunProcess::start(&mut loadtest(&server, &flags));
    run.says("/s  two ");
    run.interrupt();
    let summary = run.end().exits(130).json();
    assert_eq!(summary["interrupted"], true);
    let cautions = summary["cautions"].to_string();
    assert!(!cautions.contains("incomplete"), "{cautions}");
    let count = |name: &str| summary["counts"][name].as_u64().unwrap();
    assert!(count("ok") > 20, "{summary}");
    assert_eq!(
        count("started"),
        count("ok") + count("failed") + count("aborted")
    );
    for agent in summary["agents"].as_array().unwrap() {
        assert_eq!(agent["problem"], serde_json::Value::Null);
    }
    eventually(|| agents.iter().all(|agent| agent.has_said("the run is over")));
    eventually(|| is_clean(&server));
}

#[test]
fn a_loadtest_that_is_kept_is_reported_again() {
    let server = NatsServer::start();
    let _agents = agents(&server, &[]);
    let flags = ["--json", "-c", "20", "-z", "1s", "--keep"];
    let run = RunProcess::start(&mut loadtest(&server, &flags));
    let name = run.name();
    let output = run.end().exits(0);
    assert!(
        output.stderr.contains("stay on the broker for a day"),
        "{output}"
    );
    assert!(!is_clean(&server));
    let again = attach_loadtest(&server, &name).exits(0).json();
    for part in ["counts", "latency", "agents"] {
        assert_eq!(again[part], output.json()[part], "{part}");
    }
    eventually(|| is_clean(&server));
}

#[test]
fn a_loadtest_prints_its_parts_and_refuses_what_is_of_load() {
    let server = NatsServer::start();
    let _agents = agents(&server, &[]);
    let output = finish(&mut loadtest(&server, &["--dry-run", "-c", "7"])).exits(0);
    assert!(output.stdout.contains("one          2 of 4"), "{output}");
    assert!(
        output.stdout.ends_with("nothing was started (--dry-run)\n"),
        "{output}"
    );
    let output = finish(&mut loadtest(&server, &["-c", "1"])).exits(3);
    assert!(
        output.stderr.contains("2 agents have nothing to do"),
        "{output}"
    );
    for (flags, says) in [
        (&["--fleet-tick", "2s"][..], "goes with `load` only"),
        (&["--netns"], "cannot be used with"),
    ] {
        let output = finish(&mut loadtest(&server, flags)).exits(2);
        assert!(output.stderr.contains(says), "{output}");
    }
    let cluster = ["loadtest", "--fleet", &server.url(), "--kubernetes", "2"];
    let output = plimsoll(&cluster).exits(2);
    assert!(output.stderr.contains("goes with `load` only"), "{output}");
}
