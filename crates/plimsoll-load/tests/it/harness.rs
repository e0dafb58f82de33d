//! The harness: many workers that check, whatever becomes of their connections.

use std::sync::Arc;
use std::time::Duration;

use plimsoll_client::check::{CheckPlan, Condition, Expectations};
use plimsoll_client::{ConnectOptions, ConnectPlan, Endpoint, Request};
use plimsoll_load::Interrupt;
use plimsoll_load::harness::{HarnessOutcome, HarnessPlan, run};
use plimsoll_model::{FailureKind, LoadtestConnections, LoadtestFound, LoadtestTick, Phase};
use plimsoll_testkit::{Http2Answer, Http2Origin, Origin, eventually, refused_address};
use plimsoll_wire::h1::Limits;

const LONG: Duration = Duration::from_secs(20);

fn check(url: &str, is_http2: bool) -> Arc<CheckPlan> {
    let endpoint = Endpoint::parse(url).unwrap();
    let authority = endpoint.authority();
    let request = if is_http2 {
        Request::encode_http2("GET", "http", authority, "/", &[], None).unwrap()
    } else {
        Request::encode("GET", "/", authority, &[], None).unwrap()
    };
    Arc::new(CheckPlan {
        digest: None,
        grpc: None,
        request,
        endpoint,
        expectations: Expectations::new(vec![Condition::parse("status == 200").unwrap()]),
        timeout: LONG,
        limits: Limits::default(),
    })
}

fn plan(checks: Vec<Arc<CheckPlan>>, connections: LoadtestConnections) -> HarnessPlan {
    HarnessPlan {
        checks,
        connect: Arc::new(ConnectPlan::new(ConnectOptions::default()).unwrap()),
        connections,
        workers: 50,
        threads: 2,
        duration: Duration::from_millis(500),
        ramp: Duration::from_millis(50),
        grace: Duration::from_secs(5),
        tick: Duration::from_secs(1),
    }
}

fn outcome(plan: &HarnessPlan) -> HarnessOutcome {
    let outcome = run(plan, &Arc::default(), &mut |_| {}).unwrap();
    let counts = outcome.found.counts;
    assert_eq!(counts.started, counts.ok + counts.failed + counts.aborted);
    outcome
}

#[test]
fn workers_share_a_connection_of_each_thread_to_each_endpoint() {
    let origins = [Http2Origin::hello(), Http2Origin::hello()];
    let checks = origins.iter().map(|origin| check(&origin.url("/"), true));
    let found = outcome(&plan(checks.collect(), LoadtestConnections::Shared)).found;
    let requests: u64 = origins.iter().map(Http2Origin::requests).sum();
    assert_eq!(found.counts.ok, requests);
    assert_eq!(found.counts.failed + found.counts.unmet, 0, "{found:?}");
    assert!(found.counts.ok > 50);
    assert_eq!(found.connections_opened, 4);
    assert_eq!(found.latency.len(), found.counts.ok);
}

#[test]
fn a_worker_keeps_its_connection_or_opens_one_for_each_check() {
    let origin = Origin::hello();
    let checks = vec![check(&origin.url("/"), false)];
    let kept = outcome(&plan(checks.clone(), LoadtestConnections::Kept)).found;
    assert_eq!(kept.connections_opened, 50);
    assert!(kept.counts.ok > 50 && kept.counts.failed == 0, "{kept:?}");
    let fresh = outcome(&plan(checks, LoadtestConnections::Fresh)).found;
    assert_eq!(fresh.connections_opened, fresh.counts.started);
    assert_eq!(origin.requests(), kept.counts.ok + fresh.counts.ok);
}

#[test]
fn a_port_that_refuses_is_counted_by_name_and_not_requested_without_pause() {
    let url = format!("http://{}/", refused_address());
    for (is_http2, connections) in [
        (false, LoadtestConnections::Kept),
        (true, LoadtestConnections::Shared),
    ] {
        let found = outcome(&plan(vec![check(&url, is_http2)], connections)).found;
        assert_eq!(found.counts.ok, 0);
        let [failure] = &found.failures[..] else {
            panic!("{found:?}")
        };
        assert_eq!(failure.kind, FailureKind::Refused);
        assert_eq!(failure.phase, Phase::Connect);
        assert_eq!(failure.count, found.counts.failed);
        // Pauses of 10, 20, 40, 80, 160 and 320 ms leave room for six attempts in half a second.
        assert!(found.counts.started <= 50 * 7, "{found:?}");
    }
}

#[test]
fn what_is_under_way_when_the_grace_ends_is_aborted() {
    let origin = Http2Origin::builder().answer(|_, _| Http2Answer::Hold);
    let origin = origin.start();
    let mut plan = plan(
        vec![check(&origin.url("/"), true)],
        LoadtestConnections::Shared,
    );
    (plan.workers, plan.threads) = (20, 1);
    plan.duration = Duration::from_millis(200);
    plan.grace = Duration::from_millis(100);
    let found = outcome(&plan).found;
    assert_eq!(found.counts.aborted, 20, "{found:?}");
    assert_eq!(found.counts.started, 20);
}

#[test]
fn an_interrupt_ends_it_and_the_state_is_reported_until_then() {
    let origin = Origin::hello();
    let mut plan = plan(
        vec![check(&origin.url("/"), false)],
        LoadtestConnections::Kept,
    );
    plan.duration = Duration::from_mins(10);
    let interrupt = Arc::new(Interrupt::default());
    let mut ticks: Vec<LoadtestTick> = Vec::new();
    let mut found = LoadtestFound::default();
    let outcome = run(&plan, &interrupt, &mut |tick| {
        ticks.push(tick.state);
        found.merge(&tick.found);
        interrupt.ask();
    })
    .unwrap();
    assert_eq!(ticks[0].at, Duration::from_secs(1));
    assert!(ticks[0].ok > 0 && ticks[0].errors == 0);
    assert!(outcome.found.counts.ok >= ticks[0].ok);
    // What ticks have and what is left behind the last one is all.
    assert!(found.counts.ok > 0);
    found.merge(&outcome.last_found);
    assert_eq!(found.counts, outcome.found.counts);
    assert_eq!(found.latency.len(), outcome.found.latency.len());
    assert_eq!(outcome.found.counts.aborted, 0);
    eventually(|| origin.requests() == outcome.found.counts.ok);
}
