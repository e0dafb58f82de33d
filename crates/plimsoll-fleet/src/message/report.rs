//! What an agent found beside its counts, as JSON.

use std::time::Duration;

use plimsoll_load::{Interval, PartReport};
use plimsoll_model::{CpuTime, Saturation, Stalls};
use serde::{Deserialize, Serialize};

/// How an agent and its machine did.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AgentReport {
    stopped_us: u64,
    late_us: u64,
    /// In the program and in the kernel.
    cpu_us: Option<(u64, u64)>,
    peak_memory_bytes: Option<u64>,
    busiest_worker_percent: f64,
    stalls: u64,
    longest_stall_us: u64,
    all_stalls_us: u64,
    run_delay_us: Option<u64>,
    throttled_us: Option<u64>,
    stream_limit: Option<usize>,
    surplus: u64,
    saturated_cpu_percent: Option<f64>,
    saturated_lag_us: Option<u64>,
    warnings: Vec<String>,
    /// The message of a script that ends the run on all agents.
    pub(crate) abort: Option<String>,
    /// The message of a script that marks the run as failed.
    failed: Option<String>,
    /// Of a part of `loadtest`.
    #[serde(skip_serializing_if = "Option::is_none")]
    processes: Option<ReportedProcesses>,
}

/// The processes of a part of `loadtest`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReportedProcesses {
    /// Those that check.
    pub clients: usize,
    /// Those that answer.
    pub origins: usize,
    /// Listeners of these.
    pub listeners: usize,
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

impl AgentReport {
    /// The report of a part.
    pub fn from_part(report: &PartReport) -> Self {
        let (cpu, lag) = match report.saturated {
            Some(Saturation::Cpu { percent }) => (Some(percent), None),
            Some(Saturation::Lag { p99 }) => (None, Some(micros(p99))),
            None => (None, None),
        };
        Self {
            stopped_us: micros(report.stopped),
            late_us: micros(report.late),
            cpu_us: report.cpu.map(|cpu| (micros(cpu.user), micros(cpu.system))),
            peak_memory_bytes: report.peak_memory_bytes,
            busiest_worker_percent: report.busiest_worker_percent,
            stalls: report.stalls.count,
            longest_stall_us: micros(report.stalls.longest),
            all_stalls_us: micros(report.stalls.total),
            run_delay_us: report.run_delay.map(micros),
            throttled_us: report.throttled.map(micros),
            stream_limit: report.stream_limit,
            surplus: report.surplus,
            saturated_cpu_percent: cpu,
            saturated_lag_us: lag,
            warnings: report.warnings.clone(),
            abort: None,
            failed: None,
            processes: None,
        }
    }

    /// The report of a script.
    ///
    /// - `report`: of the generator, if it came to its end.
    /// - `stopped`: when the script ended, since the start.
    /// - `late`: how long after the agreed start it began.
    /// - `abort`: the message, if the script ends the run on all agents.
    /// - `failed`: the message, if the script marks the run as failed.
    pub fn of_script(
        report: Option<&PartReport>,
        (stopped, late): (Duration, Duration),
        abort: Option<String>,
        failed: Option<String>,
    ) -> Self {
        Self {
            stopped_us: micros(stopped),
            late_us: micros(late),
            abort,
            failed,
            ..report.map(Self::from_part).unwrap_or_default()
        }
    }

    /// The report of a part of `loadtest`.
    ///
    /// - `elapsed`: from its start to the end of its last check.
    /// - `late`: how long after the agreed start it began.
    /// - `peak_memory_bytes`: of the agent and its processes.
    pub fn of_loadtest(
        (elapsed, late): (Duration, Duration),
        peak_memory_bytes: Option<u64>,
        processes: ReportedProcesses,
    ) -> Self {
        Self {
            stopped_us: micros(elapsed),
            late_us: micros(late),
            peak_memory_bytes,
            processes: Some(processes),
            ..Self::default()
        }
    }

    /// The processes of a part of `loadtest`.
    pub fn processes(&self) -> Option<ReportedProcesses> {
        self.processes
    }

    /// Busiest worker: share of one core in percent.
    pub fn busiest_worker_percent(&self) -> f64 {
        self.busiest_worker_percent
    }

    /// Why a script ends the run on all agents, if it does.
    pub fn abort(&self) -> Option<&str> {
        self.abort.as_deref()
    }

    /// Why a script marks the run as failed, if it does.
    pub fn failed(&self) -> Option<&str> {
        self.failed.as_deref()
    }

    /// How long after the agreed start the agent started.
    pub fn late(&self) -> Duration {
        Duration::from_micros(self.late_us)
    }

    /// Back to what a merge takes.
    ///
    /// - `total`: which is not part of it.
    pub fn read(&self, total: Interval) -> PartReport {
        let cpu = self.saturated_cpu_percent;
        let cpu = cpu.map(|percent| Saturation::Cpu { percent });
        let lag = self.saturated_lag_us.map(|lag| Saturation::Lag {
            p99: Duration::from_micros(lag),
        });
        PartReport {
            total,
            stopped: Duration::from_micros(self.stopped_us),
            late: self.late(),
            cpu: self.cpu_us.map(|(user, system)| CpuTime {
                user: Duration::from_micros(user),
                system: Duration::from_micros(system),
            }),
            peak_memory_bytes: self.peak_memory_bytes,
            busiest_worker_percent: self.busiest_worker_percent,
            stalls: Stalls {
                count: self.stalls,
                longest: Duration::from_micros(self.longest_stall_us),
                total: Duration::from_micros(self.all_stalls_us),
            },
            run_delay: self.run_delay_us.map(Duration::from_micros),
            throttled: self.throttled_us.map(Duration::from_micros),
            stream_limit: self.stream_limit,
            surplus: self.surplus,
            saturated: cpu.or(lag),
            warnings: self.warnings.clone(),
        }
    }
}
