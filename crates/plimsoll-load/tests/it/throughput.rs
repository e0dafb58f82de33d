//! Throughput and cost per request use the same exchanges: those that completed within the window.

use std::sync::Arc;

use plimsoll_client::grpc::frame;
use plimsoll_load::{HttpPlan, Observation, OnFull, RunPlan, Spacing, WorkloadPlan};
use plimsoll_model::{RunSummary, Threshold, Unit};
use plimsoll_observe::Pid;
use plimsoll_testkit::{
    HELLO, Http2Answer, Http2Origin, Http3Answer, Origin, Script, Step, WebSocketAnswer,
    WebSocketOrigin,
};
use plimsoll_wire::sse;

use crate::fixture::{lasting, millis, open, plan, watched};
use crate::grpc::calls;
use crate::http2::http2;
use crate::http3::{answering, http3};
use crate::websocket::websocket;

/// Runs `plan` for a window of half a second. `release` is called once that is over; every response
/// that the server has held back until then arrives in the grace period.
fn released_in_the_grace(plan: RunPlan, release: &dyn Fn()) -> RunSummary {
    let thresholds =
        ["http_reqs:rate>0/s", "data_received:rate>0"].map(|text| Threshold::parse(text).unwrap());
    let target = Pid::new(std::process::id()).unwrap();
    watched(
        &RunPlan {
            stop: lasting(millis(500)),
            ..plan
        },
        Observation {
            target: Some(&target),
            thresholds: &thresholds,
            ..Observation::default()
        },
        &Arc::default(),
        // The first second is reported after the window has ended.
        &mut |_| release(),
    )
}

/// One set of exchanges behind every figure that divides by the window.
#[track_caller]
fn assert_rates(summary: &RunSummary, in_window: u64, in_grace: u64) {
    let counts = &summary.counts;
    assert_eq!(counts.ok, in_window + in_grace, "{:?}", summary.failures);
    assert_eq!(counts.completed_in_window, in_window);
    assert_eq!(counts.started, counts.ok + counts.aborted);
    // No sample is left out.
    assert_eq!(summary.latency.honest().observed().len(), counts.ok);
    let per_second = in_window as f64 / 0.5;
    assert_eq!(summary.window, millis(500));
    assert!((summary.requests_per_second() - per_second).abs() < 1e-9);
    assert_eq!(summary.generator.cost.exchanges, in_window);
    assert_eq!(summary.target.as_ref().unwrap().cost.exchanges, in_window);
    let [requests, received] = summary.thresholds.as_slice() else {
        panic!("two thresholds: {:?}", summary.thresholds);
    };
    assert!((requests.value.unwrap().low() - per_second).abs() < 1e-9);
    assert_eq!(received.threshold.unit(), Unit::BytesPerSecond);
    let bytes = summary.bytes_received_per_second();
    assert!((received.value.unwrap().low() - bytes).abs() < 1e-9);
    assert!(bytes < summary.bytes_received as f64 / 0.5);
    let grace = summary.ticks.iter().filter(|tick| tick.grace);
    assert_eq!(grace.map(|tick| tick.ok).sum::<u64>(), in_grace);
}

fn quick_then_held() -> Origin {
    let answer = || Step::Write(HELLO.to_vec());
    Origin::scripted(
        Script::new()
            .then(Step::ReadHead)
            .then(answer())
            .then(Step::ReadHead)
            .then(Step::Hold)
            .then(answer())
            .then(Step::Swallow),
    )
}

#[test]
fn responses_of_the_grace_period_are_no_throughput_of_a_closed_loop() {
    let origin = quick_then_held();
    let plan = RunPlan {
        connections: 4,
        workers: 2,
        ..plan(&origin.url("/"))
    };
    let summary = released_in_the_grace(plan, &|| origin.release());
    assert_rates(&summary, 4, 4);
    assert_eq!(summary.bytes_in_window.received, 4 * HELLO.len() as u64);
}

#[test]
fn responses_of_the_grace_period_are_no_throughput_of_an_open_loop() {
    let origin = quick_then_held();
    let plan = RunPlan {
        // Five arrivals; each connection takes two at most.
        pacing: open(10.0, Spacing::Even, OnFull::Queue),
        connections: 3,
        ..plan(&origin.url("/"))
    };
    let summary = released_in_the_grace(plan, &|| origin.release());
    assert_rates(&summary, 3, 2);
}

