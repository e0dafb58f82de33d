//! Groups in a fixture of files, and in real groups where this machine permits to make some.

use std::fs;
use std::path::Path;

use plimsoll_model::{CpuTime, Memory, NetworkBytes, Throttling};

use super::real::{RealGroup, skipped};
use super::*;
use crate::target_name::TargetName;

fn write(root: &Path, files: &[(&str, &str)]) {
    for (path, text) in files {
        let file = root.join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }
}

/// A machine with a process of the given id, three resident pages and two threads.
fn process(root: &Path, pid: u32, network: &str) {
    let at = |name: &str| format!("proc/{pid}/{name}");
    let stat = format!("{pid} (a) b) S 1 1 1 0 -1 0 0 0 0 0 7 3 0 0 20 0 2 0 100 0 0");
    write(
        root,
        &[
            (&at("stat"), &stat),
            (&at("statm"), "100 3 1 0 0 0 0"),
            (&at("fd/0"), ""),
            (&at("fd/1"), ""),
            (
                &at("net/dev"),
                "  eth0: 70 1 0 0 0 0 0 0 30 1 0\n    lo: 9 1 0 0 0 0 0 0 9 1 0\n",
            ),
        ],
    );
    let namespaces = root.join(at("ns"));
    fs::create_dir_all(&namespaces).unwrap();
    std::os::unix::fs::symlink(network, namespaces.join("net")).unwrap();
}

fn machine(root: &Path) -> Machine {
    fs::create_dir_all(root.join("proc/self/ns")).unwrap();
    std::os::unix::fs::symlink("net:[1]", root.join("proc/self/ns/net")).unwrap();
    Machine::at(root)
}

fn open(machine: &Machine, target: &str) -> Result<GroupSource, LocateError> {
    GroupSource::open(machine, &target.parse::<TargetName>().unwrap())
}

fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

const STAT: &str = "usage_usec 5000\nuser_usec 3000\nsystem_usec 2000\n";

#[test]
fn a_group_of_version_2_is_the_sum_of_what_runs_in_it() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    let machine = machine(root);
    let web = "sys/fs/cgroup/system.slice/web.service";
    let stat = format!("{STAT}nr_periods 9\nnr_throttled 4\nthrottled_usec 700\n");
    write(
        root,
        &[
            ("sys/fs/cgroup/cgroup.controllers", "cpu memory\n"),
            (&format!("{web}/cpu.stat"), &stat),
            (&format!("{web}/cgroup.procs"), "10\n"),
            (&format!("{web}/worker/cgroup.procs"), "11\n12\n"),
        ],
    );
    process(root, 10, "net:[2]");
    process(root, 11, "net:[2]");
    let mut source = open(&machine, "unit:web").unwrap();
    let sample = source.sample(at(1), 7).unwrap();
    let page = procfs::page_size();
    assert_eq!(
        sample,
        ResourceSample {
            at: at(1),
            completed: 7,
            cpu: CpuTime {
                user: Duration::from_millis(3),
                system: Duration::from_millis(2),
            },
            memory: Memory {
                anonymous_bytes: 2 * 2 * page,
                file_bytes: 2 * page,
            },
            fds: 4,
            threads: 4,
            // Process 12 has just ended.
            processes: 2,
            throttled: Some(Throttling {
                periods: 4,
                time: Duration::from_micros(700),
            }),
            network: Some(NetworkBytes {
                received: 70,
                sent: 30,
            }),
        }
    );
}

#[test]
fn a_group_of_version_1_counts_in_nanoseconds() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    let machine = machine(root);
    let file = |controller: &str, name: &str| format!("sys/fs/cgroup/{controller}/shop/{name}");
    write(
        root,
        &[
            (&file("cpuacct", "cpuacct.usage"), "5000001\n"),
            (&file("cpuacct", "cpuacct.usage_sys"), "2000000\n"),
            (&file("cpuacct", "cgroup.procs"), "10\n"),
            (
                &file("cpu", "cpu.stat"),
                "nr_periods 3\nnr_throttled 1\nthrottled_time 900\n",
            ),
        ],
    );
    // It shares the network of the machine, whose bytes are not its own.
    process(root, 10, "net:[1]");
    let sample = open(&machine, "cgroup:/shop").unwrap().sample(at(0), 0);
    let sample = sample.unwrap();
    assert_eq!(sample.cpu.total(), Duration::from_nanos(5_000_001));
    assert_eq!(sample.cpu.system, Duration::from_millis(2));
    assert_eq!(sample.throttled.unwrap().time, Duration::from_nanos(900));
    assert_eq!((sample.processes, sample.network), (1, None));
}

