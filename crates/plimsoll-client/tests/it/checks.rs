//! Checks over real sockets: verdicts, reuse, the reported facts of the connection.

use std::sync::Arc;
use std::time::Duration;

use plimsoll_client::check::{
    CheckOptions, CheckPlan, Checker, Condition, Expectations, Outcome, Reuse, check,
};
use plimsoll_client::{ConnectOptions, Connector, ReadBuffer, Request};
use plimsoll_model::{Checked, FailureKind, Phase, Protocol, Verdict};
use plimsoll_testkit::{
    Authority, Http2Answer, Http2Origin, Leaf, Origin, Script, Step, VirtualClock,
    allocations_of_this_thread, refused_address, until,
};
use plimsoll_wire::SystemClock;
use plimsoll_wire::h1::Limits;

use crate::connecting::{connector, endpoint, phases, run};
use crate::tls::trusting;

const LONG: Duration = Duration::from_secs(20);

fn plan_for(url: &str, method: &str, timeout: Duration, conditions: &[&str]) -> Arc<CheckPlan> {
    let endpoint = endpoint(url);
    let target = endpoint.path_and_query().to_owned();
    let request = Request::encode(method, &target, endpoint.authority(), &[], None).unwrap();
    let conditions = conditions
        .iter()
        .map(|text| Condition::parse(text).unwrap());
    Arc::new(CheckPlan {
        endpoint,
        request,
        digest: None,
        grpc: None,
        expectations: Expectations::new(conditions.collect()),
        timeout,
        limits: Limits::default(),
    })
}

fn plan(url: &str, conditions: &[&str]) -> Arc<CheckPlan> {
    plan_for(url, "GET", LONG, conditions)
}

fn checked(origin: &Origin, conditions: &[&str]) -> Checked {
    checked_with(ConnectOptions::default(), origin, conditions)
}

fn checked_with(options: ConnectOptions, origin: &Origin, conditions: &[&str]) -> Checked {
    let plan = plan(&origin.url("/a?b"), conditions);
    run(async {
        check(
            &plan,
            CheckOptions::default(),
            &connector(options),
            &SystemClock,
        )
        .await
    })
}

fn met(checked: &Checked) -> Vec<Option<bool>> {
    let judgements = checked.judgements.iter();
    judgements.map(|judgement| judgement.met).collect()
}

fn answering(body: &str) -> Origin {
    Origin::scripted(Script::serve(format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )))
}

#[test]
fn all_about_one_exchange() {
    let origin = answering("{\"ok\": true, \"n\": 3}");
    let checked = checked(
        &origin,
        &[
            "status == 200",
            "body.json($.ok) == true",
            "body.json($.n) < 3",
            "ip == 127.0.0.1",
            "header.content-type == application/json",
            "dns == 0s",
        ],
    );
    assert_eq!(checked.verdict(), Verdict::Unmet);
    let t = Some(true);
    assert_eq!(met(&checked), [t, t, Some(false), t, t, t]);
    assert_eq!(checked.judgements[2].observed.as_deref(), Some("3"));
    assert_eq!(checked.judgements[5].observed, None);
    assert_eq!(checked.url, origin.url("/a?b"));
    assert_eq!(checked.method, "GET");
    assert_eq!(
        phases(&checked.exchange.phases),
        [Phase::Connect, Phase::Send, Phase::Wait, Phase::Receive]
    );
    assert_eq!(checked.exchange.peer, Some(origin.address()));
    assert_eq!(checked.content_bytes, 20);
    assert_eq!(
        checked.fields[0],
        ("content-type".to_owned(), "application/json".to_owned())
    );
    assert_eq!(checked.tls, None);
    assert!(origin.heads()[0].starts_with("GET /a?b HTTP/1.1\r\n"));
}

