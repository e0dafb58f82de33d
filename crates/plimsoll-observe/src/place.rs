//! Where a target is: on this machine, or behind an agent.

use crate::{AttachError, LocalTarget, RemotePlan, RemoteTarget, SampleSource, Target, TargetName};

/// A target that runs already, by where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TargetPlace {
    /// On this machine.
    Here(TargetName),
    /// Behind an agent.
    Agent(Box<RemotePlan>),
}

impl TargetPlace {
    /// What is observed there.
    pub fn target(&self) -> &TargetName {
        match self {
            Self::Here(target) => target,
            Self::Agent(plan) => plan.target(),
        }
    }

    /// Samples of the target, from now on.
    pub fn source(&self) -> Result<Box<dyn SampleSource>, AttachError> {
        match self {
            Self::Here(target) => LocalTarget::new(target)?.source(),
            Self::Agent(plan) => plan.source(),
        }
    }

    /// The target, which must be there and give samples now.
    pub fn open(&self) -> Result<Box<dyn Target>, AttachError> {
        Ok(match self {
            Self::Here(target) => Box::new(LocalTarget::new(target)?),
            Self::Agent(plan) => Box::new(RemoteTarget::new((**plan).clone())?),
        })
    }
}
