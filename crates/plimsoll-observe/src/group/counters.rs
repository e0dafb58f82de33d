//! The counters of a control group, of version 2 (the kernel's `cgroup-v2.rst`) or version 1 (`cpuacct.rst`,
//! `sched-bwc.rst`).

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use plimsoll_model::{CpuTime, Throttling};

use crate::machine::Machine;

/// Groups below one that are looked at for processes.
const MOST_GROUPS: usize = 4096;

/// Processes of a group that are looked at.
const MOST_PROCESSES: usize = 4096;

/// The directories of one group.
#[derive(Debug)]
pub(crate) struct GroupCounters {
    cpu: CpuFiles,
    /// The directory whose `cpu.stat` counts throttling.
    bounds: Option<PathBuf>,
    /// The directory with the processes.
    processes: PathBuf,
    /// The number of the directory of the processes: that of another group of the same name differs.
    number: Option<u64>,
}

/// A control group whose processor time is not counted.
#[derive(Debug, thiserror::Error)]
#[error(
    "the control group {path} does not count processor time: it is below {} in no hierarchy that does \
     (with systemd: CPUAccounting=yes)",
    mount.display()
)]
pub(crate) struct NotCounted {
    path: String,
    mount: PathBuf,
}

#[derive(Debug)]
enum CpuFiles {
    V1(PathBuf),
    V2(PathBuf),
}

impl GroupCounters {
    /// The group at `path`, which begins with a slash; an error if its processor time is not counted.
    pub(crate) fn open(machine: &Machine, path: &str) -> Result<Self, NotCounted> {
        let mount = machine.groups();
        let below = path.trim_start_matches('/');
        // The directory of a hierarchy has the name of one controller or of all that share it.
        let of = |names: &[&str]| {
            let folders = names.iter().map(|name| mount.join(name).join(below));
            folders.into_iter().find(|folder| folder.is_dir())
        };
        let v2 = of(&["", "unified"]).filter(|folder| cpu_of_v2(folder).is_some());
        let v1 = || of(&["cpuacct", "cpu,cpuacct"]).filter(|it| cpu_of_v1(it).is_some());
        let is_pure = mount.join("cgroup.controllers").exists();
        let v1 = if is_pure { None } else { v1() };
        let bounds = of(&["cpu", "cpu,cpuacct"]).filter(|it| throttling(it).is_some());
        let (cpu, processes, bounds) = match (v1, v2) {
            (Some(folder), _) => (CpuFiles::V1(folder.clone()), folder, bounds),
            (None, Some(folder)) => {
                let own = throttling(&folder).map(|_| folder.clone());
                (CpuFiles::V2(folder.clone()), folder, own.or(bounds))
            }
            (None, None) => {
                return Err(NotCounted {
                    path: path.to_owned(),
                    mount: mount.clone(),
                });
            }
        };
        Ok(Self {
            number: number_of(&processes),
            cpu,
            bounds,
            processes,
        })
    }

    /// The group of process `pid` that counts throttling; `None` if none does, or it is the root, which is of the whole
    /// machine.
    pub(crate) fn of_process(machine: &Machine, pid: u32) -> Option<Self> {
        let groups = fs::read_to_string(machine.process(pid).join("cgroup")).ok()?;
        let path = groups.lines().find_map(|line| {
            // hierarchy:controllers:path
            let mut parts = line.splitn(3, ':').skip(1);
            let (controllers, path) = (parts.next()?, parts.next()?);
            let counts = controllers.is_empty() || controllers.split(',').any(|it| it == "cpu");
            (counts && path != "/").then_some(path)
        })?;
        let group = Self::open(machine, path).ok()?;
        group.bounds.is_some().then_some(group)
    }

    /// Whether the directories are still those of the same group.
    pub(crate) fn is_same(&self) -> bool {
        self.number.is_some() && number_of(&self.processes) == self.number
    }

