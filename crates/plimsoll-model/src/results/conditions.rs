//! Under which conditions a number was measured.

use std::time::SystemTime;

/// The machine, the load on it and the command: without them a number means little.
///
/// Values that this platform cannot measure are `None`, never a guess.
#[derive(Debug, Clone, PartialEq)]
pub struct Conditions {
    /// Version of plimsoll.
    pub plimsoll: String,
    /// The command line, secrets masked.
    pub command: Vec<String>,
    /// When the run started.
    pub started: SystemTime,
    /// Operating system and kernel release.
    pub kernel: Option<String>,
    /// Processor model.
    pub cpu_model: Option<String>,
    /// Cores that this process may use.
    pub cores: usize,
    /// Scaling governor of the first core.
    pub governor: Option<String>,
    /// Physical memory in bytes.
    pub memory_bytes: Option<u64>,
    /// Limits of the control groups of the generator.
    pub limits: Limits,
    /// Local ports that connections without one of their own may take.
    pub local_ports: Option<u32>,
    /// Congestion control of new TCP connections, by the kernel's name.
    pub congestion_control: Option<String>,
    /// Load averages before the run.
    pub load_before: Option<LoadAverage>,
    /// Share of time that the hypervisor took away during the run, in percent.
    pub steal_percent: Option<f64>,
    /// Cores that generator and target were bound to.
    pub pinning: Pinning,
    /// Whether generator and target shared the machine.
    pub co_located: Option<bool>,
    /// Warnings about the figures, in plain sentences.
    pub warnings: Vec<String>,
}

/// Limits of a process; `None` is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Limits {
    /// Cores.
    pub cpus: Option<f64>,
    /// Memory in bytes.
    pub memory_bytes: Option<u64>,
}

/// Average number of runnable tasks over one, five and fifteen minutes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LoadAverage {
    /// Over one minute.
    pub one: f64,
    /// Over five minutes.
    pub five: f64,
    /// Over fifteen minutes.
    pub fifteen: f64,
}

/// Cores that a side was bound to; empty means that the scheduler chose.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Pinning {
    /// Cores of the load generator's workers, one each.
    pub generator: Vec<usize>,
    /// Cores of the target.
    pub target: Vec<usize>,
}
