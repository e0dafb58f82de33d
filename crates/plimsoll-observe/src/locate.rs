//! Finds the control group of a target.

mod cgroup;

mod container;

mod pod;

mod unit;

use std::path::{Path, PathBuf};

use crate::group::counters::folders;
use crate::machine::Machine;
use crate::target_name::{TargetKind, TargetName};

/// Why a target has no control group that can be observed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LocateError {
    /// It is not there.
    #[error("{} is not there: {reason}", target.shown())]
    Missing {
        /// The target.
        target: TargetName,
        /// Where it was looked for.
        reason: String,
    },
    /// It was there and has ended.
    #[error("{} has ended", .0.shown())]
    Gone(TargetName),
    /// Several groups have its name.
    #[error("{} is the name of several control groups: name one by cgroup:PATH ({})", target.shown(), paths.join(", "))]
    Several {
        /// The target.
        target: TargetName,
        /// Their paths.
        paths: Vec<String>,
    },
    /// Its processor time is not counted.
    #[error("{} cannot be observed: {reason}", target.shown())]
    Counters {
        /// The target.
        target: TargetName,
        /// Why.
        reason: String,
    },
}

/// The path of the control group of `target`, beginning with a slash.
///
/// Processes have no group of their own: see [`ProcessTree`](crate::ProcessTree).
pub(crate) fn locate(machine: &Machine, target: &TargetName) -> Result<String, LocateError> {
    match target.kind {
        TargetKind::Cgroup => cgroup::locate(machine, target),
        TargetKind::Unit => unit::locate(machine, target),
        TargetKind::Container => container::locate(machine, target),
        TargetKind::Pod => pod::locate(machine, target),
        TargetKind::Pid => Err(missing(target, "a process is no control group")),
    }
}

fn missing(target: &TargetName, reason: impl Into<String>) -> LocateError {
    LocateError::Missing {
        target: target.clone(),
        reason: reason.into(),
    }
}

/// Groups that are walked through at most.
const MOST_GROUPS: usize = 20_000;

/// The hierarchies in which a group of any target can be found: the tree of version 2, or those of version 1 that count
/// processor time or processes.
fn hierarchies(machine: &Machine) -> Vec<PathBuf> {
    let mount = machine.groups();
    if mount.join("cgroup.controllers").exists() {
        return vec![mount];
    }
    let names = ["cpuacct", "cpu,cpuacct", "unified", "systemd"];
    let folders = names.map(|name| mount.join(name));
    folders.into_iter().filter(|it| it.is_dir()).collect()
}

/// The paths of groups whose own name is accepted by `is_it`, of the first hierarchy that has one; those of fewest parts
/// first, and none within another one.
fn groups_named(machine: &Machine, is_it: impl Fn(&str) -> bool) -> Vec<String> {
    for mount in hierarchies(machine) {
        let mut found = Vec::new();
        let mut level = vec![mount.clone()];
        let mut seen = 0;
        while !level.is_empty() && seen < MOST_GROUPS {
            let mut below = Vec::new();
            for group in &level {
                for folder in folders(group) {
                    seen += 1;
                    let name = folder.file_name().and_then(|name| name.to_str());
                    if name.is_some_and(&is_it) {
                        found.extend(path_below(&mount, &folder));
                    } else {
                        below.push(folder);
                    }
                }
            }
            level = below;
        }
        if !found.is_empty() {
            return found;
        }
    }
    Vec::new()
}

/// `/system.slice/web.service` of a folder below `mount`.
fn path_below(mount: &Path, folder: &Path) -> Option<String> {
    let below = folder.strip_prefix(mount).ok()?.to_str()?;
    Some(format!("/{below}"))
}

/// The one path of `paths`; of several the one that has fewer parts than all others.
fn only(target: &TargetName, mut paths: Vec<String>, reason: &str) -> Result<String, LocateError> {
    let parts = |path: &String| path.matches('/').count();
    paths.sort_by_key(|path| (parts(path), path.clone()));
    match paths.as_slice() {
        [] => Err(missing(target, reason)),
        [first, second, ..] if parts(first) == parts(second) => Err(LocateError::Several {
            target: target.clone(),
            paths,
        }),
        [first, ..] => Ok(first.clone()),
    }
}

#[cfg(test)]
mod tests;
