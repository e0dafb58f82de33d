use super::*;

use plimsoll_wire::process::{Output, Process, ProcessSpec};

const LONG: Duration = Duration::from_secs(20);

const BOTH: Allowance = Allowance {
    cpus: Some(1.5),
    memory_bytes: Some(256 << 20),
};

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

fn content(root: &tempfile::TempDir, path: &str) -> String {
    fs::read_to_string(root.path().join("sys/fs/cgroup").join(path)).unwrap_or_default()
}

/// A fake group is not removed by itself, as its files are real.
fn forget(mut group: Group) {
    group.directories.clear();
}

const V2: [(&str, &str); 4] = [
    ("proc/self/cgroup", "0::/bench.slice/shell\n"),
    ("sys/fs/cgroup/cgroup.controllers", "cpu memory pids\n"),
    (
        "sys/fs/cgroup/bench.slice/cgroup.controllers",
        "cpu memory pids\n",
    ),
    ("sys/fs/cgroup/bench.slice/cgroup.subtree_control", "cpu\n"),
];

#[test]
fn version_2_is_bounded_beside_our_own_group() {
    let root = tree(&V2);
    let groups = Groups::find(root.path(), None).unwrap();
    let group = groups.make("trial", BOTH).unwrap();
    let at = "bench.slice/trial";
    assert_eq!(content(&root, &format!("{at}/cpu.max")), "150000 100000");
    assert_eq!(content(&root, &format!("{at}/memory.max")), "268435456");
    // The processor was handed down already.
    assert_eq!(
        content(&root, "bench.slice/cgroup.subtree_control"),
        "+memory"
    );
    let directory = root.path().join("sys/fs/cgroup").join(at);
    assert_eq!(group.killed_for_memory(), 0);
    fs::write(
        directory.join("memory.events"),
        "low 0\noom 3\noom_kill 2\noom_group_kill 0\n",
    )
    .unwrap();
    assert_eq!(group.killed_for_memory(), 2);
    forget(group);
}

#[test]
fn version_2_reports_what_is_not_handed_down() {
    let root = tree(&[
        ("proc/self/cgroup", "0::/\n"),
        ("sys/fs/cgroup/cgroup.controllers", "pids\n"),
    ]);
    let groups = Groups::find(root.path(), None).unwrap();
    let error = groups.make("trial", BOTH).unwrap_err();
    assert!(error.to_string().contains("does not bound cpu"), "{error}");
    // A group without bounds needs no controller.
    forget(groups.make("free", Allowance::default()).unwrap());
}

#[test]
fn version_1_has_a_group_in_each_tree() {
    let root = tree(&[
        ("proc/self/cgroup", "4:memory:/a/b\n3:cpu,cpuacct:/\n"),
        ("sys/fs/cgroup/cpu,cpuacct/tasks", ""),
        ("sys/fs/cgroup/memory/a/tasks", ""),
    ]);
    let groups = Groups::find(root.path(), None).unwrap();
    let group = groups.make("trial", BOTH).unwrap();
    assert_eq!(
        content(&root, "cpu,cpuacct/trial/cpu.cfs_quota_us"),
        "150000"
    );
    assert_eq!(
        content(&root, "cpu,cpuacct/trial/cpu.cfs_period_us"),
        "100000"
    );
    assert_eq!(
        content(&root, "memory/a/trial/memory.limit_in_bytes"),
        "268435456"
    );
    fs::write(
        root.path()
            .join("sys/fs/cgroup/memory/a/trial/memory.oom_control"),
        "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n",
    )
    .unwrap();
    assert_eq!(group.killed_for_memory(), 1);
    let words = group.entering(&["server".to_owned(), "--port".to_owned()]);
    assert_eq!(words[4], "2");
    assert_eq!(&words[words.len() - 2..], ["server", "--port"]);
    forget(group);
}

#[test]
fn without_a_mount_there_are_no_groups() {
    let root = tree(&[("proc/self/cgroup", "3:cpu:/\n")]);
    assert!(matches!(
        Groups::find(root.path(), None),
        Err(GroupError::NotMounted { .. })
    ));
}

/// Where this machine allows groups to be made: the shell is bounded before it takes memory, and its
/// end is counted.
#[test]
fn a_program_that_takes_too_much_is_killed() {
    let allowance = Allowance {
        cpus: None,
        memory_bytes: Some(32 << 20),
    };
    let name = format!("plimsoll-test-{}", std::process::id());
    let made =
        Groups::find(Path::new("/"), Some("/")).and_then(|groups| groups.make(&name, allowance));
    let Ok(group) = made else {
        // Not permitted here; the trees above stand for it.
        return;
    };
    let take = "a=x; while :; do a=$a$a; done";
    let words = ["/bin/sh", "-c", take].map(str::to_owned);
    let mut process = Process::spawn(&ProcessSpec {
        argv: group.entering(&words),
        stderr: Output::Captured,
        ..ProcessSpec::default()
    })
    .unwrap();
    let status = process.wait(LONG);
    assert!(
        status.is_some_and(|status| !status.success()),
        "{}",
        process.stderr_tail()
    );
    assert!(group.killed_for_memory() > 0, "{}", process.stderr_tail());
    let directories = group.directories.clone();
    drop(group);
    assert!(directories.iter().all(|directory| !directory.exists()));
}
