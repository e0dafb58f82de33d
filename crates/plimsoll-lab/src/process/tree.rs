//! A process and its descendants, as /proc shows them.
//!
//! This is what `plimsoll-load` also samples of a load test's target; once both are in place the two
//! become one.

use std::collections::VecDeque;
use std::time::Duration;

use plimsoll_model::CpuTime;
use procfs::process::Process;

/// What a process tree used up to now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct TreeSample {
    /// Time of the live processes and of those they have waited for, in whole clock ticks.
    pub(crate) cpu: CpuTime,
    /// Sum over the live processes of the largest resident memory each has had, in bytes.
    pub(crate) peak_rss_bytes: u64,
    /// Live processes.
    pub(crate) processes: u64,
}

/// Samples the tree under `root`; a process that ends meanwhile is left out.
pub(crate) fn sample(root: i32) -> TreeSample {
    let mut tree = TreeSample::default();
    let mut pending = VecDeque::from([root]);
    while let Some(pid) = pending.pop_front() {
        let Ok(process) = Process::new(pid) else {
            continue;
        };
        pending.extend(children(&process));
        let (Ok(stat), Ok(status)) = (process.stat(), process.status()) else {
            continue;
        };
        tree.cpu = tree.cpu
            + CpuTime {
                user: ticks(stat.utime) + ticks(u64::try_from(stat.cutime).unwrap_or(0)),
                system: ticks(stat.stime) + ticks(u64::try_from(stat.cstime).unwrap_or(0)),
            };
        tree.peak_rss_bytes += status.vmhwm.unwrap_or(0) * 1024;
        tree.processes += 1;
    }
    tree
}

/// Every thread has children of its own (`proc_pid_task(5)`, "children").
fn children(process: &Process) -> Vec<i32> {
    let Ok(tasks) = process.tasks() else {
        return Vec::new();
    };
    tasks
        .flatten()
        .filter_map(|task| task.children().ok())
        .flatten()
        .filter_map(|pid| i32::try_from(pid).ok())
        .collect()
}

fn ticks(count: u64) -> Duration {
    Duration::from_secs_f64(count as f64 / procfs::ticks_per_second() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_a_tree_with_memory() {
        let own = i32::try_from(std::process::id()).unwrap();
        let tree = sample(own);
        assert!(tree.processes >= 1);
        assert!(tree.peak_rss_bytes > 100_000, "{tree:?}");
    }

    #[test]
    fn no_such_process_is_an_empty_tree() {
        assert_eq!(sample(i32::MAX), TreeSample::default());
    }
}
