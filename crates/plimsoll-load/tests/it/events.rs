//! Streams of server-sent events over every version: openings, events, and what ends them.

use plimsoll_load::{HttpPlan, OnFull, RunPlan, Spacing, WorkloadPlan};
use plimsoll_model::{ExchangeKind, FailureKind, Phase, RunSummary};
use plimsoll_testkit::{Http2Answer, Http2Origin, Http3Answer, Origin, Script, Step, eventually};
use plimsoll_wire::sse;

use crate::fixture::{failures, go, lasting, millis, open, plan, requests, set_streams};
use crate::http2::http2;
use crate::http3::{answering, http3};

const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n";

fn streams(plan: RunPlan) -> RunPlan {
    let mut plan = RunPlan {
        workload: WorkloadPlan::Events(plan.workload.http(), sse::Limits::default()),
        stop: lasting(millis(700)),
        grace: millis(2_000),
        ..plan
    };
    plan.limits.body_bytes = u64::MAX;
    plan
}

/// Answers with these bytes of a stream, and then does this.
fn stream(content: &str, last: Option<Step>) -> Origin {
    let answer = Step::Write(format!("{HEAD}\r\n{content}").into_bytes());
    let script = Script::new().then(Step::ReadHead).then(answer);
    Origin::scripted(last.into_iter().fold(script, Script::then))
}

#[track_caller]
fn assert_left_open(summary: &RunSummary, opened: u64) {
    let events = summary.events.as_ref().unwrap();
    assert_eq!(summary.counts.ok, opened, "{:?}", summary.failures);
    assert_eq!(summary.counts.started, opened);
    assert_eq!((events.opened, events.left), (opened, opened));
    assert_eq!(events.received, 2 * opened);
    assert_eq!(summary.counts.errors(), 0);
    assert_eq!(summary.load.exchanges, ExchangeKind::Stream);
    assert!(summary.bytes_sent > 0);
    assert!(summary.bytes_received > 2 * opened * 9);
}

#[test]
fn streams_stay_open_until_the_run_is_over() {
    let origin = stream("data: 1\n\n:\n\ndata: 2\n\ndata: 3\n", Some(Step::Swallow));
    let summary = go(&streams(plan(&origin.url("/"))));
    assert_left_open(&summary, 2);
    eventually(|| origin.open_connections() == 0);

    let answer = Http2Answer::Stream {
        content_type: "text/event-stream; charset=utf-8",
        content: b"data: 1\n\ndata: 2\n\n".to_vec(),
        ends: false,
    };
    let origin = Http2Origin::builder()
        .answer(move |_, _| answer.clone())
        .start();
    let summary = go(&streams(http2(&origin.url("/"))));
    assert_left_open(&summary, 8);
    assert_eq!(origin.connections(), 2);

    let origin = answering(|_, _| Http3Answer::Stream {
        content_type: "text/event-stream",
        content: b"data: 1\n\ndata: 2\n\n".to_vec(),
        ends: false,
    });
    let summary = go(&streams(http3(&origin.url("/"))));
    assert_left_open(&summary, 8);
    assert_eq!(origin.connections(), 2);
}

/// Four streams were requested by one user, each ended by its server after an event with an ID.
#[track_caller]
fn assert_continued(summary: &RunSummary, heads: &[String]) {
    let events = summary.events.as_ref().unwrap();
    assert_eq!(summary.counts.ok, 4, "{:?}", summary.failures);
    assert_eq!((events.ended, events.received), (4, 4));
    assert!(!heads[0].ends_with(" 7"), "{heads:?}");
    for head in &heads[1..] {
        assert!(head.ends_with(" 7"), "{heads:?}");
    }
}

#[test]
fn a_stream_that_ends_is_continued_from_its_last_event() {
    let one_user = |plan| RunPlan {
        connections: 1,
        stop: requests(4),
        ..streams(plan)
    };
    let content = "id: 7\ndata: x\n\n";
    let origin = stream(content, None);
    let summary = go(&one_user(plan(&origin.url("/"))));
    let ids: Vec<_> = origin
        .heads()
        .iter()
        .map(|head| {
            let field = head.lines().find(|line| line.starts_with("last-event-id"));
            field.unwrap_or_default().to_owned()
        })
        .collect();
    assert_continued(&summary, &ids);

    let origin = Http2Origin::builder()
        .answer(move |_, _| Http2Answer::Stream {
            content_type: "text/event-stream",
            content: content.into(),
            ends: true,
        })
        .start();
    let mut plan = one_user(http2(&origin.url("/")));
    set_streams(&mut plan, 1);
    assert_continued(&go(&plan), &origin.heads());

    let origin = answering(move |_, _| Http3Answer::Stream {
        content_type: "text/event-stream",
        content: content.into(),
        ends: true,
    });
    let mut plan = one_user(http3(&origin.url("/")));
    set_streams(&mut plan, 1);
    assert_continued(&go(&plan), &origin.heads());
}

