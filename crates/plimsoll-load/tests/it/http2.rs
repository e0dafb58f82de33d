//! HTTP/2: counts equal to the server's, whatever becomes of streams and connections.

use std::sync::Arc;
use std::time::Duration;

use plimsoll_client::check::{Condition, Expectations};
use plimsoll_client::{ConnectOptions, Endpoint, Request};
use plimsoll_load::{
    Http2Plan, HttpPlan, OnFull, Pacing, PlannedRequest, Ramp, RunError, RunPlan, Spacing,
    StatusSet, ThinkTime, WorkloadPlan, check_reachable,
};
use plimsoll_model::{FailureKind, Phase};
use plimsoll_testkit::{
    Authority, Http2Answer, Http2Origin, MaterialFiles, Origin, Script, Step, eventually, frames,
    refused_address,
};
use plimsoll_wire::tls::{TlsSettings, Trust};

use crate::fixture::{connect, failures, go, lasting, millis, open, plan, requests, set_streams};

/// The usual plan over HTTP/2: two connections, four streams on each.
pub(crate) fn http2(url: &str) -> RunPlan {
    with(url, "GET", None)
}

fn with(url: &str, method: &str, body: Option<&[u8]>) -> RunPlan {
    let endpoint = Endpoint::parse(url).unwrap();
    let request = Request::encode_http2(
        method,
        endpoint.scheme().name(),
        endpoint.authority(),
        endpoint.path_and_query(),
        &[],
        body,
    )
    .unwrap();
    RunPlan {
        requests: vec![PlannedRequest::fixed(0, request)],
        names: Arc::default(),
        workload: WorkloadPlan::requests(HttpPlan::Http2(Http2Plan {
            streams: 4,
            stream_window: 1 << 20,
            connection_window: 1 << 20,
        })),
        ..plan(url)
    }
}

#[test]
fn a_number_of_requests_is_made_exactly() {
    for (number, connections, streams, workers) in [
        (1, 1, 1, 1),
        (7, 1, 3, 1),
        (5_000, 4, 32, 2),
        (501, 2, 100, 2),
        (10, 1, 64, 1),
    ] {
        let origin = Http2Origin::hello();
        let mut plan = RunPlan {
            connections,
            workers,
            stop: requests(number),
            ..http2(&origin.url("/"))
        };
        set_streams(&mut plan, streams);
        let summary = go(&plan);
        assert_eq!(origin.requests(), number);
        assert_eq!(summary.counts.ok, number);
        assert_eq!(summary.statuses.get(&200), Some(&number));
        assert_eq!(summary.connections_opened, origin.connections());
        assert_eq!(origin.connections(), connections as u64);
        assert!(origin.most_at_a_time() <= u64::from(streams));
        eventually(|| origin.open_connections() == 0);
    }
}

#[test]
fn all_streams_of_a_connection_are_used() {
    let origin = Http2Origin::builder()
        .answer(|_, _| Http2Answer::Hold)
        .start();
    let plan = RunPlan {
        connections: 1,
        stop: requests(8),
        ..http2(&origin.url("/"))
    };
    let running = std::thread::spawn(move || go(&plan));
    eventually(|| origin.most_at_a_time() == 4);
    origin.release();
    assert_eq!(running.join().unwrap().counts.ok, 8);
}

#[test]
fn a_server_that_allows_fewer_streams_gets_no_more() {
    let origin = Http2Origin::builder().max_streams(2).start();
    let summary = go(&RunPlan {
        connections: 1,
        stop: requests(500),
        ..http2(&origin.url("/"))
    });
    assert_eq!(summary.counts.ok, 500);
    assert_eq!(origin.requests(), 500);
    assert!(origin.most_at_a_time() <= 2);
}

#[test]
fn bytes_are_those_of_the_frames() {
    let origin = Http2Origin::builder()
        .answer(|_, _| Http2Answer::Content(200, vec![b'a'; 100_000]))
        .start();
    let summary = go(&RunPlan {
        connections: 1,
        ..http2(&origin.url("/"))
    });
    let content = 10 * 100_000;
    // Seven DATA frames of at most 16 KiB and a head for each.
    let frames = summary.bytes_received - content;
    assert!((10 * (7 * 9)..10 * 200).contains(&frames), "{frames}");
    assert!(summary.bytes_sent > 10 * 9, "{}", summary.bytes_sent);
}

