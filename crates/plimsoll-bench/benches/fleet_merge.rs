//! What the coordinator of a fleet does with a second of a hundred agents: `fleet_merge/100` reads a tick of each and merges it,
//! percentiles and thresholds of the view included.
//!
//! Before that it prints the bytes of ticks, the share of a core that a hundred agents with ten ticks a second take, and what a
//! thousand agents with one would send and take. Each agent makes 10,000 requests a second of an open loop, with durations around a
//! millisecond: a tick has a tenth of them, or all.

#![expect(
    clippy::print_stdout,
    reason = "what was measured beside the figures of Criterion"
)]

use std::hint::black_box;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use plimsoll_client::check::Expectations;
use plimsoll_client::{ConnectOptions, ConnectPlan, Endpoint, Request};
use plimsoll_fleet::{
    Counted, Figures, LoadMerger, MemberSecond, Merger as _, Shares, ToCoordinator, decode, encode,
    shares,
};
use plimsoll_load::schedule::RateProfile;
use plimsoll_load::{
    HttpPlan, Interval, OnFull, Pacing, Pick, PlannedRequest, RunPlan, Spacing, StatusSet,
    StopRule, WorkloadPlan,
};
use plimsoll_model::{Clock as _, Histogram, Phase, Rate, Times};
use plimsoll_wire::SystemClock;
use plimsoll_wire::h1::Limits;

const AGENTS: usize = 100;

/// Requests of an agent in a second.
const RATE: u64 = 10_000;

/// Ticks of an agent in a second, where they are many.
const MANY: u64 = 10;

/// Ticks of each agent that are merged for the printed figures.
const TICKS: u64 = 20;

/// Microseconds of a second.
const SECOND: u64 = 1_000_000;

