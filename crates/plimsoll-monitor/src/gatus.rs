//! Gatus's configuration, conditions and API.

mod yaml;

mod block;

mod config;

mod endpoint;

mod alerting;

mod condition;

pub mod duration;

pub use crate::gatus::condition::{GatusCondition, GatusConditionError};
pub use crate::gatus::config::load;
