//! Platforms without a proc file system.

use std::convert::Infallible;
use std::time::Duration;

use plimsoll_model::ResourceSample;

use super::{AttachError, Ended};

/// Never made here: [`Tree::attach`] always fails.
#[derive(Debug)]
pub(super) struct Tree(Infallible);

impl Tree {
    pub(super) fn attach(_pid: u32, _descendants: bool) -> Result<Self, AttachError> {
        Err(AttachError::Unsupported)
    }

    pub(super) fn sample(
        &mut self,
        _at: Duration,
        _completed: u64,
    ) -> Result<ResourceSample, Ended> {
        match self.0 {}
    }

    pub(super) fn peak_memory_bytes(&mut self) -> Result<u64, Ended> {
        match self.0 {}
    }
}
