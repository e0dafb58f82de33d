//! The conditions of an experiment, as far as the machine tells them.

use plimsoll_model::{Clock, Conditions, LoadAverage, Pinning};
use plimsoll_wire::SystemClock;
use procfs::{Current, CurrentSI, LoadAverage as ProcLoadAverage};

/// Time that the hypervisor took away, and all time, in ticks since the machine started.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Steal {
    taken: u64,
    all: u64,
}

impl Steal {
    /// The counters now; zeros where they cannot be read.
    pub(crate) fn now() -> Self {
        let Ok(stat) = procfs::KernelStats::current() else {
            return Self::default();
        };
        let total = stat.total;
        let taken = total.steal.unwrap_or(0);
        Self {
            taken,
            all: total.user
                + total.nice
                + total.system
                + total.idle
                + total.iowait.unwrap_or(0)
                + total.irq.unwrap_or(0)
                + total.softirq.unwrap_or(0)
                + taken,
        }
    }

    /// Share of the time since `self` that was taken away, in percent.
    pub(crate) fn percent_until(self, later: Self) -> Option<f64> {
        let all = later.all.checked_sub(self.all).filter(|&ticks| ticks > 0)?;
        Some(later.taken.saturating_sub(self.taken) as f64 / all as f64 * 100.0)
    }
}

/// What is known before the first trial.
///
/// - `version`: plimsoll's version; `command`: its command line.
/// - `pinning`: the operands' cores are the generator's in a comparison of clients.
pub(crate) fn conditions(version: &str, command: &[String], pinning: Pinning) -> Conditions {
    let read = |path: &str| {
        std::fs::read_to_string(path)
            .ok()
            .map(|text| text.trim().to_owned())
    };
    let load = ProcLoadAverage::current().ok().map(|load| LoadAverage {
        one: f64::from(load.one),
        five: f64::from(load.five),
        fifteen: f64::from(load.fifteen),
    });
    let cpu_model = read("/proc/cpuinfo").and_then(|text| {
        text.lines()
            .find_map(|line| line.strip_prefix("model name"))
            .map(|rest| rest.trim_start_matches([' ', '\t', ':']).to_owned())
    });
    Conditions {
        plimsoll: version.to_owned(),
        command: command.to_vec(),
        started: SystemClock.wall(),
        kernel: read("/proc/sys/kernel/osrelease").map(|release| format!("Linux {release}")),
        cpu_model,
        cores: std::thread::available_parallelism().map_or(1, usize::from),
        governor: read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        memory_bytes: procfs::Meminfo::current()
            .ok()
            .map(|memory| memory.mem_total),
        load_before: load,
        steal_percent: None,
        pinning,
        co_located: Some(true),
        warnings: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steal_is_a_share_of_the_time_between() {
        let earlier = Steal {
            taken: 10,
            all: 1000,
        };
        let later = Steal {
            taken: 15,
            all: 1100,
        };
        assert_eq!(earlier.percent_until(later), Some(5.0));
        assert_eq!(earlier.percent_until(earlier), None);
    }

    #[test]
    fn the_machine_is_described() {
        let command = ["plimsoll".to_owned(), "compare".to_owned()];
        let conditions = conditions("1.2.3", &command, Pinning::default());
        assert_eq!(conditions.command, command);
        assert!(conditions.cores >= 1);
        assert!(conditions.kernel.unwrap().starts_with("Linux "));
        assert!(conditions.memory_bytes.unwrap() > 1 << 20);
    }
}
