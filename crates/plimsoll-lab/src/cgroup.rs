//! Control groups: bounds on the processor time and the memory of what an experiment starts.
//!
//! By version 2 (the kernel's `cgroup-v2.rst`) where that is mounted with its controllers, else by
//! version 1 (`sched-bwc.rst`, `memory.rst`). A group is made for one trial and removed after it; a
//! program enters it before its first instruction, so nothing that it does escapes the bounds.

mod v1;

mod v2;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

/// Limits of a group; an absent one is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Allowance {
    /// Cores.
    pub(crate) cpus: Option<f64>,
    /// Memory in bytes, without swap.
    pub(crate) memory_bytes: Option<u64>,
}

/// Why a group cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum GroupError {
    /// No control groups at all.
    #[error("control groups are not mounted at {path}")]
    NotMounted {
        /// Folder that was searched.
        path: String,
    },
    /// They are, but not what bounds this.
    #[error(
        "the control group {group} does not bound {controller}; name one that does with --cgroup"
    )]
    NoController {
        /// The group below which one was to be made.
        group: String,
        /// `cpu` or `memory`.
        controller: &'static str,
    },
    /// The system refused.
    #[error("cannot write {path}: {cause}")]
    Refused {
        /// The file to write.
        path: String,
        /// The error of the system.
        cause: io::Error,
    },
}

/// Folder in which groups can be made.
#[derive(Debug)]
pub(crate) enum Groups {
    V1(v1::Hierarchies),
    V2(v2::Parent),
}

impl Groups {
    /// Below `parent`, a path such as `/` or `/bench.slice`; without one beside the group of this
    /// process.
    ///
    /// - `root`: the directory that holds `proc` and `sys`, `/` but in tests.
    pub(crate) fn find(root: &Path, parent: Option<&str>) -> Result<Self, GroupError> {
        let mount = root.join("sys/fs/cgroup");
        let own = fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
        if mount.join("cgroup.controllers").exists() {
            return Ok(Self::V2(v2::Parent::new(&mount, &own, parent)));
        }
        v1::Hierarchies::find(&mount, &own, parent)
            .map(Self::V1)
            .ok_or_else(|| GroupError::NotMounted {
                path: mount.display().to_string(),
            })
    }

    /// A new group of that name; it must not exist.
    pub(crate) fn make(&self, name: &str, allowance: Allowance) -> Result<Group, GroupError> {
        // Created groups are removed if a later step fails.
        let mut group = Group {
            directories: Vec::new(),
            reads: match self {
                Self::V1(_) => v1::READS,
                Self::V2(_) => v2::READS,
            },
        };
        match self {
            Self::V1(hierarchies) => hierarchies.make(name, allowance, &mut group.directories)?,
            Self::V2(parent) => parent.make(name, allowance, &mut group.directories)?,
        }
        Ok(group)
    }
}

/// The files of a group and their meaning.
#[derive(Debug, Clone, Copy)]
struct Reads {
    /// The file with a line `oom_kill` and a number.
    memory_events: &'static str,
}

/// Bounds on the processes in it; dropping it kills what is left of them and removes it.
#[derive(Debug)]
pub(crate) struct Group {
    /// One, or with version 1 one per controller.
    directories: Vec<PathBuf>,
    reads: Reads,
}

impl Group {
    /// `words` as a command that enters the group and becomes them.
    pub(crate) fn entering(&self, words: &[String]) -> Vec<String> {
        // Entering from outside would let the program run unbounded until then.
        const ENTER: &str = r#"n=$1; shift
while [ "$n" -gt 0 ]; do echo $$ > "$1/cgroup.procs" || exit 126; shift; n=$((n-1)); done
exec "$@""#;

        let mut entering: Vec<String> = ["/bin/sh", "-c", ENTER, "plimsoll"]
            .map(str::to_owned)
            .into();
        entering.push(self.directories.len().to_string());
        let directories = self.directories.iter();
        entering.extend(directories.map(|directory| directory.display().to_string()));
        entering.extend_from_slice(words);
        entering
    }

    /// Number of its processes that the kernel has killed for lack of memory.
    pub(crate) fn killed_for_memory(&self) -> u64 {
        let events = self.directories.iter().find_map(|directory| {
            let text = fs::read_to_string(directory.join(self.reads.memory_events)).ok()?;
            text.lines().find_map(|line| {
                let (name, number) = line.split_once(' ')?;
                (name == "oom_kill").then(|| number.trim().parse().ok())?
            })
        });
        events.unwrap_or(0)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        /// How often its removal is tried: what was killed takes a moment to leave.
        const ATTEMPTS: usize = 100;
        const PAUSE: Duration = Duration::from_millis(10);

        for directory in &self.directories {
            for _ in 0..ATTEMPTS {
                kill_all(directory);
                match fs::remove_dir(directory) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => {
                        thread::park_timeout(PAUSE);
                    }
                    _ => break,
                }
            }
        }
    }
}

/// Kills what runs in a group that is ours.
fn kill_all(directory: &Path) {
    let Ok(ids) = fs::read_to_string(directory.join("cgroup.procs")) else {
        return;
    };
    let processes = ids.lines().filter_map(|id| id.parse().ok());
    for process in processes.filter_map(rustix::process::Pid::from_raw) {
        // It may have ended in the meantime.
        rustix::process::kill_process(process, rustix::process::Signal::KILL).ok();
    }
}

/// The directory of the group below which groups are made.
///
/// - `own`: the path of this process's group.
fn below(mount: &Path, own: &str, parent: Option<&str>) -> PathBuf {
    let path = match parent {
        Some(parent) => Path::new(parent),
        // A group with processes of its own may have no groups within it that are bounded.
        None => Path::new(own).parent().unwrap_or(Path::new("/")),
    };
    let parts = path
        .components()
        .filter(|part| matches!(part, std::path::Component::Normal(_)));
    mount.join(parts.collect::<PathBuf>())
}

fn make_directory(directory: PathBuf, made: &mut Vec<PathBuf>) -> Result<(), GroupError> {
    fs::create_dir(&directory).map_err(|cause| refused(&directory, cause))?;
    made.push(directory);
    Ok(())
}

fn write(directory: &Path, file: &str, text: &str) -> Result<(), GroupError> {
    let path = directory.join(file);
    fs::write(&path, text).map_err(|cause| refused(&path, cause))
}

fn refused(path: &Path, cause: io::Error) -> GroupError {
    GroupError::Refused {
        path: path.display().to_string(),
        cause,
    }
}

/// The time of each period that `cpus` cores come to, in microseconds; a period is 100 ms.
fn quota_us(cpus: f64) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a positive number of cores; a huge one is capped"
    )]
    let quota = (cpus * PERIOD_US as f64).round() as u64;
    // The kernel refuses less than a millisecond.
    quota.max(1_000)
}

const PERIOD_US: u64 = 100_000;

#[cfg(test)]
mod tests;