    /// Processor time since the group was made; `None` if it is gone.
    pub(crate) fn cpu(&self) -> Option<CpuTime> {
        match &self.cpu {
            CpuFiles::V1(folder) => cpu_of_v1(folder),
            CpuFiles::V2(folder) => cpu_of_v2(folder),
        }
    }

    /// Throttling since the group was made; `None` where it is not counted.
    pub(crate) fn throttled(&self) -> Option<Throttling> {
        throttling(self.bounds.as_ref()?)
    }

    /// The processes of the group and of those below it, in order.
    pub(crate) fn pids(&self) -> Vec<u32> {
        let mut pids = Vec::new();
        let mut groups = vec![self.processes.clone()];
        let mut seen = 0;
        while let Some(group) = groups.pop() {
            let listed = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
            pids.extend(
                listed
                    .lines()
                    .filter_map(|it| it.trim().parse::<u32>().ok()),
            );
            seen += 1;
            if seen >= MOST_GROUPS || pids.len() >= MOST_PROCESSES {
                break;
            }
            groups.extend(folders(&group));
        }
        // A process of another namespace is listed as 0.
        pids.retain(|pid| *pid > 0);
        pids.sort_unstable();
        pids.dedup();
        pids.truncate(MOST_PROCESSES);
        pids
    }
}

/// The folders within `folder`.
pub(crate) fn folders(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    folders.map(|entry| entry.path()).collect()
}

#[cfg(unix)]
fn number_of(folder: &Path) -> Option<u64> {
    use std::os::unix::fs::MetadataExt as _;

    fs::metadata(folder).ok().map(|metadata| metadata.ino())
}

#[cfg(not(unix))]
fn number_of(_folder: &Path) -> Option<u64> {
    None
}

fn cpu_of_v2(folder: &Path) -> Option<CpuTime> {
    cpu_stat(&fs::read_to_string(folder.join("cpu.stat")).ok()?)
}

/// User and system time of a `cpu.stat` of version 2.
pub(crate) fn cpu_stat(text: &str) -> Option<CpuTime> {
    Some(CpuTime {
        user: Duration::from_micros(value(text, "user_usec")?),
        system: Duration::from_micros(value(text, "system_usec")?),
    })
}

/// `cpuacct.usage` is exact. The parts of user and system time have files of their own since Linux 4.6.
fn cpu_of_v1(folder: &Path) -> Option<CpuTime> {
    let nanos = |name: &str| {
        let text = fs::read_to_string(folder.join(name)).ok()?;
        text.trim().parse().ok().map(Duration::from_nanos)
    };
    let total = nanos("cpuacct.usage")?;
    let system = nanos("cpuacct.usage_sys").unwrap_or_default().min(total);
    Some(CpuTime {
        user: total.saturating_sub(system),
        system,
    })
}

/// Throttling of a `cpu.stat` of either version.
fn throttling(folder: &Path) -> Option<Throttling> {
    let text = fs::read_to_string(folder.join("cpu.stat")).ok()?;
    let time = match value(&text, "throttled_usec") {
        Some(micros) => Duration::from_micros(micros),
        None => Duration::from_nanos(value(&text, "throttled_time")?),
    };
    Some(Throttling {
        periods: value(&text, "nr_throttled")?,
        time,
    })
}

/// The number behind `name` in a file of lines.
fn value(text: &str, name: &str) -> Option<u64> {
    let mut pairs = text.lines().filter_map(|line| line.split_once(' '));
    let (_, value) = pairs.find(|(known, _)| *known == name)?;
    value.trim().parse().ok()
}

/// `now`, but neither part of it less than in `before`: counters of different sources differ a little.
pub(crate) fn never_back(before: CpuTime, now: CpuTime) -> CpuTime {
    let total = now.total().max(before.total());
    let most = total.saturating_sub(before.system);
    let user = now.user.max(before.user).min(most);
    CpuTime {
        user,
        system: total.saturating_sub(user),
    }
}
