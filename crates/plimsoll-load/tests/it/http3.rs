//! HTTP/3: counts equal to the server's, whatever becomes of streams and connections.

use std::sync::Arc;
use std::time::Duration;

use plimsoll_client::check::{Condition, Expectations};
use plimsoll_client::{ConnectOptions, Endpoint, QuicOptions, Request};
use plimsoll_formats::{Table, Template};
use plimsoll_load::{
    Feeder, FeederOrder, Http3Plan, HttpPlan, OnFull, PlannedRequest, RequestTemplate, RunError,
    RunPlan, Spacing, StatusSet, TemplateForm, ValueSources, WorkloadPlan, check_reachable,
};
use plimsoll_model::{FailureKind, Phase, Protocol};
use plimsoll_testkit::{
    Authority, Http3Answer, Http3Origin, Leaf, MaterialFiles, eventually, refused_address,
};
use plimsoll_wire::tls::{TlsSettings, Trust};

use crate::fixture::{connect, failures, go, lasting, millis, open, plan, requests, set_streams};

fn builder() -> plimsoll_testkit::Http3OriginBuilder {
    Http3Origin::builder(Leaf::self_signed(&["127.0.0.1"]).server_config())
}

pub(crate) fn answering(
    decide: impl Fn(u64, u64) -> Http3Answer + Send + Sync + 'static,
) -> Http3Origin {
    builder().answer(decide).start()
}

pub(crate) fn options(trust: Trust, quic: &QuicOptions) -> ConnectOptions {
    let tls = TlsSettings {
        trust,
        alpn: vec![b"h3".to_vec()],
        ..TlsSettings::default()
    };
    let tls = tls.compile().unwrap();
    ConnectOptions {
        quic: Some(quic.compile(&tls, false).unwrap()),
        tls: Some(tls),
        ..ConnectOptions::default()
    }
}

/// The usual plan over HTTP/3: two connections, four streams on each.
pub(crate) fn http3(url: &str) -> RunPlan {
    with(url, "GET", None)
}

fn with(url: &str, method: &str, body: Option<&[u8]>) -> RunPlan {
    let endpoint = Endpoint::parse(url).unwrap();
    let request = Request::encode_http3(
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
        connect: connect(options(Trust::Anyone, &QuicOptions::default())),
        workload: WorkloadPlan::requests(HttpPlan::Http3(Http3Plan {
            streams: 4,
            udp_payload: None,
        })),
        ..plan(url)
    }
}

fn expect(condition: &str) -> Arc<Expectations> {
    let condition = Condition::parse(condition).unwrap();
    Arc::new(Expectations::new(vec![condition]))
}

#[test]
fn a_number_of_requests_is_made_exactly() {
    for (number, connections, streams, workers) in [
        (1, 1, 1, 1),
        (7, 1, 3, 1),
        (2_000, 4, 16, 2),
        (10, 1, 64, 1),
    ] {
        let origin = builder().start();
        let mut plan = RunPlan {
            connections,
            workers,
            stop: requests(number),
            ..http3(&origin.url("/"))
        };
        set_streams(&mut plan, streams);
        let summary = go(&plan);
        assert_eq!(origin.requests(), number);
        assert_eq!(summary.counts.ok, number);
        assert_eq!(summary.statuses.get(&200), Some(&number));
        assert_eq!(summary.load.protocol, Protocol::Http3);
        assert_eq!(summary.connections_opened, origin.connections());
        assert_eq!(origin.connections(), connections as u64);
        assert!(origin.most_at_a_time() <= u64::from(streams));
        // Connections are closed, not left to time out.
        eventually(|| origin.open_connections() == 0);
    }
}

#[test]
fn all_streams_of_a_connection_are_used() {
    let origin = answering(|_, _| Http3Answer::Hold);
    let plan = RunPlan {
        connections: 1,
        stop: requests(8),
        ..http3(&origin.url("/"))
    };
    let running = std::thread::spawn(move || go(&plan));
    eventually(|| origin.most_at_a_time() == 4);
    origin.release();
    assert_eq!(running.join().unwrap().counts.ok, 8);
}

#[test]
fn a_server_that_allows_fewer_streams_gets_no_more() {
    let origin = builder().max_streams(2).start();
    let summary = go(&RunPlan {
        connections: 1,
        stop: requests(300),
        ..http3(&origin.url("/"))
    });
    assert_eq!(summary.counts.ok, 300);
    assert_eq!(origin.requests(), 300);
    let warnings = &summary.conditions.warnings;
    let is_reported = |warning: &String| warning.contains("allows 2 streams");
    assert!(warnings.iter().any(is_reported), "{warnings:?}");
}

