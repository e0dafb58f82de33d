//! Gatus's configuration, conditions and API.

mod config;

mod endpoint;

mod custom;

mod alerting;

mod condition;

pub mod duration;

pub use crate::gatus::condition::{GatusCondition, GatusConditionError};
pub use crate::gatus::config::load;
