//! Dates by patterns in a build without the feature `mock-import`: none.

use std::convert::Infallible;
use std::time::SystemTime;

/// Uninhabited: dates are compiled out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Truncation(Infallible);

/// There are no truncations in this build.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this build does not truncate times (feature `mock-import`)")]
pub(crate) struct TruncationError;

impl Truncation {
    pub(crate) fn named(_: &str) -> Result<Self, TruncationError> {
        Err(TruncationError)
    }

    pub(crate) fn of_system_time(self, _: SystemTime) -> Option<SystemTime> {
        match self.0 {}
    }
}

/// No pattern is one here.
pub(crate) fn is_pattern(_: &str) -> bool {
    false
}

pub(crate) fn parsed_by(_: &str, _: &str) -> Option<Infallible> {
    None
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the same signature as with patterns"
)]
pub(crate) fn system_time(time: &Infallible) -> SystemTime {
    match *time {}
}