fn plan() -> RunPlan {
    let url = "http://127.0.0.1:1/";
    let endpoint = Endpoint::parse(url).expect("a URL");
    let request = Request::encode("GET", "/", endpoint.authority(), &[], None);
    let connect = ConnectPlan::new(ConnectOptions::default());
    let rate = Rate::new(5e5).expect("a rate");
    RunPlan {
        endpoints: vec![endpoint],
        requests: vec![PlannedRequest::fixed(0, request.expect("a request"))],
        names: Arc::default(),
        pick: Pick::Turn,
        feeders: Vec::new(),
        kept: Vec::new(),
        session: plimsoll_client::SessionPlan::default(),
        connect: Arc::new(connect.expect("nothing contradicts itself")),
        pacing: Pacing::Open {
            profile: RateProfile::constant(rate),
            spacing: Spacing::Even,
            burst: NonZeroU32::MIN,
            jitter: Duration::ZERO,
            on_full: OnFull::Queue,
        },
        connections: AGENTS,
        workers: AGENTS,
        cores: Vec::new(),
        stop: StopRule {
            requests: None,
            duration: Some(Duration::from_hours(24)),
        },
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

/// The parts of the agents, in the order of their names.
fn parts() -> Shares {
    let shares = shares(&[1; AGENTS], AGENTS).expect("a connection for each agent");
    let named = (0..).zip(shares);
    named
        .map(|(number, share)| (format!("agent-{number:03}"), share))
        .collect()
}

/// What an agent counts in a tick of so many requests.
fn interval(seed: u64, requests: u64) -> Interval {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut interval = Interval::new(0, true);
    let (mut times, mut waits, mut reads) = (Times::new(), Histogram::new(), Histogram::new());
    for _ in 0..requests {
        // The sum of twelve is nearly normal.
        let sum: f64 = (0..12).map(|_| random.f64()).sum();
        let duration = Duration::from_secs_f64(1e-3 * (0.8 * (sum - 6.0)).exp());
        times.record(duration);
        waits.record(duration);
        reads.record(Duration::from_micros(random.u64(1..50)));
        interval
            .lag
            .record(Duration::from_micros(random.u64(0..300)));
    }
    interval.counts.started = requests;
    interval.counts.ok = requests;
    interval.counts.completed_in_window = requests;
    interval.add_status(200, requests);
    interval.from_started.merge(&times);
    if let Some(intended) = &mut interval.from_intended {
        intended.merge(&times);
    }
    interval.add_phase(Phase::Wait, waits);
    interval.add_phase(Phase::Receive, reads);
    interval
}

/// A message of each agent, as the broker has it.
fn messages(requests: u64) -> Vec<Vec<u8>> {
    let message = |(member, agent): (u64, String)| {
        let tick = ToCoordinator::Tick {
            agent,
            number: 1,
            at_us: 0,
            grace: false,
            is_last: false,
            figures: Counted::Load(Box::new(Figures::from_interval(&interval(
                member, requests,
            )))),
        };
        encode("run", tick)
    };
    (0..).zip(parts().into_keys()).map(message).collect()
}

/// Reads and merges one tick of each agent.
fn merge(merger: &mut LoadMerger<'_>, messages: &[Vec<u8>], at_us: u64) {
    for (member, message) in messages.iter().enumerate() {
        let envelope = decode::<ToCoordinator>(message).expect("a message");
        let ToCoordinator::Tick { figures, .. } = envelope.body else {
            unreachable!("only ticks were encoded");
        };
        let second = MemberSecond {
            member,
            at_us,
            grace: false,
            is_last: false,
            figures,
        };
        let checksum = merger.merge_second(&second).expect("figures of this run");
        black_box(checksum);
    }
}

/// Prints what ticks of so many requests have and take; the bytes of one, and the seconds for one.
fn measured(plan: &RunPlan, requests: u64) -> (f64, f64) {
    let messages = messages(requests);
    let mut on_tick = |standing: &plimsoll_load::Standing<'_>, agents: &[_]| {
        black_box((standing, agents.len()));
    };
    let mut merger = LoadMerger::new(plan, &[], &[], &mut on_tick);
    merger.begin(&parts(), SystemClock.wall());
    let began = SystemClock.now();
    for tick in 1..=TICKS {
        merge(&mut merger, &messages, tick * SECOND);
    }
    let took = SystemClock.now().saturating_duration_since(began);
    let seconds = took.as_secs_f64() / (TICKS * AGENTS as u64) as f64;
    let bytes = messages.iter().map(Vec::len).sum::<usize>() as f64 / AGENTS as f64;
    println!(
        "a tick of {requests} requests has {bytes:.0} bytes and takes {:.0} µs to read and merge",
        seconds * 1e6
    );
    (bytes, seconds)
}

fn merging(criterion: &mut Criterion) {
    let plan = plan();
    let (_, seconds) = measured(&plan, RATE / MANY);
    println!(
        "100 agents with ten ticks a second: {:.1} % of a core",
        seconds * (AGENTS as u64 * MANY) as f64 * 100.0
    );
    let (bytes, seconds) = measured(&plan, RATE);
    println!(
        "1,000 agents with one tick a second: 1,000 messages, {:.1} MB and {:.1} % of a core a second",
        bytes / 1e3,
        seconds * 1_000.0 * 100.0
    );
    let messages = messages(RATE);
    let mut on_tick = |standing: &plimsoll_load::Standing<'_>, agents: &[_]| {
        black_box((standing, agents.len()));
    };
    let mut merger = LoadMerger::new(&plan, &[], &[], &mut on_tick);
    merger.begin(&parts(), SystemClock.wall());
    let mut group = criterion.benchmark_group("fleet_merge");
    group.throughput(Throughput::Elements(AGENTS as u64));
    let mut at_us = 0;
    group.bench_with_input(
        BenchmarkId::from_parameter(AGENTS),
        &messages,
        |bench, messages| {
            bench.iter(|| {
                at_us += SECOND;
                merge(&mut merger, messages, at_us);
            });
        },
    );
    group.finish();
}

criterion_group!(benches, merging);
criterion_main!(benches);
