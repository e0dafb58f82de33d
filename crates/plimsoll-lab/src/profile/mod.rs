//! On-CPU profiles of running processes: where their processor time goes.
//!
//! [`take`] samples every thread of a process and of its descendants by the kernel's perf events
//! (`perf_event_open(2)`): so and so often per second of processor time a thread's call chain is noted, as
//! frame pointers tell it. A [`Profile`] holds the stacks with the names of their functions; [`flame`]
//! draws them, [`folded`](Profile::folded) is the text that most other tools read.
//!
//! Programs built without frame pointers show short or broken stacks; their innermost function is right
//! all the same.

pub mod flame;

mod kernel;

mod mappings;

pub mod pprof;

mod result;

#[cfg_attr(target_os = "linux", path = "sampling/linux.rs")]
#[cfg_attr(not(target_os = "linux"), path = "sampling/other.rs")]
mod sampling;

mod symbols;

pub mod text;

use std::time::Duration;

use plimsoll_load::Interrupt;

pub use self::result::{Frame, FunctionShare, Origin, Profile, ThreadShare};

/// What to profile, and for how long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfilePlan {
    /// The processes; their descendants belong to them.
    pub pids: Vec<u32>,
    /// How long.
    pub duration: Duration,
    /// Samples per second of processor time and thread; at most what
    /// `kernel.perf_event_max_sample_rate` allows.
    pub frequency: u64,
}

/// Why no profile could be taken.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// There is no such process, or it has ended.
    #[error("there is no process {0}")]
    NoProcess(u32),
    /// The kernel does not let this user look at the process.
    #[error("the kernel does not permit to sample process {pid}")]
    NotPermitted {
        /// The process.
        pid: u32,
        /// What the kernel says.
        source: std::io::Error,
    },
    /// Perf events are not to be had.
    #[error("cannot open a perf event on process {pid}")]
    Event {
        /// The process.
        pid: u32,
        /// What the kernel says.
        source: std::io::Error,
    },
    /// The platform has none.
    #[error("profiles are taken by perf events, which only Linux has")]
    NoPerfEvents,
}

/// Takes a profile; ends early when all processes have ended or `interrupt` is asked.
pub fn take(plan: &ProfilePlan, interrupt: &Interrupt) -> Result<Profile, ProfileError> {
    sampling::take(plan, interrupt)
}