#[test]
fn what_tls_agreed_on_and_when_the_certificate_expires() {
    let authority = Authority::new();
    let leaf = authority.issue(&["127.0.0.1", "a.test"]);
    let origin = Origin::builder().tls(leaf.server_config()).start();
    let options = ConnectOptions {
        tls: Some(trusting(&authority.pem())),
        ..ConnectOptions::default()
    };
    let checked = checked_with(options, &origin, &["cert.days > 14", "tls > 0s"]);
    assert_eq!(checked.verdict(), Verdict::Met);
    let tls = checked.tls.unwrap();
    assert_eq!(tls.version, "TLS 1.3");
    let cipher = tls.cipher.as_deref();
    assert!(cipher.is_some_and(|name| name.starts_with("TLS13_")));
    assert_eq!(tls.alpn.as_deref(), Some("http/1.1"));
    assert!(!tls.resumed);
    let certificate = tls.certificate.unwrap();
    assert_eq!(certificate.subject, "CN=127.0.0.1");
    assert_eq!(certificate.issuer, "CN=plimsoll test authority");
    assert_eq!(certificate.names, ["127.0.0.1", "a.test"]);
    let days = certificate.days_left(checked.at).to_string();
    assert_eq!(checked.judgements[0].observed, Some(days));
}

#[test]
fn without_tls_there_is_no_certificate_to_expire() {
    let checked = checked(&Origin::hello(), &["cert.days > 14", "tls < 1s"]);
    assert_eq!(met(&checked), [Some(false), Some(true)]);
    assert_eq!(checked.judgements[0].observed, None);
}

#[test]
fn an_expired_certificate_is_a_failed_check() {
    let authority = Authority::new();
    let leaf = authority.issue_expired(&["127.0.0.1"]);
    let origin = Origin::builder().tls(leaf.server_config()).start();
    let options = ConnectOptions {
        tls: Some(trusting(&authority.pem())),
        ..ConnectOptions::default()
    };
    let checked = checked_with(options, &origin, &["cert.days > 14"]);
    assert_eq!(checked.verdict(), Verdict::Failed);
    let failure = checked.exchange.outcome.unwrap_err();
    assert_eq!(failure.kind, FailureKind::CertificateExpired);
    assert_eq!(checked.judgements[0].met, None);
}

#[test]
fn what_fails_is_not_judged() {
    let silent = Origin::silent();
    let cut = Origin::scripted(Script::answer_once(
        "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nx",
    ));
    let refused = format!("http://{}/", refused_address());
    for (url, kind, phase) in [
        (refused, FailureKind::Refused, Phase::Connect),
        (silent.url("/"), FailureKind::Timeout, Phase::Wait),
        (cut.url("/"), FailureKind::Closed, Phase::Receive),
    ] {
        let timeout = Duration::from_millis(300);
        let plan = plan_for(&url, "GET", timeout, &["status == 200"]);
        let checked = run(async {
            check(
                &plan,
                CheckOptions::default(),
                &connector(ConnectOptions::default()),
                &SystemClock,
            )
            .await
        });
        assert_eq!(checked.verdict(), Verdict::Failed, "{url}");
        assert_eq!(met(&checked), [None], "{url}");
        let failure = checked.exchange.outcome.unwrap_err();
        assert_eq!((failure.kind, failure.phase), (kind, phase), "{url}");
    }
}

#[test]
fn redirects_are_not_followed() {
    let origin = Origin::scripted(Script::serve(
        "HTTP/1.1 302 Found\r\nlocation: /b\r\ncontent-length: 0\r\n\r\n",
    ));
    let checked = checked(&origin, &["status == 302", "header.location == /b"]);
    assert_eq!(checked.verdict(), Verdict::Met);
    assert_eq!(origin.requests(), 1);
}

/// A checker with what it borrows.
struct Bench {
    checker: Checker,
    connector: Connector,
    buffer: ReadBuffer,
}

impl Bench {
    fn new(plan: Arc<CheckPlan>, reuse: Reuse) -> Self {
        Self {
            checker: Checker::new(plan, reuse),
            connector: connector(ConnectOptions::default()),
            buffer: ReadBuffer::new(),
        }
    }

    async fn check(&mut self) -> Outcome {
        self.checker
            .check(&self.connector, &self.buffer, &SystemClock)
            .await
    }
}

