//! gRPC: what responses of HTTP/2 mean to calls, whatever their servers do.

use plimsoll_client::grpc::frame;
use plimsoll_client::{Endpoint, Request};
use plimsoll_load::{GrpcPlan, Http2Plan, HttpPlan, PlannedRequest, RunPlan, WorkloadPlan};
use plimsoll_model::{FailureKind, Phase, RunSummary};
use plimsoll_testkit::{Http2Answer, Http2Origin};

use crate::fixture::{failures, go, plan, requests};

type Fields = &'static [(&'static str, &'static str)];

const GRPC: Fields = &[("content-type", "application/grpc+proto")];
const OK: Fields = &[("grpc-status", "0")];

pub(crate) fn calls(url: &str, is_server_streaming: bool) -> RunPlan {
    let endpoint = Endpoint::parse(url).unwrap();
    let headers = [("te", "trailers"), ("content-type", "application/grpc")];
    let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let request = Request::encode_http2(
        "POST",
        endpoint.scheme().name(),
        endpoint.authority(),
        "/test.Service/Method",
        &headers,
        Some(&frame(&[b"question"]).unwrap()),
    )
    .unwrap();
    RunPlan {
        requests: vec![PlannedRequest::fixed(0, request)],
        names: std::sync::Arc::default(),
        workload: WorkloadPlan::Grpc(
            HttpPlan::Http2(Http2Plan {
                streams: 4,
                stream_window: 1 << 20,
                connection_window: 1 << 20,
            }),
            GrpcPlan {
                is_server_streaming,
            },
        ),
        ..plan(url)
    }
}

/// Makes ten calls, each of them answered with these parts.
fn answered(
    is_server_streaming: bool,
    status: u16,
    head: Fields,
    content: &[u8],
    trailers: Fields,
) -> RunSummary {
    let answer = Http2Answer::Parts {
        status,
        head: head.to_vec(),
        content: content.to_vec(),
        trailers: trailers.to_vec(),
    };
    let origin = Http2Origin::builder()
        .answer(move |_, _| answer.clone())
        .start();
    let summary = go(&calls(&origin.url("/"), is_server_streaming));
    assert_eq!(origin.requests(), 10);
    // Whatever an answer means, it does not cost the connection.
    assert_eq!(summary.connections_opened, 2);
    summary
}

/// The only status that all calls ended with, and its message.
fn only_status(summary: &RunSummary) -> (&'static str, Option<&str>) {
    let grpc = summary.grpc.as_ref().unwrap();
    let [counted] = grpc.statuses.as_slice() else {
        panic!("{:?}", grpc.statuses);
    };
    assert_eq!(counted.count, 10);
    (counted.status.name(), counted.example.as_deref())
}

#[test]
fn a_message_and_the_status_ok_are_a_success() {
    let summary = answered(false, 200, GRPC, &frame(&[b"answer"]).unwrap(), OK);
    assert_eq!(only_status(&summary), ("OK", None));
    assert_eq!(summary.grpc.unwrap().messages_received, 10);
    assert_eq!((summary.counts.ok, summary.counts.errors()), (10, 0));
}

#[test]
fn messages_of_a_stream_are_counted() {
    let messages = frame(&[b"one".as_slice(), b"", &vec![b'x'; 100_000]]).unwrap();
    let summary = answered(true, 200, GRPC, &messages, OK);
    assert_eq!(only_status(&summary), ("OK", None));
    assert_eq!(summary.grpc.unwrap().messages_received, 30);
    let summary = answered(true, 200, GRPC, b"", OK);
    assert_eq!(only_status(&summary), ("OK", None));
    assert_eq!(summary.counts.errors(), 0);
}

