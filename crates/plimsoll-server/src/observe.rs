//! Observability: metrics, the access log, notices, the admin port.

pub(crate) mod metrics;

pub(crate) mod notice;

pub(crate) mod access_log;

pub(crate) mod audit;

pub(crate) mod admin;
