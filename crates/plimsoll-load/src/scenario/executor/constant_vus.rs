//! `constant-vus`: iterate for a time.

use std::time::Duration;

/// A number of virtual users iterate for a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConstantVus {
    /// Virtual users.
    pub vus: u32,
    /// How long iterations start.
    pub duration: Duration,
}
