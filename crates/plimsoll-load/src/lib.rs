//! The load engine: schedules, virtual users, aggregation, and the cost of the target.

pub mod conditions;
pub mod target;
