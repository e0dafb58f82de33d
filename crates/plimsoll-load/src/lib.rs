//! The load engine: schedules, virtual users, aggregation, and the cost of the target.

mod ramp;

pub mod schedule;

pub use crate::ramp::Ramp;