#[test]
fn small_windows_of_ours_hold_nothing_up() {
    let origin = Http2Origin::builder()
        .answer(|_, _| Http2Answer::Content(200, vec![b'a'; 300_000]))
        .start();
    let mut plan = RunPlan {
        stop: requests(40),
        ..http2(&origin.url("/"))
    };
    plan.workload = WorkloadPlan::requests(HttpPlan::Http2(Http2Plan {
        streams: 4,
        stream_window: 1_000,
        connection_window: 65_535,
    }));
    let summary = go(&plan);
    assert_eq!(summary.counts.ok, 40);
    assert!(summary.bytes_received > 40 * 300_000);
}

#[test]
fn bodies_are_sent_as_the_servers_windows_allow() {
    let body = vec![b'b'; 200_000];
    let origin = Http2Origin::builder()
        .window(1_000)
        .answer(|_, _| Http2Answer::Echo)
        .start();
    let summary = go(&RunPlan {
        stop: requests(20),
        expectations: expect("size == 200000B"),
        ..with(&origin.url("/"), "POST", Some(&body))
    });
    assert_eq!((summary.counts.ok, summary.counts.unmet), (20, 0));
    assert_eq!(origin.body_bytes(), 20 * 200_000);
    assert!(summary.bytes_sent > 20 * 200_000);
}

#[test]
fn an_answer_to_head_has_no_content() {
    let origin = Http2Origin::hello();
    let summary = go(&RunPlan {
        expectations: expect("size == 0B"),
        ..with(&origin.url("/x"), "HEAD", None)
    });
    assert_eq!((summary.counts.ok, summary.counts.unmet), (10, 0));
    assert!(
        origin.heads()[0].starts_with("HEAD http"),
        "{:?}",
        origin.heads()
    );
}

fn expect(condition: &str) -> Arc<Expectations> {
    let condition = Condition::parse(condition).unwrap();
    Arc::new(Expectations::new(vec![condition]))
}

#[test]
fn every_response_is_judged_by_itself() {
    let origin = Http2Origin::builder()
        .answer(|_, number| match number % 4 {
            0 => Http2Answer::Content(503, b"busy".to_vec()),
            1 => Http2Answer::Content(200, b"no".to_vec()),
            _ => Http2Answer::Content(200, b"fine".to_vec()),
        })
        .start();
    let summary = go(&RunPlan {
        connections: 1,
        stop: requests(400),
        expectations: expect("body contains 'fine'"),
        fail_statuses: StatusSet::parse("5xx").unwrap(),
        ..http2(&origin.url("/"))
    });
    assert_eq!(summary.counts.ok, 400);
    assert_eq!(summary.counts.failed_status, 100);
    assert_eq!(summary.counts.unmet, 100);
}

#[test]
fn an_open_loop_makes_every_arrival() {
    for (spacing, on_full) in [
        (Spacing::Even, OnFull::Queue),
        (Spacing::Poisson, OnFull::Drop),
    ] {
        let origin = Http2Origin::hello();
        let summary = go(&RunPlan {
            pacing: open(2_000.0, spacing, on_full),
            stop: lasting(millis(500)),
            workers: 2,
            ..http2(&origin.url("/"))
        });
        let counts = &summary.counts;
        assert_eq!(counts.ok, origin.requests());
        assert!(
            counts.started + counts.missed + counts.dropped > 800,
            "{counts:?}"
        );
        assert_eq!(counts.failed, 0);
        assert_eq!(origin.connections(), 2);
    }
}

#[test]
fn an_open_loop_drops_what_finds_no_free_stream() {
    let origin = Http2Origin::builder()
        .answer(|_, _| Http2Answer::Hold)
        .start();
    let summary = go(&RunPlan {
        connections: 1,
        pacing: open(1_000.0, Spacing::Even, OnFull::Drop),
        stop: lasting(millis(200)),
        grace: millis(50),
        ..http2(&origin.url("/"))
    });
    let counts = &summary.counts;
    assert_eq!(counts.started, 4, "{counts:?}");
    assert_eq!(counts.aborted, 4);
    assert_eq!(counts.started + counts.dropped + counts.missed, 200);
}

#[test]
fn streams_think_and_connections_ramp() {
    let origin = Http2Origin::hello();
    let summary = go(&RunPlan {
        connections: 4,
        pacing: Pacing::Closed {
            ramp: Some(Ramp::up(4, millis(200))),
            think: Some(ThinkTime {
                least: millis(20),
                most: millis(20),
            }),
        },
        stop: lasting(millis(400)),
        ..http2(&origin.url("/"))
    });
    assert_eq!(origin.connections(), 4);
    // Sixteen streams, each at most once at the start and after every pause.
    assert!(summary.counts.ok <= 16 * 21, "{:?}", summary.counts);
    assert!(summary.counts.ok >= 16, "{:?}", summary.counts);
}

