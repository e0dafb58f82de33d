//! When exchanges are meant to start in an open loop: intended times, known beforehand.
//!
//! Pure: a schedule yields offsets from the start of the run; nothing here waits or reads a clock.
//! A [`RateProfile`] says how fast arrivals come over time, and each schedule spaces them in its own
//! way along it.

pub(crate) mod ramp;

mod profile;

mod even;

mod poisson;

mod burst;

mod jitter;

mod recorded;

use std::fmt;
use std::time::Duration;

pub use crate::schedule::burst::BurstArrivals;
pub use crate::schedule::even::EvenArrivals;
pub use crate::schedule::jitter::JitteredArrivals;
pub use crate::schedule::poisson::PoissonArrivals;
pub use crate::schedule::profile::{RateProfile, Stage};
pub use crate::schedule::recorded::RecordedArrivals;

/// Intended start times, in ascending order.
pub trait Schedule: fmt::Debug + Send {
    /// The offset of the next arrival from the start of the run; `None` when there are no more.
    fn next_arrival(&mut self) -> Option<Duration>;
}

/// Which part of a schedule a worker makes: number `index` of `of` workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// From 0.
    pub index: u32,
    /// At least 1.
    pub of: u32,
}

impl Share {
    /// The whole.
    pub const ALL: Self = Self { index: 0, of: 1 };
}

#[cfg(test)]
mod tests;
