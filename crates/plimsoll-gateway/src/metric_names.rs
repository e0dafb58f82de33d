//! The names of the gateway's metrics.

/// What they begin with.
pub(crate) const METRICS: &str = "plimsoll_gateway";