#[test]
fn a_server_that_asks_to_be_left_alone_is() {
    let origin = stream("retry: 3600000\ndata: x\n\n", None);
    let summary = go(&streams(plan(&origin.url("/"))));
    assert_eq!(summary.counts.ok, 2);
    assert_eq!(origin.connections(), 2);
}

#[test]
fn streams_without_an_event_are_not_requested_without_pause() {
    let origin = stream("", None);
    let summary = go(&streams(plan(&origin.url("/"))));
    // At once, then after at least 5, 10, 20, 40, 80, 160, 320 ms.
    assert!(
        (4..=20).contains(&summary.counts.ok),
        "{:?}",
        summary.counts
    );
}

#[test]
fn what_breaks_an_open_stream_is_counted_apart() {
    let reset = Script::new()
        .then(Step::ReadHead)
        .then(Step::Write(format!("{HEAD}\r\ndata: 1\n\n").into_bytes()))
        .then(Step::Pause(millis(20)))
        .then(Step::Reset);
    let chunked = format!("{HEAD}transfer-encoding: chunked\r\n\r\n9\r\ndata: 1\n\n\r\nzz\r\n");
    let garbage = Script::answer_once(chunked.into_bytes());
    let cut = format!("{HEAD}content-length: 100\r\n\r\ndata: 1\n\n");
    let cut = Script::answer_once(cut.into_bytes());
    let long = format!("{HEAD}\r\ndata: 1\n\n{}", "x".repeat(2000));
    let long = Script::answer_once(long.into_bytes());
    for (script, kind) in [
        (reset, FailureKind::Reset),
        (garbage, FailureKind::Protocol),
        (cut, FailureKind::Closed),
        (long, FailureKind::TooLarge),
    ] {
        let origin = Origin::scripted(script);
        let summary = go(&RunPlan {
            workload: WorkloadPlan::Events(
                HttpPlan::Http1,
                sse::Limits {
                    event_bytes: 1000,
                    ..sse::Limits::default()
                },
            ),
            stop: requests(2),
            ..streams(plan(&origin.url("/")))
        });
        let events = summary.events.as_ref().unwrap();
        assert_eq!((summary.counts.ok, summary.counts.failed), (2, 0));
        assert_eq!((events.broken, events.received), (2, 2), "{events:?}");
        assert_eq!(events.failures[0].kind, kind);
        assert_eq!(summary.counts.errors(), 2);
    }
    let origin = answering(|_, number| match number {
        0 => Http3Answer::Stream {
            content_type: "text/event-stream",
            content: vec![b'x'; 2 << 20],
            ends: false,
        },
        _ => Http3Answer::Hold,
    });
    let summary = go(&RunPlan {
        connections: 1,
        ..streams(http3(&origin.url("/")))
    });
    let events = summary.events.as_ref().unwrap();
    assert_eq!(events.failures[0].kind, FailureKind::TooLarge);
    let origin = Http2Origin::builder()
        .answer(|_, number| match number {
            0 => Http2Answer::Stream {
                content_type: "text/event-stream",
                content: vec![b'x'; 2 << 20],
                ends: false,
            },
            _ => Http2Answer::Hold,
        })
        .start();
    let summary = go(&RunPlan {
        connections: 1,
        ..streams(http2(&origin.url("/")))
    });
    let events = summary.events.as_ref().unwrap();
    assert_eq!(events.failures[0].kind, FailureKind::TooLarge);
}

#[test]
fn what_is_no_stream_is_reported_by_its_name() {
    let origin = Origin::hello();
    let summary = go(&RunPlan {
        stop: requests(2),
        ..streams(plan(&origin.url("/")))
    });
    assert_eq!(failures(&summary, Phase::Receive, FailureKind::Protocol), 2);
    let cause = summary.failures[0].example.to_string();
    assert!(
        cause.contains("the content type is missing, not text/event-stream"),
        "{cause}"
    );
    let origin = Http2Origin::builder()
        .answer(|_, _| Http2Answer::Stream {
            content_type: "text/html",
            content: b"<html>".to_vec(),
            ends: false,
        })
        .start();
    let summary = go(&RunPlan {
        stop: requests(2),
        ..streams(http2(&origin.url("/")))
    });
    assert_eq!(failures(&summary, Phase::Receive, FailureKind::Protocol), 2);
    let origin = answering(|_, _| Http3Answer::Stream {
        content_type: "text/html",
        content: b"<html>".to_vec(),
        ends: false,
    });
    let summary = go(&RunPlan {
        stop: requests(2),
        ..streams(http3(&origin.url("/")))
    });
    assert_eq!(failures(&summary, Phase::Receive, FailureKind::Protocol), 2);
}

