use std::sync::mpsc::sync_channel;

use plimsoll_client::check::{Condition, Expectations};
use plimsoll_client::{ConnectOptions, ConnectPlan, Endpoint, Request};
use plimsoll_model::{Counts, Protocol, Rate};
use plimsoll_testkit::{Http2Origin, Origin, allocations_of_this_thread};
use plimsoll_wire::h1::Limits;

use super::*;
use crate::plan::{Http2Plan, OnFull, Pick, PlannedRequest, StatusSet, StopRule};
use crate::schedule::RateProfile;

const CONNECTIONS: usize = 4;

/// Allocations that further requests may bring along: a second more of the run is handed over.
const HANDFUL: u64 = 64;

#[test]
fn parts_add_up() {
    for total in [0, 1, 5, 64, 1001] {
        for of in 1..6 {
            let sum: u64 = (0..of).map(|index| part(total, Share { index, of })).sum();
            assert_eq!(sum, total);
        }
    }
}

fn closed() -> Pacing {
    Pacing::Closed {
        ramp: None,
        think: None,
    }
}

/// A rate that 11,000 requests take about a second to follow.
fn open() -> Pacing {
    Pacing::Open {
        profile: RateProfile::constant(Rate::new(10_000.0).unwrap()),
        spacing: Spacing::Even,
        burst: std::num::NonZeroU32::MIN,
        jitter: Duration::ZERO,
        on_full: OnFull::Queue,
    }
}

fn plan(origin: &Origin, pacing: Pacing, requests: u64, expectations: &[&str]) -> RunPlan {
    let endpoint = Endpoint::parse(&origin.url("/")).unwrap();
    let request = Request::encode("GET", "/", endpoint.authority(), &[], None).unwrap();
    let conditions = expectations
        .iter()
        .map(|text| Condition::parse(text).unwrap())
        .collect();
    RunPlan {
        endpoints: vec![endpoint],
        requests: vec![PlannedRequest::fixed(0, request)],
        names: Arc::default(),
        pick: Pick::Turn,
        feeders: Vec::new(),
        kept: Vec::new(),
        session: plimsoll_client::SessionPlan::default(),
        connect: Arc::new(ConnectPlan::new(ConnectOptions::default()).unwrap()),
        pacing,
        connections: CONNECTIONS,
        workers: 1,
        cores: Vec::new(),
        stop: StopRule {
            requests: Some(requests),
            duration: None,
        },
        warm_up: Duration::ZERO,
        grace: Duration::from_secs(5),
        timeout: Duration::from_secs(20),
        keep_alive: true,
        limits: Limits::default(),
        workload: WorkloadPlan::requests(HttpPlan::Http1),
        expectations: Arc::new(Expectations::new(conditions)),
        fail_statuses: StatusSet::default(),
        seed: 1,
        sample_every: Duration::from_millis(100),
    }
}

/// Makes the run on this thread; what it counted, and how often it allocated.
fn work_here(plan: RunPlan) -> (Counts, u64) {
    let (ready, _started) = sync_channel(1);
    let (go, start) = sync_channel(1);
    let (publish, published) = sync_channel(64);
    let (give, spares) = sync_channel(64);
    for _ in 0..32 {
        let is_open = matches!(plan.pacing, Pacing::Open { .. });
        let interval = Interval::new(plan.expectations.conditions().len(), is_open);
        give.send(Box::new(interval)).unwrap();
    }
    go.send(SystemClock.now()).unwrap();
    let setup = Setup {
        plan,
        number: 0,
        share: Share::ALL,
        progress: Arc::default(),
        interrupt: Arc::default(),
        ready,
        go: start,
        publish,
        spares,
    };
    let before = allocations_of_this_thread();
    work(setup).unwrap();
    let allocations = allocations_of_this_thread() - before;
    let mut counts = Counts::default();
    for published in published.try_iter() {
        counts.merge(&published.interval.counts);
    }
    (counts, allocations)
}

fn assert_none_per_request(pacing: &Pacing, expectations: &[&str]) {
    let origin = Origin::hello();
    let [few, many] = [1_000, 11_000].map(|requests| {
        let plan = plan(&origin, pacing.clone(), requests, expectations);
        let (counts, allocations) = work_here(plan);
        assert_eq!(counts.ok, requests);
        assert_eq!(counts.started, requests);
        allocations
    });
    assert!(
        many <= few + HANDFUL,
        "{few} allocations for 1,000 requests, {many} for 11,000"
    );
    assert!(few > 0, "allocations are counted");
    assert_eq!(origin.connections(), 2 * CONNECTIONS as u64);
}

#[test]
fn a_closed_loop_allocates_nothing_per_request() {
    assert_none_per_request(&closed(), &[]);
}

#[test]
fn an_open_loop_allocates_nothing_per_request() {
    assert_none_per_request(&open(), &[]);
}

