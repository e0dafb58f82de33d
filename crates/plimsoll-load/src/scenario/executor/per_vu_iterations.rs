//! `per-vu-iterations`: each virtual user makes its own.

use std::time::Duration;

/// Each virtual user makes the same number of iterations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PerVuIterations {
    /// Virtual users.
    pub vus: u32,
    /// Iterations of each.
    pub iterations: u64,
    /// Nothing starts after this time.
    pub max_duration: Duration,
}
