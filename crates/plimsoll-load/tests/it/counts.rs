//! Counts of a run, against those of the origin.

use std::sync::Arc;

use plimsoll_client::check::{Condition, Expectations};
use plimsoll_load::{OnFull, Pacing, PlannedRequest, RunPlan, Spacing, StatusSet};
use plimsoll_model::{FailureKind, Phase, RequestNames};
use plimsoll_testkit::{HELLO, Origin, Script, Step};
use proptest::prelude::*;

use crate::fixture::{
    closed, failures, go, jittered, lasting, millis, open, plan, request, requests,
};

fn answer(status: u16) -> Vec<u8> {
    format!("HTTP/1.1 {status} X\r\ncontent-length: 2\r\n\r\nok").into_bytes()
}

/// Answers with one status after the other on each connection, then closes.
fn statuses(all: &[u16]) -> Script {
    all.iter().fold(Script::new(), |script, status| {
        script
            .then(Step::ReadHead)
            .then(Step::Write(answer(*status)))
    })
}

#[test]
fn responses_are_counted_by_status() {
    let origin = Origin::scripted(statuses(&[200, 404, 500, 503, 200]));
    let summary = go(&RunPlan {
        connections: 1,
        fail_statuses: StatusSet::parse("5xx").unwrap(),
        stop: requests(5),
        ..plan(&origin.url("/"))
    });
    let counted: Vec<_> = summary.statuses.into_iter().collect();
    assert_eq!(counted, [(200, 2), (404, 1), (500, 1), (503, 1)]);
    assert_eq!(summary.counts.ok, 5);
    assert_eq!(summary.counts.failed_status, 2);
    assert_eq!(summary.counts.errors(), 2);
}

#[test]
fn unmet_expectations_are_counted_by_their_text() {
    let origin = Origin::scripted(statuses(&[200, 404, 500, 200]));
    let conditions = ["status == 200", "body contains 'ok'", "header.etag exists"];
    let conditions = conditions.map(|text| Condition::parse(text).unwrap());
    let summary = go(&RunPlan {
        connections: 1,
        expectations: Arc::new(Expectations::new(conditions.to_vec())),
        fail_statuses: StatusSet::parse("500").unwrap(),
        stop: requests(4),
        ..plan(&origin.url("/"))
    });
    let unmet: Vec<_> = summary.unmet.into_iter().collect();
    assert_eq!(
        unmet,
        [
            ("header.etag exists".to_owned(), 4),
            ("status == 200".to_owned(), 2)
        ]
    );
    // Each response is one error, however much is wrong with it.
    assert_eq!(summary.counts.failed_status, 1);
    assert_eq!(summary.counts.unmet, 3);
    assert_eq!(summary.counts.errors(), 4);
}

#[test]
fn bytes_are_those_that_the_origin_read_and_wrote() {
    let body = vec![b'x'; 100_000];
    for workers in [1, 2] {
        let origin = Origin::hello();
        let url = origin.url("/upload");
        let mut plan = RunPlan {
            connections: 3,
            workers,
            stop: requests(40),
            ..plan(&url)
        };
        plan.requests[0].request = request(&url, "POST", Some(&body));
        let summary = go(&plan);
        assert_eq!(summary.counts.ok, 40);
        assert_eq!(summary.bytes_sent, origin.bytes_read());
        assert_eq!(summary.bytes_received, 40 * HELLO.len() as u64);
        let ticked: u64 = summary.ticks.iter().map(|tick| tick.bytes_received).sum();
        assert_eq!(ticked, summary.bytes_received);
        assert_eq!(summary.load.method, "POST");
        assert_eq!(summary.load.url, url);
    }
}

#[test]
fn bytes_of_exchanges_that_failed_are_counted_too() {
    let half = b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf";
    let origin = Origin::scripted(Script::answer_once(half.as_slice()));
    let summary = go(&plan(&origin.url("/")));
    assert_eq!(failures(&summary, Phase::Receive, FailureKind::Closed), 10);
    assert_eq!(summary.bytes_received, 10 * half.len() as u64);
    assert_eq!(summary.bytes_sent, origin.bytes_read());
}

