//! Every kind of load over two agents: what both made is what one run makes.

use std::fs;

use plimsoll_testkit::{NatsServer, Origin, WebSocketOrigin, eventually};

use crate::events::EventServer;
use crate::fleet::{agents, is_clean, run};
use crate::plimsoll::plimsoll;
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