#[test]
fn a_thought_that_outlasts_the_run_does_not_hold_it_up() {
    let origin = Http2Origin::hello();
    let summary = go(&RunPlan {
        pacing: Pacing::Closed {
            ramp: None,
            think: Some(ThinkTime {
                least: Duration::from_hours(1),
                most: Duration::from_hours(1),
            }),
        },
        stop: lasting(millis(100)),
        ..http2(&origin.url("/"))
    });
    assert_eq!(summary.counts.ok, 8);
}

#[test]
fn a_connection_that_is_left_is_replaced_without_losing_a_request() {
    // Every connection is left after its tenth request.
    let origin = Http2Origin::builder()
        .answer(|_, number| match number {
            9 => Http2Answer::GoAway,
            _ => Http2Answer::Content(200, b"hello".to_vec()),
        })
        .start();
    let summary = go(&RunPlan {
        stop: requests(1_000),
        ..http2(&origin.url("/"))
    });
    assert_eq!((summary.counts.ok, summary.counts.failed), (1_000, 0));
    assert_eq!(origin.requests(), 1_000);
    assert!(origin.connections() > 2);
    assert_eq!(summary.connections_opened, origin.connections());
}

/// The first connection is left with `last_stream` and this answer; the next ones behave.
fn leaves_once(answer: &[u8], last_stream: u32) -> Http2Origin {
    let bytes = [&frames::settings(), answer, &frames::goaway(last_stream, 0)].concat();
    Http2Origin::builder()
        .raw(move |connection| {
            (connection == 0).then(|| {
                Script::new()
                    .then(Step::Write(frames::settings()))
                    .then(Step::ReadBody(frames::OPENING_BYTES + 9))
                    .then(Step::Write(bytes.clone()))
                    .then(Step::Swallow)
            })
        })
        .start()
}

#[test]
fn requests_that_were_not_looked_at_are_made_again() {
    for (answer, last_stream, by_others) in [(Vec::new(), 0, 20), (frames::ok(1), 1, 19)] {
        let origin = leaves_once(&answer, last_stream);
        let summary = go(&RunPlan {
            connections: 1,
            stop: requests(20),
            ..http2(&origin.url("/"))
        });
        assert_eq!((summary.counts.ok, summary.counts.failed), (20, 0));
        assert_eq!(origin.requests(), by_others);
        assert_eq!(summary.connections_opened, 2);
    }
}

#[test]
fn a_server_that_leaves_every_time_is_reported_as_such() {
    let origin = Http2Origin::builder()
        .raw(|_| {
            Some(
                Script::new()
                    .then(Step::ReadBody(frames::OPENING_BYTES + 9))
                    .then(Step::Write(
                        [frames::settings(), frames::goaway(0, 11)].concat(),
                    ))
                    .then(Step::Swallow),
            )
        })
        .start();
    let summary = go(&RunPlan {
        connections: 1,
        stop: requests(1),
        ..http2(&origin.url("/"))
    });
    assert_eq!(failures(&summary, Phase::Wait, FailureKind::Closed), 1);
    let example = summary.failures[0].example.to_string();
    assert!(example.contains("ENHANCE_YOUR_CALM"), "{example}");
    assert_eq!(origin.connections(), 5);
}

#[test]
fn refused_and_reset_streams_are_distinguished_and_the_connection_goes_on() {
    let origin = Http2Origin::builder()
        .answer(|_, number| match number % 5 {
            0 => Http2Answer::Reset(7),
            1 => Http2Answer::BreakOff,
            2 => Http2Answer::Reset(2),
            _ => Http2Answer::Content(200, b"hello".to_vec()),
        })
        .start();
    let summary = go(&RunPlan {
        connections: 1,
        stop: requests(500),
        ..http2(&origin.url("/"))
    });
    assert_eq!((summary.counts.ok, summary.counts.failed), (200, 300));
    assert_eq!(failures(&summary, Phase::Receive, FailureKind::Reset), 100);
    assert_eq!(failures(&summary, Phase::Wait, FailureKind::Reset), 200);
    assert_eq!((origin.requests(), origin.connections()), (500, 1));
}

