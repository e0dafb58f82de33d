//! Servers that are observed by name beside a run.

use std::time::Duration;

use plimsoll_load::{Observation, RunPlan};
use plimsoll_model::{Clock, CpuTime, ResourceSample};
use plimsoll_observe::{AttachError, NamedTarget, SampleError, SampleSource, Target};
use plimsoll_testkit::Origin;
use plimsoll_wire::SystemClock;

use crate::fixture::{lasting, plan, watched};

/// Time that an agent takes to align its clock.
const SLOW: Duration = Duration::from_millis(400);

/// A target that takes its time to give samples, and leaves a gap after the first so many.
#[derive(Debug)]
struct Agent {
    samples: u64,
}

#[derive(Debug)]
struct Source {
    left: u64,
    taken: u64,
}

impl Target for Agent {
    fn name(&self) -> &'static str {
        "unit web at https://web1:7070"
    }

    fn pid(&self) -> Option<u32> {
        None
    }

    fn cores(&self) -> &[usize] {
        &[]
    }

    fn source(&self) -> Result<Box<dyn SampleSource>, AttachError> {
        let begun = SystemClock.now();
        while begun.elapsed() < SLOW {
            std::hint::spin_loop();
        }
        Ok(Box::new(Source {
            left: self.samples,
            taken: 0,
        }))
    }

    fn agent(&self) -> Option<&str> {
        Some("https://web1:7070")
    }

    fn stop(self: Box<Self>) {}
}

impl SampleSource for Source {
    fn sample(&mut self, at: Duration, completed: u64) -> Result<ResourceSample, SampleError> {
        self.left = self.left.checked_sub(1).ok_or(SampleError::Gap {
            reason: "away".to_owned(),
        })?;
        self.taken += 1;
        Ok(ResourceSample {
            at,
            completed,
            cpu: CpuTime {
                user: Duration::from_millis(self.taken),
                system: Duration::ZERO,
            },
            ..ResourceSample::default()
        })
    }
}

fn observed(samples: u64) -> plimsoll_model::RunSummary {
    let origin = Origin::hello();
    let servers = [NamedTarget {
        name: "web".to_owned(),
        target: Box::new(Agent { samples }),
    }];
    let plan = RunPlan {
        stop: lasting(Duration::from_secs(1)),
        ..plan(&origin.url("/"))
    };
    let observation = Observation {
        observed: &servers,
        ..Observation::default()
    };
    watched(&plan, observation, &std::sync::Arc::default(), &mut |_| {})
}

#[test]
fn a_run_starts_when_its_servers_can_be_sampled() {
    let summary = observed(u64::MAX);
    let server = &summary.observed[0];
    assert!(server.is_whole && server.gaps.is_empty(), "{server:?}");
    let cost = server.cost.as_ref().unwrap();
    // Arrivals that were due while clocks were aligned would all be late.
    assert!(cost.samples[0].at < SLOW, "{:?}", cost.samples[0]);
    assert_eq!(cost.cost.exchanges, summary.counts.completed_in_window);
    assert_eq!(summary.target.as_ref(), Some(cost), "it is the target");
    assert!(summary.moments.iter().any(|moment| moment.target.is_some()));
}

#[test]
fn a_server_that_goes_away_has_the_cost_of_what_was_seen() {
    let summary = observed(5);
    let server = &summary.observed[0];
    assert!(!server.is_whole && summary.target.is_none());
    let cost = server.cost.as_ref().unwrap();
    assert!(cost.cost.window < Duration::from_secs(1), "{:?}", cost.cost);
    assert_eq!(cost.samples.len(), 5);
    assert_eq!(server.gaps.len(), 1);
    let cautions = summary.conditions.warnings.join("\n");
    assert!(cautions.contains("web gave no samples for"), "{cautions}");
    assert!(
        cautions.contains("thresholds on it have no data"),
        "{cautions}"
    );
}
