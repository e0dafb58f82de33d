//! Samples for files and databases.

pub(crate) mod samples;

pub(crate) mod series;
