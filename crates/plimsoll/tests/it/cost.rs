//! The cost of the server: of a command that is started, of a process that runs, of our own origin.

use plimsoll_testkit::Origin;
use serde_json::Value;

use crate::nginx::Nginx;
use crate::plimsoll::plimsoll;

#[test]
fn nginx_counts_what_we_count_and_its_cost_is_known() {
    let nginx = Nginx::configure().start();
    let pid = nginx.pid().to_string();
    let before = nginx.requests();
    let url = nginx.url("/");
    let output = plimsoll(&[
        "load", "--json", "-n", "5000", "-c", "16", "--pid", &pid, &url,
    ]);
    let summary = output.exits(0).json();
    assert_eq!(summary["counts"]["ok"], 5000);
    // The second request for the counters counts itself.
    assert_eq!(nginx.requests() - before - 1, 5000);
    assert_cost(&summary);
    let processes = summary["target"]["processes"].as_u64().unwrap();
    assert_eq!(processes, 2, "master and worker");
}

#[test]
fn a_command_is_started_and_stopped_with_all_its_children() {
    let nginx = Nginx::configure();
    let (command, url) = (nginx.command(), nginx.url("/"));
    let output = plimsoll(&[
        "load", "--json", "-z", "1s", "-c", "16", "--spawn", &command, &url,
    ]);
    let summary = output.exits(0).json();
    assert_eq!(summary["target"]["name"], "spawned nginx");
    assert_eq!(summary["counts"]["ok"], nginx.logged_requests());
    assert_cost(&summary);
    assert!(!nginx.is_listening());
}

#[test]
fn a_process_that_runs_is_left_running() {
    // The origin is a thread of this very process.
    let origin = Origin::hello();
    let pid = std::process::id().to_string();
    let url = origin.url("/");
    let output = plimsoll(&[
        "load", "--json", "-n", "20000", "-c", "4", "--pid", &pid, &url,
    ])
    .exits(0);
    let summary = output.json();
    assert_eq!(summary["target"]["name"], format!("pid {pid}"));
    assert_cost(&summary);
}

#[test]
fn without_a_url_an_embedded_origin_is_started_and_stopped() {
    let output = plimsoll(&["load", "--json", "-n", "20000"]).exits(0);
    let summary = output.json();
    assert_eq!(summary["target"]["name"], "embedded origin");
    assert_eq!(summary["counts"]["ok"], 20_000);
    assert_cost(&summary);
    let text = plimsoll(&["load", "-n", "2000"]).exits(0).stdout;
    assert!(text.contains(" of CPU per request"), "{text}");
}

fn assert_cost(summary: &Value) {
    let target = &summary["target"];
    assert!(
        target["cpu_us_per_request"].as_f64().unwrap() > 0.0,
        "{target}"
    );
    assert!(
        target["peak_memory_bytes"].as_u64().unwrap() > 100_000,
        "{target}"
    );
    assert!(target["fds"].as_u64().unwrap() > 3, "{target}");
}
