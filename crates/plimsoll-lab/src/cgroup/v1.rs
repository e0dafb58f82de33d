//! Version 1: a tree per controller.

use std::path::{Path, PathBuf};

use super::{Allowance, GroupError, PERIOD_US, Reads, below, make_directory, quota_us, write};

pub(super) const READS: Reads = Reads {
    memory_events: "memory.oom_control",
};

/// The groups below which groups are made, as far as their trees are mounted.
#[derive(Debug)]
pub(crate) struct Hierarchies {
    cpu: Option<PathBuf>,
    memory: Option<PathBuf>,
}

impl Hierarchies {
    /// - `own`: the content of `/proc/self/cgroup`.
    ///
    /// `None` if there is no tree at all.
    pub(super) fn find(mount: &Path, own: &str, parent: Option<&str>) -> Option<Self> {
        let directory = |controller: &str| {
            own.lines().find_map(|line| {
                // hierarchy:controllers:path
                let mut parts = line.splitn(3, ':').skip(1);
                let (controllers, path) = (parts.next()?, parts.next()?);
                if !controllers.split(',').any(|name| name == controller) {
                    return None;
                }
                // The directory has the name of one controller or of all that share it.
                let names = [controller, controllers];
                let tree = names
                    .map(|name| mount.join(name))
                    .into_iter()
                    .find(|tree| tree.is_dir())?;
                Some(below(&tree, path, parent))
            })
        };
        let found = Self {
            cpu: directory("cpu"),
            memory: directory("memory"),
        };
        (found.cpu.is_some() || found.memory.is_some()).then_some(found)
    }

    pub(super) fn make(
        &self,
        name: &str,
        allowance: Allowance,
        made: &mut Vec<PathBuf>,
    ) -> Result<(), GroupError> {
        let tree = |directory: &Option<PathBuf>, controller| {
            directory
                .as_ref()
                .map(|directory| directory.join(name))
                .ok_or_else(|| GroupError::NoController {
                    group: "/".to_owned(),
                    controller,
                })
        };
        if let Some(cpus) = allowance.cpus {
            let group = tree(&self.cpu, "cpu")?;
            make_directory(group.clone(), made)?;
            write(&group, "cpu.cfs_period_us", &PERIOD_US.to_string())?;
            write(&group, "cpu.cfs_quota_us", &quota_us(cpus).to_string())?;
        }
        if let Some(bytes) = allowance.memory_bytes {
            let group = tree(&self.memory, "memory")?;
            make_directory(group.clone(), made)?;
            let bytes = bytes.to_string();
            write(&group, "memory.limit_in_bytes", &bytes)?;
            // Only where swap is accounted for; it may not be below the limit on memory.
            if group.join("memory.memsw.limit_in_bytes").exists() {
                write(&group, "memory.memsw.limit_in_bytes", &bytes)?;
            }
        }
        Ok(())
    }
}
