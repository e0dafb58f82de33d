//! The search on real servers over loopback, and its document against its schema.
//!
//! A program of its own: what a server holds is measured, and other tests at the same time would change it.

#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use plimsoll_client::check::Expectations;
use plimsoll_client::{ConnectOptions, ConnectPlan, Endpoint, Request, SessionPlan};
use plimsoll_lab::TextFormat;
use plimsoll_lab::line::{
    Line, LineError, LinePlan, SCHEMA, SearchEnd, SearchPlan, line, parse_objective, to_html,
    to_json, to_text,
};
use plimsoll_load::conditions::RunFacts;
use plimsoll_load::{
    HttpPlan, Interrupt, Pacing, Pick, PlannedRequest, RunPlan, Spacing, StatusSet, StopRule,
    WorkloadPlan,
};
use plimsoll_testkit::{LeakyBucket, Origin, Script, Step, TokenBucket};
use plimsoll_wire::h1::Limits;
use serde_json::Value;

fn plan(url: &str, objectives: &[&str]) -> LinePlan {
    let endpoint = Endpoint::parse(url).unwrap();
    let request = Request::encode(
        "GET",
        endpoint.path_and_query(),
        endpoint.authority(),
        &[],
        None,
    )
    .unwrap();
    let connect = ConnectPlan::new(ConnectOptions {
        timeout: Some(Duration::from_secs(5)),
        ..ConnectOptions::default()
    })
    .unwrap();
    LinePlan {
        run: RunPlan {
            endpoints: vec![endpoint],
            requests: vec![PlannedRequest::fixed(0, request)],
            names: Arc::default(),
            pick: Pick::Turn,
            feeders: Vec::new(),
            kept: Vec::new(),
            session: SessionPlan::default(),
            connect: Arc::new(connect),
            pacing: Pacing::Closed {
                ramp: None,
                think: None,
            },
            connections: 16,
            workers: 1,
            cores: Vec::new(),
            stop: StopRule {
                requests: Some(1),
                duration: None,
            },
            warm_up: Duration::ZERO,
            grace: Duration::from_secs(5),
            timeout: Duration::from_secs(5),
            keep_alive: true,
            limits: Limits::default(),
            workload: WorkloadPlan::requests(HttpPlan::Http1),
            expectations: Arc::new(Expectations::default()),
            fail_statuses: StatusSet::parse("429").unwrap(),
            seed: 7,
            sample_every: Duration::from_millis(50),
        },
        objectives: objectives
            .iter()
            .map(|text| parse_objective(text).unwrap())
            .collect(),
        search: SearchPlan {
            first: 400.0,
            most: 1e5,
            precision: 0.02,
            rounds: 2,
            seed: 7,
            connections: 16,
            most_connections: 16,
            confirms: false,
        },
        window: Duration::from_millis(500),
        confirm: Duration::from_secs(2),
        warm_up: Duration::from_millis(150),
        spacing: Spacing::Even,
        facts: RunFacts::default(),
    }
}

/// Held while a rate is measured, so that one test does so at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn found(plan: &LinePlan) -> Line {
    let _alone = alone();
    line(
        plan,
        None,
        &[],
        &Arc::new(Interrupt::default()),
        &mut |_| {},
    )
    .unwrap()
}

/// 600 requests a second, and hardly any more at first: a rate that a busy machine can send too.
fn limited() -> Origin {
    let bucket = TokenBucket {
        per_second: 600.0,
        capacity: 6.0,
    };
    let logic = bucket.logic();
    Origin::builder()
        .script(move |_| Script::new().then(Step::Reply(logic.clone())))
        .start()
}

/// Holds `rate` to `limit`: never beyond, and not below it either unless the machine was too busy to send what was due.
#[track_caller]
fn near(line: &Line, rate: f64, limit: f64, tolerance: f64) {
    let off = rate / limit - 1.0;
    assert!(off < tolerance, "{}", to_text(line, TextFormat::default()));
    let was_sent = line.windows.iter().all(|window| window.missed == 0);
    assert!(
        off > -tolerance || !was_sent,
        "{}",
        to_text(line, TextFormat::default())
    );
}

