use plimsoll_model::Clock;
use plimsoll_wire::SystemClock;
use plimsoll_wire::process::{Output, Process, ProcessSpec};

use super::*;

const LONG: Duration = Duration::from_secs(20);

/// A shell that says when it has come to a point of its script.
fn shell(script: &str) -> Process {
    Process::spawn(&ProcessSpec {
        argv: vec!["sh".into(), "-c".into(), script.into()],
        stdout: Output::Captured,
        ..ProcessSpec::default()
    })
    .expect("a shell is there")
}

fn wait_for(process: &Process, line: &str) {
    process
        .stdout_line(LONG, |found| (found == line).then_some(()))
        .expect("the script comes to this point");
}

fn now(tree: &mut ProcessTree) -> ResourceSample {
    tree.sample(Duration::ZERO, 0).expect("the tree is alive")
}

/// Spends about a tenth of a second of processor time, whatever else runs.
const BURN: &str = "i=0; while [ $i -lt 150000 ]; do i=$((i+1)); done";

#[test]
fn our_own_process_is_alive_and_has_spent_time() {
    let mut tree = ProcessTree::generator().unwrap();
    let sample = tree.sample(Duration::from_secs(3), 17).unwrap();
    assert_eq!((sample.at, sample.completed), (Duration::from_secs(3), 17));
    assert_eq!(sample.processes, 1);
    assert!(sample.memory.anonymous_bytes > 0 && sample.memory.file_bytes > 0);
    assert!(sample.fds >= 3 && sample.threads >= 1);
}

#[test]
fn children_are_taken_up_as_they_come() {
    let process = shell("sleep 100 & sleep 100 & echo three; wait");
    wait_for(&process, "three");
    let mut tree = ProcessTree::attach(process.id()).unwrap();
    let sample = now(&mut tree);
    assert_eq!(sample.processes, 3);
    assert_eq!(sample.threads, 3);
    assert!(sample.fds >= 9);
}

#[test]
fn a_busy_thread_is_told_from_idle_ones() {
    let process = shell(&format!("sleep 100 & {BURN}; echo burnt; wait"));
    wait_for(&process, "burnt");
    let mut tree = ProcessTree::attach(process.id()).unwrap();
    let threads = tree.threads().unwrap();
    assert_eq!(threads.len(), 2);
    let spent = |id: &u32| threads[id].total();
    assert!(spent(&process.id()) > Duration::ZERO);
    let idle = threads.keys().find(|id| **id != process.id()).unwrap();
    assert!(spent(idle) < spent(&process.id()));
}

#[test]
fn a_peak_is_of_all_who_run_and_at_least_what_they_hold() {
    let process = shell("sleep 100 & sleep 100 & echo three; wait");
    wait_for(&process, "three");
    let mut root = ProcessTree {
        inner: platform::Tree::attach(process.id(), false).unwrap(),
    };
    let mut tree = ProcessTree::attach(process.id()).unwrap();
    // A child that is about to become another program starts its peak anew.
    let deadline = SystemClock.now() + LONG;
    loop {
        let held = now(&mut tree).memory.total_bytes();
        let peak = tree.peak_memory_bytes().unwrap();
        if held > 0 && peak >= held && peak > root.peak_memory_bytes().unwrap() {
            break;
        }
        assert!(SystemClock.now() < deadline, "peak {peak}, held {held}");
    }
    process.stop(LONG);
    assert_eq!(
        root.peak_memory_bytes(),
        Err(root.sample(LONG, 0).unwrap_err())
    );
}

#[test]
fn what_a_reaped_child_had_spent_is_kept_once() {
    let process = shell(&format!(
        "sleep 0.01; sh -c '{BURN}'; echo done; exec sleep 100"
    ));
    let mut tree = ProcessTree::attach(process.id()).unwrap();
    let mut before = now(&mut tree).cpu;
    while process
        .stdout_line(Duration::from_millis(5), |line| {
            (line == "done").then_some(())
        })
        .is_none()
    {
        let cpu = now(&mut tree).cpu;
        assert!(cpu.user >= before.user && cpu.system >= before.system);
        before = cpu;
    }
    let after = now(&mut tree);
    let alone = ProcessTree::attach(process.id())
        .unwrap()
        .sample(LONG, 0)
        .unwrap();
    // The shell has waited for its child, so its own figures are the whole truth, in whole clock ticks.
    let difference = after.cpu.total().abs_diff(alone.cpu.total());
    assert!(difference < Duration::from_millis(40), "{difference:?}");
    assert!(after.cpu.total() > Duration::ZERO);
}

