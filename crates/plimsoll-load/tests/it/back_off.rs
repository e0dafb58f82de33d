//! Servers that take connections and do nothing useful with them are not stormed.

use std::time::Duration;

use plimsoll_load::{OnFull, RunPlan, Spacing, StopRule};
use plimsoll_model::RunSummary;
use plimsoll_testkit::{
    Http2Origin, Http3Answer, Origin, Script, Step, WebSocketAnswer, WebSocketHandshake,
    WebSocketOrigin, frames,
};

use crate::fixture::{go, lasting, millis, open, plan, set_streams};
use crate::http2::http2;
use crate::http3::{answering, http3};
use crate::websocket::websocket;

/// How many connections one user can open in the 400 ms of a run when all of them are in vain: the
/// first is replaced at once, the others after at least 5, 10, 20, 40, 80, 160 ms.
const MOST_IN_VAIN: u64 = 8;

fn briefly(plan: RunPlan) -> RunPlan {
    RunPlan {
        stop: lasting(millis(400)),
        grace: millis(0),
        ..plan
    }
}

/// Two connections were to be kept.
fn assert_backed_off(summary: &RunSummary, connections: u64) {
    assert_eq!(summary.counts.ok, 0, "{:?}", summary.counts);
    assert!(summary.counts.failed > 0, "{:?}", summary.counts);
    assert!(
        (4..=2 * MOST_IN_VAIN).contains(&connections),
        "{connections} connections: {:?}",
        summary.failures
    );
}

#[test]
fn over_http1() {
    for script in [
        Script::new(),
        Script::new().then(Step::Reset),
        Script::new().then(Step::ReadHead),
        Script::new().then(Step::ReadHead).then(Step::Reset),
        Script::answer_once(&b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhel"[..]),
    ] {
        let origin = Origin::scripted(script);
        let summary = go(&briefly(plan(&origin.url("/"))));
        assert_backed_off(&summary, origin.connections());
    }
}

#[test]
fn over_http2() {
    let opening = || Script::new().then(Step::ReadBody(frames::OPENING_BYTES + 9));
    let goaway = [frames::settings(), frames::goaway(0, 0)].concat();
    let late = [frames::settings(), frames::goaway(1, 0)].concat();
    for script in [
        Script::new(),
        Script::new().then(Step::Reset),
        Script::new().then(Step::Write(goaway)).then(Step::Swallow),
        opening().then(Step::Write(frames::settings())),
        // It says that it looks at the first request, and then it does not.
        opening().then(Step::Write(late)),
    ] {
        let raw = script.clone();
        let origin = Http2Origin::builder()
            .raw(move |_| Some(raw.clone()))
            .start();
        // Five attempts at one exchange may outlast the run.
        let summary = go(&RunPlan {
            grace: millis(5_000),
            ..briefly(http2(&origin.url("/")))
        });
        assert_eq!(summary.counts.ok, 0);
        assert!(summary.counts.failed > 0, "{:?}", summary.counts);
        // Four attempts more, each after at least 160 ms, for what was under way at the end.
        assert!(
            (4..=2 * (MOST_IN_VAIN + 4)).contains(&origin.connections()),
            "{script:?}: {}",
            origin.connections()
        );
    }
}

#[test]
fn over_http3() {
    let origin = answering(|_, _| Http3Answer::Close);
    let summary = go(&briefly(http3(&origin.url("/"))));
    assert_backed_off(&summary, origin.connections());
}

#[test]
fn over_websockets() {
    for answer in [
        WebSocketAnswer::Vanish,
        WebSocketAnswer::Close(1013, "try again later"),
    ] {
        let origin = WebSocketOrigin::answering(move |_| answer.clone());
        let summary = go(&briefly(websocket(&origin)));
        assert_backed_off(&summary, origin.connections());
    }
    let origin = WebSocketOrigin::greeting(|_| WebSocketHandshake::Refuse(503));
    let summary = go(&briefly(websocket(&origin)));
    assert_backed_off(&summary, origin.connections());
}

#[test]
fn arrivals_that_are_late_do_not_storm_either() {
    let origin = Origin::scripted(Script::new());
    let summary = go(&RunPlan {
        pacing: open(100_000.0, Spacing::Even, OnFull::Queue),
        ..briefly(plan(&origin.url("/")))
    });
    let counts = &summary.counts;
    assert!(counts.missed > counts.started, "{counts:?}");
    // Those that were still on time may have been made at once.
    assert!(counts.started < 4_000, "{counts:?}");
}

/// Sixty exchanges on one connection after the other, in less time than it takes with rests: those
/// before the last fifty would be half a second at least.
fn sixty(plan: RunPlan) -> RunPlan {
    RunPlan {
        connections: 1,
        stop: StopRule {
            requests: Some(60),
            duration: Some(Duration::from_secs(20)),
        },
        ..plan
    }
}

#[test]
fn a_server_that_closes_after_each_answer_is_not_waited_for() {
    let answer = &b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 5\r\n\r\nhello"[..];
    let closing = Origin::scripted(Script::answer_once(answer));
    // Every second one is lost, which may happen to a request that meets a server which restarts.
    let moody = Origin::builder()
        .script(move |number| match number % 2 {
            0 => Script::new(),
            _ => Script::answer_once(answer),
        })
        .start();
    for (origin, answered) in [(&closing, 60), (&moody, 30)] {
        let summary = go(&sixty(plan(&origin.url("/"))));
        assert_eq!((summary.counts.started, summary.counts.ok), (60, answered));
        assert_eq!(origin.connections(), 60);
    }
}

#[test]
fn a_server_that_leaves_after_each_answer_is_not_waited_for() {
    let bytes = [frames::settings(), frames::goaway(1, 0), frames::ok(1)].concat();
    let origin = Http2Origin::builder()
        .raw(move |_| {
            Some(
                Script::new()
                    .then(Step::ReadBody(frames::OPENING_BYTES + 9))
                    .then(Step::Write(bytes.clone()))
                    .then(Step::Swallow),
            )
        })
        .start();
    assert_eq!(go(&sixty(http2(&origin.url("/")))).counts.ok, 60);
    assert_eq!(origin.connections(), 60);
    let origin = answering(|_, _| Http3Answer::GoAway);
    let mut plan = sixty(http3(&origin.url("/")));
    set_streams(&mut plan, 1);
    assert_eq!(go(&plan).counts.ok, 60);
    assert!(origin.connections() >= 60);
}
