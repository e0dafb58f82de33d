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
    .unwrap()
}

fn wait_for(process: &Process, line: &str) {
    process
        .stdout_line(LONG, |found| (found == line).then_some(()))
        .expect("the script comes to this point");
}

fn now(tree: &mut ProcessTree) -> ResourceSample {
    tree.sample(Duration::ZERO, 0).unwrap()
}

/// Burns about a tenth of a second of processor time in a child, whatever else runs.
const BURN: &str = "sh -c 'i=0; while [ $i -lt 150000 ]; do i=$((i+1)); done'";

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
    let process = shell(
        "echo alone; while [ ! -e \"$0\" ] && ! read line < /dev/null; do break; done; \
         sleep 100 & sleep 100 & echo three; wait",
    );
    wait_for(&process, "three");
    let mut tree = ProcessTree::attach(process.id()).unwrap();
    let sample = now(&mut tree);
    assert_eq!(sample.processes, 3);
    assert_eq!(sample.threads, 3);
    assert!(sample.fds >= 9);
}

#[test]
fn what_a_reaped_child_had_spent_is_kept_once() {
    let process = shell(&format!("sleep 0.01; {BURN}; echo done; exec sleep 100"));
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
    // The shell has waited for its child, so its own figures are the whole truth.
    assert_eq!(after.cpu, alone.cpu);
    assert!(after.cpu.total() > Duration::ZERO);
}

#[test]
fn what_a_disowned_child_had_spent_is_kept() {
    // The middle shell ends at once; the child that works is nobody's in the tree.
    let process = shell(&format!(
        "sh -c \"{}; echo spent; exec sleep 100\" & echo child $!; wait; echo over; exec sleep 100",
        BURN.replace('$', "\\$")
    ));
    let child = process
        .stdout_line(LONG, |line| {
            line.strip_prefix("child ")?.parse::<u32>().ok()
        })
        .unwrap();
    let mut tree = ProcessTree::attach(process.id()).unwrap();
    wait_for(&process, "spent");
    let before = now(&mut tree);
    let status = std::process::Command::new("kill")
        .args(["-KILL", &child.to_string()])
        .status()
        .unwrap();
    assert!(status.success());
    wait_for(&process, "over");
    let after = now(&mut tree);
    assert_eq!(after.processes, 1);
    assert!(after.cpu.total() >= before.cpu.total());
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
    assert_eq!(tree.sample(LONG, 0), Err(Ended { pid }));
}
