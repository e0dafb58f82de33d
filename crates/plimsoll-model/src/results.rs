//! Results of load runs, checks, attacks and the harness, with the conditions they were measured under.

pub(crate) mod summary;

pub(crate) mod tick;

pub(crate) mod conditions;

pub(crate) mod agents;

pub(crate) mod generator;

pub(crate) mod generator_share;

pub(crate) mod latency_by_status;

pub(crate) mod observed;

pub(crate) mod requests;

pub(crate) mod check;

pub(crate) mod chaos;

pub(crate) mod loadtest;
