//! A control group at its memory limit.
//!
//! Version 2 counts in `memory.events` how often the group was above `memory.high` or at `memory.max`, and in
//! `memory.pressure` how long its processes waited (the kernel's `cgroup-v2.rst`, `psi.rst`); version 1 counts in
//! `memory.failcnt` (`memory.rst`).

use std::fs;
use std::path::{Path, PathBuf};

use super::MemoryStall;

/// The group of a process, with its counters when it was found.
#[derive(Debug)]
pub(super) struct MemoryGroup {
    files: Files,
    limit_bytes: u64,
    reached_before: u64,
    /// In microseconds.
    waited_before: Option<u64>,
}

#[derive(Debug)]
enum Files {
    V1(PathBuf),
    V2(PathBuf),
}

/// From here on a limit of version 1 is none: it is the largest number of whole pages.
const NO_LIMIT: u64 = 1 << 60;

impl MemoryGroup {
    /// The innermost group of process `pid` that has a limit.
    pub(super) fn find(pid: u32) -> Option<Self> {
        let groups = fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
        Self::of_groups(Path::new("/sys/fs/cgroup"), &groups)
    }

    fn of_groups(mount: &Path, groups: &str) -> Option<Self> {
        groups.lines().find_map(|line| {
            let mut parts = line.splitn(3, ':').skip(1);
            let (controllers, path) = (parts.next()?, parts.next()?.trim_start_matches('/'));
            if controllers.is_empty() {
                return ["", "unified"]
                    .into_iter()
                    .find_map(|kind| innermost(&mount.join(kind), path, Files::V2));
            }
            let is_memory = controllers.split(',').any(|it| it == "memory");
            is_memory.then(|| innermost(&mount.join("memory"), path, Files::V1))?
        })
    }

    /// What the limit did since the group was found; `None` if it was not reached.
    ///
    /// - `elapsed`: since then, in seconds.
    pub(super) fn stall(self, elapsed: f64) -> Option<MemoryStall> {
        let reached = self.files.reached()?.saturating_sub(self.reached_before);
        let waited = self.files.waited_micros().zip(self.waited_before);
        let waited = waited.map(|(now, before)| now.saturating_sub(before) as f64 / 1e6 / elapsed);
        (reached > 0).then_some(MemoryStall {
            limit_bytes: self.limit_bytes,
            reached,
            waited,
        })
    }
}

/// The group at `path` or the next above it that has a limit.
fn innermost(mount: &Path, path: &str, files: fn(PathBuf) -> Files) -> Option<MemoryGroup> {
    let groups = Path::new(path).ancestors();
    groups
        .filter(|group| !group.as_os_str().is_empty())
        .find_map(|group| {
            let files = files(mount.join(group));
            Some(MemoryGroup {
                limit_bytes: files.limit()?,
                reached_before: files.reached()?,
                waited_before: files.waited_micros(),
                files,
            })
        })
}

impl Files {
    fn limit(&self) -> Option<u64> {
        match self {
            Self::V1(group) => number(group, "memory.limit_in_bytes").filter(|it| *it < NO_LIMIT),
            Self::V2(group) => {
                let limits = ["memory.high", "memory.max"].map(|name| number(group, name));
                limits.into_iter().flatten().min()
            }
        }
    }

    fn reached(&self) -> Option<u64> {
        match self {
            Self::V1(group) => number(group, "memory.failcnt"),
            Self::V2(group) => {
                let events = fs::read_to_string(group.join("memory.events")).ok()?;
                let count = |wanted: &str| {
                    let mut pairs = events.lines().filter_map(|line| line.split_once(' '));
                    let (_, count) = pairs.find(|(name, _)| *name == wanted)?;
                    count.trim().parse::<u64>().ok()
                };
                Some(count("high")? + count("max")?)
            }
        }
    }

    fn waited_micros(&self) -> Option<u64> {
        let Self::V2(group) = self else { return None };
        let pressure = fs::read_to_string(group.join("memory.pressure")).ok()?;
        let some = pressure.lines().find(|line| line.starts_with("some "))?;
        some.rsplit_once("total=")?.1.trim().parse().ok()
    }
}

/// The number that is all of a file; `None` for `max`.
fn number(group: &Path, name: &str) -> Option<u64> {
    fs::read_to_string(group.join(name))
        .ok()?
        .trim()
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(folder: &Path, files: &[(&str, &str)]) {
        fs::create_dir_all(folder).unwrap();
        for (name, text) in files {
            fs::write(folder.join(name), text).unwrap();
        }
    }

    #[test]
    fn a_limit_of_version_2_counts_where_it_was_reached() {
        let mount = tempfile::tempdir().unwrap();
        let shop = mount.path().join("shop.slice");
        write(
            &shop,
            &[
                ("memory.high", "max\n"),
                ("memory.max", "268435456\n"),
                ("memory.events", "low 0\nhigh 0\nmax 5\noom 0\noom_kill 0\n"),
                (
                    "memory.pressure",
                    "some avg10=0.00 total=1000\nfull avg10=0.00 total=10\n",
                ),
            ],
        );
        // The process is in a group below, which has no limit of its own.
        write(
            &shop.join("web"),
            &[("memory.max", "max\n"), ("memory.high", "max\n")],
        );
        let find = || MemoryGroup::of_groups(mount.path(), "0::/shop.slice/web\n").unwrap();
        assert_eq!(find().stall(2.0), None, "not reached since");
        let group = find();
        write(
            &shop,
            &[
                (
                    "memory.events",
                    "low 0\nhigh 0\nmax 12\noom 0\noom_kill 0\n",
                ),
                (
                    "memory.pressure",
                    "some avg10=0.00 total=501000\nfull avg10=0.00 total=10\n",
                ),
            ],
        );
        let stall = group.stall(2.0).unwrap();
        assert_eq!((stall.limit_bytes, stall.reached), (256 << 20, 7));
        assert!((stall.waited.unwrap() - 0.25).abs() < 1e-9);
        assert!(MemoryGroup::of_groups(mount.path(), "0::/\n").is_none());
    }

    #[test]
    fn a_limit_of_version_1_counts_failures() {
        let mount = tempfile::tempdir().unwrap();
        let shop = mount.path().join("memory/shop");
        let failures = |count: &str| write(&shop, &[("memory.failcnt", count)]);
        write(&shop, &[("memory.limit_in_bytes", "1048576\n")]);
        failures("3\n");
        let groups = "5:cpu,cpuacct:/other\n4:memory:/shop\n0::/\n";
        let group = MemoryGroup::of_groups(mount.path(), groups).unwrap();
        failures("9\n");
        let stall = group.stall(1.0).unwrap();
        assert_eq!(
            (stall.limit_bytes, stall.reached, stall.waited),
            (1 << 20, 6, None)
        );
        write(&shop, &[("memory.limit_in_bytes", "9223372036854771712\n")]);
        assert!(MemoryGroup::of_groups(mount.path(), groups).is_none());
    }
}
