//! A process that was already running.

use plimsoll_wire::cores;

use super::{AttachError, ProcessTree, Target};

/// A running process, named by its id; it is observed and otherwise left alone.
#[derive(Debug)]
pub struct Pid {
    id: u32,
    name: String,
    cores: Vec<usize>,
}

impl Pid {
    /// The process `pid`, which must exist and be readable.
    pub fn new(pid: u32) -> Result<Self, AttachError> {
        ProcessTree::attach(pid)?;
        Ok(Self {
            id: pid,
            name: format!("pid {pid}"),
            cores: bound(pid),
        })
    }
}

impl Target for Pid {
    fn name(&self) -> &str {
        &self.name
    }

    fn pid(&self) -> u32 {
        self.id
    }

    fn cores(&self) -> &[usize] {
        &self.cores
    }

    fn stop(self: Box<Self>) {}
}

/// The cores of a process that somebody has bound: fewer than are there for us.
fn bound(pid: u32) -> Vec<usize> {
    let available = cores::available().len();
    cores::of_process(pid)
        .filter(|allowed| allowed.len() < available)
        .unwrap_or_default()
}
