//! What a server costs: processor time, memory and descriptors of its processes, sampled while it is
//! under load.
//!
//! A [`Target`] says where they are: a process with its tree ([`Pid`], [`Spawned`]), a unit of systemd, a control group,
//! a container, a pod ([`LocalTarget`]), or any of these on another machine ([`RemoteTarget`]). Each gives a
//! [`SampleSource`], which [`Sampler`] reads ten times a second on a thread of its own. [`SampleServer`] serves samples of
//! this machine to others. [`WaitSampler`] sees what threads wait for.
//!
//! It makes no load, reads no flags and prints nothing. A stretch without samples is a gap and never zeros.

mod source;

mod target_name;

mod machine;

mod tree;

mod group;

mod network;

mod locate;

mod sampler;

mod waits;

mod pid;

mod named;

mod spawned;

mod local;

mod place;

mod document;

mod clock;

mod remote;

mod server;

#[cfg(test)]
#[cfg(target_os = "linux")]
mod contract;

pub use crate::document::{
    AgentDocument, AllowedDocument, FiguresDocument, SampleDocument, TargetSample, TargetsDocument,
};
pub use crate::local::LocalTarget;
pub use crate::locate::LocateError;
pub use crate::machine::Machine;
pub use crate::named::{NameError, pid_of_name};
pub use crate::pid::Pid;
pub use crate::place::TargetPlace;
pub use crate::remote::{RemoteError, RemotePlan, RemoteTarget, RemoteUrlError};
pub use crate::sampler::{Sampler, Samples};
pub use crate::server::{ObservePlan, SCHEMA, SampleServer, SampleServerError};
pub use crate::source::{SampleError, SampleSource};
pub use crate::spawned::{NotReady, Readiness, Spawned, SpawnedPlan};
pub use crate::target_name::{TargetKind, TargetName, TargetNameError, TargetPattern};
pub use crate::tree::{AttachError, ProcessTree, TargetEnded};
pub use crate::waits::{BusyThread, LockWaits, MemoryStall, WaitSampler, Waits};

/// A target with the name that the user gave it.
#[derive(Debug)]
pub struct NamedTarget {
    /// The name, which differs from that of others.
    pub name: String,
    /// The target.
    pub target: Box<dyn Target>,
}

/// What answers the requests of a run, and costs something.
pub trait Target: Send + std::fmt::Debug {
    /// Origin of the cost, as the summary names it: `pid 4711`, `unit postgresql`, `spawned nginx`, `embedded origin`.
    fn name(&self) -> &str;

    /// The id of the process at the root of its tree; `None` of what is no tree of processes on this machine.
    fn pid(&self) -> Option<u32>;

    /// The cores that it is bound to; empty if the scheduler chooses.
    fn cores(&self) -> &[usize];

    /// Its samples, from now on.
    fn source(&self) -> Result<Box<dyn SampleSource>, AttachError>;

    /// The agent that samples it, as scheme, host and port; `None` on this machine.
    fn agent(&self) -> Option<&str> {
        None
    }

    /// Ends what was started for the run; leaves alone what was there before.
    fn stop(self: Box<Self>);
}
