//! Limits of control groups on this process: cores and memory, by version 2 (cgroups(7), the kernel's
//! `cgroup-v2.rst`) or version 1 (`sched-bwc.rst`, `memory.rst`).
//!
//! A group is bound by those above it, so the tightest limit on the way to the root counts. Inside a
//! container the way begins at the container's own root, and what lies above cannot be seen.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use plimsoll_model::Limits;

/// Larger than any memory: how version 1 writes that there is no limit.
const NO_LIMIT: u64 = 1 << 60;

/// The limits of this process.
///
/// - `root`: the directory that holds `proc` and `sys`, `/` but in tests.
pub(super) fn limits(root: &Path) -> Limits {
    let Ok(groups) = fs::read_to_string(root.join("proc/self/cgroup")) else {
        return Limits::default();
    };
    let mount = root.join("sys/fs/cgroup");
    let mut limits = Limits::default();
    for line in groups.lines() {
        // hierarchy:controllers:path
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else {
            continue;
        };
        if controllers.is_empty() {
            for group in upwards(&mount, path) {
                limits.cpus = least(limits.cpus, cpus_of_v2(&group));
                limits.memory_bytes = least(limits.memory_bytes, memory_of_v2(&group));
            }
            continue;
        }
        for controller in controllers.split(',') {
            // The directory has the name of one controller or of all that share it.
            for name in [controller, controllers] {
                for group in upwards(&mount.join(name), path) {
                    match controller {
                        "cpu" => limits.cpus = least(limits.cpus, cpus_of_v1(&group)),
                        "memory" => {
                            limits.memory_bytes = least(limits.memory_bytes, memory_of_v1(&group));
                        }
                        _ => {}
                    }
                }
            }
        }
    }
    limits
}

/// Time for which a limit on processor time has stopped this process or others of its group; `None` where
/// it is not counted. Of the groups on the way to the root, the one that was stopped longest counts.
///
/// - `root`: as for [`limits`].
pub(super) fn throttled(root: &Path) -> Option<Duration> {
    let groups = fs::read_to_string(root.join("proc/self/cgroup")).ok()?;
    let mount = root.join("sys/fs/cgroup");
    let mut longest = None;
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else {
            continue;
        };
        let names = match controllers {
            "" => vec![mount.clone()],
            _ if controllers.split(',').any(|name| name == "cpu") => {
                vec![mount.join("cpu"), mount.join(controllers)]
            }
            _ => continue,
        };
        for group in names.iter().flat_map(|mount| upwards(mount, path)) {
            longest = longest.max(throttled_of(&group));
        }
    }
    longest
}

/// `throttled_usec` of version 2 or, in nanoseconds, `throttled_time` of version 1.
fn throttled_of(group: &Path) -> Option<Duration> {
    let text = fs::read_to_string(group.join("cpu.stat")).ok()?;
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(' ')?;
        let value = value.trim().parse().ok()?;
        match name {
            "throttled_usec" => Some(Duration::from_micros(value)),
            "throttled_time" => Some(Duration::from_nanos(value)),
            _ => None,
        }
    })
}

/// The group at `path` and those above it, up to `mount`.
fn upwards(mount: &Path, path: &str) -> Vec<PathBuf> {
    let mut groups = vec![mount.to_owned()];
    let mut group = mount.to_owned();
    for part in path
        .split('/')
        .filter(|part| !part.is_empty() && *part != "..")
    {
        group.push(part);
        groups.push(group.clone());
    }
    groups
}

fn least<T: PartialOrd>(one: Option<T>, other: Option<T>) -> Option<T> {
    match (one, other) {
        (Some(one), Some(other)) => Some(if other < one { other } else { one }),
        (one, other) => one.or(other),
    }
}

fn number<T: std::str::FromStr>(group: &Path, file: &str) -> Option<T> {
    fs::read_to_string(group.join(file))
        .ok()?
        .trim()
        .parse()
        .ok()
}

/// `50000 100000` of `cpu.max`: time allowed in each period; `max` is no limit.
fn cpus_of_v2(group: &Path) -> Option<f64> {
    let text = fs::read_to_string(group.join("cpu.max")).ok()?;
    let mut words = text.split_whitespace();
    let quota: f64 = words.next()?.parse().ok()?;
    let period: f64 = words.next()?.parse().ok()?;
    (period > 0.0).then(|| quota / period)
}

