//! The closed loop: as fast as the answers come, bounded by number or by time.

use std::time::Duration;

use plimsoll_load::{Pacing, Ramp, RunPlan, ThinkTime};
use plimsoll_model::{FailureKind, LoadModel, Phase};
use plimsoll_testkit::{HELLO, Origin, Script, Step, eventually};

use crate::fixture::{failures, go, lasting, millis, plan, requests};

#[test]
fn a_number_of_requests_is_made_exactly() {
    for (number, connections, workers) in [
        (1, 1, 1),
        (7, 3, 1),
        (500, 16, 1),
        (501, 5, 2),
        (2, 2, 2),
        (3, 8, 4),
    ] {
        let origin = Origin::hello();
        let summary = go(&RunPlan {
            connections,
            workers,
            stop: requests(number),
            ..plan(&origin.url("/"))
        });
        assert_eq!(origin.requests(), number);
        assert_eq!(summary.counts.started, number);
        assert_eq!(summary.counts.ok, number);
        assert_eq!(summary.statuses.get(&200), Some(&number));
        assert_eq!(summary.connections_opened, origin.connections());
        assert!(origin.connections() <= connections as u64);
        assert_eq!(summary.load.model, LoadModel::Closed);
        assert!(!summary.interrupted);
        eventually(|| origin.open_connections() == 0);
    }
}

/// The mean latency of a closed loop is connections over rate (Little 1961): it shows the queue
/// that the connections make, and cannot be more than they had time for.
#[test]
fn latency_is_the_time_that_connections_were_busy() {
    for connections in [1, 4, 16] {
        let origin = Origin::hello();
        let summary = go(&RunPlan {
            connections,
            stop: requests(400),
            ..plan(&origin.url("/"))
        });
        let latency = summary.latency.honest().observed();
        let busy = latency.mean().unwrap().as_secs_f64() * latency.len() as f64;
        // The last exchanges end behind the window; histograms keep three figures.
        let longest = summary.window + latency.max().unwrap();
        let there_was = connections as f64 * longest.as_secs_f64();
        assert!(busy <= there_was * 1.002, "{busy} s of {there_was} s");
        assert!(busy > 0.0);
    }
}

#[test]
fn a_run_bounded_by_time_ends_and_says_how_long_it_was() {
    for workers in [1, 2] {
        let origin = Origin::hello();
        let summary = go(&RunPlan {
            workers,
            stop: lasting(millis(300)),
            ..plan(&origin.url("/"))
        });
        assert_eq!(summary.window, millis(300));
        assert_eq!(summary.counts.started, origin.requests());
        assert_eq!(summary.counts.aborted, 0);
        assert!(summary.counts.ok > 2);
        assert_eq!(origin.connections(), 2);
        assert!(summary.requests_per_second() > 0.0);
    }
}

#[test]
fn whichever_bound_comes_first_ends_the_run() {
    let origin = Origin::hello();
    let mut by_number = plan(&origin.url("/"));
    by_number.stop.duration = Some(Duration::from_mins(1));
    let summary = go(&by_number);
    assert_eq!(summary.counts.ok, 10);
    assert!(summary.window < Duration::from_secs(30));

    let mut by_time = plan(&origin.url("/"));
    by_time.stop.requests = Some(u64::MAX);
    by_time.stop.duration = Some(millis(100));
    let summary = go(&by_time);
    assert!(summary.counts.ok > 0);
    assert!(summary.window <= millis(100));
}

#[test]
fn requests_are_sent_in_turn() {
    let origin = Origin::hello();
    let url = origin.url("/");
    let planned = ["/a", "/b", "/c"].map(|path| {
        plimsoll_load::PlannedRequest::fixed(
            0,
            crate::fixture::request(&origin.url(path), "GET", None),
        )
    });
    go(&RunPlan {
        requests: planned.to_vec(),
        connections: 1,
        stop: requests(6),
        ..plan(&url)
    });
    let paths: Vec<_> = origin
        .heads()
        .iter()
        .map(|head| head.split(' ').nth(1).unwrap().to_owned())
        .collect();
    assert_eq!(paths, ["/a", "/b", "/c", "/a", "/b", "/c"]);
}

#[test]
fn a_ramp_brings_all_connections_in() {
    for workers in [1, 2] {
        let origin = Origin::hello();
        let summary = go(&RunPlan {
            connections: 8,
            workers,
            pacing: Pacing::Closed {
                ramp: Some(Ramp::up(8, millis(300))),
                think: Some(ThinkTime {
                    least: millis(5),
                    most: millis(5),
                }),
            },
            stop: lasting(millis(600)),
            ..plan(&origin.url("/"))
        });
        assert_eq!(origin.connections(), 8);
        // Had all taken part from the start, they would have thought 8 × 120 times.
        assert!(summary.counts.ok < 8 * 110, "{:?}", summary.counts);
        assert!(summary.counts.ok >= 8);
    }
}

