//! Redirects that are followed within an exchange.

use plimsoll_client::Request;
use plimsoll_load::{HttpPlan, ResponsePlan, RunPlan, WorkloadPlan};
use plimsoll_model::{FailureKind, Phase};
use plimsoll_testkit::{HELLO, Http2Answer, Http2Origin, Origin, Script, Step};

use crate::fixture::{failures, go, plan, requests};
use crate::http2::http2;

/// The same plan with redirects followed, by one user who makes five exchanges.
fn following(plan: RunPlan, limit: u32) -> RunPlan {
    RunPlan {
        workload: WorkloadPlan::Requests(
            plan.workload.http(),
            ResponsePlan {
                redirects: Some(limit),
                decode: None,
            },
        ),
        connections: 1,
        stop: requests(5),
        ..plan
    }
}

fn redirect(status: u16, location: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status} X\r\nlocation: {location}\r\ncontent-length: 2\r\n\r\nno")
        .into_bytes()
}

/// Answers the requests of a connection by `answers` in turn, again and again.
fn answering(answers: &[Vec<u8>]) -> Script {
    let mut script = Script::new();
    for _ in 0..5 {
        for answer in answers {
            script = script
                .then(Step::ReadHead)
                .then(Step::Write(answer.clone()));
        }
    }
    script
}

#[test]
fn a_chain_is_one_exchange() {
    let origin = Origin::scripted(answering(&[
        redirect(302, "/second"),
        redirect(301, "third?x"),
        HELLO.to_vec(),
    ]));
    let summary = go(&following(plan(&origin.url("/first")), 2));
    assert_eq!(summary.counts.ok, 5, "{:?}", summary.failures);
    assert_eq!(summary.counts.redirects, 10);
    assert_eq!(summary.statuses.into_iter().collect::<Vec<_>>(), [(200, 5)]);
    assert_eq!(summary.bytes_sent, origin.bytes_read());
    assert_eq!(origin.connections(), 1);
    let targets: Vec<String> = origin
        .heads()
        .iter()
        .map(|head| head.lines().next().unwrap_or_default().to_owned())
        .collect();
    let chain = [
        "GET /first HTTP/1.1",
        "GET /second HTTP/1.1",
        "GET /third?x HTTP/1.1",
    ];
    assert_eq!(targets[..3], chain);
    assert_eq!(targets.len(), 15);
}

#[test]
fn a_chain_that_is_too_long_fails() {
    let origin = Origin::scripted(answering(&[redirect(302, "/again")]));
    let summary = go(&RunPlan {
        stop: requests(1),
        ..following(plan(&origin.url("/")), 3)
    });
    assert_eq!(failures(&summary, Phase::Receive, FailureKind::Protocol), 1);
    assert_eq!(summary.counts.redirects, 3);
}

#[test]
fn another_origin_gets_no_credentials() {
    let other = Origin::scripted(answering(&[redirect(307, "/here"), HELLO.to_vec()]));
    let first = Origin::scripted(answering(&[redirect(307, &other.url("/there"))]));
    let url = first.url("/");
    let mut plan = following(plan(&url), 5);
    let authority = plan.endpoints[0].authority().to_owned();
    let headers = [("authorization", "Basic YTpi"), ("x-own", "1")];
    let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned()));
    plan.requests[0].request =
        Request::encode("POST", "/", &authority, &headers, Some(b"ab")).unwrap();
    let summary = go(&RunPlan {
        stop: requests(1),
        ..plan
    });
    assert_eq!(summary.counts.ok, 1, "{:?}", summary.failures);
    assert_eq!(summary.connections_opened, 2);
    assert!(first.heads()[0].contains("authorization"));
    let heads = other.heads();
    assert_eq!(heads.len(), 2);
    for head in heads {
        // The body of the request before is not taken off.
        assert!(head.contains("POST /"), "{head}");
        assert!(!head.contains("authorization"), "{head}");
        assert!(head.contains("x-own: 1"), "{head}");
    }
}

#[test]
fn redirects_are_followed_on_streams() {
    let origin = Http2Origin::builder()
        .answer(|_, number| {
            if number % 2 == 0 {
                Http2Answer::Parts {
                    status: 302,
                    head: vec![("location", "/next")],
                    content: Vec::new(),
                    trailers: Vec::new(),
                }
            } else {
                Http2Answer::Content(200, b"hello".to_vec())
            }
        })
        .start();
    let mut plan = following(http2(&origin.url("/")), 1);
    if let WorkloadPlan::Requests(HttpPlan::Http2(http2), _) = &mut plan.workload {
        http2.streams = 1;
    }
    let summary = go(&plan);
    assert_eq!(summary.counts.ok, 5, "{:?}", summary.failures);
    assert_eq!(summary.counts.redirects, 5);
    assert_eq!(origin.requests(), 10);
}
