//! A run in parts: the parts together make what one process makes, and their union has the figures of all.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use plimsoll_load::conditions::RunFacts;
use plimsoll_load::{
    Interval, OnFull, PartHooks, PartReport, RunPart, RunPlan, Spacing, Union, UnionEnd,
    UnionSecond, run_part,
};
use plimsoll_model::{Clock as _, RunSummary};
use plimsoll_testkit::{Logic, Origin, Reply, Script, Step};
use plimsoll_wire::SystemClock;

use crate::fixture::{go, lasting, millis, open, plan, requests};

/// A second of a part, or its report.
enum Made {
    Second(Box<UnionSecond>),
    Report(Box<PartReport>),
}

/// Makes a run of four workers in two parts, of one and of three.
fn in_parts(whole: &RunPlan) -> RunSummary {
    let parts = [(0, 1), (1, 3)].map(|(first, workers)| RunPart {
        first,
        workers,
        of: 4,
    });
    let start = SystemClock.now() + millis(100);
    let (made, all) = mpsc::channel();
    for (position, part) in parts.into_iter().enumerate() {
        let (whole, made) = (whole.clone(), made.clone());
        thread::spawn(move || {
            let mut hooks = PartHooks {
                interrupt: Arc::default(),
                start: &mut || Some(start),
                on_second: &mut |second| {
                    let interval: Interval = second.interval.clone();
                    let second = Box::new(UnionSecond {
                        part: position,
                        at: second.at,
                        grace: second.grace,
                        is_last: second.is_last,
                        interval,
                    });
                    made.send(Made::Second(second)).unwrap();
                },
            };
            let report = run_part(&whole, part, RunFacts::default(), &mut hooks).unwrap();
            let report = Box::new(report.unwrap());
            made.send(Made::Report(report)).unwrap();
        });
    }
    drop(made);
    let plan = RunPlan {
        workers: 4,
        ..whole.clone()
    };
    let mut union = Union::new(plan, parts.len(), &[], Vec::new(), SystemClock.wall());
    let (mut reports, mut lasts, mut shown) = (Vec::new(), 0, 0);
    for made in all {
        match made {
            Made::Report(report) => reports.push(report),
            Made::Second(second) => {
                lasts += usize::from(second.is_last);
                union.merge_second(*second, &mut |standing| shown += standing.tick.ok);
            }
        }
    }
    assert_eq!(lasts, parts.len(), "each part has one last second");
    let reports: Vec<&PartReport> = reports.iter().map(|report| &**report).collect();
    let counted: u64 = reports.iter().map(|report| report.total.counts.ok).sum();
    let summary = union.finish(&reports, &[], UnionEnd::default());
    assert_eq!(summary.counts.ok, counted);
    assert_eq!(shown, counted);
    summary
}

#[test]
fn parts_make_the_requests_of_the_whole() {
    let origin = Origin::hello();
    let whole = RunPlan {
        connections: 9,
        workers: 2,
        stop: requests(1_003),
        ..plan(&origin.url("/"))
    };
    let summary = in_parts(&whole);
    assert_eq!(summary.counts.ok, 1_003);
    assert_eq!(summary.latency.from_started.observed().len(), 1_003);
    assert_eq!(summary.connections_opened, 9);
    assert_eq!(summary.load.workers, 4);
    assert_eq!(origin.requests(), 1_003);
    assert_eq!(origin.connections(), 9);
}

#[test]
fn parts_make_every_arrival_of_the_schedule_once() {
    for spacing in [Spacing::Even, Spacing::Poisson] {
        let origin = Origin::hello();
        let whole = RunPlan {
            pacing: open(1_000.0, spacing.clone(), OnFull::Queue),
            connections: 60,
            workers: 4,
            stop: lasting(Duration::from_secs(1)),
            ..plan(&origin.url("/"))
        };
        let summary = in_parts(&whole);
        let in_one = go(&whole);
        assert_eq!(summary.counts.intended(), in_one.counts.intended());
        assert_eq!(summary.window, Duration::from_secs(1));
        if spacing == Spacing::Even {
            assert_eq!(summary.counts.ok, 1_000);
        }
    }
}

#[test]
fn latency_of_error_statuses_is_that_of_all_parts() {
    let asked = AtomicU64::new(0);
    let logic = Logic::new(move |_| match asked.fetch_add(1, Ordering::Relaxed) % 2 {
        0 => Reply::new(429, &[]),
        _ => Reply::new(200, &[]).after(millis(50)),
    });
    let origin = Origin::scripted(Script::new().then(Step::Reply(logic)));
    let whole = RunPlan {
        connections: 8,
        stop: requests(40),
        ..plan(&origin.url("/"))
    };
    let summary = in_parts(&whole);
    let kinds = summary.latency.by_status().expect("there are both kinds");
    assert_eq!((kinds.ok.len(), kinds.errors.len()), (20, 20));
    let warnings = summary.conditions.warnings.iter();
    let mut mixes = warnings.filter(|warning| warning.starts_with("latency mixes responses"));
    assert_eq!(mixes.next().cloned(), kinds.caution());
}

#[test]
fn a_part_without_a_start_makes_nothing() {
    let origin = Origin::hello();
    let whole = plan(&origin.url("/"));
    let mut hooks = PartHooks {
        interrupt: Arc::default(),
        start: &mut || None,
        on_second: &mut |_| panic!("nothing is counted"),
    };
    let part = RunPart::whole(&whole);
    let report = run_part(&whole, part, RunFacts::default(), &mut hooks).unwrap();
    assert!(report.is_none());
    assert_eq!(origin.connections(), 0);
}