fn memory_of_v2(group: &Path) -> Option<u64> {
    number(group, "memory.max")
}

fn cpus_of_v1(group: &Path) -> Option<f64> {
    let quota: i64 = number(group, "cpu.cfs_quota_us")?;
    let period: i64 = number(group, "cpu.cfs_period_us")?;
    (quota > 0 && period > 0).then(|| quota as f64 / period as f64)
}

fn memory_of_v1(group: &Path) -> Option<u64> {
    number(group, "memory.limit_in_bytes").filter(|limit| *limit < NO_LIMIT)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tree of files in a directory of its own.
    fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, content) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        root
    }

    fn found(files: &[(&str, &str)]) -> (Option<f64>, Option<u64>) {
        let root = tree(files);
        let limits = limits(root.path());
        (limits.cpus, limits.memory_bytes)
    }

    #[test]
    fn the_tightest_of_version_2_counts() {
        let files = [
            ("proc/self/cgroup", "0::/a/b\n"),
            ("sys/fs/cgroup/a/cpu.max", "50000 100000\n"),
            ("sys/fs/cgroup/a/b/cpu.max", "max 100000\n"),
            ("sys/fs/cgroup/a/memory.max", "max\n"),
            ("sys/fs/cgroup/a/b/memory.max", "268435456\n"),
        ];
        assert_eq!(found(&files), (Some(0.5), Some(268_435_456)));
    }

    #[test]
    fn version_1_has_a_hierarchy_a_controller() {
        let files = [
            (
                "proc/self/cgroup",
                "4:memory:/m\n3:cpu,cpuacct:/c/d\n2:pids:/\n",
            ),
            ("sys/fs/cgroup/cpu,cpuacct/c/cpu.cfs_quota_us", "150000\n"),
            ("sys/fs/cgroup/cpu,cpuacct/c/cpu.cfs_period_us", "100000\n"),
            ("sys/fs/cgroup/cpu,cpuacct/c/d/cpu.cfs_quota_us", "-1\n"),
            (
                "sys/fs/cgroup/cpu,cpuacct/c/d/cpu.cfs_period_us",
                "100000\n",
            ),
            (
                "sys/fs/cgroup/memory/memory.limit_in_bytes",
                "9223372036854771712\n",
            ),
            (
                "sys/fs/cgroup/memory/m/memory.limit_in_bytes",
                "1073741824\n",
            ),
        ];
        assert_eq!(found(&files), (Some(1.5), Some(1 << 30)));
    }

    #[test]
    fn without_limits_there_are_none() {
        assert_eq!(found(&[]), (None, None));
        assert_eq!(
            found(&[("proc/self/cgroup", "nonsense\n0::/../x\n")]),
            (None, None)
        );
        let files = [
            ("proc/self/cgroup", "0::/\n"),
            ("sys/fs/cgroup/cpu.max", "rubbish\n"),
        ];
        assert_eq!(found(&files), (None, None));
    }

    #[test]
    fn this_machine_is_read_without_harm() {
        let limits = limits(Path::new("/"));
        assert!(limits.cpus.is_none_or(|cpus| cpus > 0.0));
    }

    #[test]
    fn the_longest_stop_on_the_way_to_the_root_counts() {
        let root = tree(&[
            ("proc/self/cgroup", "0::/a/b\n"),
            (
                "sys/fs/cgroup/a/cpu.stat",
                "usage_usec 7\nthrottled_usec 900\n",
            ),
            (
                "sys/fs/cgroup/a/b/cpu.stat",
                "nr_throttled 1\nthrottled_usec 40\n",
            ),
        ]);
        assert_eq!(throttled(root.path()), Some(Duration::from_micros(900)));
        let first = tree(&[
            ("proc/self/cgroup", "2:cpu,cpuacct:/a\n"),
            (
                "sys/fs/cgroup/cpu/a/cpu.stat",
                "nr_periods 3\nthrottled_time 5000\n",
            ),
        ]);
        assert_eq!(throttled(first.path()), Some(Duration::from_micros(5)));
        let without = tree(&[("proc/self/cgroup", "0::/\n")]);
        assert_eq!(throttled(without.path()), None);
    }
}
