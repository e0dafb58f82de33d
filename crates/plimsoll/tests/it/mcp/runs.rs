//! Runs that take time: progress, turns, cancellation, and clients that leave.

use std::io::Read as _;

use plimsoll_testkit::{Origin, eventually};
use rustix::process::Signal;
use serde_json::{Value, json};
use tempfile::tempdir;

use super::client::{Called, Client};

/// A run that is longer than the test, unless it is ended.
fn long(origin: &Origin) -> Value {
    json!({ "url": origin.url("/"), "rate": 50, "duration": "4m", "connections": 2 })
}

#[test]
fn progress_is_reported_and_a_cancelled_run_ends() {
    let origin = Origin::hello();
    let folder = tempdir().unwrap();
    let mut client = Client::start(folder.path(), &[]);
    let params =
        json!({ "name": "load", "arguments": long(&origin), "_meta": { "progressToken": "p" } });
    let id = client.begin("tools/call", &params);
    let progress = client.message(|message| message["method"] == "notifications/progress");
    assert_eq!(progress["params"]["progressToken"], "p");
    assert_eq!(progress["params"]["total"], 240.0);
    assert!(progress["params"]["progress"].as_f64().unwrap() > 0.0);
    eventually(|| origin.open_connections() > 0);
    client.notify(
        "notifications/cancelled",
        &json!({ "requestId": id, "reason": "enough" }),
    );
    eventually(|| origin.open_connections() == 0);
    // The next measurement has its turn.
    let next = json!({ "url": origin.url("/"), "requests": 3 });
    let called = client.call("load", &next).succeeds();
    assert_eq!(called.structured["counts"]["ok"], 3);
}

#[test]
fn measurements_take_turns_and_checks_do_not_wait_for_them() {
    let origin = Origin::hello();
    let folder = tempdir().unwrap();
    let mut client = Client::start(folder.path(), &[]);
    let run = json!({ "url": origin.url("/"), "rate": 20, "duration": 2, "connections": 1 });
    let ids = [
        client.begin_call("load", &run),
        client.begin_call("load", &run),
    ];
    eventually(|| origin.requests() > 0);
    client
        .call("check", &json!({ "url": origin.url("/") }))
        .succeeds();
    let mut started: Vec<_> = ids
        .into_iter()
        .map(|id| {
            let called = Called::from_answer(&client.answer(id)).succeeds();
            let started = called.structured["conditions"]["started"].as_str().unwrap();
            seconds_of_day(started)
        })
        .collect();
    started.sort_by(f64::total_cmp);
    // Behind the first one's window, or on the next day.
    let apart = (started[1] - started[0]).rem_euclid(86_400.0);
    assert!(apart >= 1.9, "{started:?}");
}

/// Of `2026-03-01T12:00:00.5Z`.
fn seconds_of_day(time: &str) -> f64 {
    let clock = time.split('T').nth(1).unwrap().trim_end_matches('Z');
    let parts = clock.split(':').map(|part| part.parse::<f64>().unwrap());
    parts.fold(0.0, |seconds, part| seconds * 60.0 + part)
}

#[test]
fn a_search_that_takes_too_long_ends_with_what_it_found() {
    let origin = Origin::hello();
    let folder = tempdir().unwrap();
    let mut client = Client::start(folder.path(), &["--max-duration", "3s"]);
    let search = json!({ "url": origin.url("/"), "window": "2s", "rounds": 50, "objectives": ["errors<50%"] });
    let id = client.begin_call("line", &search);
    let answer = client.answer(id);
    let text = answer["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("--max-duration"), "{answer}");
    eventually(|| origin.open_connections() == 0);
}

#[test]
fn runs_end_when_the_client_leaves() {
    let origin = Origin::hello();
    let folder = tempdir().unwrap();
    let mut client = Client::start(folder.path(), &[]);
    client.begin_call("load", &long(&origin));
    eventually(|| origin.open_connections() > 0);
    client.leave();
    assert_eq!(client.child.wait().unwrap().code(), Some(0));
    eventually(|| origin.open_connections() == 0);
}

#[test]
fn runs_end_when_the_server_is_killed_or_terminated() {
    for (signal, code) in [(Signal::KILL, None), (Signal::TERM, Some(130))] {
        let origin = Origin::hello();
        let folder = tempdir().unwrap();
        let mut client = Client::start(folder.path(), &[]);
        let urls = [origin.url("/a"), origin.url("/b")];
        client.begin_call(
            "compare",
            &json!({ "urls": urls, "trials": 4, "seconds": 15, "connections": 2 }),
        );
        eventually(|| origin.requests() > 100);
        client.signal(signal);
        assert_eq!(client.child.wait().unwrap().code(), code);
        eventually(|| origin.open_connections() == 0);
    }
}

#[test]
fn a_client_that_never_begins_is_no_error() {
    let folder = tempdir().unwrap();
    let mut client = Client::uninitialized(folder.path(), &[]);
    client.leave();
    assert_eq!(client.child.wait().unwrap().code(), Some(0));
    let mut rest = String::new();
    if let Some(mut stderr) = client.child.stderr.take() {
        stderr.read_to_string(&mut rest).unwrap();
    }
    assert_eq!(rest, "");
}
