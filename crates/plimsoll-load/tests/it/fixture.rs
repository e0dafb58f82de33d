//! A plan with defaults, and a run of it with everything it reported.

use std::sync::Arc;
use std::time::Duration;

use plimsoll_client::check::Expectations;
use plimsoll_client::{ConnectOptions, ConnectPlan, Endpoint, Request};
use plimsoll_load::schedule::RateProfile;
use plimsoll_load::{
    HttpPlan, Interrupt, Observation, OnFull, Pacing, Pick, PlannedRequest, RunPlan, Spacing,
    StatusSet, StopRule, Watch, WorkloadPlan, run,
};
use plimsoll_model::{FailureKind, Phase, Rate, RunSummary, Tick};
use plimsoll_wire::h1::Limits;

/// Ten requests in a closed loop of two connections of one worker; to be changed by struct update.
pub(crate) fn plan(url: &str) -> RunPlan {
    let endpoint = Endpoint::parse(url).unwrap();
    let request = request(url, "GET", None);
    RunPlan {
        endpoints: vec![endpoint],
        requests: vec![PlannedRequest::fixed(0, request)],
        names: Arc::default(),
        pick: Pick::Turn,
        feeders: Vec::new(),
        kept: Vec::new(),
        session: plimsoll_client::SessionPlan::default(),
        connect: connect(ConnectOptions::default()),
        pacing: closed(),
        connections: 2,
        workers: 1,
        cores: Vec::new(),
        stop: requests(10),
        warm_up: Duration::ZERO,
        grace: Duration::from_secs(5),
        timeout: Duration::from_secs(10),
        keep_alive: true,
        limits: Limits::default(),
        workload: WorkloadPlan::requests(HttpPlan::Http1),
        expectations: Arc::new(Expectations::default()),
        fail_statuses: StatusSet::default(),
        seed: 7,
        sample_every: Duration::from_millis(50),
    }
}

pub(crate) fn request(url: &str, method: &str, body: Option<&[u8]>) -> Request {
    let endpoint = Endpoint::parse(url).unwrap();
    let target = endpoint.path_and_query();
    Request::encode(method, target, endpoint.authority(), &[], body).unwrap()
}

/// Connecting as `options` say, for at most five seconds.
pub(crate) fn connect(options: ConnectOptions) -> Arc<ConnectPlan> {
    Arc::new(
        ConnectPlan::new(ConnectOptions {
            timeout: Some(Duration::from_secs(5)),
            ..options
        })
        .unwrap(),
    )
}

/// Sets how many exchanges each connection carries at a time.
pub(crate) fn set_streams(plan: &mut RunPlan, streams: u32) {
    let (WorkloadPlan::Requests(http, _) | WorkloadPlan::Events(http, _)) = &mut plan.workload
    else {
        panic!("its streams are not set by any test");
    };
    match http {
        HttpPlan::Http1 => panic!("HTTP/1 has no streams"),
        HttpPlan::Http2(http2) => http2.streams = streams,
        HttpPlan::Http3(http3) => http3.streams = streams,
    }
}

pub(crate) fn closed() -> Pacing {
    Pacing::Closed {
        ramp: None,
        think: None,
    }
}

pub(crate) fn open(per_second: f64, spacing: Spacing, on_full: OnFull) -> Pacing {
    Pacing::Open {
        profile: RateProfile::constant(Rate::new(per_second).unwrap()),
        spacing,
        burst: std::num::NonZeroU32::MIN,
        jitter: Duration::ZERO,
        on_full,
    }
}

/// The same with each arrival later by a random time up to `jitter`.
pub(crate) fn jittered(mut pacing: Pacing, by: Duration) -> Pacing {
    if let Pacing::Open { jitter, .. } = &mut pacing {
        *jitter = by;
    }
    pacing
}

pub(crate) fn requests(number: u64) -> StopRule {
    StopRule {
        requests: Some(number),
        duration: None,
    }
}

