//! Control groups with a limit on processor time.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::{Failure, Outcome};

/// A control group whose processes share a limit on processor time. It ends with the value, once it is empty.
pub(crate) struct ControlGroup(PathBuf);

impl ControlGroup {
    /// In the hierarchy of either version, whichever has the controller. `None` if this machine cannot limit any.
    ///
    /// - `percent`: of one core.
    pub(crate) fn limited_to(percent: u32) -> Option<Self> {
        static MADE: AtomicU32 = AtomicU32::new(0);

        let micros = 1_000 * percent;
        let limits = [
            ("/sys/fs/cgroup", "cpu.max", format!("{micros} 100000")),
            ("/sys/fs/cgroup/cpu", "cpu.cfs_quota_us", micros.to_string()),
        ];
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("plimsoll-task-{}-{number}", std::process::id());
        for (hierarchy, file, limit) in limits {
            let folder = Path::new(hierarchy).join(&name);
            if fs::create_dir(&folder).is_err() {
                continue;
            }
            let group = Self(folder);
            if group.0.join(file).exists() && fs::write(group.0.join(file), &limit).is_ok() {
                return Some(group);
            }
        }
        None
    }

    /// Moves a process into it; what that starts from then on is in it too.
    pub(crate) fn add(&self, child: &Child) -> Outcome {
        let file = self.0.join("cgroup.procs");
        let written = fs::write(&file, child.id().to_string());
        written.map_err(|error| Failure(format!("{}: {error}", file.display())))
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        // An empty group that stays does no harm.
        fs::remove_dir(&self.0).ok();
    }
}
