//! Every workload over every driver that carries it, against one contract.

mod contract;

mod redirects;

mod decoding;

use std::any::Any;

use plimsoll_client::grpc::frame;
use plimsoll_load::{RunPlan, WorkloadPlan};
use plimsoll_testkit::{
    Http2Answer, Http2Origin, Http3Answer, Origin, Script, Step, WebSocketAnswer, WebSocketOrigin,
};
use plimsoll_wire::sse;

use self::contract::{Behaviour, Target};
use crate::fixture::plan;
use crate::grpc::calls;
use crate::http2::http2;
use crate::http3::{answering, http3};
use crate::websocket::websocket;

/// Runs the contract with targets whose server behaves as it demands.
macro_rules! contract {
    ($($name:ident: $target:expr;)*) => {
        $(
            mod $name {
                use super::*;

                #[test]
                fn a_number_of_exchanges_is_counted_exactly() {
                    contract::counts(&$target);
                }

                #[test]
                fn broken_exchanges_are_failures() {
                    contract::failures(&$target);
                }

                #[test]
                fn exchanges_that_outlast_the_grace_period_are_aborted() {
                    contract::aborted(&$target);
                }

                #[test]
                fn an_open_loop_counts_latency_from_the_intended_start() {
                    contract::open_loop(&$target);
                }

                #[test]
                fn virtual_users_pause_between_exchanges() {
                    contract::think_time(&$target);
                }
            }
        )*
    };
}

contract! {
    requests_over_http1: http1_target;
    requests_over_http2: http2_target;
    requests_over_http3: http3_target;
    events_over_http1: |behaviour| events(http1_target(behaviour));
    events_over_http2: |behaviour| events(http2_target(behaviour));
    events_over_http3: |behaviour| events(http3_target(behaviour));
    calls_over_http2: grpc_target;
    websockets: websocket_target;
}

/// A response that is a stream of one event, and plain content for those that read it as that.
const EVENT: &[u8] = b"data: x\n\n";

fn target(origin: impl Any, plan: RunPlan) -> Target {
    Target {
        plan,
        _origin: Box::new(origin),
    }
}

fn http1_target(behaviour: Behaviour) -> Target {
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\n\r\n",
        EVENT.len()
    );
    let answer = [head.as_bytes(), EVENT].concat();
    let script = Script::new().then(Step::ReadHead);
    let origin = Origin::builder()
        .script(move |_| match behaviour {
            Behaviour::Answer => script.clone().then(Step::Write(answer.clone())),
            Behaviour::Break => script.clone().then(Step::Reset),
            Behaviour::Hold => script.clone().then(Step::Swallow),
        })
        .start();
    let plan = plan(&origin.url("/"));
    target(origin, plan)
}

fn http2_target(behaviour: Behaviour) -> Target {
    let origin = Http2Origin::builder()
        .answer(move |_, _| match behaviour {
            Behaviour::Answer => Http2Answer::Stream {
                content_type: "text/event-stream",
                content: EVENT.to_vec(),
                ends: true,
            },
            // INTERNAL_ERROR
            Behaviour::Break => Http2Answer::Reset(2),
            Behaviour::Hold => Http2Answer::Hold,
        })
        .start();
    let plan = http2(&origin.url("/"));
    target(origin, plan)
}

fn http3_target(behaviour: Behaviour) -> Target {
    let origin = answering(move |_, _| match behaviour {
        Behaviour::Answer => Http3Answer::Stream {
            content_type: "text/event-stream",
            content: EVENT.to_vec(),
            ends: true,
        },
        // H3_INTERNAL_ERROR
        Behaviour::Break => Http3Answer::Reset(0x102),
        Behaviour::Hold => Http3Answer::Hold,
    });
    let plan = http3(&origin.url("/"));
    target(origin, plan)
}

/// The same target, whose responses are read as streams of events.
fn events(target: Target) -> Target {
    let workload = WorkloadPlan::Events(target.plan.workload.http(), sse::Limits::default());
    Target {
        plan: RunPlan {
            workload,
            ..target.plan
        },
        ..target
    }
}

fn grpc_target(behaviour: Behaviour) -> Target {
    let origin = Http2Origin::builder()
        .answer(move |_, _| match behaviour {
            Behaviour::Answer => Http2Answer::Parts {
                status: 200,
                head: vec![("content-type", "application/grpc")],
                content: frame(&[b"answer"]).unwrap(),
                trailers: vec![("grpc-status", "0")],
            },
            Behaviour::Break => Http2Answer::Reset(2),
            Behaviour::Hold => Http2Answer::Hold,
        })
        .start();
    let plan = calls(&origin.url("/"), false);
    target(origin, plan)
}

fn websocket_target(behaviour: Behaviour) -> Target {
    let origin = WebSocketOrigin::answering(move |_| match behaviour {
        Behaviour::Answer => WebSocketAnswer::Echo,
        Behaviour::Break => WebSocketAnswer::Vanish,
        Behaviour::Hold => WebSocketAnswer::Hold,
    });
    let plan = websocket(&origin);
    target(origin, plan)
}