#[test]
fn responses_of_the_grace_period_are_no_throughput_of_http2() {
    let origin = Http2Origin::builder()
        .answer(|_, number| {
            if number < 4 {
                Http2Answer::Content(200, b"hello".to_vec())
            } else {
                Http2Answer::Hold
            }
        })
        .start();
    let plan = RunPlan {
        connections: 2,
        ..http2(&origin.url("/"))
    };
    let summary = released_in_the_grace(plan, &|| origin.release());
    let in_window = summary.counts.completed_in_window;
    assert!(in_window >= 4);
    assert_rates(&summary, in_window, 8);
}

#[test]
fn responses_of_the_grace_period_are_no_throughput_of_http3() {
    let origin = answering(|_, number| {
        if number < 4 {
            Http3Answer::Content(200, b"hello".to_vec())
        } else {
            Http3Answer::Hold
        }
    });
    let plan = RunPlan {
        connections: 2,
        ..http3(&origin.url("/"))
    };
    let summary = released_in_the_grace(plan, &|| origin.release());
    let in_window = summary.counts.completed_in_window;
    assert!(in_window >= 4);
    assert_rates(&summary, in_window, 8);
}

#[test]
fn responses_of_the_grace_period_are_no_throughput_of_websockets() {
    let origin = WebSocketOrigin::answering(|number| match number {
        0..10 => WebSocketAnswer::Echo,
        _ => WebSocketAnswer::Hold,
    });
    let summary = released_in_the_grace(websocket(&origin), &|| origin.release());
    assert_rates(&summary, 10, 2);
}

#[test]
fn streams_opened_in_the_grace_period_are_no_throughput() {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: 1\n\n";
    let head = || Step::Write(head.into());
    let origin = Origin::builder()
        .script(move |connection| match connection {
            0 => Script::new()
                .then(Step::ReadHead)
                .then(head())
                .then(Step::Swallow),
            _ => Script::new()
                .then(Step::ReadHead)
                .then(Step::Hold)
                .then(head())
                .then(Step::Swallow),
        })
        .start();
    let mut plan = RunPlan {
        workload: WorkloadPlan::Events(HttpPlan::Http1, sse::Limits::default()),
        ..plan(&origin.url("/"))
    };
    plan.limits.body_bytes = u64::MAX;
    let summary = released_in_the_grace(plan, &|| origin.release());
    assert_rates(&summary, 1, 1);
}

#[test]
fn messages_of_the_grace_period_are_no_throughput_of_grpc() {
    const FIELDS: [(&str, &str); 1] = [("content-type", "application/grpc+proto")];
    let content = frame(&[b"answer"]).unwrap();
    let origin = Http2Origin::builder()
        .answer(move |_, number| match number {
            0..4 => Http2Answer::Parts {
                status: 200,
                head: FIELDS.to_vec(),
                content: content.clone(),
                trailers: vec![("grpc-status", "0")],
            },
            _ => Http2Answer::Hold,
        })
        .start();
    let summary = released_in_the_grace(calls(&origin.url("/"), false), &|| origin.release());
    // The held ones are answered by something else than gRPC in the end.
    assert_eq!((summary.counts.ok, summary.counts.failed), (8, 8));
    let grpc = summary.grpc.as_ref().unwrap();
    assert_eq!((grpc.messages_received, grpc.messages_in_window), (8, 8));
    let per_second = summary.grpc_messages_per_second().unwrap();
    assert!((per_second - 16.0).abs() < 1e-9);
}

#[test]
fn what_began_in_the_warm_up_and_completed_in_the_window_is_throughput() {
    let origin = Origin::hello();
    let summary = released_in_the_grace(
        RunPlan {
            warm_up: millis(200),
            ..plan(&origin.url("/"))
        },
        &|| {},
    );
    let counts = &summary.counts;
    assert!(counts.completed_in_window <= counts.ok + 2);
    assert!(counts.completed_in_window + 2 >= counts.ok);
    assert_eq!(summary.generator.cost.exchanges, counts.completed_in_window);
}