/// Something that a connection may meet.
fn any_step() -> impl Strategy<Value = Vec<Step>> {
    prop_oneof![
        4 => Just(vec![Step::ReadHead, Step::Write(HELLO.to_vec())]),
        2 => Just(vec![Step::ReadHead, Step::Write(answer(503))]),
        1 => Just(vec![Step::ReadHead, Step::Reset]),
        1 => Just(vec![Step::Reset]),
        1 => Just(vec![Step::FinishWriting]),
        1 => Just(vec![Step::ReadHead, Step::Write(HELLO[..30].to_vec()), Step::FinishWriting]),
        1 => Just(vec![Step::ReadHead, Step::Write(b"garbage\r\n\r\n".to_vec())]),
        1 => Just(vec![Step::ReadHead, Step::Swallow]),
        1 => Just(vec![Step::ReadHead, Step::Write(HELLO.repeat(2))]),
        1 => Just(vec![Step::ReadHead, Step::Pause(millis(5)), Step::Write(HELLO.to_vec())]),
    ]
}

fn any_script() -> impl Strategy<Value = Script> {
    prop::collection::vec(any_step(), 0..5).prop_map(|steps| {
        steps
            .into_iter()
            .flatten()
            .fold(Script::new(), Script::then)
    })
}

fn any_pacing() -> impl Strategy<Value = Pacing> {
    let spacing = prop_oneof![Just(Spacing::Even), Just(Spacing::Poisson)];
    let on_full = prop_oneof![Just(OnFull::Queue), Just(OnFull::Drop)];
    let arrivals = (spacing, on_full, prop_oneof![Just(0), 1..100_u64]);
    let arrivals = arrivals.prop_map(|(spacing, on_full, jitter)| {
        jittered(open(1_000.0, spacing, on_full), millis(jitter))
    });
    prop_oneof![1 => Just(closed()), 3 => arrivals]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    /// `go` asserts that everything adds up.
    #[test]
    fn counts_add_up_whatever_the_origin_does(
        scripts in prop::collection::vec(any_script(), 1..6),
        pacing in any_pacing(),
        keep_alive in any::<bool>(),
        workers in 1_usize..3,
        grace in 0_u64..30,
    ) {
        let count = scripts.len() as u64;
        let origin = Origin::builder()
            .script(move |number| scripts[usize::try_from(number % count).unwrap()].clone())
            .start();
        let is_even = matches!(pacing, Pacing::Open { spacing: Spacing::Even, .. });
        let summary = go(&RunPlan {
            pacing,
            keep_alive,
            workers,
            connections: 4,
            timeout: millis(40),
            grace: millis(grace),
            fail_statuses: StatusSet::parse("5xx").unwrap(),
            stop: lasting(millis(80)),
            ..plan(&origin.url("/"))
        });
        let counts = summary.counts;
        prop_assert!(counts.aborted <= 4);
        prop_assert_eq!(counts.failed_status, summary.statuses.get(&503).copied().unwrap_or(0));
        if is_even {
            // A thousand a second, for 80 ms.
            prop_assert_eq!(counts.intended(), 80, "{:?}", counts);
        }
        prop_assert!(summary.bytes_received <= 80 * 1024 * 1024);
    }
}

#[test]
fn requests_are_counted_apart_by_their_names() {
    let origin = Origin::scripted(statuses(&[200, 404, 200, 404, 200, 404]));
    let url = origin.url("/");
    let planned = PlannedRequest::fixed(0, request(&url, "GET", None));
    let summary = go(&RunPlan {
        requests: vec![planned.clone(), planned],
        names: Arc::new(RequestNames::new(["good", "bad"].map(str::to_owned))),
        connections: 1,
        stop: requests(6),
        ..plan(&url)
    });
    let counted: Vec<_> = summary
        .requests
        .iter()
        .map(|it| {
            (
                it.name.as_str(),
                it.ok,
                it.error_statuses,
                it.latency.observed().len(),
            )
        })
        .collect();
    assert_eq!(counted, [("bad", 3, 3, 3), ("good", 3, 0, 3)]);
}

#[test]
fn a_run_of_one_request_has_no_figures_by_request() {
    let origin = Origin::hello();
    let summary = go(&RunPlan {
        names: Arc::new(RequestNames::new(["only".to_owned()])),
        stop: requests(6),
        ..plan(&origin.url("/"))
    });
    assert!(summary.requests.is_empty());
}
