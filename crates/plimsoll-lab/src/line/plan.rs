//! The plan of a search for the load line, ready to start.

use std::time::Duration;

use plimsoll_load::conditions::RunFacts;
use plimsoll_load::{OnFull, Pacing, RunPlan, Spacing, StopRule};
use plimsoll_model::{Rate, Threshold};

use super::search::{Purpose, SearchPlan, WindowPlan};
use plimsoll_load::schedule::RateProfile;

/// A search, ready to start.
#[derive(Debug, Clone)]
pub struct LinePlan {
    /// The requests and their target; pacing, connections and length are the search's.
    pub run: RunPlan,
    /// The objectives of a window; at least one.
    pub objectives: Vec<Threshold>,
    /// Which rates may be tried, and how often.
    pub search: SearchPlan,
    /// Length of a window.
    pub window: Duration,
    /// Length of the window that confirms the line, if the search makes one.
    pub confirm: Duration,
    /// Load at the same rate before each window, not counted.
    pub warm_up: Duration,
    /// Whether arrivals are even or at random.
    pub spacing: Spacing,
    /// Facts about the conditions that the caller knows.
    pub facts: RunFacts,
}

impl LinePlan {
    /// The run that makes the window `planned`, the `number`-th one.
    pub(super) fn run_of(&self, planned: WindowPlan, number: usize) -> RunPlan {
        let rate = Rate::new(planned.rate).expect("the search asks for positive rates");
        RunPlan {
            pacing: Pacing::Open {
                profile: RateProfile::constant(rate),
                spacing: self.spacing.clone(),
                burst: std::num::NonZeroU32::MIN,
                jitter: Duration::ZERO,
                on_full: OnFull::Queue,
            },
            connections: planned.connections,
            workers: self.run.workers.min(planned.connections),
            stop: StopRule {
                requests: None,
                duration: Some(match planned.purpose {
                    Purpose::Confirm => self.confirm,
                    Purpose::Bracket | Purpose::Bisect | Purpose::Round | Purpose::Below => {
                        self.window
                    }
                }),
            },
            warm_up: self.warm_up,
            seed: self.run.seed.wrapping_add(number as u64),
            ..self.run.clone()
        }
    }
}