#[test]
fn a_connection_is_kept_or_not() {
    run(async {
        for (reuse, connections) in [(Reuse::Keep, 1), (Reuse::Fresh, 4)] {
            let origin = Origin::hello();
            let mut bench = Bench::new(plan(&origin.url("/"), &["status == 200"]), reuse);
            for round in 0..4 {
                let outcome = bench.check().await;
                assert_eq!(outcome.verdict, Verdict::Met);
                let expected = reuse == Reuse::Keep && round > 0;
                assert_eq!(outcome.reused, expected);
                let connect = outcome.exchange.phases.get(Phase::Connect);
                assert_eq!(connect.is_none(), expected);
            }
            assert_eq!(origin.connections(), connections);
            bench.checker.close();
            until(|| origin.open_connections() == 0).await;
        }
    });
}

#[test]
fn a_connection_closed_while_idle_is_replaced() {
    run(async {
        let origin = Origin::builder()
            .script(|number| match number {
                0 => Script::answer_once("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"),
                _ => Script::hello(),
            })
            .start();
        let mut bench = Bench::new(plan(&origin.url("/"), &[]), Reuse::Keep);
        assert_eq!(bench.check().await.verdict, Verdict::Met);
        // Whether the end is seen before the request is sent or after it, the result is the same.
        let outcome = bench.check().await;
        assert_eq!(outcome.verdict, Verdict::Met);
        assert!(!outcome.reused);
        assert_eq!(origin.connections(), 2);
    });
}

