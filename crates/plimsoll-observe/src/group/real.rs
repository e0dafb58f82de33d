//! Real control groups for tests, on machines that permit to make some.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use plimsoll_wire::process::{Output, Process, ProcessSpec};

/// A group that was made for a test and is removed after it.
pub(crate) struct RealGroup(PathBuf);

impl RealGroup {
    /// The hierarchies of this machine that count processor time: the tree of version 2, by itself or beside version 1,
    /// and that of `cpuacct`.
    pub(crate) fn hierarchies() -> Vec<PathBuf> {
        let mount = Path::new("/sys/fs/cgroup");
        let folders = ["", "cpuacct", "cpu,cpuacct", "unified"].map(|name| mount.join(name));
        let is_real = |folder: &PathBuf| folder.join("cgroup.procs").exists();
        folders.into_iter().filter(is_real).collect()
    }

    /// `None` where this user may not make groups, or they do not count processor time.
    pub(crate) fn make(hierarchy: &Path, name: &str) -> Option<Self> {
        let folder = hierarchy.join(name);
        fs::create_dir(&folder).ok()?;
        let group = Self(folder);
        let mut counters = ["cpu.stat", "cpuacct.usage"].iter();
        counters
            .any(|name| group.0.join(name).exists())
            .then_some(group)
    }

    /// One in the first hierarchy in which that is possible.
    pub(crate) fn make_counting(name: &str) -> Option<Self> {
        let hierarchies = Self::hierarchies();
        hierarchies
            .iter()
            .find_map(|hierarchy| Self::make(hierarchy, name))
    }

    /// A shell in the group, once it has entered it.
    pub(crate) fn run(&self, script: &str) -> Process {
        let script = format!(
            "echo $$ > {}/cgroup.procs; echo entered; {script}",
            self.0.display()
        );
        let process = Process::spawn(&ProcessSpec {
            argv: vec!["sh".into(), "-c".into(), script],
            stdout: Output::Captured,
            ..ProcessSpec::default()
        })
        .expect("a shell is there");
        let entered = process.stdout_line(std::time::Duration::from_secs(20), |line| {
            (line == "entered").then_some(())
        });
        entered.expect("the shell enters its group");
        process
    }
}

impl Drop for RealGroup {
    fn drop(&mut self) {
        // What was killed takes a moment to leave.
        plimsoll_testkit::eventually(|| fs::remove_dir(&self.0).is_ok() || !self.0.exists());
    }
}

/// Says on the terminal what was not tested; what tests print is not shown if they pass.
pub(crate) fn skipped(what: &str) {
    writeln!(std::io::stderr(), "SKIPPED: {what}").expect("standard error can be written");
}
