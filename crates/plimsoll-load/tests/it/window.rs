//! The measured window: warm-up, interruption, ticks, the target's cost.

use std::sync::Arc;
use std::time::Duration;

use plimsoll_load::{Interrupt, Observation, OnFull, RunPlan, Spacing};
use plimsoll_model::Clock;
use plimsoll_model::ThresholdVerdict;
use plimsoll_observe::Pid;
use plimsoll_testkit::{Origin, eventually};
use plimsoll_wire::SystemClock;

use crate::fixture::{go, lasting, millis, open, plan, requests, watched};

#[test]
fn the_warm_up_is_in_no_figure() {
    let origin = Origin::hello();
    let summary = go(&RunPlan {
        pacing: open(1_000.0, Spacing::Even, OnFull::Queue),
        connections: 60,
        warm_up: millis(300),
        stop: lasting(millis(400)),
        ..plan(&origin.url("/"))
    });
    assert_eq!(summary.counts.warm_up, 300);
    assert_eq!(summary.counts.started, 400);
    assert_eq!(summary.counts.ok, 400);
    assert_eq!(origin.requests(), 700);
    assert_eq!(summary.window, millis(400));
    assert_eq!(summary.load.warm_up, millis(300));
    assert_eq!(summary.connections_opened, 60);
    let per_request = summary.bytes_received / summary.counts.ok;
    assert_eq!(per_request, plimsoll_testkit::HELLO.len() as u64);
}

#[test]
fn a_number_of_requests_does_not_count_the_warm_up() {
    let origin = Origin::hello();
    let summary = go(&RunPlan {
        warm_up: millis(100),
        stop: requests(25),
        workers: 2,
        ..plan(&origin.url("/"))
    });
    assert_eq!(summary.counts.ok, 25);
    assert!(summary.counts.warm_up > 0);
    assert_eq!(origin.requests(), 25 + summary.counts.warm_up);
}

#[test]
fn failures_of_the_warm_up_are_in_no_figure() {
    let summary = go(&RunPlan {
        warm_up: millis(200),
        stop: lasting(millis(50)),
        timeout: millis(20),
        connections: 1,
        ..plan(&Origin::silent().url("/"))
    });
    assert!(summary.counts.warm_up > 0);
    assert!(summary.counts.started <= 3);
}

#[test]
fn seconds_of_the_warm_up_are_marked() {
    let origin = Origin::hello();
    let mut ticks = Vec::new();
    let summary = watched(
        &RunPlan {
            pacing: open(100.0, Spacing::Even, OnFull::Queue),
            connections: 20,
            workers: 2,
            warm_up: Duration::from_secs(1),
            stop: lasting(millis(1_500)),
            ..plan(&origin.url("/"))
        },
        Observation::default(),
        &Arc::default(),
        &mut |tick| ticks.push(tick.clone()),
    );
    assert_eq!(ticks, summary.ticks);
    let marks: Vec<_> = ticks.iter().map(|tick| tick.warm_up).collect();
    assert_eq!(marks, [true, false, false]);
    let end = ticks.last().unwrap().at;
    assert!(end >= millis(2_490), "{end:?}");
    assert_eq!(ticks.iter().map(|tick| tick.ok).sum::<u64>(), 250);
}

/// Interrupts the run as often as `times` says, once `origin` has got a request.
fn interrupted(plan: &RunPlan, origin: &Origin, times: usize) -> plimsoll_model::RunSummary {
    let interrupt = Arc::<Interrupt>::default();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            eventually(|| origin.bytes_read() > 0);
            for _ in 0..times {
                interrupt.ask();
            }
        });
        watched(plan, Observation::default(), &interrupt, &mut |_| {})
    })
}

#[test]
fn an_interrupt_ends_a_long_run_and_keeps_what_was_measured() {
    for (pacing, workers) in [
        (crate::fixture::closed(), 1),
        (open(500.0, Spacing::Even, OnFull::Queue), 2),
        (open(500.0, Spacing::Even, OnFull::Drop), 1),
    ] {
        let origin = Origin::hello();
        let summary = interrupted(
            &RunPlan {
                pacing,
                workers,
                stop: lasting(Duration::from_hours(1)),
                ..plan(&origin.url("/"))
            },
            &origin,
            1,
        );
        assert!(summary.interrupted);
        assert!(summary.counts.ok > 0);
        assert_eq!(summary.counts.aborted, 0);
        assert_eq!(summary.counts.started, origin.requests());
        assert!(summary.window < Duration::from_mins(1));
        assert!(!summary.ticks.is_empty());
    }
}

