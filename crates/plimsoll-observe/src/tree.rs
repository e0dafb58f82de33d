//! Resources and CPU time of a process and its descendants.
//!
//! Linux only, by proc(5); elsewhere attaching fails with [`AttachError::Unsupported`].

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
use linux as platform;

#[cfg(not(target_os = "linux"))]
mod other;
#[cfg(not(target_os = "linux"))]
use other as platform;

use std::collections::HashMap;
use std::io;
use std::time::Duration;

use plimsoll_model::{CpuTime, ResourceSample};

use crate::locate::LocateError;
use crate::named::NameError;
use crate::remote::RemoteError;
use crate::source::{SampleError, SampleSource};

/// Why a process cannot be observed.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// There is none of that id, or it has ended and was not yet reaped.
    #[error("there is no process {pid}")]
    NoSuchProcess {
        /// The wanted id.
        pid: u32,
    },
    /// It belongs to somebody else, and this system hides it.
    #[error("not permitted to observe process {pid}: run as its owner or as root")]
    Permission {
        /// The wanted id.
        pid: u32,
    },
    /// Its state could not be read.
    #[error("read the state of process {pid}")]
    Unreadable {
        /// The wanted id.
        pid: u32,
        /// The error of the system.
        source: io::Error,
    },
    /// No process, or several, have the name.
    #[error(transparent)]
    Name(#[from] NameError),
    /// It has no control group that can be observed.
    #[error(transparent)]
    Locate(#[from] LocateError),
    /// The agent of another machine gives no samples.
    #[error(transparent)]
    Remote(#[from] RemoteError),
    /// This platform has no proc file system.
    #[error("processes can be observed on Linux only")]
    Unsupported,
}

/// Every process of the tree has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("process {pid} and its children have ended")]
pub struct TargetEnded {
    /// The process that was at the root of the tree.
    pub pid: u32,
}

/// A process and its descendants, followed as they come and go.
///
/// A descendant stays in the tree when its parent ends, and what ended processes had spent stays in
/// the sum: the processor time of successive samples never goes back.
#[derive(Debug)]
pub struct ProcessTree {
    inner: platform::Tree,
}

impl ProcessTree {
    /// The process `pid` and all its descendants, present and future.
    pub fn attach(pid: u32) -> Result<Self, AttachError> {
        platform::Tree::attach(pid, true).map(|inner| Self { inner })
    }

    /// This process, without those that it has started.
    pub fn generator() -> Result<Self, AttachError> {
        platform::Tree::attach(std::process::id(), false).map(|inner| Self { inner })
    }

    /// Resources of the tree now, and its CPU time so far.
    ///
    /// - `at`: time since the start of the run, `completed`: exchanges completed by now; both are
    ///   copied into the sample.
    ///
    /// Descriptors of a process that may not be read count as none.
    pub fn sample(&mut self, at: Duration, completed: u64) -> Result<ResourceSample, TargetEnded> {
        self.inner.sample(at, completed)
    }

    /// CPU time of each thread of the running processes, by its id.
    ///
    /// Of a program that serves by a single thread this shows that it is at its limit although cores
    /// are idle.
    pub fn threads(&mut self) -> Result<HashMap<u32, CpuTime>, TargetEnded> {
        self.inner.threads()
    }

    /// The ids of the threads of the running processes.
    pub fn thread_ids(&mut self) -> Result<Vec<u32>, TargetEnded> {
        self.inner.thread_ids()
    }

    /// Processes that this machine has made since the tree was attached, if some of them may be children of the
    /// tree whose processor time is nowhere to be seen: a process of it ignores `SIGCHLD`, so that its children
    /// vanish as they end, and it has no control group of its own. `None` otherwise.
    pub fn unseen_children(&self) -> Option<u64> {
        self.inner.unseen_children()
    }

    /// The sum, over the processes that run now, of the largest resident memory that each has ever
    /// had, in bytes: at least what the tree held at its peak, as far as they still run.
    pub fn peak_memory_bytes(&mut self) -> Result<u64, TargetEnded> {
        self.inner.peak_memory_bytes()
    }
}

impl SampleSource for ProcessTree {
    fn sample(&mut self, at: Duration, completed: u64) -> Result<ResourceSample, SampleError> {
        Ok(self.inner.sample(at, completed)?)
    }

    fn unseen_children(&self) -> Option<u64> {
        self.inner.unseen_children()
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests;
