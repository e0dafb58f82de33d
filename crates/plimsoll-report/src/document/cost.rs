//! The cost of a run to each end.

use plimsoll_model::{Cost, Generator, RunSummary, Saturation, ServerCost};
use serde::{Deserialize, Serialize};

use super::{microseconds, rounded};

/// Processor time over the measured window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CostDocument {
    /// User and system time per exchange; `null` without exchanges.
    pub cpu_us_per_request: Option<f64>,
    /// Share of one core.
    pub cpu_percent: Option<f64>,
    /// In the program's own code.
    pub cpu_user_us: f64,
    /// In the kernel on its behalf.
    pub cpu_system_us: f64,
    /// Length of the window between the samples.
    pub window_us: f64,
    /// Exchanges completed in it.
    pub exchanges: u64,
}

impl CostDocument {
    pub(super) fn from_cost(cost: &Cost) -> Self {
        Self {
            cpu_us_per_request: cost.cpu_us_per_request().map(rounded),
            cpu_percent: cost.cpu_percent().map(rounded),
            cpu_user_us: microseconds(cost.cpu.user),
            cpu_system_us: microseconds(cost.cpu.system),
            window_us: microseconds(cost.window),
            exchanges: cost.exchanges,
        }
    }
}

/// The cost of the run to the target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TargetDocument {
    /// Origin of the target's processes.
    pub name: String,
    /// Processor time.
    #[serde(flatten)]
    pub cost: CostDocument,
    /// How far the time per exchange may be off: two standard errors; absent if there are too few samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_us_per_request_error: Option<f64>,
    /// Resident memory at the end of the window.
    pub memory_bytes: u64,
    /// Of it: heap and stacks.
    pub memory_anonymous_bytes: u64,
    /// Of it: code, mapped files, shared memory.
    pub memory_file_bytes: u64,
    /// Largest resident memory seen.
    pub peak_memory_bytes: u64,
    /// Open descriptors at the end of the window; `null` if they could not be counted.
    pub fds: Option<u64>,
    /// Most open descriptors seen.
    pub peak_fds: Option<u64>,
    /// Threads at the end of the window.
    pub threads: u64,
    /// Processes at the end of the window.
    pub processes: u64,
}

impl TargetDocument {
    /// - `run`: the one in which it was observed.
    pub(super) fn from_server_cost(target: &ServerCost, run: &RunSummary) -> Self {
        let counted = |fds: u64| (fds > 0).then_some(fds);
        Self {
            name: target.name.clone(),
            cost: CostDocument::from_cost(&target.cost),
            cpu_us_per_request_error: run.server_cpu_error_us(target).map(rounded),
            memory_bytes: target.memory.total_bytes(),
            memory_anonymous_bytes: target.memory.anonymous_bytes,
            memory_file_bytes: target.memory.file_bytes,
            peak_memory_bytes: target.peak_memory_bytes,
            fds: counted(target.fds),
            peak_fds: counted(target.peak_fds),
            threads: target.threads,
            processes: target.processes,
        }
    }
}

/// The generator's own state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GeneratorDocument {
    /// Processor time.
    #[serde(flatten)]
    pub cost: CostDocument,
    /// Largest resident memory seen.
    pub peak_memory_bytes: Option<u64>,
    /// Busiest worker: share of one core.
    pub busiest_worker_percent: f64,
    /// Lateness of timers: 99th percentile.
    pub lag_p99_us: f64,
    /// Maximum lateness of timers.
    pub lag_max_us: f64,
    /// The longest time for which a worker stood still.
    #[serde(default)]
    pub stall_max_us: f64,
    /// All such times of the worker that stood still longest.
    #[serde(default)]
    pub stall_total_us: f64,
    /// Time for which a worker was ready and not run; `null` where the kernel does not count it.
    #[serde(default)]
    pub run_delay_us: Option<f64>,
    /// Time for which the control group was stopped by its limit; `null` where that is not counted.
    #[serde(default)]
    pub throttled_us: Option<f64>,
    /// Set when the figures describe the generator rather than the target.
    pub saturated: Option<SaturationDocument>,
}

impl GeneratorDocument {
    pub(super) fn from_generator(generator: &Generator) -> Self {
        Self {
            cost: CostDocument::from_cost(&generator.cost),
            peak_memory_bytes: generator.peak_memory_bytes,
            busiest_worker_percent: rounded(generator.busiest_worker_percent),
            lag_p99_us: microseconds(generator.lag_p99),
            lag_max_us: microseconds(generator.lag_max),
            stall_max_us: microseconds(generator.stalls.longest),
            stall_total_us: microseconds(generator.stalls.total),
            run_delay_us: generator.run_delay.map(microseconds),
            throttled_us: generator.throttled.map(microseconds),
            saturated: generator
                .saturated
                .as_ref()
                .map(SaturationDocument::from_saturation),
        }
    }
}

/// Why the generator was the limit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SaturationDocument {
    /// `cpu` or `lag`.
    pub by: String,
    /// By `cpu`: share of one core that the worker used.
    pub percent: Option<f64>,
    /// By `lag`: 99th percentile of the lateness.
    pub lag_p99_us: Option<f64>,
}

impl SaturationDocument {
    pub(crate) fn from_saturation(saturation: &Saturation) -> Self {
        let (percent, lag) = match saturation {
            Saturation::Cpu { percent } => (Some(rounded(*percent)), None),
            Saturation::Lag { p99 } => (None, Some(microseconds(*p99))),
        };
        Self {
            by: saturation.name().to_owned(),
            percent,
            lag_p99_us: lag,
        }
    }
}
