//! Version 2: one tree, whose controllers each group hands down.

use std::fs;
use std::path::{Path, PathBuf};

use super::{Allowance, GroupError, PERIOD_US, Reads, below, make_directory, quota_us, write};

pub(super) const READS: Reads = Reads {
    memory_events: "memory.events",
};

/// The group below which groups are made.
#[derive(Debug)]
pub(crate) struct Parent {
    directory: PathBuf,
}

impl Parent {
    /// - `own`: the content of `/proc/self/cgroup`.
    pub(super) fn new(mount: &Path, own: &str, parent: Option<&str>) -> Self {
        let own = own
            .lines()
            .find_map(|line| line.strip_prefix("0::"))
            .unwrap_or("/");
        Self {
            directory: below(mount, own, parent),
        }
    }

    pub(super) fn make(
        &self,
        name: &str,
        allowance: Allowance,
        made: &mut Vec<PathBuf>,
    ) -> Result<(), GroupError> {
        if allowance.cpus.is_some() {
            self.hand_down("cpu")?;
        }
        if allowance.memory_bytes.is_some() {
            self.hand_down("memory")?;
        }
        let group = self.directory.join(name);
        make_directory(group.clone(), made)?;
        if let Some(cpus) = allowance.cpus {
            let text = format!("{} {PERIOD_US}", quota_us(cpus));
            write(&group, "cpu.max", &text)?;
        }
        if let Some(bytes) = allowance.memory_bytes {
            write(&group, "memory.max", &bytes.to_string())?;
            // Without swap accounting there is no such file, and nothing to forbid.
            if self.directory.join("memory.swap.max").exists()
                || group.join("memory.swap.max").exists()
            {
                write(&group, "memory.swap.max", "0")?;
            }
        }
        Ok(())
    }

    /// Sees to it that groups within this one are bounded by `controller`.
    fn hand_down(&self, controller: &'static str) -> Result<(), GroupError> {
        let lists = |file: &str| {
            let text = fs::read_to_string(self.directory.join(file)).unwrap_or_default();
            text.split_whitespace().any(|word| word == controller)
        };
        if lists("cgroup.subtree_control") {
            return Ok(());
        }
        if !lists("cgroup.controllers") {
            return Err(GroupError::NoController {
                group: self.directory.display().to_string(),
                controller,
            });
        }
        let text = format!("+{controller}");
        write(&self.directory, "cgroup.subtree_control", &text)
    }
}
