//! Origins that are not there, or not well.

use std::time::Duration;

use plimsoll_client::{ConnectOptions, Overrides};
use plimsoll_load::{Interrupt, Observation, RunError, RunPlan, Watch, check_reachable, run};
use plimsoll_model::{FailureKind, Phase};
use plimsoll_testkit::{HELLO, NameServer, Origin, Script, Step, eventually, refused_address};
use plimsoll_wire::descriptors;

use crate::fixture::{connect, failures, go, lasting, millis, plan, requests};

#[test]
fn a_refused_port_is_reported_before_the_run() {
    let url = format!("http://{}/", refused_address());
    let error = check_reachable(&plan(&url)).unwrap_err();
    let RunError::Unreachable { endpoint, failure } = &error else {
        panic!("{error}");
    };
    assert_eq!(*endpoint, url.trim_end_matches('/'));
    assert_eq!(failure.kind, FailureKind::Refused);
    assert_eq!(failure.phase, Phase::Connect);
    assert!(
        error
            .to_string()
            .starts_with("cannot reach http://127.0.0.1:")
    );
}

#[test]
fn an_origin_that_is_there_is_reachable_and_left_alone() {
    let origin = Origin::hello();
    check_reachable(&plan(&origin.url("/"))).unwrap();
    eventually(|| origin.connections() == 1 && origin.open_connections() == 0);
    assert_eq!(origin.requests(), 0);
}

#[test]
fn a_refused_port_is_not_hammered() {
    let summary = go(&RunPlan {
        connections: 4,
        stop: lasting(millis(500)),
        ..plan(&format!("http://{}/", refused_address()))
    });
    let refused = failures(&summary, Phase::Connect, FailureKind::Refused);
    assert_eq!(refused, summary.counts.started);
    // Each connection rests at least 5, 10, 20, 40, … milliseconds: seven attempts fit into half a second.
    assert!((4..=4 * 7).contains(&refused), "{refused}");
    assert_eq!(summary.connections_opened, 0);
    assert!(summary.latency.from_started.observed().is_empty());
    assert_eq!(summary.bytes_sent, 0);
}

#[test]
fn a_number_of_requests_to_a_refused_port_comes_to_an_end() {
    let summary = go(&RunPlan {
        connections: 4,
        stop: requests(8),
        ..plan(&format!("http://{}/", refused_address()))
    });
    assert_eq!(summary.counts.failed, 8);
}

#[test]
fn failures_are_counted_by_phase_and_kind() {
    let first = |step: Step| Script::new().then(Step::ReadHead).then(step);
    let half = Step::Write(HELLO[..HELLO.len() - 2].to_vec());
    let garbage = Step::Write(b"SSH-2.0-OpenSSH\r\n".to_vec());
    for (script, phase, kind) in [
        (first(Step::Reset), Phase::Wait, FailureKind::Reset),
        (first(Step::FinishWriting), Phase::Wait, FailureKind::Closed),
        (first(half), Phase::Receive, FailureKind::Closed),
        (first(garbage), Phase::Receive, FailureKind::Protocol),
    ] {
        let origin = Origin::scripted(script);
        let summary = go(&plan(&origin.url("/")));
        assert_eq!(
            failures(&summary, phase, kind),
            10,
            "{:?}",
            summary.failures
        );
        assert_eq!(summary.connections_opened, 10);
        let example = &summary.failures[0].example;
        assert_eq!((example.phase, example.kind), (phase, kind));
        assert!(example.cause.is_some());
    }
}

#[test]
fn failures_come_most_frequent_first() {
    let origin = Origin::builder()
        .script(|number| match number % 4 {
            0 => Script::new().then(Step::ReadHead).then(Step::Reset),
            _ => Script::new().then(Step::ReadHead),
        })
        .start();
    let summary = go(&RunPlan {
        connections: 10,
        stop: requests(20),
        ..plan(&origin.url("/"))
    });
    let counts: Vec<_> = summary.failures.iter().map(|f| (f.kind, f.count)).collect();
    assert_eq!(counts, [(FailureKind::Closed, 15), (FailureKind::Reset, 5)]);
}

