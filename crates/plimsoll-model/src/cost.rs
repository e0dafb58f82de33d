//! Cost of work to the machine that did it.

use std::time::Duration;

/// Processor time, split as the kernel splits it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CpuTime {
    /// In the program's own code.
    pub user: Duration,
    /// In the kernel on the program's behalf.
    pub system: Duration,
}

impl CpuTime {
    /// User and system time together.
    pub fn total(self) -> Duration {
        self.user + self.system
    }

    /// The time spent since `earlier`; zero where the kernel's counters went back.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            user: self.user.saturating_sub(earlier.user),
            system: self.system.saturating_sub(earlier.system),
        }
    }
}

impl std::ops::Add for CpuTime {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            user: self.user + other.user,
            system: self.system + other.system,
        }
    }
}

/// Resident memory in bytes, `VmRSS` of proc(5) by its parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Memory {
    /// Anonymous pages: heap and stacks.
    pub anonymous_bytes: u64,
    /// Pages of files and shared memory: code, mapped data.
    pub file_bytes: u64,
}

impl Memory {
    /// All of it.
    pub fn total_bytes(self) -> u64 {
        self.anonymous_bytes + self.file_bytes
    }
}

impl std::ops::Add for Memory {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            anonymous_bytes: self.anonymous_bytes + other.anonymous_bytes,
            file_bytes: self.file_bytes + other.file_bytes,
        }
    }
}

/// How a limit on processor time stopped a control group, since the group was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Throttling {
    /// Periods in which the group used up its quota (`nr_throttled`).
    pub periods: u64,
    /// Time for which its processes were stopped, summed over cores.
    pub time: Duration,
}

impl Throttling {
    /// What was added since `earlier`; zero where the kernel's counters went back.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            periods: self.periods.saturating_sub(earlier.periods),
            time: self.time.saturating_sub(earlier.time),
        }
    }
}

/// Bytes over the interfaces of a network namespace, without its loopback.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NetworkBytes {
    /// Bytes received, headers of the link included.
    pub received: u64,
    /// Bytes sent, likewise.
    pub sent: u64,
}

impl NetworkBytes {
    /// What was added since `earlier`; zero where the kernel's counters went back.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            received: self.received.saturating_sub(earlier.received),
            sent: self.sent.saturating_sub(earlier.sent),
        }
    }
}

/// Resources that a process tree or a control group held and had used at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ResourceSample {
    /// Time since the start of the run.
    pub at: Duration,
    /// Processor time since the processes began, ended children included.
    pub cpu: CpuTime,
    /// Resident memory, summed over the tree.
    pub memory: Memory,
    /// Open file descriptors; zero if they could not be counted.
    pub fds: u64,
    /// Threads.
    pub threads: u64,
    /// Processes in the tree.
    pub processes: u64,
    /// Throttling of the control group; `None` where the kernel does not count it.
    pub throttled: Option<Throttling>,
    /// Traffic of the target; `None` unless it has a network namespace of its own.
    pub network: Option<NetworkBytes>,
    /// Complete responses that the generator had received by then, warm-up included.
    pub completed: u64,
}

/// Cost of a number of exchanges.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cost {
    /// Processor time spent in the window.
    pub cpu: CpuTime,
    /// Length of the window.
    pub window: Duration,
    /// Exchanges completed in it.
    pub exchanges: u64,
}

impl Cost {
    /// The cost between two samples of the same process tree.
    pub fn between(first: &ResourceSample, last: &ResourceSample) -> Self {
        Self {
            cpu: last.cpu.since(first.cpu),
            window: last.at.saturating_sub(first.at),
            exchanges: last.completed.saturating_sub(first.completed),
        }
    }

    /// CPU-µs per request, `None` without exchanges.
    pub fn cpu_us_per_request(&self) -> Option<f64> {
        (self.exchanges > 0).then(|| self.cpu.total().as_secs_f64() * 1e6 / self.exchanges as f64)
    }

    /// Share of one core in percent; above 100 when several were busy.
    pub fn cpu_percent(&self) -> Option<f64> {
        (!self.window.is_zero())
            .then(|| self.cpu.total().as_secs_f64() / self.window.as_secs_f64() * 100.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cost_is_cpu_over_exchanges() {
        let first = ResourceSample {
            completed: 1_000,
            cpu: CpuTime {
                user: Duration::from_millis(10),
                system: Duration::from_millis(30),
            },
            ..ResourceSample::default()
        };
        let last = ResourceSample {
            at: Duration::from_secs(2),
            completed: 101_000,
            cpu: CpuTime {
                user: Duration::from_millis(110),
                system: Duration::from_millis(430),
            },
            ..first
        };
        let cost = Cost::between(&first, &last);
        assert_eq!(cost.cpu_us_per_request(), Some(5.0));
        assert_eq!(cost.cpu_percent(), Some(25.0));
    }

    #[test]
    fn nothing_done_has_no_cost_per_request() {
        let sample = ResourceSample::default();
        let cost = Cost::between(&sample, &sample);
        assert_eq!(cost.cpu_us_per_request(), None);
        assert_eq!(cost.cpu_percent(), None);
    }
}
