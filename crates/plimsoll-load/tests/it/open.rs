//! The open loop: every arrival of the schedule is made, dropped or missed, and none is forgotten.

use std::time::Duration;

use plimsoll_load::{Observation, OnFull, Pacing, RunPlan, Spacing};
use plimsoll_model::{FailureKind, LoadModel, Phase, Threshold};
use plimsoll_testkit::{Origin, Script, Step, eventually};

use crate::fixture::{failures, go, jittered, lasting, millis, open, plan, requests, watched};

#[test]
fn every_arrival_of_the_schedule_is_made() {
    for workers in [1, 2] {
        let origin = Origin::hello();
        let summary = go(&RunPlan {
            pacing: open(2_000.0, Spacing::Even, OnFull::Queue),
            // Enough to take up what falls due while a busy machine lets us wait at the very end.
            connections: 100,
            workers,
            stop: lasting(Duration::from_secs(1)),
            ..plan(&origin.url("/"))
        });
        assert_eq!(summary.counts.started, 2_000);
        assert_eq!(summary.counts.ok, 2_000);
        assert_eq!(summary.counts.missed, 0);
        assert_eq!(origin.requests(), 2_000);
        assert_eq!(origin.connections(), 100);
        let LoadModel::Open { rate } = summary.load.model else {
            panic!("{:?}", summary.load.model);
        };
        assert!((rate.per_second() - 2_000.0).abs() < 1e-6);
    }
}

#[test]
fn a_seed_repeats_its_arrivals() {
    let count = |seed, workers| {
        let origin = Origin::hello();
        let summary = go(&RunPlan {
            pacing: open(1_000.0, Spacing::Poisson, OnFull::Queue),
            connections: 100,
            workers,
            seed,
            stop: lasting(millis(300)),
            ..plan(&origin.url("/"))
        });
        assert_eq!(summary.counts.missed, 0);
        assert_eq!(summary.counts.started, origin.requests());
        summary.counts.started
    };
    let first = count(42, 2);
    assert_eq!(count(42, 2), first);
    // A Poisson count of 300 is within six of its standard deviations.
    assert!((196..=404).contains(&first), "{first}");
    let others: Vec<_> = (1..4).map(|seed| count(seed, 1)).collect();
    assert!(others.iter().any(|other| *other != first), "{others:?}");
}

#[test]
fn a_number_of_requests_bounds_an_open_loop() {
    for on_full in [OnFull::Queue, OnFull::Drop] {
        let origin = Origin::hello();
        let summary = go(&RunPlan {
            pacing: open(1_000.0, Spacing::Even, on_full),
            connections: 10,
            stop: requests(50),
            ..plan(&origin.url("/"))
        });
        let counts = summary.counts;
        assert_eq!(counts.started + counts.dropped, 50, "{counts:?}");
        assert_eq!(counts.missed, 0);
    }
}

#[test]
fn a_number_of_requests_bounds_an_open_loop_that_is_behind() {
    let pause = Step::Pause(millis(2));
    let slow = (0..60).fold(Script::new(), |script, _| {
        script
            .then(Step::ReadHead)
            .then(pause.clone())
            .then(Step::Write(plimsoll_testkit::HELLO.to_vec()))
    });
    let origin = Origin::scripted(slow);
    let summary = go(&RunPlan {
        pacing: open(100_000.0, Spacing::Even, OnFull::Queue),
        connections: 2,
        stop: requests(50),
        ..plan(&origin.url("/"))
    });
    assert_eq!(summary.counts.ok, 50);
    assert_eq!(summary.counts.missed, 0);
}

#[test]
fn a_stall_is_seen_from_the_intended_start() {
    let origin = Origin::hello();
    let summary = std::thread::scope(|scope| {
        scope.spawn(|| {
            eventually(|| origin.requests() > 0);
            origin.stall_for(millis(500));
        });
        go(&RunPlan {
            pacing: open(500.0, Spacing::Even, OnFull::Queue),
            connections: 40,
            stop: lasting(Duration::from_secs(2)),
            ..plan(&origin.url("/"))
        })
    });
    assert_eq!(summary.counts.ok, 1_000);
    assert_eq!(origin.requests(), 1_000);
    let from_intended = summary.latency.honest().observed();
    let from_started = summary.latency.from_started.observed();
    // A quarter of the arrivals fell into the stall, but only as many as there are connections
    // were under way in it.
    let late = |histogram: &plimsoll_model::Histogram| {
        histogram.len() - histogram.count_up_to(millis(200))
    };
    assert!(late(from_intended) >= 100, "{from_intended:?}");
    assert!(late(from_started) < 100, "{from_started:?}");
    assert!(from_intended.quantile(0.99).unwrap() > millis(200));
    assert!(from_started.quantile(0.5) < from_intended.quantile(0.99));
    // Waiting for a connection is a phase of its own.
    let blocked = &summary.phases[Phase::Blocked.index()];
    assert!(blocked.quantile(1.0).unwrap() > millis(200));
}

#[test]
fn arrivals_are_dropped_where_nothing_is_free() {
    let origin = Origin::hello();
    let dropping = |workers| {
        let summary = go(&RunPlan {
            pacing: open(1_000.0, Spacing::Even, OnFull::Drop),
            connections: 4,
            workers,
            grace: millis(50),
            stop: lasting(millis(400)),
            ..plan(&origin.url("/"))
        });
        let counts = summary.counts;
        let intended = counts.started + counts.dropped + counts.missed;
        assert_eq!(intended, 400, "{counts:?}");
        counts
    };
    origin.stall();
    for workers in [1, 2] {
        let counts = dropping(workers);
        assert_eq!((counts.started, counts.aborted), (4, 4));
        assert_eq!(counts.dropped, 396);
        assert_eq!(counts.errors(), 400);
    }
    origin.resume();
    let counts = dropping(2);
    assert_eq!(counts.aborted, 0);
    assert!(counts.ok > 4, "{counts:?}");
    assert_eq!(origin.connections(), 3 * 4);
}

