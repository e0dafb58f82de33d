//! A process that was already running.

use std::time::Duration;

use plimsoll_model::{ResourceSample, Throttling};
use plimsoll_wire::cores;

use crate::group::counters::GroupCounters;
use crate::machine::Machine;
use crate::network::OwnNetwork;
use crate::{AttachError, ProcessTree, SampleError, SampleSource, Target};

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

    fn pid(&self) -> Option<u32> {
        Some(self.id)
    }

    fn cores(&self) -> &[usize] {
        &self.cores
    }

    fn source(&self) -> Result<Box<dyn SampleSource>, AttachError> {
        ProcessSource::open(self.id)
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

/// A process tree with what its root shares with others: a control group that throttles it, a network namespace.
#[derive(Debug)]
pub(crate) struct ProcessSource {
    tree: ProcessTree,
    group: Option<GroupCounters>,
    network: Option<OwnNetwork>,
}

impl ProcessSource {
    /// The process `pid` with its descendants.
    pub(crate) fn open(pid: u32) -> Result<Box<dyn SampleSource>, AttachError> {
        let machine = Machine::default();
        Ok(Box::new(Self {
            tree: ProcessTree::attach(pid)?,
            group: GroupCounters::of_process(&machine, pid),
            network: OwnNetwork::of_process(&machine, pid),
        }))
    }

    fn throttled(&self) -> Option<Throttling> {
        self.group.as_ref()?.throttled()
    }
}

impl SampleSource for ProcessSource {
    fn sample(&mut self, at: Duration, completed: u64) -> Result<ResourceSample, SampleError> {
        let sample = self.tree.sample(at, completed)?;
        Ok(ResourceSample {
            throttled: self.throttled(),
            network: self.network.as_ref().and_then(OwnNetwork::bytes),
            ..sample
        })
    }

    fn unseen_children(&self) -> Option<u64> {
        self.tree.unseen_children()
    }
}
