//! Platforms without a proc file system.

use std::collections::HashMap;
use std::convert::Infallible;
use std::time::Duration;

use plimsoll_model::{CpuTime, ResourceSample};

use super::{AttachError, TargetEnded};

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
    ) -> Result<ResourceSample, TargetEnded> {
        match self.0 {}
    }

    pub(super) fn threads(&mut self) -> Result<HashMap<u32, CpuTime>, TargetEnded> {
        match self.0 {}
    }

    pub(super) fn thread_ids(&mut self) -> Result<Vec<u32>, TargetEnded> {
        match self.0 {}
    }

    pub(super) fn peak_memory_bytes(&mut self) -> Result<u64, TargetEnded> {
        match self.0 {}
    }

    pub(super) fn unseen_children(&self) -> Option<u64> {
        match self.0 {}
    }
}