#[test]
fn a_server_that_allows_enough_streams_is_not_reported() {
    let origin = builder().max_streams(4).start();
    let summary = go(&RunPlan {
        connections: 1,
        stop: requests(300),
        ..http3(&origin.url("/"))
    });
    assert_eq!(summary.counts.ok, 300);
    let warnings = &summary.conditions.warnings;
    let is_limit = |warning: &String| warning.contains("streams at a time");
    assert!(!warnings.iter().any(is_limit), "{warnings:?}");
}

#[test]
fn an_open_loop_makes_what_its_schedule_says() {
    let origin = builder().start();
    let summary = go(&RunPlan {
        pacing: open(500.0, Spacing::Even, OnFull::Queue),
        stop: requests(250),
        ..http3(&origin.url("/"))
    });
    assert_eq!(summary.counts.ok, 250);
    assert_eq!(origin.requests(), 250);
    assert_eq!(summary.latency.honest().observed().len(), 250);
}

#[test]
fn bytes_are_those_of_the_datagrams() {
    let origin = answering(|_, _| Http3Answer::Content(200, vec![b'a'; 100_000]));
    let summary = go(&RunPlan {
        connections: 1,
        ..http3(&origin.url("/"))
    });
    let content = 10 * 100_000;
    assert!(
        summary.bytes_received > content,
        "{}",
        summary.bytes_received
    );
    assert!(
        summary.bytes_received < content * 11 / 10,
        "{}",
        summary.bytes_received
    );
}

