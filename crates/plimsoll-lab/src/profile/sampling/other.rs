//! Platforms without perf events.

use plimsoll_load::Interrupt;

use super::{Profile, ProfileError, ProfilePlan};

/// None that could be sampled.
pub(super) fn family(_: &[u32]) -> Vec<u32> {
    Vec::new()
}

pub(super) fn take_profile(_: &ProfilePlan, _: &Interrupt) -> Result<Profile, ProfileError> {
    Err(ProfileError::NoPerfEvents)
}