#[test]
fn other_statuses_are_errors_by_name() {
    let half = &frame(&[b"answer"]).unwrap()[..7];
    for (head, content, trailers, name, message) in [
        (
            GRPC,
            b"".as_slice(),
            [("grpc-status", "14"), ("grpc-message", "come%20back")].as_slice(),
            "UNAVAILABLE",
            Some("come back"),
        ),
        (GRPC, half, &[("grpc-status", "13")], "INTERNAL", None),
        // All in the head, which is all there is.
        (
            &[("content-type", "application/grpc"), ("grpc-status", "5")],
            b"",
            &[],
            "NOT_FOUND",
            None,
        ),
        // No status that exists.
        (GRPC, b"", &[("grpc-status", "99")], "UNKNOWN", None),
        (GRPC, b"", &[("grpc-status", "bad")], "UNKNOWN", None),
    ] {
        let summary = answered(false, 200, head, content, trailers);
        assert_eq!(only_status(&summary), (name, message));
        assert_eq!(summary.counts.ok, 10);
        assert_eq!(summary.counts.failed_status, 10);
    }
}

#[test]
fn a_status_of_http_stands_for_one_that_is_not_there() {
    for (status, name) in [
        (503, "UNAVAILABLE"),
        (401, "UNAUTHENTICATED"),
        (500, "UNKNOWN"),
    ] {
        let html: Fields = &[("content-type", "text/html")];
        let summary = answered(false, status, html, b"<html>", &[]);
        assert_eq!(only_status(&summary), (name, None));
        assert_eq!(summary.statuses.get(&status), Some(&10));
        assert_eq!(summary.counts.failed_status, 10);
    }
}

#[test]
fn what_is_no_answer_fails_by_name() {
    let message = frame(&[b"answer"]).unwrap();
    let two = frame(&[b"one", b"two"]).unwrap();
    let compressed = [b"\x01", &message[1..]].concat();
    let web: Fields = &[("content-type", "application/grpc-web+proto")];
    for (head, content, trailers, kind, cause) in [
        (
            &[("content-type", "text/html")] as Fields,
            b"<html>".as_slice(),
            &[] as Fields,
            FailureKind::Protocol,
            "the content type is text/html, not application/grpc",
        ),
        (
            web,
            &message,
            OK,
            FailureKind::Protocol,
            "the content type is application/grpc-web+proto, not application/grpc",
        ),
        (
            GRPC,
            &message,
            &[],
            FailureKind::Protocol,
            "the response ended without grpc-status",
        ),
        (
            GRPC,
            &message[..8],
            OK,
            FailureKind::Protocol,
            "the last message is cut short",
        ),
        (
            GRPC,
            b"",
            OK,
            FailureKind::Protocol,
            "the status is OK, with 0 messages instead of one",
        ),
        (
            GRPC,
            &two,
            OK,
            FailureKind::Protocol,
            "the status is OK, with 2 messages instead of one",
        ),
        (
            GRPC,
            &compressed,
            OK,
            FailureKind::Decode,
            "a message is compressed although no compression was offered",
        ),
    ] {
        let summary = answered(false, 200, head, content, trailers);
        assert_eq!(failures(&summary, Phase::Receive, kind), 10, "{cause}");
        assert_eq!(summary.failures[0].example.cause.as_deref(), Some(cause));
        assert_eq!(summary.grpc, None);
    }
}

#[test]
fn calls_are_distinguished_by_their_status() {
    let origin = Http2Origin::builder()
        .answer(|_, number| Http2Answer::Parts {
            status: 200,
            head: GRPC.to_vec(),
            content: match number % 2 {
                0 => frame(&[b"answer"]).unwrap(),
                _ => Vec::new(),
            },
            trailers: vec![("grpc-status", ["0", "8"][usize::from(number % 2 == 1)])],
        })
        .start();
    let plan = RunPlan {
        connections: 1,
        stop: requests(1_000),
        ..calls(&origin.url("/"), false)
    };
    let summary = go(&plan);
    let grpc = summary.grpc.unwrap();
    let counted = grpc.statuses.iter();
    let counted: Vec<_> = counted
        .map(|counted| (counted.status.name(), counted.count))
        .collect();
    assert_eq!(counted, [("OK", 500), ("RESOURCE_EXHAUSTED", 500)]);
    assert_eq!(summary.counts.errors(), 500);
    assert_eq!(grpc.messages_received, 500);
}
