//! `shared-iterations`: the next free virtual user makes the next iteration.

use std::time::Duration;

/// Virtual users share a number of iterations; faster ones make more of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedIterations {
    /// Virtual users.
    pub vus: u32,
    /// Iterations of all together.
    pub iterations: u64,
    /// Nothing starts after this time.
    pub max_duration: Duration,
}
