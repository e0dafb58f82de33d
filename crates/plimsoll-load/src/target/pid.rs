//! A process that was already running.

use super::{AttachError, ProcessTree, Target};

/// A running process, named by its id; it is observed and otherwise left alone.
#[derive(Debug)]
pub struct Pid {
    pid: u32,
    name: String,
}

impl Pid {
    /// The process `pid`, which must exist and be readable.
    pub fn new(pid: u32) -> Result<Self, AttachError> {
        ProcessTree::attach(pid)?;
        Ok(Self {
            pid,
            name: format!("pid {pid}"),
        })
    }
}

impl Target for Pid {
    fn name(&self) -> &str {
        &self.name
    }

    fn pid(&self) -> u32 {
        self.pid
    }

    fn cores(&self) -> &[usize] {
        &[]
    }

    fn stop(self: Box<Self>) {}
}