#[test]
fn a_breached_threshold_ends_the_run_and_no_reader_interrupted_it() {
    let origin = Origin::hello();
    let thresholds = [
        "http_req_duration:min<1ns abort",
        "http_reqs:rate>0 over 1s",
        "http_req_tls_handshaking:max<1s",
    ]
    .map(|text| plimsoll_model::Threshold::parse(text).unwrap());
    let summary = watched(
        &RunPlan {
            stop: lasting(Duration::from_hours(1)),
            ..plan(&origin.url("/"))
        },
        Observation {
            thresholds: &thresholds,
            ..Observation::default()
        },
        &Arc::default(),
        &mut |_| {},
    );
    assert!(!summary.interrupted);
    assert!(summary.window < Duration::from_mins(1));
    assert_eq!(summary.counts.aborted, 0);
    let verdicts: Vec<_> = summary
        .thresholds
        .iter()
        .map(|judged| (judged.verdict(), judged.ended_run))
        .collect();
    assert_eq!(
        verdicts,
        [
            (ThresholdVerdict::Breached, true),
            (ThresholdVerdict::Met, false),
            (ThresholdVerdict::NoData, false)
        ]
    );
}

#[test]
fn one_interrupt_waits_for_the_grace_and_a_second_does_not() {
    let origin = Origin::silent();
    let plan = RunPlan {
        stop: lasting(Duration::from_hours(1)),
        grace: Duration::from_hours(1),
        timeout: Duration::from_hours(2),
        ..plan(&origin.url("/"))
    };
    let begun = SystemClock.now();
    let summary = interrupted(&plan, &origin, 2);
    assert!(begun.elapsed() < Duration::from_mins(1));
    assert!(summary.interrupted);
    assert!(summary.counts.aborted > 0);

    let origin = Origin::silent();
    let plan = RunPlan {
        grace: millis(50),
        ..plan
    };
    let plan = RunPlan {
        endpoints: crate::fixture::plan(&origin.url("/")).endpoints,
        ..plan
    };
    let summary = interrupted(&plan, &origin, 1);
    assert!(summary.interrupted);
    assert_eq!(summary.counts.started, summary.counts.aborted);
}

#[test]
fn an_interrupt_during_the_warm_up_leaves_an_empty_window() {
    let origin = Origin::hello();
    let summary = interrupted(
        &RunPlan {
            warm_up: Duration::from_hours(1),
            stop: lasting(Duration::from_secs(1)),
            ..plan(&origin.url("/"))
        },
        &origin,
        1,
    );
    assert!(summary.interrupted);
    assert_eq!(summary.counts.started, 0);
    assert!(summary.counts.warm_up > 0);
    assert_eq!(summary.window, Duration::ZERO);
    assert!(summary.requests_per_second().abs() < f64::EPSILON);
}

#[test]
#[cfg(target_os = "linux")]
fn the_cost_of_the_target_is_that_of_the_window() {
    // Origin, generator and test are one process here: that is what is observed.
    let target = Pid::new(std::process::id()).unwrap();
    let origin = Origin::hello();
    for stop in [lasting(millis(500)), requests(2_000)] {
        let summary = watched(
            &RunPlan {
                warm_up: millis(200),
                stop,
                ..plan(&origin.url("/"))
            },
            Observation {
                target: Some(&target),
                ..Observation::default()
            },
            &Arc::default(),
            &mut |_| {},
        );
        let server = summary.target.unwrap();
        assert_eq!(server.name, format!("pid {}", std::process::id()));
        assert!(server.cost.exchanges > 0);
        assert!(server.cost.window > Duration::ZERO);
        assert!(server.cost.cpu.total() > Duration::ZERO);
        assert!(server.cost.cpu_us_per_request().unwrap() > 0.0);
        assert!(server.memory.total_bytes() > 0);
        assert!(server.peak_memory_bytes > 0);
        assert!(server.fds > 0 && server.threads > 0 && server.processes > 0);
        assert!(server.samples.len() >= 2);
        assert!(server.samples.is_sorted_by_key(|sample| sample.at));
        assert!(server.samples.is_sorted_by_key(|sample| sample.completed));
        // The warm-up's exchanges are in the samples but not in the cost.
        let completed = summary.counts.ok + summary.counts.warm_up;
        assert!(server.samples.last().unwrap().completed <= completed);
        assert!(server.cost.exchanges < completed);
        assert!(summary.generator.cost.exchanges > 0);
    }
}