#[test]
fn what_a_disowned_child_had_spent_is_kept() {
    // Orphans come to this process, which reaps them when the test wants it.
    rustix::process::set_child_subreaper(Some(rustix::process::getpid())).unwrap();
    let process = shell(&format!(
        "( ( {BURN}; echo spent; exec sleep 100 ) & echo worker $!; wait ) & echo middle $!; \
         wait; echo alone; exec sleep 100"
    ));
    let id = |name: &str| {
        process
            .stdout_line(LONG, |line| {
                line.strip_prefix(name)?.trim().parse::<u32>().ok()
            })
            .unwrap()
    };
    let (middle, worker) = (id("middle"), id("worker"));
    let mut tree = ProcessTree::attach(process.id()).unwrap();
    wait_for(&process, "spent");
    let trio = now(&mut tree);
    assert_eq!(trio.processes, 3);

    kill(middle);
    wait_for(&process, "alone");
    let pair = now(&mut tree);
    assert_eq!(pair.processes, 2);
    assert!(pair.cpu.total() >= trio.cpu.total());

    kill(worker);
    rustix::process::waitid(
        rustix::process::WaitId::Pid(pid(worker)),
        rustix::process::WaitIdOptions::EXITED,
    )
    .unwrap();
    let one = now(&mut tree);
    assert_eq!(one.processes, 1);
    assert!(one.cpu.total() >= pair.cpu.total());
    let root_only = now(&mut ProcessTree::attach(process.id()).unwrap());
    assert!(root_only.cpu.total() < one.cpu.total());
    assert_eq!(now(&mut tree).cpu, one.cpu);
}

fn pid(id: u32) -> rustix::process::Pid {
    rustix::process::Pid::from_raw(id.cast_signed()).expect("an id is not zero")
}

fn kill(id: u32) {
    rustix::process::kill_process(pid(id), rustix::process::Signal::KILL)
        .expect("the process is ours");
}

#[test]
fn a_process_that_is_not_there_is_an_error() {
    let mut process = shell("exit 0");
    let pid = process.id();
    process.wait(LONG).unwrap();
    assert_eq!(
        ProcessTree::attach(pid).unwrap_err().to_string(),
        format!("there is no process {pid}")
    );
    assert!(ProcessTree::attach(u32::MAX).is_err());
}

#[test]
fn a_tree_that_ends_says_so() {
    let process = shell("exec sleep 100");
    let pid = process.id();
    let mut tree = ProcessTree::attach(pid).unwrap();
    now(&mut tree);
    process.stop(LONG);
    assert_eq!(tree.sample(LONG, 0), Err(TargetEnded { pid }));
}

#[test]
fn children_that_nothing_waits_for_are_reported() {
    let ignoring = shell("echo ready; exec env --ignore-signal=CHLD sleep 100");
    wait_for(&ignoring, "ready");
    let mut tree = ProcessTree::attach(ignoring.id()).unwrap();
    plimsoll_testkit::eventually(|| {
        now(&mut tree);
        tree.unseen_children().is_some()
    });
    let waiting = shell("echo ready; exec sleep 100");
    wait_for(&waiting, "ready");
    let mut tree = ProcessTree::attach(waiting.id()).unwrap();
    now(&mut tree);
    assert_eq!(tree.unseen_children(), None);
}

#[test]
fn processor_time_is_finer_than_a_clock_tick() {
    let process = shell(&format!("{BURN}; echo burnt; exec sleep 100"));
    wait_for(&process, "burnt");
    let mut tree = ProcessTree::attach(process.id()).unwrap();
    let spent = now(&mut tree).cpu.total();
    // The counter is there where the kernel has it, and then whole ticks are a coincidence.
    let has_counter = std::fs::read_to_string(format!("/proc/{}/schedstat", process.id()))
        .is_ok_and(|text| !text.starts_with("0 "));
    assert!(
        !has_counter || !spent.subsec_nanos().is_multiple_of(10_000_000),
        "{spent:?}"
    );
}
