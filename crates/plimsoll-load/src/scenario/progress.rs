//! How far a run of scenarios is; written by workers, read by anyone.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Counts of a whole run.
#[derive(Debug, Default)]
pub struct TestProgress {
    start: OnceLock<Instant>,
    /// In the order of the scenarios.
    scenarios: Vec<ScenarioProgress>,
}

/// Counts of one scenario.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct ScenarioProgress {
    pub(super) active: AtomicU64,
    pub(super) initialised: AtomicU64,
    pub(super) completed: AtomicU64,
    pub(super) interrupted: AtomicU64,
    aborted: AtomicU64,
}

/// How far a scenario is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ScenarioCounts {
    /// Virtual users that take part.
    pub active: u64,
    /// Virtual users that exist.
    pub initialised: u64,
    /// Iterations that are complete.
    pub completed: u64,
    /// Iterations that were interrupted.
    pub interrupted: u64,
    /// Requests without a response in them.
    pub aborted: u64,
}

impl ScenarioCounts {
    /// With those of another process.
    #[must_use]
    pub fn plus(self, other: &Self) -> Self {
        Self {
            active: self.active + other.active,
            initialised: self.initialised + other.initialised,
            completed: self.completed + other.completed,
            interrupted: self.interrupted + other.interrupted,
            aborted: self.aborted + other.aborted,
        }
    }
}

impl TestProgress {
    /// - `scenarios`: how many there are.
    pub fn new(scenarios: usize) -> Self {
        Self {
            start: OnceLock::new(),
            scenarios: (0..scenarios)
                .map(|_| ScenarioProgress::default())
                .collect(),
        }
    }

    /// When the first iteration could start; `None` before.
    pub fn start(&self) -> Option<Instant> {
        self.start.get().copied()
    }

    /// The first iteration may start now.
    pub fn begin(&self, now: Instant) {
        // It begins once.
        self.start.set(now).ok();
    }

    /// Time since the start; 0 before.
    pub fn elapsed(&self, now: Instant) -> Duration {
        self.start()
            .map_or(Duration::ZERO, |start| now.saturating_duration_since(start))
    }

    /// How far each scenario is.
    pub fn counts(&self) -> Vec<ScenarioCounts> {
        let scenarios = self.scenarios.iter().map(|scenario| ScenarioCounts {
            active: scenario.active(),
            initialised: scenario.initialised(),
            completed: scenario.completed(),
            interrupted: scenario.interrupted(),
            aborted: scenario.aborted(),
        });
        scenarios.collect()
    }

    /// Sets how far a scenario is whose iterations other processes make.
    pub fn set(&self, scenario: usize, counts: ScenarioCounts) {
        let scenario = &self.scenarios[scenario];
        scenario.active.store(counts.active, Ordering::Relaxed);
        scenario
            .initialised
            .store(counts.initialised, Ordering::Relaxed);
        scenario
            .completed
            .store(counts.completed, Ordering::Relaxed);
        scenario
            .interrupted
            .store(counts.interrupted, Ordering::Relaxed);
        scenario.aborted.store(counts.aborted, Ordering::Relaxed);
    }

    /// One scenario.
    pub fn scenario(&self, index: usize) -> &ScenarioProgress {
        &self.scenarios[index]
    }

    /// Virtual users that take part.
    pub fn active(&self) -> u64 {
        self.sum(ScenarioProgress::active)
    }

    /// Virtual users that exist.
    pub fn initialised(&self) -> u64 {
        self.sum(ScenarioProgress::initialised)
    }

    /// Iterations that are complete.
    pub fn completed(&self) -> u64 {
        self.sum(ScenarioProgress::completed)
    }

    /// Iterations that were interrupted.
    pub fn interrupted(&self) -> u64 {
        self.sum(ScenarioProgress::interrupted)
    }

    /// Requests that had no response when their iteration was interrupted.
    pub fn aborted(&self) -> u64 {
        self.sum(ScenarioProgress::aborted)
    }

    fn sum(&self, count: impl Fn(&ScenarioProgress) -> u64) -> u64 {
        self.scenarios.iter().map(count).sum()
    }
}

impl ScenarioProgress {
    /// Virtual users that take part: those of a closed executor that are not done, those of an open one that iterate.
    pub fn active(&self) -> u64 {
        self.active.load(Ordering::Relaxed)
    }

    /// Virtual users that exist.
    pub fn initialised(&self) -> u64 {
        self.initialised.load(Ordering::Relaxed)
    }

    /// Iterations that are complete.
    pub fn completed(&self) -> u64 {
        self.completed.load(Ordering::Relaxed)
    }

    /// Iterations that were interrupted.
    pub fn interrupted(&self) -> u64 {
        self.interrupted.load(Ordering::Relaxed)
    }

    /// Requests that had no response when their iteration was interrupted.
    pub fn aborted(&self) -> u64 {
        self.aborted.load(Ordering::Relaxed)
    }

    /// Counts a request that has no response as its iteration is interrupted.
    pub fn abort_request(&self) {
        Self::add(&self.aborted);
    }

    pub(super) fn add(count: &AtomicU64) {
        count.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn subtract(count: &AtomicU64) {
        count.fetch_sub(1, Ordering::Relaxed);
    }
}