#[test]
fn connections_think_between_exchanges() {
    let origin = Origin::hello();
    let summary = go(&RunPlan {
        pacing: Pacing::Closed {
            ramp: None,
            think: Some(ThinkTime {
                least: millis(40),
                most: millis(60),
            }),
        },
        stop: lasting(millis(400)),
        ..plan(&origin.url("/"))
    });
    // At most one at the start and one after each pause, on two connections.
    assert!(summary.counts.ok <= 2 * 11, "{:?}", summary.counts);
    assert!(summary.counts.ok >= 2);
    assert_eq!(origin.connections(), 2);
}

#[test]
fn a_thought_that_outlasts_the_run_does_not_hold_it_up() {
    let origin = Origin::hello();
    let summary = go(&RunPlan {
        pacing: Pacing::Closed {
            ramp: None,
            think: Some(ThinkTime {
                least: Duration::from_hours(1),
                most: Duration::from_hours(1),
            }),
        },
        stop: lasting(millis(100)),
        ..plan(&origin.url("/"))
    });
    assert_eq!(summary.counts.ok, 2);
}

#[test]
fn without_keep_alive_each_request_has_a_connection() {
    let origin = Origin::hello();
    let summary = go(&RunPlan {
        keep_alive: false,
        stop: requests(25),
        ..plan(&origin.url("/"))
    });
    assert_eq!(summary.counts.ok, 25);
    assert_eq!(origin.connections(), 25);
    assert_eq!(summary.connections_opened, 25);
}

#[test]
fn a_connection_that_was_closed_while_idle_is_replaced_unnoticed() {
    let origin = Origin::scripted(Script::answer_once(HELLO));
    let summary = go(&RunPlan {
        pacing: Pacing::Closed {
            ramp: None,
            think: Some(ThinkTime {
                least: millis(50),
                most: millis(50),
            }),
        },
        stop: requests(8),
        ..plan(&origin.url("/"))
    });
    assert_eq!((summary.counts.ok, summary.counts.failed), (8, 0));
    assert_eq!(origin.connections(), 8);
}

#[test]
fn a_server_that_closes_without_announcing_it_costs_a_connection_and_no_failure() {
    // As tinyproxy does: a complete response that may be kept alive, and then the end.
    let origin = Origin::scripted(Script::answer_once(HELLO));
    let summary = go(&RunPlan {
        stop: requests(40),
        ..plan(&origin.url("/"))
    });
    let counts = &summary.counts;
    assert_eq!(
        (counts.ok, counts.failed),
        (40, 0),
        "{:?}",
        summary.failures
    );
    assert_eq!(origin.connections(), 40);
    assert!(counts.reconnects <= 38, "{counts:?}");
}

#[test]
fn a_request_that_meets_a_closed_connection_is_sent_again_once() {
    // The head is read before the end, so the generator cannot have seen it coming.
    let script = |requests: u64| {
        let answers = (1..requests).fold(Script::new(), |script, _| {
            script
                .then(Step::ReadHead)
                .then(Step::Write(HELLO.to_vec()))
        });
        answers.then(Step::ReadHead).then(Step::Reset)
    };
    let origin = Origin::builder()
        .script(move |connection| match connection {
            0 => script(2),
            // The fresh connection breaks as well, and nothing has been carried on it.
            1 => script(1),
            _ => Script::hello(),
        })
        .start();
    let summary = go(&RunPlan {
        connections: 1,
        stop: requests(10),
        ..plan(&origin.url("/"))
    });
    let counts = &summary.counts;
    assert_eq!((counts.ok, counts.failed, counts.reconnects), (9, 1, 1));
    assert_eq!(failures(&summary, Phase::Wait, FailureKind::Reset), 1);
    assert_eq!(origin.connections(), 3);

    // A method that is not safe is not sent twice.
    let origin = Origin::builder()
        .script(move |connection| match connection {
            0 => script(2),
            _ => Script::hello(),
        })
        .start();
    let url = origin.url("/");
    let mut plan = RunPlan {
        connections: 1,
        stop: requests(10),
        ..plan(&url)
    };
    plan.requests[0].request = crate::fixture::request(&url, "POST", None);
    let counts = go(&plan).counts;
    assert_eq!((counts.ok, counts.failed, counts.reconnects), (9, 1, 0));
}

#[test]
fn a_body_longer_than_it_is_announced_is_named() {
    let long = b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nhello";
    let origin = Origin::scripted(Script::serve(long.as_slice()));
    let summary = go(&plan(&origin.url("/")));
    assert_eq!(summary.counts.ok, 10);
    assert_eq!(origin.connections(), 10);
    let warnings = summary.conditions.warnings.join("\n");
    assert!(
        warnings.contains("behind 10 responses came more bytes"),
        "{warnings}"
    );
}

#[test]
fn several_endpoints_have_connections_of_their_own() {
    let origins = [Origin::hello(), Origin::hello()];
    let mut plan = plan(&origins[0].url("/"));
    plan.endpoints
        .push(plimsoll_client::Endpoint::parse(&origins[1].url("/")).unwrap());
    plan.requests.push(plimsoll_load::PlannedRequest::fixed(
        1,
        crate::fixture::request(&origins[1].url("/"), "GET", None),
    ));
    plan.connections = 1;
    let summary = go(&plan);
    assert_eq!(summary.counts.ok, 10);
    for origin in &origins {
        assert_eq!((origin.requests(), origin.connections()), (5, 1));
    }
}
