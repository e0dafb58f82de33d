//! What a server costs: processor time, memory and descriptors of its processes, sampled while it is
//! under load.
//!
//! A [`Target`] says where they are; [`ProcessTree`] reads what they hold; [`Sampler`] does so ten
//! times a second on a thread of its own; [`WaitSampler`] sees what its threads wait for. A target on another machine has none of this, and a run
//! without it is a run all the same.
//!
//! It makes no load, reads no flags and prints nothing.

mod tree;

mod sampler;

mod waits;

mod pid;

mod named;

mod spawned;

#[cfg(test)]
#[cfg(target_os = "linux")]
mod contract;

pub use crate::named::{NameError, pid_of_name};
pub use crate::pid::Pid;
pub use crate::sampler::{Sampler, Samples};
pub use crate::spawned::{NotReady, Readiness, Spawned, SpawnedPlan};
pub use crate::tree::{AttachError, ProcessTree, TargetEnded};
pub use crate::waits::{BusyThread, LockWaits, MemoryStall, WaitSampler, Waits};

/// Processes on this machine that answer the requests of a run.
pub trait Target: Send + std::fmt::Debug {
    /// Origin of the processes, as the summary names it: `pid 4711`, `spawned nginx`, `embedded origin`.
    fn name(&self) -> &str;

    /// The id of the process at the root of its tree.
    fn pid(&self) -> u32;

    /// The cores that it is bound to; empty if the scheduler chooses.
    fn cores(&self) -> &[usize];

    /// Its process tree, to be sampled.
    fn tree(&self) -> Result<ProcessTree, AttachError> {
        ProcessTree::attach(self.pid())
    }

    /// Ends what was started for the run; leaves alone what was there before.
    fn stop(self: Box<Self>);
}