#[test]
fn a_group_that_comes_back_goes_on_and_its_absence_is_a_gap() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    let machine = machine(root);
    let group = root.join("sys/fs/cgroup/system.slice/web.service");
    let stat = |text: &str| {
        let files = [
            ("sys/fs/cgroup/cgroup.controllers", "cpu\n"),
            ("sys/fs/cgroup/system.slice/web.service/cpu.stat", text),
        ];
        write(root, &files);
    };
    stat(STAT);
    let mut source = open(&machine, "unit:web.service").unwrap();
    let total = |sample: ResourceSample| sample.cpu.total().as_micros();
    assert_eq!(total(source.sample(at(1), 0).unwrap()), 5_000);
    // Moved, so that the new one has another number.
    fs::rename(&group, root.join("old")).unwrap();
    for seconds in [2, 3] {
        let error = source.sample(at(seconds), 0).unwrap_err();
        assert!(matches!(error, SampleError::Gap { .. }), "{error}");
        assert!(error.to_string().contains("unit web.service"), "{error}");
    }
    stat("usage_usec 30\nuser_usec 20\nsystem_usec 10\n");
    let sample = source.sample(at(4), 0).unwrap();
    assert_eq!(total(sample), 5_030, "what the old group spent stays");
}

#[test]
fn what_is_not_counted_says_what_to_do() {
    let root = tempfile::tempdir().unwrap();
    let machine = machine(root.path());
    write(
        root.path(),
        &[("sys/fs/cgroup/systemd/system.slice/web.service/tasks", "")],
    );
    let error = open(&machine, "unit:web").unwrap_err().to_string();
    assert!(error.contains("CPUAccounting=yes"), "{error}");
}

/// Spends about a tenth of a second of processor time.
const BURN: &str = "i=0; while [ $i -lt 150000 ]; do i=$((i+1)); done";

#[test]
fn real_groups_count_what_processes_spend_that_nothing_waits_for() {
    let mut tried = 0;
    for hierarchy in RealGroup::hierarchies() {
        let name = format!("plimsoll-test-{}", std::process::id());
        let Some(group) = RealGroup::make(&hierarchy, &name) else {
            skipped(&format!(
                "no control group can be made below {}",
                hierarchy.display()
            ));
            continue;
        };
        tried += 1;
        // A child in the background that is disowned, and one whose time nothing takes over.
        let process = group.run(&format!(
            "trap '' CHLD; ({BURN}) & ({BURN}); echo burnt; exec sleep 100"
        ));
        let target = format!("cgroup:/{name}");
        process
            .stdout_line(Duration::from_secs(20), |line| {
                (line == "burnt").then_some(())
            })
            .expect("the script ends its work");
        let mut source = open(&Machine::default(), &target).unwrap();
        let sample = source.sample(at(1), 0).unwrap();
        assert!(
            sample.processes >= 1 && sample.fds >= 3,
            "{hierarchy:?}: {sample:?}"
        );
        assert!(sample.memory.total_bytes() > 0, "{hierarchy:?}: {sample:?}");
        assert!(
            sample.cpu.total() > Duration::from_millis(20),
            "{hierarchy:?}: {sample:?}"
        );
        let local = crate::LocalTarget::new(&target.parse().unwrap()).unwrap();
        let shown = format!("cgroup /{name}");
        crate::contract::contract_of_running(&local, &shown);
        process.stop(Duration::from_secs(20));
        plimsoll_testkit::eventually(|| {
            source
                .sample(at(2), 0)
                .is_ok_and(|sample| sample.processes == 0)
        });
    }
    if tried == 0 {
        skipped("real control groups");
    }
}
