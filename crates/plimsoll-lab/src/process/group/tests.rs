use super::*;

fn words(command: &[&str]) -> Vec<String> {
    command.iter().map(|&word| word.to_owned()).collect()
}

fn run_to_end(group: &mut ProcessGroup) -> Finished {
    group
        .wait(Duration::from_secs(20))
        .unwrap()
        .expect("ends by itself")
}

#[test]
fn output_and_status_are_kept() {
    let script = "echo out; echo err >&2; exit 3";
    let mut group = ProcessGroup::spawn(&words(&["sh", "-c", script]), &[]).unwrap();
    let finished = run_to_end(&mut group);
    assert_eq!(finished.status.code(), Some(3));
    assert_eq!(group.complaint(), "err\n");
    assert_eq!(group.stdout(), "out\n");
}

#[test]
fn time_of_descendants_is_counted() {
    let script = "sh -c 'i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done'; :";
    let mut group = ProcessGroup::spawn(&words(&["sh", "-c", script]), &[]).unwrap();
    let finished = run_to_end(&mut group);
    assert!(
        finished.cpu.total() > Duration::from_millis(5),
        "{finished:?}"
    );
    assert!(finished.max_rss_bytes > 0);
}

#[test]
fn a_missing_program_is_named() {
    let error = ProcessGroup::spawn(&words(&["no-such-program-4711"]), &[]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "command not found: `no-such-program-4711`"
    );
}

#[test]
fn a_core_that_is_not_there_is_refused() {
    let error = ProcessGroup::spawn(&words(&["true"]), &[1023]).unwrap_err();
    assert!(matches!(error, SpawnError::Refused { ref cause, .. }
        if cause.to_string().contains("core 1023")));
}

#[test]
fn a_child_runs_on_its_core_and_we_do_not() {
    let before = rustix::thread::sched_getaffinity(None).unwrap();
    let core = (0..1024).find(|&core| before.is_set(core)).unwrap();
    let show = words(&["grep", "Cpus_allowed_list", "/proc/self/status"]);
    let mut group = ProcessGroup::spawn(&show, &[core]).unwrap();
    run_to_end(&mut group);
    assert_eq!(group.stdout().trim(), format!("Cpus_allowed_list:\t{core}"));
    assert_eq!(rustix::thread::sched_getaffinity(None).unwrap(), before);
}

#[test]
fn stopping_ends_grandchildren_too() {
    // The grandchild says its number and ignores the polite signal.
    let script = "sh -c 'trap \"\" TERM; echo $$; exec sleep 600' & wait";
    let group = ProcessGroup::spawn(&words(&["sh", "-c", script]), &[]).unwrap();
    let clock = SystemClock;
    let deadline = clock.now() + Duration::from_secs(20);
    while !group.stdout.text(100).0.contains('\n') {
        assert!(clock.now() < deadline, "the grandchild never spoke");
    }
    let grandchild: i32 = group.stdout().trim().parse().unwrap();
    drop(group);
    let gone = |pid| {
        procfs::process::Process::new(pid)
            .and_then(|process| process.stat())
            .map_or(true, |stat| stat.state == 'Z')
    };
    while !gone(grandchild) {
        assert!(clock.now() < deadline, "{grandchild} was left behind");
    }
}

#[test]
fn a_complaint_on_standard_output_is_heard() {
    let mut group = ProcessGroup::spawn(&words(&["echo", "Usage: tool"]), &[]).unwrap();
    run_to_end(&mut group);
    assert_eq!(group.complaint(), "Usage: tool\n");
}