#[test]
fn a_request_that_met_a_closing_connection_is_sent_again_if_that_is_safe() {
    // The first connection answers once, and takes the second request without answering it.
    let origin = || {
        Origin::builder()
            .script(|number| match number {
                0 => Script::answer_once("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
                    .then(Step::ReadHead),
                _ => Script::hello(),
            })
            .start()
    };
    run(async {
        for (method, verdict, requests) in [("GET", Verdict::Met, 3), ("POST", Verdict::Failed, 2)]
        {
            let origin = origin();
            let plan = plan_for(&origin.url("/"), method, LONG, &[]);
            let mut bench = Bench::new(plan, Reuse::Keep);
            assert_eq!(bench.check().await.verdict, Verdict::Met, "{method}");
            let outcome = bench.check().await;
            assert_eq!(outcome.verdict, verdict, "{method}");
            assert_eq!(origin.requests(), requests, "{method}");
        }
    });
}

#[test]
fn a_failure_on_a_fresh_connection_is_not_tried_again() {
    run(async {
        let origin = Origin::scripted(Script::new().then(Step::ReadHead));
        let mut bench = Bench::new(plan(&origin.url("/"), &[]), Reuse::Keep);
        let outcome = bench.check().await;
        assert_eq!(outcome.verdict, Verdict::Failed);
        assert_eq!(origin.requests(), 1);
    });
}

#[test]
fn what_an_earlier_response_sent_is_forgotten_when_none_comes() {
    run(async {
        let origin = Origin::builder()
            .script(|_| {
                Script::answer_once("HTTP/1.1 200 OK\r\nx: 1\r\nconnection: close\r\n\r\nhello")
            })
            .start();
        let plan = plan(&origin.url("/"), &["header.x == 1", "body == hello"]);
        let mut bench = Bench::new(plan, Reuse::Keep);
        let outcome = bench.check().await;
        assert_eq!(outcome.verdict, Verdict::Met);
        assert_eq!(bench.checker.explain(&outcome).content_bytes, 5);
        drop(origin);
        let outcome = bench.check().await;
        assert_eq!(outcome.verdict, Verdict::Failed);
        let checked = bench.checker.explain(&outcome);
        assert_eq!((checked.content_bytes, checked.fields.len()), (0, 0));
    });
}

#[test]
fn certificates_are_followed_over_reuse() {
    let leaf = Leaf::self_signed(&["127.0.0.1"]);
    let origin = Origin::builder().tls(leaf.server_config()).start();
    run(async {
        let plan = plan(&origin.url("/"), &["cert.days > 14"]);
        let mut checker = Checker::new(plan, Reuse::Keep);
        let connector = connector(ConnectOptions {
            tls: Some(trusting(leaf.pem())),
            ..ConnectOptions::default()
        });
        let buffer = ReadBuffer::new();
        let clock = VirtualClock::new();
        let mut days = Vec::new();
        for _ in 0..2 {
            let outcome = checker.check(&connector, &buffer, &clock).await;
            assert_eq!(outcome.verdict, Verdict::Met);
            let observed = checker.explain(&outcome).judgements[0].observed.clone();
            days.push(observed.unwrap().parse::<i64>().unwrap());
            clock.advance(Duration::from_hours(10 * 24));
        }
        assert_eq!(days[0], days[1] + 10);
        assert_eq!(origin.connections(), 1);
    });
}

#[test]
fn a_check_on_a_kept_connection_allocates_nothing() {
    const CONDITIONS: [&str; 6] = [
        "status == 200",
        "wait < 20s",
        "ip in 127.0.0.0/8",
        "body matches '^hel'",
        "header.content-length == 5",
        "any(status == 204, not(header.etag exists))",
    ];
    run(async {
        let origin = Origin::hello();
        let mut bench = Bench::new(plan(&origin.url("/"), &CONDITIONS), Reuse::Keep);
        let mut allocations = Vec::new();
        for checks in [100, 1_000] {
            let before = allocations_of_this_thread();
            for _ in 0..checks {
                assert_eq!(bench.check().await.verdict, Verdict::Met);
            }
            allocations.push(allocations_of_this_thread() - before);
        }
        assert!(allocations[0] > 0, "allocations are counted");
        assert!(allocations[1] <= 16, "{allocations:?}");
    });
}

fn http2_plan(url: &str, conditions: &[&str]) -> Arc<CheckPlan> {
    let endpoint = endpoint(url);
    let scheme = endpoint.scheme().name();
    let (authority, path) = (endpoint.authority(), endpoint.path_and_query());
    let request = Request::encode_http2("GET", scheme, authority, path, &[], None).unwrap();
    let conditions = conditions
        .iter()
        .map(|text| Condition::parse(text).unwrap());
    Arc::new(CheckPlan {
        expectations: Expectations::new(conditions.collect()),
        endpoint,
        request,
        digest: None,
        grpc: None,
        timeout: LONG,
        limits: Limits::default(),
    })
}

#[test]
fn a_check_over_http2_reports_fields_and_protocol() {
    let origin = Http2Origin::hello();
    let plan = http2_plan(
        &origin.url("/a?b"),
        &["body == 'hello'", "header.x-answer == yes"],
    );
    let checked = run(async {
        let connector = connector(ConnectOptions::default());
        check(&plan, CheckOptions::default(), &connector, &SystemClock).await
    });
    assert_eq!(checked.verdict(), Verdict::Met, "{checked:?}");
    assert_eq!(checked.exchange.protocol, Protocol::Http2);
    assert_eq!(
        phases(&checked.exchange.phases),
        [Phase::Connect, Phase::Send, Phase::Wait, Phase::Receive]
    );
    let names: Vec<_> = checked.fields.iter().map(|(name, _)| name).collect();
    assert!(!names.iter().any(|name| name.starts_with(':')), "{names:?}");
    assert!(names.contains(&&"content-length".to_owned()));
}

#[test]
fn a_kept_http2_connection_is_used_again_until_its_server_leaves() {
    let origin = Http2Origin::builder()
        .answer(|_, number| match number {
            2 => Http2Answer::GoAway,
            _ => Http2Answer::Content(200, b"hello".to_vec()),
        })
        .start();
    let mut checker = Checker::new(
        http2_plan(&origin.url("/"), &["status == 200"]),
        Reuse::Keep,
    );
    run(async {
        let connector = connector(ConnectOptions::default());
        let buffer = ReadBuffer::new();
        for number in 1..=9 {
            let outcome = checker.check(&connector, &buffer, &SystemClock).await;
            assert_eq!(outcome.verdict, Verdict::Met, "{outcome:?}");
            assert_eq!(origin.requests(), number);
        }
    });
    assert!(
        (3..=4).contains(&origin.connections()),
        "{}",
        origin.connections()
    );
}

#[test]
fn a_check_over_http2_of_a_server_of_http1_fails_by_name() {
    let origin = Origin::hello();
    let plan = http2_plan(&origin.url("/"), &[]);
    let checked = run(async {
        let connector = connector(ConnectOptions::default());
        check(&plan, CheckOptions::default(), &connector, &SystemClock).await
    });
    let failure = checked.exchange.outcome.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Protocol, "{failure}");
    assert!(failure.to_string().contains("speaks HTTP/1"), "{failure}");
}
