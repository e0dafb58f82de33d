//! When checks start, and which of those that are due may: pure, driven by a `now` that is passed in.

mod gates;

mod breaker;

mod heap;

pub use crate::schedule::breaker::{Breaker, BreakerRule};
pub use crate::schedule::gates::{DropCounts, DropReason, GateLimits, Gates, Pass};
pub use crate::schedule::heap::{CatchUp, Due, Scheduler, Timing};

#[cfg(test)]
mod tests;