pub(crate) fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(crate) fn lasting(duration: Duration) -> StopRule {
    StopRule {
        requests: None,
        duration: Some(duration),
    }
}

/// Makes the run, and checks what is true of every run.
pub(crate) fn go(plan: &RunPlan) -> RunSummary {
    watched(plan, Observation::default(), &Arc::default(), &mut |_| {})
}

pub(crate) fn watched(
    plan: &RunPlan,
    observation: Observation<'_>,
    interrupt: &Arc<Interrupt>,
    on_tick: &mut dyn FnMut(&Tick),
) -> RunSummary {
    let mut watch = Watch {
        interrupt: Arc::clone(interrupt),
        on_tick: &mut |standing| on_tick(standing.tick),
    };
    let summary = run(plan, observation, &mut watch).unwrap();
    assert_adds_up(&summary);
    summary
}

/// Invariants of every run, whatever the outcomes of its exchanges.
fn assert_adds_up(summary: &RunSummary) {
    let counts = &summary.counts;
    assert_eq!(
        counts.started,
        counts.ok + counts.failed + counts.aborted,
        "{counts:?}"
    );
    assert_eq!(summary.statuses.values().sum::<u64>(), counts.ok);
    let failed: u64 = summary.failures.iter().map(|failure| failure.count).sum();
    assert_eq!(failed, counts.failed);
    let timeouts: u64 = summary
        .failures
        .iter()
        .filter(|failure| failure.kind == FailureKind::Timeout)
        .map(|failure| failure.count)
        .sum();
    assert_eq!(
        summary.latency.from_started.observed().len(),
        counts.ok + timeouts
    );
    let is_open = summary.latency.from_intended.is_some();
    assert_eq!(
        summary.latency.honest().observed().len(),
        counts.ok + timeouts
    );
    assert_eq!(
        summary.latency.from_started.censored_count(),
        counts.aborted
    );
    let missed = if is_open { counts.missed } else { 0 };
    assert_eq!(
        summary.latency.honest().censored_count(),
        counts.aborted + missed
    );
    assert_eq!(
        is_open,
        summary.load.model != plimsoll_model::LoadModel::Closed
    );
    let in_window = summary.ticks.iter().filter(|tick| !tick.warm_up);
    let ticked: u64 = in_window.map(|tick| tick.ok).sum();
    assert_eq!(ticked, counts.ok);
    let ticked: u64 = summary.ticks.iter().map(|tick| tick.failed).sum();
    assert_eq!(ticked, counts.failed);
    let ticked: u64 = summary.ticks.iter().map(|tick| tick.other_errors).sum();
    assert_eq!(ticked, counts.errors() - counts.failed);
    let mut end = Duration::ZERO;
    for tick in &summary.ticks {
        assert_eq!(tick.at, end + tick.length);
        end = tick.at;
    }
    if let Some(events) = &summary.events {
        if counts.warm_up == 0 {
            let over = events.ended + events.broken + events.left;
            assert_eq!(events.opened, over, "{events:?}");
        }
        assert_eq!(
            events.opened,
            summary.statuses.get(&200).copied().unwrap_or(0)
        );
        assert_eq!(events.gaps.len(), events.received);
        assert_eq!(events.broken, counts.broken);
        let ticked: u64 = summary.ticks.iter().map(|tick| tick.events).sum();
        assert_eq!(ticked, events.received);
    }
    for phase in Phase::ALL {
        assert!(summary.phases[phase.index()].len() <= counts.ok + counts.failed);
    }
    // A complete response has them all.
    for phase in [Phase::Send, Phase::Wait, Phase::Receive] {
        assert!(summary.phases[phase.index()].len() >= counts.ok);
    }
}

/// How often that failure occurred.
pub(crate) fn failures(summary: &RunSummary, phase: Phase, kind: FailureKind) -> u64 {
    summary
        .failures
        .iter()
        .filter(|failure| failure.phase == phase && failure.kind == kind)
        .map(|failure| failure.count)
        .sum()
}
