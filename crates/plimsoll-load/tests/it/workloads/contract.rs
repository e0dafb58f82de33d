//! The report of a run of any workload over any driver.

use std::any::Any;
use std::time::Duration;

use plimsoll_load::{OnFull, Pacing, RunPlan, Spacing, ThinkTime};
use plimsoll_model::LoadModel;

use crate::fixture::{go, lasting, millis, open, requests};

/// The server's treatment of every exchange.
#[derive(Debug, Clone, Copy)]
pub(super) enum Behaviour {
    /// It is completed.
    Answer,
    /// It is broken off before there is a response.
    Break,
    /// Its response never begins.
    Hold,
}

/// A server and a run against it, of two connections.
pub(super) struct Target {
    pub(super) plan: RunPlan,
    /// Stops with the target.
    pub(super) _origin: Box<dyn Any>,
}

impl Target {
    /// Virtual users of the run.
    fn users(&self) -> u64 {
        (self.plan.connections * self.plan.streams()) as u64
    }
}

type Make = dyn Fn(Behaviour) -> Target;

pub(super) fn counts(make: &Make) {
    let target = make(Behaviour::Answer);
    let summary = go(&RunPlan {
        stop: requests(23),
        ..target.plan
    });
    assert_eq!(summary.counts.started, 23);
    assert_eq!(summary.counts.ok, 23, "{:?}", summary.failures);
    assert_eq!(summary.load.model, LoadModel::Closed);
    assert_eq!(summary.latency.from_started.observed().len(), 23);
    assert!(summary.bytes_sent > 0 && summary.bytes_received > 0);
}

pub(super) fn failures(make: &Make) {
    let target = make(Behaviour::Break);
    let summary = go(&RunPlan {
        stop: requests(4),
        ..target.plan
    });
    assert_eq!((summary.counts.started, summary.counts.failed), (4, 4));
    assert_eq!(summary.counts.errors(), 4);
    let counted: u64 = summary.failures.iter().map(|failure| failure.count).sum();
    assert_eq!(counted, 4, "{:?}", summary.failures);
}

pub(super) fn aborted(make: &Make) {
    let target = make(Behaviour::Hold);
    let users = target.users();
    let summary = go(&RunPlan {
        stop: lasting(millis(300)),
        grace: millis(50),
        ..target.plan
    });
    let counts = &summary.counts;
    assert!((1..=users).contains(&counts.started), "{counts:?}");
    assert_eq!(counts.aborted, counts.started, "{:?}", summary.failures);
    assert_eq!((counts.errors(), counts.ok), (counts.aborted, 0));
}

pub(super) fn open_loop(make: &Make) {
    let target = make(Behaviour::Answer);
    let summary = go(&RunPlan {
        pacing: open(200.0, Spacing::Even, OnFull::Queue),
        stop: requests(20),
        ..target.plan
    });
    assert_eq!(summary.counts.ok, 20, "{:?}", summary.failures);
    assert!(matches!(summary.load.model, LoadModel::Open { .. }));
    let from_started = summary.latency.from_started.observed();
    let from_intended = summary.latency.honest().observed();
    assert_eq!((from_started.len(), from_intended.len()), (20, 20));
    for fraction in [0.1, 0.5, 0.9, 1.0] {
        assert!(from_intended.quantile(fraction) >= from_started.quantile(fraction));
    }
}

pub(super) fn think_time(make: &Make) {
    let target = make(Behaviour::Answer);
    let users = target.users();
    let hour = Duration::from_hours(1);
    let summary = go(&RunPlan {
        pacing: Pacing::Closed {
            ramp: None,
            think: Some(ThinkTime {
                least: hour,
                most: hour,
            }),
        },
        stop: lasting(millis(300)),
        ..target.plan
    });
    // Each user makes one exchange, and thinks until the run is over.
    let counts = &summary.counts;
    assert!((1..=users).contains(&counts.ok), "{counts:?}");
    assert_eq!(counts.started, counts.ok, "{:?}", summary.failures);
}
