//! Processor time of a control group (version 2), in which children count that nothing waits for.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use plimsoll_model::CpuTime;

use crate::group::counters::cpu_stat;

/// Where control groups of version 2 are, by themselves or beside version 1.
const MOUNTS: [&str; 2] = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];

/// The group of a process tree.
#[derive(Debug)]
pub(super) struct Group {
    directory: PathBuf,
    /// Its counter and the time of the tree, when both were first read.
    usage_before: CpuTime,
    tree_before: CpuTime,
}

impl Group {
    /// The group of process `pid`; `None` without one of its own, or where it is not counted.
    ///
    /// - `spent`: by the tree until now.
    pub(super) fn find(pid: i32, spent: CpuTime) -> Option<Self> {
        let groups = fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
        let path = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
        let path = Path::new(path.trim());
        if path.as_os_str().is_empty() {
            return None;
        }
        MOUNTS.iter().find_map(|mount| {
            let directory = Path::new(mount).join(path);
            Some(Self {
                usage_before: usage(&directory)?,
                tree_before: spent,
                directory,
            })
        })
    }

    /// Whether all of its processes are among `tree`.
    pub(super) fn holds_only(&self, tree: &HashSet<i32>) -> bool {
        let processes = fs::read_to_string(self.directory.join("cgroup.procs"));
        processes.is_ok_and(|processes| {
            let ids = processes.lines().map(|line| line.trim().parse());
            ids.into_iter()
                .all(|id| id.is_ok_and(|id| tree.contains(&id)))
        })
    }

    /// The time of the tree until now, by the counters of the group.
    pub(super) fn spent(&self) -> Option<CpuTime> {
        let usage = usage(&self.directory)?;
        Some(self.tree_before + usage.since(self.usage_before))
    }
}

/// User and system time of `cpu.stat`.
fn usage(directory: &Path) -> Option<CpuTime> {
    cpu_stat(&fs::read_to_string(directory.join("cpu.stat")).ok()?)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn time_since_the_group_was_found_is_added_to_that_of_the_tree() {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(directory.path().join(name), text).unwrap();
        let group = Group {
            directory: directory.path().to_owned(),
            usage_before: cpu_stat("usage_usec 900\nuser_usec 600\nsystem_usec 300\n").unwrap(),
            tree_before: CpuTime {
                user: Duration::from_micros(50),
                system: Duration::ZERO,
            },
        };
        assert_eq!(group.spent(), None);
        write(
            "cpu.stat",
            "usage_usec 5900\nuser_usec 3600\nsystem_usec 2300\nnr_periods 0\n",
        );
        assert_eq!(group.spent().unwrap().user, Duration::from_micros(3_050));
        assert_eq!(group.spent().unwrap().system, Duration::from_millis(2));
        write("cgroup.procs", "7\n9\n");
        assert!(group.holds_only(&HashSet::from([7, 8, 9])));
        assert!(!group.holds_only(&HashSet::from([7])), "others are in it");
        assert_eq!(cpu_stat("usage_usec 5"), None);
    }
}
