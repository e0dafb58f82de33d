//! Samples of a control group: everything that runs in it and in the groups below it.
//!
//! Processor time is that of the group's counters, so children that have ended count too. Memory,
//! descriptors and threads are summed over the processes that run, as for a process tree: the same target has the same
//! memory, whichever way it is named.

pub(crate) mod counters;

mod processes;

use std::time::Duration;

use plimsoll_model::{CpuTime, ResourceSample};

use self::counters::GroupCounters;
use crate::locate::{LocateError, locate};
use crate::machine::Machine;
use crate::network::OwnNetwork;
use crate::source::{SampleError, SampleSource};
use crate::target_name::TargetName;

/// A group that is gone is looked for no more often than that: it means to walk through all groups.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The control group of a target, found anew when the target was started again.
#[derive(Debug)]
pub(crate) struct GroupSource {
    machine: Machine,
    target: TargetName,
    found: Option<Found>,
    /// Spent by groups of the target that are gone.
    carried: CpuTime,
    /// The time of the last sample, which never goes back.
    last: CpuTime,
    looked: Option<Duration>,
}

#[derive(Debug)]
struct Found {
    counters: GroupCounters,
    network: Option<OwnNetwork>,
}

impl GroupSource {
    /// The group of `target` as it is now; an error if there is none.
    pub(crate) fn open(machine: &Machine, target: &TargetName) -> Result<Self, LocateError> {
        Ok(Self {
            found: Some(find(machine, target)?),
            machine: machine.clone(),
            target: target.clone(),
            carried: CpuTime::default(),
            last: CpuTime::default(),
            looked: None,
        })
    }

    /// Looks for the group again if it is gone, or is another one of the same name.
    fn follow(&mut self, at: Duration) -> Result<(), LocateError> {
        if self
            .found
            .as_ref()
            .is_some_and(|found| found.counters.is_same())
        {
            return Ok(());
        }
        if self.found.take().is_some() {
            self.carried = self.last;
            self.looked = None;
        }
        let is_due = self.looked.is_none_or(|looked| at >= looked + LOOK_EVERY);
        if !is_due {
            return Err(LocateError::Gone(self.target.clone()));
        }
        self.looked = Some(at);
        self.found = Some(find(&self.machine, &self.target)?);
        Ok(())
    }
}

fn find(machine: &Machine, target: &TargetName) -> Result<Found, LocateError> {
    let path = locate(machine, target)?;
    let counters = GroupCounters::open(machine, &path).map_err(|reason| LocateError::Counters {
        target: target.clone(),
        reason: reason.to_string(),
    })?;
    let first = counters.pids().into_iter().next();
    Ok(Found {
        network: first.and_then(|pid| OwnNetwork::of_process(machine, pid)),
        counters,
    })
}

impl SampleSource for GroupSource {
    fn sample(&mut self, at: Duration, completed: u64) -> Result<ResourceSample, SampleError> {
        let gap = |error: &dyn std::error::Error| SampleError::Gap {
            reason: error.to_string(),
        };
        self.follow(at).map_err(|error| gap(&error))?;
        let Some(found) = &mut self.found else {
            return Err(gap(&LocateError::Gone(self.target.clone())));
        };
        let Some(spent) = found.counters.cpu() else {
            return Err(gap(&LocateError::Gone(self.target.clone())));
        };
        let pids = found.counters.pids();
        let held = processes::held(&self.machine, &pids);
        // The first process may have ended, and with it the file of its namespace.
        let network = found.network.as_ref().and_then(OwnNetwork::bytes);
        if network.is_none() {
            let first = pids.first().copied();
            found.network = first.and_then(|pid| OwnNetwork::of_process(&self.machine, pid));
        }
        let network = network.or_else(|| found.network.as_ref().and_then(OwnNetwork::bytes));
        self.last = counters::never_back(self.last, self.carried + spent);
        Ok(ResourceSample {
            at,
            cpu: self.last,
            memory: held.memory,
            fds: held.fds,
            threads: held.threads,
            processes: held.processes,
            completed,
            throttled: found.counters.throttled(),
            network,
        })
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
pub(crate) mod real;

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests;