#[test]
fn other_statuses_are_statuses() {
    let busy = b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 4\r\n\r\nbusy";
    let origin = Origin::scripted(Script::serve(&busy[..]));
    let summary = go(&RunPlan {
        stop: requests(10),
        ..streams(plan(&origin.url("/")))
    });
    assert_eq!(summary.statuses.get(&503), Some(&10));
    assert_eq!(origin.connections(), 2);
    let origin = Http2Origin::builder()
        .answer(|_, _| Http2Answer::Content(503, b"busy".to_vec()))
        .start();
    let summary = go(&RunPlan {
        stop: requests(10),
        ..streams(http2(&origin.url("/")))
    });
    assert_eq!(summary.statuses.get(&503), Some(&10));
    let origin = answering(|_, _| Http3Answer::Content(503, b"busy".to_vec()));
    let summary = go(&RunPlan {
        stop: requests(10),
        ..streams(http3(&origin.url("/")))
    });
    assert_eq!(summary.statuses.get(&503), Some(&10));
}

#[test]
fn a_server_that_does_not_answer_times_out_and_one_that_is_silent_does_not() {
    let timeouts = |summary: &RunSummary| failures(summary, Phase::Wait, FailureKind::Timeout);
    let plan_of = |plan| RunPlan {
        timeout: millis(60),
        stop: requests(2),
        ..streams(plan)
    };
    let origin = Origin::silent();
    assert_eq!(timeouts(&go(&plan_of(plan(&origin.url("/"))))), 2);
    let origin = Http2Origin::builder()
        .answer(|_, _| Http2Answer::Hold)
        .start();
    assert_eq!(timeouts(&go(&plan_of(http2(&origin.url("/"))))), 2);
    let origin = answering(|_, _| Http3Answer::Hold);
    assert_eq!(timeouts(&go(&plan_of(http3(&origin.url("/"))))), 2);

    let quiet = |plan| RunPlan {
        timeout: millis(60),
        ..streams(plan)
    };
    let origin = stream("", Some(Step::Swallow));
    let events = go(&quiet(plan(&origin.url("/")))).events.unwrap();
    assert_eq!((events.left, events.broken), (2, 0));
    let origin = Http2Origin::builder()
        .answer(|_, _| Http2Answer::Stream {
            content_type: "text/event-stream",
            content: Vec::new(),
            ends: false,
        })
        .start();
    let events = go(&quiet(http2(&origin.url("/")))).events.unwrap();
    assert_eq!((events.left, events.broken), (8, 0));
}

#[test]
fn a_schedule_opens_streams_until_no_connection_is_free() {
    let origin = stream("data: x\n\n", Some(Step::Swallow));
    let summary = go(&RunPlan {
        connections: 5,
        pacing: open(100.0, Spacing::Even, OnFull::Drop),
        ..streams(plan(&origin.url("/")))
    });
    let counts = &summary.counts;
    assert_eq!((counts.ok, counts.started), (5, 5), "{counts:?}");
    assert_eq!(counts.started + counts.dropped + counts.missed, 70);
}

#[test]
fn streams_opened_in_the_warm_up_are_counted_on() {
    let late = Script::new()
        .then(Step::ReadHead)
        .then(Step::Write(
            format!("{HEAD}\r\ndata: early\n\n").into_bytes(),
        ))
        .then(Step::Pause(millis(700)))
        .then(Step::Write(b"data: late\n\n".to_vec()))
        .then(Step::Swallow);
    let origin = Origin::scripted(late);
    let summary = go(&RunPlan {
        warm_up: millis(500),
        stop: lasting(millis(600)),
        ..streams(plan(&origin.url("/")))
    });
    let events = summary.events.as_ref().unwrap();
    assert_eq!((events.opened, events.left), (0, 2));
    assert_eq!(events.received, 2);
    assert_eq!((summary.counts.started, summary.counts.warm_up), (0, 2));
}