#[test]
fn a_silent_origin_leaves_arrivals_missed_and_no_more_connections_than_requested() {
    let origin = Origin::silent();
    let summary = go(&RunPlan {
        pacing: open(1_000.0, Spacing::Even, OnFull::Queue),
        connections: 6,
        workers: 2,
        grace: millis(50),
        stop: lasting(millis(300)),
        ..plan(&origin.url("/"))
    });
    let counts = summary.counts;
    assert_eq!(counts.started, 6);
    assert_eq!(counts.aborted, 6);
    assert_eq!(counts.missed, 300 - 6);
    assert_eq!(origin.connections(), 6);
    assert!(summary.ticks.iter().all(|tick| tick.in_flight <= 6));
    // All of them waited, and nothing is known of how long they would have taken.
    let median = summary.latency.honest().quantile(0.5).unwrap();
    assert!(
        median.is_censored() && median.low() > millis(100),
        "{median:?}"
    );
    assert_eq!(summary.shortfall(), Some(300));
}

/// One connection in five is never answered.
#[test]
fn answers_that_never_come_make_percentiles_lower_bounds_and_thresholds_fail() {
    let origin = Origin::builder()
        .script(|connection| match connection % 5 {
            0 => Script::new().then(Step::Swallow),
            _ => Script::hello(),
        })
        .start();
    let thresholds = [
        "latency:p(99)<1h",
        "latency:med<1h",
        "http_req_duration:max<1h over 1s",
        "errors:rate<1%",
        "http_req_failed:rate<1%",
    ]
    .map(|text| Threshold::parse(text).unwrap());
    let observation = Observation {
        thresholds: &thresholds,
        ..Observation::default()
    };
    let plan = RunPlan {
        pacing: open(100.0, Spacing::Even, OnFull::Queue),
        connections: 20,
        grace: millis(50),
        stop: lasting(millis(2_000)),
        ..plan(&origin.url("/"))
    };
    let summary = watched(&plan, observation, &std::sync::Arc::default(), &mut |_| {});
    let counts = summary.counts;
    assert_eq!((counts.started, counts.aborted), (200, 4), "{counts:?}");
    assert_eq!((counts.intended(), counts.errors()), (200, 4));
    let latency = summary.latency.honest();
    assert!(!latency.quantile(0.5).unwrap().is_censored());
    let p99 = latency.quantile(0.99).unwrap();
    assert!(p99.is_censored() && p99.low() > millis(500), "{p99:?}");
    assert!(latency.max().unwrap().is_censored());
    let verdicts: Vec<_> = summary
        .thresholds
        .iter()
        .map(|it| it.verdict().name())
        .collect();
    assert_eq!(
        verdicts,
        ["breached", "met", "breached", "breached", "breached"]
    );
    assert_eq!(summary.shortfall(), Some(4));
}

/// Every arrival is started, dropped or missed, jitter or not.
#[test]
fn jitter_loses_no_arrival_of_the_window() {
    let origin = Origin::hello();
    for (warm_up, jitter) in [(0, 150), (100, 150), (100, 1_000)] {
        let summary = go(&RunPlan {
            pacing: jittered(open(1_000.0, Spacing::Even, OnFull::Queue), millis(jitter)),
            connections: 50,
            warm_up: millis(warm_up),
            stop: lasting(millis(400)),
            ..plan(&origin.url("/"))
        });
        assert_eq!(summary.counts.intended(), 400, "{:?}", summary.counts);
    }
}

#[test]
fn nothing_is_forgotten_when_no_reader_waits() {
    // Without grace, what is handed out in the last moment has no time to begin.
    for (on_full, connections) in [(OnFull::Queue, 400), (OnFull::Drop, 400), (OnFull::Drop, 3)] {
        let origin = Origin::hello();
        let summary = go(&RunPlan {
            pacing: open(3_000.0, Spacing::Even, on_full),
            connections,
            grace: Duration::ZERO,
            stop: lasting(millis(100)),
            ..plan(&origin.url("/"))
        });
        let counts = summary.counts;
        assert_eq!(
            counts.started + counts.dropped + counts.missed,
            300,
            "{counts:?}"
        );
    }
}

#[test]
fn a_refused_port_keeps_to_the_schedule() {
    let summary = go(&RunPlan {
        pacing: open(200.0, Spacing::Even, OnFull::Queue),
        connections: 20,
        stop: lasting(millis(250)),
        ..plan(&format!("http://{}/", plimsoll_testkit::refused_address()))
    });
    assert_eq!(summary.counts.started, 50);
    assert_eq!(failures(&summary, Phase::Connect, FailureKind::Refused), 50);
}

#[test]
fn stages_end_when_they_say() {
    use plimsoll_load::schedule::{RateProfile, Stage};
    use plimsoll_model::Rate;

    let origin = Origin::hello();
    let stage = |level| Stage {
        duration: millis(200),
        level,
    };
    let summary = go(&RunPlan {
        pacing: Pacing::Open {
            profile: RateProfile::stages(Rate::new(0.0).unwrap(), &[stage(1_000.0), stage(0.0)]),
            spacing: Spacing::Even,
            burst: std::num::NonZeroU32::MIN,
            jitter: Duration::ZERO,
            on_full: OnFull::Queue,
        },
        connections: 10,
        stop: lasting(millis(400)),
        ..plan(&origin.url("/"))
    });
    // The area under the triangle, give or take the two ends.
    assert!(
        (199..=201).contains(&summary.counts.ok),
        "{:?}",
        summary.counts
    );
}
