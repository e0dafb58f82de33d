//! Gatus's configuration, compiled to the same plans.

mod file;

mod endpoint;

mod custom;

mod alerting;

pub(super) use crate::config::gatus::file::load;