#[test]
fn the_run_goes_on_after_a_failure() {
    let origin = Origin::builder()
        .script(|number| match number {
            0..4 => Script::new().then(Step::ReadHead).then(Step::Reset),
            _ => Script::hello(),
        })
        .start();
    let summary = go(&RunPlan {
        stop: requests(100),
        ..plan(&origin.url("/"))
    });
    assert_eq!((summary.counts.failed, summary.counts.ok), (4, 96));
}

#[test]
fn a_timeout_is_a_failure_with_a_latency() {
    let origin = Origin::silent();
    let summary = go(&RunPlan {
        timeout: millis(50),
        stop: requests(4),
        ..plan(&origin.url("/"))
    });
    assert_eq!(failures(&summary, Phase::Wait, FailureKind::Timeout), 4);
    assert_eq!(summary.latency.from_started.observed().len(), 4);
    assert!(summary.latency.from_started.observed().min().unwrap() >= millis(49));
    // A request that timed out may still get a response: its connection is used no more.
    assert_eq!(origin.connections(), 4);
}

#[test]
fn what_outlasts_the_grace_is_aborted() {
    let origin = Origin::silent();
    for grace in [Duration::ZERO, millis(60)] {
        let summary = go(&RunPlan {
            grace,
            connections: 3,
            stop: lasting(millis(400)),
            ..plan(&origin.url("/"))
        });
        let counts = summary.counts;
        assert_eq!((counts.started, counts.aborted), (3, 3), "{counts:?}");
        assert!(summary.latency.from_started.observed().is_empty());
        assert_eq!(summary.window, millis(400));
    }
}

#[test]
fn what_ends_within_the_grace_is_counted() {
    let origin = Origin::hello();
    origin.stall_for(millis(250));
    let summary = go(&RunPlan {
        connections: 3,
        stop: lasting(millis(100)),
        ..plan(&origin.url("/"))
    });
    let counts = summary.counts;
    assert_eq!((counts.ok, counts.aborted), (counts.started, 0));
    assert!(counts.started >= 3, "{counts:?}");
}

#[test]
fn a_name_without_an_address_is_reported_as_such() {
    let server = NameServer::builder().start();
    let plan = RunPlan {
        connect: connect(ConnectOptions {
            name_servers: vec![server.address()],
            ..ConnectOptions::default()
        }),
        connections: 1,
        stop: requests(2),
        ..plan("http://nowhere.test/")
    };
    assert!(matches!(
        check_reachable(&plan),
        Err(RunError::Unreachable { failure, .. }) if failure.kind == FailureKind::NameNotFound
    ));
    let summary = go(&plan);
    assert_eq!(failures(&summary, Phase::Dns, FailureKind::NameNotFound), 2);
}

#[test]
fn a_name_given_by_hand_is_used() {
    let origin = Origin::hello();
    let port = origin.port();
    let by_hand = format!("a.test:{port}:127.0.0.1").parse().unwrap();
    let summary = go(&RunPlan {
        connect: connect(ConnectOptions {
            overrides: Overrides::new(vec![by_hand]),
            ..ConnectOptions::default()
        }),
        ..plan(&format!("http://a.test:{port}/"))
    });
    assert_eq!(summary.counts.ok, 10);
    assert!(origin.heads()[0].contains(&format!("host: a.test:{port}\r\n")));
}

#[test]
fn more_connections_than_files_are_refused_before_the_run() {
    let hard = descriptors::limit().hard;
    if hard == u64::MAX {
        return;
    }
    let origin = Origin::hello();
    let plan = RunPlan {
        connections: usize::try_from(hard).unwrap() + 1,
        ..plan(&origin.url("/"))
    };
    let mut watch = Watch {
        interrupt: std::sync::Arc::new(Interrupt::default()),
        on_tick: &mut |_| {},
    };
    let error = run(&plan, Observation::default(), &mut watch).unwrap_err();
    assert!(matches!(error, RunError::Descriptors(_)), "{error}");
    assert!(error.to_string().contains("ulimit -n"));
    assert_eq!(origin.connections(), 0);
}
