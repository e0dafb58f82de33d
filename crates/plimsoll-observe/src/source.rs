//! The seam of observation: what gives samples of a target.

use std::time::Duration;

use plimsoll_model::{ClockDifference, ResourceSample};

use crate::TargetEnded;

/// Samples one target, wherever it is. Each of its kinds passes one suite (`contract.rs`).
pub trait SampleSource: Send + std::fmt::Debug {
    /// Resources of the target now, and its CPU time so far, which never goes back.
    ///
    /// Blocks for as long as reading takes; from another machine at most for the timeout of a request.
    ///
    /// - `at`: time since the start of the run, `completed`: exchanges completed by now. The sample has the time at
    ///   which it was taken, which is `at` on this machine.
    fn sample(&mut self, at: Duration, completed: u64) -> Result<ResourceSample, SampleError>;

    /// See [`ProcessTree::unseen_children`](crate::ProcessTree::unseen_children).
    fn unseen_children(&self) -> Option<u64> {
        None
    }

    /// Cores of the machine of the target; `None` if it is this one.
    fn cores(&self) -> Option<usize> {
        None
    }

    /// By how much the clock of the machine of the target differs from ours; `None` if it is the same one.
    fn clock(&self) -> Option<ClockDifference> {
        None
    }
}

/// Why there is no sample.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SampleError {
    /// There never will be one again.
    #[error(transparent)]
    Ended(#[from] TargetEnded),
    /// There is none now: the agent does not answer, or the target is not there.
    #[error("{reason}")]
    Gap {
        /// Why.
        reason: String,
    },
}