#[test]
fn expectations_allocate_nothing_per_request() {
    let expectations = [
        "status == 200",
        "body contains 'hell'",
        "header.content-length == '5'",
        "wait < 10s",
        "ip in 127.0.0.0/8",
        "any(status == 204, not(header.etag exists))",
    ];
    assert_none_per_request(&closed(), &expectations);
}

/// Has a request of `plan` made from a template.
fn use_template(plan: &mut RunPlan, protocol: Protocol) {
    let table = Arc::new(plimsoll_formats::Table::parse("id,name\n1,ann\n22,bob\n").unwrap());
    plan.feeders = vec![crate::Feeder {
        name: "users.csv".to_owned(),
        table,
        order: crate::FeederOrder::Random,
    }];
    let parsed = |text| plimsoll_formats::Template::parse(text).unwrap();
    let headers = [("x-id".to_owned(), parsed("{{$uuid}}"))];
    let body = parsed("{\"name\":\"{{name}}\",\"at\":\"{{$isoTimestamp}}\",\"n\":{{$counter}}}");
    let compiled = crate::RequestTemplate::compile(
        "POST",
        &parsed("/{{id}}/{{$randomInt}}"),
        "h",
        &headers,
        Some(&body),
        crate::ValueSources {
            feeders: &plan.feeders,
            kept: &[],
        },
        crate::TemplateForm {
            protocol,
            scheme: "http",
            coding: Some(plimsoll_client::ContentCoding::Gzip),
        },
    );
    let (template, request) = compiled.unwrap();
    plan.requests[0].template = Some(Arc::new(template));
    plan.requests[0].request = request;
}

#[test]
fn templates_allocate_nothing_per_request() {
    let origin = Origin::hello();
    let [few, many] = [1_000, 11_000].map(|requests| {
        let mut plan = plan(&origin, closed(), requests, &[]);
        use_template(&mut plan, Protocol::Http1);
        let (counts, allocations) = work_here(plan);
        assert_eq!(counts.ok, requests);
        allocations
    });
    assert!(
        many <= few + HANDFUL,
        "{few} allocations for 1,000 requests, {many} for 11,000"
    );
}

/// The same over HTTP/2: four connections, eight streams on each.
fn http2(origin: &Http2Origin, pacing: Pacing, requests: u64, expectations: &[&str]) -> RunPlan {
    let any = Origin::hello();
    let endpoint = Endpoint::parse(&origin.url("/")).unwrap();
    let authority = endpoint.authority();
    let request = Request::encode_http2("GET", "http", authority, "/", &[], None).unwrap();
    RunPlan {
        requests: vec![PlannedRequest::fixed(0, request)],
        names: Arc::default(),
        endpoints: vec![endpoint],
        workload: WorkloadPlan::requests(HttpPlan::Http2(Http2Plan {
            streams: 8,
            stream_window: 1 << 20,
            connection_window: 1 << 20,
        })),
        ..plan(&any, pacing, requests, expectations)
    }
}

fn assert_none_per_stream(pacing: &Pacing, expectations: &[&str]) {
    let origin = Http2Origin::hello();
    let [few, many] = [1_000, 11_000].map(|requests| {
        let plan = http2(&origin, pacing.clone(), requests, expectations);
        let (counts, allocations) = work_here(plan);
        assert_eq!(counts.ok, requests);
        assert_eq!(counts.started, requests);
        allocations
    });
    assert!(
        many <= few + HANDFUL,
        "{few} allocations for 1,000 requests, {many} for 11,000"
    );
    assert_eq!(origin.connections(), 2 * CONNECTIONS as u64);
    assert_eq!(origin.requests(), 12_000);
}

#[test]
fn streams_of_a_closed_loop_allocate_nothing_per_request() {
    assert_none_per_stream(&closed(), &[]);
}

#[test]
fn streams_of_an_open_loop_allocate_nothing_per_request() {
    assert_none_per_stream(&open(), &[]);
}

#[test]
fn templates_on_streams_allocate_nothing_per_request() {
    let origin = Http2Origin::hello();
    let [few, many] = [1_000, 11_000].map(|requests| {
        let mut plan = http2(&origin, closed(), requests, &[]);
        use_template(&mut plan, Protocol::Http2);
        let (counts, allocations) = work_here(plan);
        assert_eq!(counts.ok, requests);
        allocations
    });
    assert!(
        many <= few + HANDFUL,
        "{few} allocations for 1,000 requests, {many} for 11,000"
    );
}

#[test]
fn expectations_on_streams_allocate_nothing_per_request() {
    let expectations = [
        "status == 200",
        "body contains 'hell'",
        "header.x-answer == 'yes'",
        "wait < 10s",
    ];
    assert_none_per_stream(&closed(), &expectations);
}