#[test]
fn what_is_under_way_when_the_connection_breaks_fails_and_another_is_opened() {
    let origin = Http2Origin::builder()
        .answer(|connection, number| match (connection, number) {
            (0, 10) => Http2Answer::Vanish,
            _ => Http2Answer::Content(200, b"hello".to_vec()),
        })
        .start();
    let summary = go(&RunPlan {
        connections: 1,
        stop: requests(100),
        ..http2(&origin.url("/"))
    });
    let failed = summary.counts.failed;
    assert!((1..=4).contains(&failed), "{:?}", summary.failures);
    assert_eq!(summary.counts.ok, 100 - failed);
    assert_eq!(origin.connections(), 2);
}

#[test]
fn a_silent_stream_times_out_and_the_others_go_on() {
    let origin = Http2Origin::builder()
        .answer(|_, number| match number {
            3 => Http2Answer::Hold,
            _ => Http2Answer::Content(200, b"hello".to_vec()),
        })
        .start();
    let summary = go(&RunPlan {
        connections: 1,
        stop: requests(1_000),
        timeout: millis(300),
        ..http2(&origin.url("/"))
    });
    assert_eq!((summary.counts.ok, summary.counts.failed), (999, 1));
    assert_eq!(failures(&summary, Phase::Wait, FailureKind::Timeout), 1);
    assert!(summary.latency.from_started.observed().max().unwrap() >= millis(299));
    assert_eq!(origin.connections(), 1);
}

#[test]
fn a_server_of_http1_is_reported_at_once_and_in_a_run() {
    let origin = Origin::hello();
    let plan = http2(&origin.url("/"));
    let error = check_reachable(&plan).unwrap_err();
    let RunError::Unreachable { failure, .. } = error else {
        panic!("{error}");
    };
    assert_eq!(failure.kind, FailureKind::Protocol);
    let summary = go(&RunPlan {
        connections: 1,
        stop: requests(3),
        ..plan
    });
    assert_eq!(summary.counts.failed, 3);
    let example = summary.failures[0].example.to_string();
    assert!(example.contains("speaks HTTP/1"), "{example}");
}

#[test]
fn a_refused_port_fails_without_spinning() {
    let address = refused_address();
    let summary = go(&RunPlan {
        stop: lasting(millis(200)),
        ..http2(&format!("http://{address}/"))
    });
    let refused = failures(&summary, Phase::Connect, FailureKind::Refused);
    assert_eq!(summary.counts.failed, refused);
    assert!((2..100).contains(&refused), "{refused}");
}

#[test]
fn tls_chooses_http2_by_alpn_or_fails() {
    let authority = Authority::new();
    let files = MaterialFiles::new();
    let roots = files.write("roots.pem", &authority.pem());
    let tls = TlsSettings {
        trust: Trust::Only(roots),
        identity: None,
        alpn: vec![b"h2".to_vec()],
        ..TlsSettings::default()
    };
    let connect = connect(ConnectOptions {
        tls: Some(tls.compile().unwrap()),
        ..ConnectOptions::default()
    });
    let config = || authority.issue(&["127.0.0.1"]).server_config();
    let origin = Http2Origin::builder().tls(config()).start();
    let summary = go(&RunPlan {
        connect: Arc::clone(&connect),
        stop: requests(100),
        ..http2(&origin.url("/"))
    });
    assert_eq!((summary.counts.ok, origin.requests()), (100, 100));

    let old = Origin::builder().tls(config()).start();
    let summary = go(&RunPlan {
        connect,
        stop: requests(2),
        connections: 1,
        ..http2(&old.url("/"))
    });
    assert_eq!(failures(&summary, Phase::Tls, FailureKind::Protocol), 2);
    let example = summary.failures[0].example.to_string();
    assert!(example.contains("ALPN"), "{example}");
    assert_eq!(old.requests(), 0);
}

#[test]
fn several_endpoints_have_connections_of_their_own() {
    let origins = [Http2Origin::hello(), Http2Origin::hello()];
    let mut plan = http2(&origins[0].url("/"));
    let other = http2(&origins[1].url("/"));
    plan.endpoints.extend(other.endpoints);
    plan.requests
        .extend(other.requests.into_iter().map(|planned| PlannedRequest {
            endpoint: 1,
            ..planned
        }));
    plan.connections = 1;
    plan.stop = requests(100);
    assert_eq!(go(&plan).counts.ok, 100);
    assert_eq!(origins[0].requests() + origins[1].requests(), 100);
    for origin in &origins {
        assert_eq!(origin.connections(), 1);
        // Each of the four streams takes turns by itself.
        assert!(
            (48..=52).contains(&origin.requests()),
            "{}",
            origin.requests()
        );
    }
}
