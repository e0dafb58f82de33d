//! Profiles of running processes: where their processor time goes, or what they wait for.
//!
//! [`take_profile`] samples every thread of a process and of its descendants by the kernel's perf events
//! (`perf_event_open(2)`): so and so often per second of processor time a thread's stack is noted. A
//! [`Profile`] holds the stacks with the names of their functions; [`flame`] draws them,
//! [`folded`](Profile::folded) is the text that most other tools read.
//!
//! [`fetch`] asks a server for the profile that it takes of itself, [`pprof`] and [`firefox`] are the files
//! of other tools, [`store`] describes stores of profiles.
//!
//! [`CallGraph`] describes how callers are found. The innermost function is right either way.

mod fetch;

pub mod firefox;

pub mod flame;

mod kernel;

mod mappings;

pub mod per_request;

pub mod pprof;

mod python;

mod result;

#[cfg_attr(
    all(
        target_os = "linux",
        any(target_arch = "x86_64", target_arch = "aarch64")
    ),
    path = "profile/sampling/linux.rs"
)]
#[cfg_attr(
    not(all(
        target_os = "linux",
        any(target_arch = "x86_64", target_arch = "aarch64")
    )),
    path = "profile/sampling/other.rs"
)]
mod sampling;

pub mod store;

mod symbols;

pub mod text;

use std::time::Duration;

use plimsoll_load::Interrupt;

pub use self::fetch::{FetchError, Server, fetch};
pub use self::pprof::DecodeError;
pub use self::result::{Frame, FunctionShare, Nameless, Origin, Profile, ThreadShare};

/// The processes to profile, and for how long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfilePlan {
    /// The processes; their descendants belong to them.
    pub pids: Vec<u32>,
    /// Duration.
    pub duration: Duration,
    /// Samples per second of processor time and thread; at most what
    /// `kernel.perf_event_max_sample_rate` allows.
    pub frequency: u64,
    /// What is sampled.
    pub kind: ProfileKind,
    /// How callers are found; by default, for each process as its program needs it: by its unwind tables
    /// if it has any, else by frame pointers.
    pub call_graph: Option<CallGraph>,
}

/// What a profile is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ProfileKind {
    /// Processor time.
    #[default]
    Cpu,
    /// The time in which threads wait for something other than a core: locks, sockets, files, timers.
    OffCpu,
}

/// Method of stack unwinding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallGraph {
    /// By frame pointers, which the kernel follows: to any depth and at little cost, if everything was built
    /// with them.
    FramePointers,
    /// By unwind tables (`.eh_frame`), which compilers write for exceptions, panics and debuggers: the top
    /// 16 KiB of the stack are copied with each sample. Code without tables is passed by frame pointers.
    UnwindTables,
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
        /// The error of the kernel.
        source: std::io::Error,
    },
    /// The kernel does not let this user see where its threads leave their cores.
    #[error("the kernel does not permit to sample the waits of process {pid}")]
    OffCpuNotPermitted {
        /// The process.
        pid: u32,
        /// The error of the kernel.
        source: std::io::Error,
    },
    /// Perf events are not to be had.
    #[error("cannot open a perf event on process {pid}")]
    Event {
        /// The process.
        pid: u32,
        /// The error of the kernel.
        source: std::io::Error,
    },
    /// The memory that the kernel writes samples into may not be had.
    #[error("the kernel gives no memory for samples of process {pid}")]
    NoMemory {
        /// The process.
        pid: u32,
        /// The error of the kernel.
        source: std::io::Error,
    },
    /// The platform has none.
    #[error("profiles are taken by perf events: on Linux, on x86-64 or aarch64")]
    NoPerfEvents,
}

impl ProfileError {
    /// A fix, where there is one.
    pub fn remedy(&self) -> Option<&'static str> {
        match self {
            Self::NotPermitted { .. } => Some(
                "be root, or lower kernel.perf_event_paranoid to 1 for processes of your own; containers \
                 may forbid it",
            ),
            Self::OffCpuNotPermitted { .. } => Some(
                "waits are sampled in the kernel (event context-switches): be root, grant CAP_PERFMON, or lower \
                 kernel.perf_event_paranoid to 1; containers may forbid it",
            ),
            Self::NoMemory { .. } => Some(
                "raise `ulimit -l` or kernel.perf_event_mlock_kb, or take less by --call-graph fp",
            ),
            Self::Event { source, .. } if source.kind() == std::io::ErrorKind::InvalidInput => {
                Some("-F may be more than kernel.perf_event_max_sample_rate")
            }
            Self::Event { source, .. } if source.raw_os_error() == Some(TOO_MANY_FILES) => {
                Some("raise `ulimit -n`: each thread takes a descriptor")
            }
            Self::NoProcess(_) | Self::Event { .. } | Self::NoPerfEvents => None,
        }
    }
}

/// `EMFILE`, which has no kind of its own.
const TOO_MANY_FILES: i32 = 24;

/// Takes a profile; ends early when all processes have ended or `interrupt` is set.
pub fn take_profile(plan: &ProfilePlan, interrupt: &Interrupt) -> Result<Profile, ProfileError> {
    if plan.kind == ProfileKind::OffCpu {
        // py-spy counts only the stacks of threads that run.
        return sampling::take_profile(plan, interrupt);
    }
    let python = python::PythonStacks::start(sampling::family(&plan.pids));
    let mut profile = sampling::take_profile(plan, interrupt)?;
    python.name(&mut profile);
    Ok(profile)
}
