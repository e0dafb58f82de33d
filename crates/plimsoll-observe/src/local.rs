//! A target on this machine by its name.

use crate::group::GroupSource;
use crate::machine::Machine;
use crate::named::pid_of_name;
use crate::pid::ProcessSource;
use crate::target_name::{TargetKind, TargetName};
use crate::{AttachError, SampleSource, Target};

/// A running target of any kind; it is observed and otherwise left alone.
#[derive(Debug)]
pub struct LocalTarget {
    machine: Machine,
    target: TargetName,
    name: String,
}

impl LocalTarget {
    /// The target of that name, which must exist and be readable.
    pub fn new(target: &TargetName) -> Result<Self, AttachError> {
        Self::on(Machine::default(), target)
    }

    /// The same on a machine whose files are elsewhere; processes are always those of this one.
    pub fn on(machine: Machine, target: &TargetName) -> Result<Self, AttachError> {
        let local = Self {
            machine,
            name: target.shown(),
            target: target.clone(),
        };
        local.source()?;
        Ok(local)
    }
}

impl Target for LocalTarget {
    fn name(&self) -> &str {
        &self.name
    }

    fn pid(&self) -> Option<u32> {
        process_of(&self.target).and_then(Result::ok)
    }

    fn cores(&self) -> &[usize] {
        &[]
    }

    fn source(&self) -> Result<Box<dyn SampleSource>, AttachError> {
        match process_of(&self.target) {
            Some(pid) => ProcessSource::open(pid?),
            None => Ok(Box::new(GroupSource::open(&self.machine, &self.target)?)),
        }
    }

    fn stop(self: Box<Self>) {}
}

/// The process that a target is the tree of; `None` if it is a control group.
fn process_of(target: &TargetName) -> Option<Result<u32, AttachError>> {
    (target.kind == TargetKind::Pid).then(|| match target.value.parse() {
        Ok(pid) => Ok(pid),
        Err(_) => Ok(pid_of_name(&target.value)?),
    })
}
