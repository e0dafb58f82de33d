//! The conditions of a run: the machine before and after it, and what a reader should be warned of.
//!
//! Values that this platform cannot provide are left out.

#[cfg(target_os = "linux")]
#[path = "conditions/linux.rs"]
mod platform;
#[cfg(not(target_os = "linux"))]
#[path = "conditions/other.rs"]
mod platform;

use std::time::SystemTime;

use plimsoll_model::{Conditions, LoadAverage, Pinning};
use plimsoll_wire::cores;

/// Time for which a limit on processor time has stopped the control group of this process.
pub(crate) fn throttled() -> Option<std::time::Duration> {
    platform::throttled()
}

/// The state of the machine before a run.
#[derive(Debug)]
pub struct Before {
    started: SystemTime,
    load: Option<LoadAverage>,
    time: Option<MachineTime>,
}

/// Facts about a run that only its caller knows.
#[derive(Debug, Clone, Default)]
pub struct RunFacts {
    /// Version of plimsoll.
    pub plimsoll: String,
    /// The command line, secrets masked.
    pub command: Vec<String>,
    /// Cores that generator and target were bound to.
    pub pinning: Pinning,
    /// Whether generator and target shared the machine, if that is known.
    pub co_located: Option<bool>,
}

impl Before {
    /// Looks at the machine; `started` is the start of the run.
    pub fn observe(started: SystemTime) -> Self {
        Self {
            started,
            load: platform::load_average(),
            time: platform::machine_time(),
        }
    }

    /// Looks again after the run and puts everything together.
    pub fn after(self, facts: RunFacts) -> Conditions {
        let steal = self
            .time
            .zip(platform::machine_time())
            .and_then(|(before, after)| after.steal_percent_since(before));
        let mut conditions = Conditions {
            plimsoll: facts.plimsoll,
            command: facts.command,
            started: self.started,
            kernel: kernel(),
            cpu_model: platform::cpu_model(),
            cores: cores::available().len(),
            governor: platform::governor(),
            memory_bytes: platform::memory_bytes(),
            limits: platform::limits(),
            local_ports: platform::local_ports(),
            congestion_control: platform::congestion_control(),
            load_before: self.load,
            steal_percent: steal,
            pinning: facts.pinning,
            co_located: facts.co_located,
            warnings: Vec::new(),
        };
        conditions.warnings = warnings(&conditions);
        conditions
    }
}

/// Processor time of the whole machine since it started, in any one unit.
#[derive(Debug, Clone, Copy)]
struct MachineTime {
    all: u64,
    stolen: u64,
}

impl MachineTime {
    fn steal_percent_since(self, before: Self) -> Option<f64> {
        let all = self.all.checked_sub(before.all)?;
        let stolen = self.stolen.checked_sub(before.stolen)?;
        (all > 0).then(|| stolen as f64 / all as f64 * 100.0)
    }
}

fn kernel() -> Option<String> {
    let name = rustix::system::uname();
    Some(format!(
        "{} {}",
        name.sysname().to_str().ok()?,
        name.release().to_str().ok()?
    ))
}

/// Share of stolen time from which figures are doubtful, in percent.
pub(crate) const STEAL_PERCENT: f64 = 1.0;

/// Fewer cores than this make generator and target of one machine wait for each other.
const FEW_CORES: usize = 4;

fn warnings(conditions: &Conditions) -> Vec<String> {
    let mut warnings = Vec::new();
    let cores = conditions.cores;
    if conditions.co_located == Some(true) {
        let Pinning { generator, target } = &conditions.pinning;
        let apart = !generator.is_empty()
            && !target.is_empty()
            && generator.iter().all(|core| !target.contains(core));
        if !apart {
            warnings.push(
                "generator and target share cores: throughput and latency depend on both, the cpu \
                 time per request much less"
                    .to_owned(),
            );
        }
        if cores < FEW_CORES {
            let plural = if cores == 1 { "core" } else { "cores" };
            warnings.push(format!(
                "only {cores} {plural} for generator and target together: the kernel's network \
                 work competes with both"
            ));
        }
    }
    if let Some(steal) = conditions.steal_percent
        && steal > STEAL_PERCENT
    {
        warnings.push(format!(
            "the hypervisor took {steal:.1} % of the processor time: repeat the run before \
             comparing it"
        ));
    }
    if let Some(load) = conditions.load_before
        && load.one > cores as f64 / 2.0
    {
        warnings.push(format!(
            "the machine was busy before the run: load average {:.2} on {cores} cores",
            load.one
        ));
    }
    warnings
}

#[cfg(test)]
mod tests;
