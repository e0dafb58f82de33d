//! Platforms without perf events.

use plimsoll_load::Interrupt;

use super::{Profile, ProfileError, ProfilePlan};

pub(super) fn take(_: &ProfilePlan, _: &Interrupt) -> Result<Profile, ProfileError> {
    Err(ProfileError::NoPerfEvents)
}