/// Looks at the origin's limit alone: latency depends on what else the machine does.
#[test]
fn a_limit_of_600_per_second_is_found_within_five_percent() {
    let origin = limited();
    let plan = plan(&origin.url("/"), &["errors<1%"]);
    let line = found(&plan);
    let SearchEnd::Line(boundary) = line.found.ended else {
        panic!("{}", to_text(&line, TextFormat::default()));
    };
    // 1 % of errors is allowed.
    let limit = 600.0 / 0.99;
    near(&line, boundary.rate, limit, 0.05);
    let started: u64 = line.windows.iter().map(|window| window.started).sum();
    assert!(origin.requests() >= started, "what was counted was made");

    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../schemas/line.v1.json");
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let validator = jsonschema::draft202012::new(&schema).unwrap();
    let document: Value = serde_json::from_str(&to_json(&line)).unwrap();
    let problems: Vec<String> = validator
        .iter_errors(&document)
        .map(|problem| format!("{}: {problem}", problem.instance_path()))
        .collect();
    assert_eq!(problems, Vec::<String>::new());
    assert_eq!(document["schema"], SCHEMA);
    assert_eq!(document["ended"], "line");
    assert_eq!(
        document["windows"].as_array().unwrap().len(),
        line.windows.len()
    );
    let mut broken = document;
    broken["ended"] = Value::from("somewhere");
    assert!(!validator.is_valid(&broken), "the schema accepts anything");

    let text = to_text(&line, TextFormat::default());
    assert!(text.contains("load line   "), "{text}");
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    let page = to_html(&line);
    for part in [
        "Load line of GET",
        "Latency by rate",
        "Search, windows of",
        "<circle",
        "</html>",
    ] {
        assert!(page.contains(part), "{part}");
    }
}

/// A queue without a bound keeps an objective on latency for a while at any rate: that it grows gives
/// the limit away.
#[test]
fn a_queue_that_grows_is_a_break() {
    let bucket = LeakyBucket { per_second: 300.0 };
    let logic = bucket.logic();
    let origin = Origin::builder()
        .script(move |_| Script::new().then(Step::Reply(logic.clone())))
        .start();
    let mut plan = plan(&origin.url("/"), &["p99<2s"]);
    plan.search.first = 250.0;
    plan.search.rounds = 1;
    plan.search.connections = 512;
    plan.search.most_connections = 512;
    plan.search.confirms = true;
    plan.window = Duration::from_secs(1);
    plan.confirm = Duration::from_secs(3);
    plan.run.sample_every = Duration::from_millis(20);
    let line = found(&plan);
    let SearchEnd::Line(boundary) = line.found.ended else {
        panic!("{}", to_text(&line, TextFormat::default()));
    };
    // A window of a second shows a rise from 3 requests on, 1 % of the rate.
    near(&line, boundary.rate, 300.0, 0.04);
    near(&line, line.found.confirmed.unwrap(), 300.0, 0.03);
    let broke = line.windows.iter().filter(|window| !window.seen.held);
    assert!(broke.clone().count() > 0);
    assert!(
        broke
            .clone()
            .all(|window| window.queue_grew || window.missed > 0)
    );
}

#[test]
fn what_never_holds_has_no_line() {
    let origin = Origin::scripted(Script::serve(
        "HTTP/1.1 429 Too Many Requests\r\ncontent-length: 0\r\n\r\n",
    ));
    let mut plan = plan(&origin.url("/"), &["errors<1%"]);
    plan.window = Duration::from_millis(40);
    plan.warm_up = Duration::ZERO;
    let line = found(&plan);
    assert!(
        matches!(line.found.ended, SearchEnd::Nothing { .. }),
        "{:?}",
        line.found
    );
    assert!(to_text(&line, TextFormat::default()).contains("no line: even "));
    drop(to_html(&line));
}

#[test]
fn the_user_may_end_it() {
    let origin = Origin::hello();
    let plan = plan(&origin.url("/"), &["errors<1%"]);
    let interrupt = Arc::new(Interrupt::default());
    let stop = Arc::clone(&interrupt);
    let result = line(&plan, None, &[], &interrupt, &mut |_| stop.ask());
    assert!(matches!(result, Err(LineError::Interrupted)), "{result:?}");
}