#[test]
fn bodies_are_sent_and_echoed_whole() {
    let body = vec![b'b'; 200_000];
    let origin = answering(|_, _| Http3Answer::Echo);
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
fn requests_are_made_from_templates() {
    let origin = builder().start();
    let table = Table::parse("user\nann\nbob\n").unwrap();
    let feeders = vec![Feeder {
        name: "users.csv".to_owned(),
        table: Arc::new(table),
        order: FeederOrder::Cyclic,
    }];
    let target = Template::parse("/{{user}}").unwrap();
    let compiled = RequestTemplate::compile(
        "GET",
        &target,
        "127.0.0.1",
        &[],
        None,
        ValueSources {
            feeders: &feeders,
            kept: &[],
        },
        TemplateForm {
            protocol: Protocol::Http3,
            scheme: "https",
            coding: None,
        },
    );
    let (template, request) = compiled.unwrap();
    let summary = go(&RunPlan {
        requests: vec![PlannedRequest {
            template: Some(Arc::new(template)),
            ..PlannedRequest::fixed(0, request)
        }],
        feeders,
        ..http3(&origin.url("/"))
    });
    assert_eq!(summary.counts.ok, 10);
    for user in ["ann", "bob"] {
        let head = format!("GET https://127.0.0.1/{user}");
        let heads = origin.heads().into_iter().filter(|heads| *heads == head);
        assert_eq!(heads.count(), 5, "{:?}", origin.heads());
    }
}

#[test]
fn an_answer_to_head_has_no_content() {
    let origin = builder().start();
    let summary = go(&RunPlan {
        expectations: expect("size == 0B"),
        ..with(&origin.url("/x"), "HEAD", None)
    });
    assert_eq!((summary.counts.ok, summary.counts.unmet), (10, 0));
    let expected = format!("HEAD {}", origin.url("/x"));
    assert_eq!(origin.heads()[0], expected);
}

#[test]
fn interim_responses_are_passed_over() {
    let origin = answering(|_, _| Http3Answer::Interim);
    let summary = go(&RunPlan {
        expectations: expect("body == 'hello'"),
        ..http3(&origin.url("/"))
    });
    assert_eq!((summary.counts.ok, summary.counts.unmet), (10, 0));
    assert_eq!(summary.statuses.get(&200), Some(&10));
}

#[test]
fn every_response_is_judged_by_itself() {
    let origin = answering(|_, number| match number % 4 {
        0 => Http3Answer::Content(503, b"busy".to_vec()),
        1 => Http3Answer::Content(200, b"no".to_vec()),
        _ => Http3Answer::Content(200, b"fine".to_vec()),
    });
    let summary = go(&RunPlan {
        connections: 1,
        stop: requests(400),
        expectations: expect("body contains 'fine'"),
        fail_statuses: StatusSet::parse("5xx").unwrap(),
        ..http3(&origin.url("/"))
    });
    assert_eq!(summary.counts.ok, 400);
    assert_eq!(summary.counts.failed_status, 100);
    assert_eq!(summary.counts.unmet, 100);
}

#[test]
fn a_server_that_leaves_is_followed_to_another_connection() {
    let origin = answering(|_, number| {
        if number == 9 {
            Http3Answer::GoAway
        } else {
            Http3Answer::Content(200, b"hello".to_vec())
        }
    });
    let summary = go(&RunPlan {
        connections: 1,
        stop: requests(100),
        ..http3(&origin.url("/"))
    });
    assert_eq!(summary.counts.ok, 100, "{:?}", summary.failures);
    assert!(origin.connections() >= 9, "{}", origin.connections());
}

#[test]
fn a_rejected_request_is_made_again_and_a_reset_one_is_a_failure() {
    const REJECTED: u64 = 0x10b;
    const INTERNAL_ERROR: u64 = 0x102;
    let origin = answering(|_, number| match number {
        3 => Http3Answer::Reset(REJECTED),
        5 => Http3Answer::Reset(INTERNAL_ERROR),
        _ => Http3Answer::Content(200, b"hello".to_vec()),
    });
    let summary = go(&RunPlan {
        connections: 1,
        stop: requests(20),
        ..http3(&origin.url("/"))
    });
    let resets = failures(&summary, Phase::Wait, FailureKind::Reset);
    assert_eq!(
        (resets, summary.counts.ok),
        (1, 19),
        "{:?}",
        summary.failures
    );
    assert_eq!((origin.requests(), origin.connections()), (21, 1));
}

#[test]
fn content_that_is_not_as_announced_is_a_failure() {
    for (announced, sent) in [(10, 5), (5, 10), (0, 1)] {
        let origin = answering(move |_, _| Http3Answer::Miscounted { announced, sent });
        let summary = go(&http3(&origin.url("/")));
        let count = failures(&summary, Phase::Receive, FailureKind::Protocol);
        assert_eq!(
            (count, summary.counts.ok),
            (10, 0),
            "{:?}",
            summary.failures
        );
    }
}

#[test]
fn a_connection_that_breaks_fails_what_it_carried_and_the_run_goes_on() {
    let origin = answering(|connection, number| {
        if connection == 0 && number == 5 {
            Http3Answer::Close
        } else {
            Http3Answer::Content(200, b"hello".to_vec())
        }
    });
    let summary = go(&RunPlan {
        connections: 1,
        stop: requests(50),
        ..http3(&origin.url("/"))
    });
    assert!(
        (1..=4).contains(&summary.counts.failed),
        "{:?}",
        summary.failures
    );
    assert_eq!(summary.counts.ok + summary.counts.failed, 50);
    assert!(
        summary
            .failures
            .iter()
            .all(|failure| failure.kind == FailureKind::Closed)
    );
}

#[test]
fn a_timeout_ends_one_exchange_and_leaves_the_others() {
    let origin = answering(|_, number| {
        if number == 2 {
            Http3Answer::Hold
        } else {
            Http3Answer::Content(200, b"hello".to_vec())
        }
    });
    let summary = go(&RunPlan {
        connections: 1,
        stop: requests(40),
        timeout: millis(300),
        ..http3(&origin.url("/"))
    });
    assert_eq!(failures(&summary, Phase::Wait, FailureKind::Timeout), 1);
    assert_eq!(summary.counts.ok, 39);
    assert_eq!(origin.connections(), 1);
}

#[test]
fn what_is_under_way_at_the_end_is_aborted() {
    let origin = answering(|_, _| Http3Answer::Hold);
    let summary = go(&RunPlan {
        stop: lasting(millis(100)),
        grace: Duration::ZERO,
        ..http3(&origin.url("/"))
    });
    assert_eq!(summary.counts.aborted, 8);
    eventually(|| origin.open_connections() == 0);
}

#[test]
fn the_payload_of_datagrams_is_what_was_requested() {
    let origin = answering(|_, _| Http3Answer::Content(200, vec![b'a'; 50_000]));
    let quic = QuicOptions {
        udp_payload: Some(1250),
        ..QuicOptions::default()
    };
    let summary = go(&RunPlan {
        connect: connect(options(Trust::Anyone, &quic)),
        ..http3(&origin.url("/"))
    });
    assert_eq!(summary.counts.ok, 10);
    eventually(|| origin.open_connections() == 0);
    assert!(
        origin.largest_payload() <= 1250,
        "{}",
        origin.largest_payload()
    );
}

#[test]
fn requests_leave_early_only_if_requested_to() {
    for (early_data, expected) in [(false, 0..=0), (true, 1..=19)] {
        let origin = answering(|_, _| Http3Answer::GoAway);
        let quic = QuicOptions {
            early_data,
            ..QuicOptions::default()
        };
        let mut plan = RunPlan {
            connect: connect(options(Trust::Anyone, &quic)),
            connections: 1,
            stop: requests(20),
            ..http3(&origin.url("/"))
        };
        set_streams(&mut plan, 1);
        let summary = go(&plan);
        assert_eq!(summary.counts.ok, 20, "{:?}", summary.failures);
        let early = origin.early_requests();
        assert!(expected.contains(&early), "{early} with {early_data}");
    }
}

#[test]
fn requests_that_left_too_early_are_made_again() {
    let origin = builder()
        .forgets_sessions()
        .answer(|_, _| Http3Answer::GoAway)
        .start();
    let quic = QuicOptions {
        early_data: true,
        ..QuicOptions::default()
    };
    let mut plan = RunPlan {
        connect: connect(options(Trust::Anyone, &quic)),
        connections: 2,
        stop: requests(40),
        ..http3(&origin.url("/"))
    };
    set_streams(&mut plan, 1);
    let summary = go(&plan);
    assert_eq!(summary.counts.ok, 40, "{:?}", summary.failures);
    assert_eq!(origin.requests(), 40);
    assert_eq!(origin.early_requests(), 0);
    assert!(summary.connections_opened > 2);
}

fn unreachable(plan: &RunPlan) -> plimsoll_model::Failure {
    match check_reachable(plan).unwrap_err() {
        RunError::Unreachable { failure, .. } => failure,
        other => panic!("{other}"),
    }
}

#[test]
fn certificates_are_judged_by_cause() {
    let (authority, files) = (Authority::new(), MaterialFiles::new());
    let roots = files.write("roots.pem", &authority.pem());
    for (leaf, kind) in [
        (
            authority.issue_expired(&["127.0.0.1"]),
            FailureKind::CertificateExpired,
        ),
        (
            authority.issue(&["example.org"]),
            FailureKind::CertificateHostname,
        ),
        (
            Authority::new().issue(&["127.0.0.1"]),
            FailureKind::CertificateUntrusted,
        ),
        (
            Leaf::self_signed(&["127.0.0.1"]),
            FailureKind::CertificateSelfSigned,
        ),
        (
            authority.issue_for_client("127.0.0.1"),
            FailureKind::CertificateOther,
        ),
    ] {
        let origin = Http3Origin::hello(leaf.server_config());
        let options = options(Trust::Only(roots.clone()), &QuicOptions::default());
        let failure = unreachable(&RunPlan {
            connect: connect(options),
            ..http3(&origin.url("/"))
        });
        assert_eq!(
            (failure.phase, failure.kind),
            (Phase::Connect, kind),
            "{failure}"
        );
    }
    let origin = Http3Origin::hello(authority.issue(&["127.0.0.1"]).server_config());
    let options = options(Trust::Only(roots), &QuicOptions::default());
    check_reachable(&RunPlan {
        connect: connect(options),
        ..http3(&origin.url("/"))
    })
    .unwrap();
}

#[test]
fn a_server_without_http3_says_so() {
    let origin = builder().alpn(b"doq").start();
    let failure = unreachable(&http3(&origin.url("/")));
    assert_eq!(
        (failure.phase, failure.kind),
        (Phase::Connect, FailureKind::Protocol)
    );
    let cause = failure.cause.unwrap();
    assert_eq!(cause, "the server does not offer HTTP/3 by ALPN");
}

#[test]
fn no_reader_there_is_a_timeout() {
    let plan = http3(&format!("https://{}/", refused_address()));
    let options = ConnectOptions {
        timeout: Some(millis(200)),
        ..options(Trust::Anyone, &QuicOptions::default())
    };
    let failure = unreachable(&RunPlan {
        connect: Arc::new(plimsoll_client::ConnectPlan::new(options).unwrap()),
        ..plan
    });
    assert_eq!(
        (failure.phase, failure.kind),
        (Phase::Connect, FailureKind::Timeout)
    );
}
