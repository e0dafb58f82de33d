//! The state of a rule: which reply is next, and how often it has matched.
//!
//! Rules are part of a plan that never changes. What changes lies here, and a rule holds a handle to it, as it does to its
//! scenario: plans that have the rule in common count together.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Counters of one rule, shared by all workers.
#[derive(Debug, Clone, Default)]
pub struct RuleState(Arc<Counters>);

#[derive(Debug, Default)]
struct Counters {
    hits: AtomicU64,
    turns: AtomicUsize,
}

impl RuleState {
    /// Number of requests it has answered since the journal was last emptied; 0 without a journal.
    pub fn hits(&self) -> u64 {
        self.0.hits.load(Ordering::Relaxed)
    }

    /// Counts a request that the journal has noted.
    pub(crate) fn hit(&self) {
        self.0.hits.fetch_add(1, Ordering::Relaxed);
    }

    /// The journal was emptied.
    pub(crate) fn forget_hits(&self) {
        self.0.hits.store(0, Ordering::Relaxed);
    }

    /// The number of turns taken so far; this one is not among them.
    pub(crate) fn take_turn(&self) -> usize {
        self.0.turns.fetch_add(1, Ordering::Relaxed)
    }
}
