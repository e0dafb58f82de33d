use std::os::unix::process::ExitStatusExt;

use super::*;

const LONG: Duration = Duration::from_secs(20);

fn shell(script: &str) -> ProcessSpec {
    ProcessSpec {
        argv: vec!["sh".into(), "-c".into(), script.into()],
        stdout: Output::Captured,
        stderr: Output::Captured,
        ..ProcessSpec::default()
    }
}

/// Whether the process exists and is not merely waiting to be reaped.
#[cfg(target_os = "linux")]
fn runs(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.rsplit(") ").next().unwrap().starts_with('Z'))
}

/// Waits for the kernel to have taken the process away; signals are delivered asynchronously.
#[cfg(target_os = "linux")]
fn wait_until_gone(pid: u32) {
    let start = SystemClock.now();
    while runs(pid) {
        assert!(start.elapsed() < LONG, "process {pid} is still there");
        thread::yield_now();
    }
}

#[test]
fn an_early_end_is_explained_by_status_and_stderr() {
    let script = "echo serving; echo 'cannot bind' >&2; exit 7";
    let mut process = Process::spawn(&shell(script)).unwrap();
    let status = process.wait(LONG).unwrap();
    assert_eq!(status.code(), Some(7));
    assert_eq!(process.stderr_tail(), "cannot bind\n");
    assert_eq!(process.stdout_tail(), "serving\n");
}

#[test]
fn captured_output_is_kept_up_to_its_bound() {
    let last = |most| {
        let mut process = Process::spawn(&ProcessSpec {
            stdout: Output::CapturedUpTo(most),
            ..shell("i=0; while [ $i -lt 5000 ]; do i=$((i+1)); echo line $i; done")
        })
        .unwrap();
        process.wait(LONG).unwrap();
        process.stdout_tail()
    };
    assert_eq!(last(20), "line 5000\n");
    assert_eq!(last(1 << 20).lines().count(), 5000);
}

#[test]
fn a_program_gets_its_input_environment_and_folder_and_no_other() {
    let folder = std::env::temp_dir().canonicalize().unwrap();
    let content = "x".repeat(300_000);
    let mut process = Process::spawn(&ProcessSpec {
        // More than a pipe holds, in both directions.
        argv: vec![
            "/bin/sh".into(),
            "-c".into(),
            "pwd; echo $A-$HOME; cat".into(),
        ],
        stdout: Output::CapturedUpTo(1 << 20),
        stdin: content.clone().into_bytes(),
        environment: Some(vec![("A".to_owned(), "given".to_owned())]),
        folder: Some(folder.clone()),
        ..ProcessSpec::default()
    })
    .unwrap();
    process.wait(LONG).unwrap();
    let expected = format!("{}\ngiven-\n{content}", folder.display());
    assert_eq!(process.stdout_tail(), expected);
}

#[test]
fn time_and_memory_of_descendants_are_counted() {
    let script = "sh -c 'i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done'; :";
    let mut process = Process::spawn(&shell(script)).unwrap();
    let finished = process.finish(LONG).unwrap().unwrap();
    assert!(finished.status.success());
    assert!(
        finished.cpu.total() > Duration::from_millis(5),
        "{finished:?}"
    );
    assert!(finished.max_rss_bytes > 0);
    // Reported again, although the process is long gone.
    assert_eq!(process.finish(Duration::ZERO).unwrap(), Some(finished));
    assert_eq!(process.end(LONG), Some(finished.status));
}

#[test]
fn a_running_program_is_distinguished_from_an_ended_one() {
    let mut process = Process::spawn(&shell("exec sleep 100")).unwrap();
    assert_eq!(process.wait(Duration::ZERO), None);
    let status = process.stop(LONG).unwrap();
    assert_eq!(status.signal(), Some(Signal::TERM.as_raw()));
}

#[test]
#[cfg(target_os = "linux")]
fn stopping_reaches_the_children_too() {
    let process = Process::spawn(&shell("sleep 100 & echo child $!; wait")).unwrap();
    let child = process
        .stdout_line(LONG, |line| {
            line.strip_prefix("child ")?.parse::<u32>().ok()
        })
        .unwrap();
    assert!(runs(child));
    process.stop(LONG);
    wait_until_gone(child);
}

#[test]
#[cfg(target_os = "linux")]
fn what_ignores_the_request_to_end_is_killed() {
    let process = Process::spawn(&shell(
        "trap '' TERM; echo ready; while :; do sleep 1; done",
    ));
    let process = process.unwrap();
    let id = process.id();
    process
        .stdout_line(LONG, |line| (line == "ready").then_some(()))
        .unwrap();
    let status = process.stop(Duration::from_millis(20)).unwrap();
    assert_eq!(status.signal(), Some(Signal::KILL.as_raw()));
    assert!(!runs(id));
}

#[test]
#[cfg(target_os = "linux")]
fn dropping_leaves_nothing_behind() {
    let process = Process::spawn(&shell("sleep 100 & echo child $!; wait")).unwrap();
    let id = process.id();
    let child = process
        .stdout_line(LONG, |line| {
            line.strip_prefix("child ")?.parse::<u32>().ok()
        })
        .unwrap();
    drop(process);
    assert!(!std::path::Path::new(&format!("/proc/{id}")).exists());
    wait_until_gone(child);
}

#[test]
#[cfg(target_os = "linux")]
fn what_outlives_the_program_is_ended_with_it() {
    // The child inherits that the polite signal is ignored, and holds the output open.
    let script = "trap '' TERM; sleep 100 & echo child $!";
    let mut process = Process::spawn(&shell(script)).unwrap();
    let child = process
        .stdout_line(LONG, |line| {
            line.strip_prefix("child ")?.parse::<u32>().ok()
        })
        .unwrap();
    assert!(process.wait(LONG).unwrap().success());
    wait_until_gone(child);
    assert_eq!(process.stdout_tail(), format!("child {child}\n"));
}

#[test]
#[cfg(target_os = "linux")]
fn it_is_bound_to_the_cores_and_we_are_not() {
    let available = cores::available();
    let core = *available.last().unwrap();
    let process = Process::spawn(&ProcessSpec {
        cores: vec![core],
        ..shell("grep Cpus_allowed_list /proc/self/status")
    })
    .unwrap();
    let allowed = process
        .stdout_line(LONG, |line| {
            Some(line.strip_prefix("Cpus_allowed_list:")?.trim().to_owned())
        })
        .unwrap();
    assert_eq!(allowed, core.to_string());
    assert_eq!(cores::available(), available);
}

#[test]
fn a_line_that_never_comes_ends_with_the_program() {
    let process = Process::spawn(&shell("echo something else")).unwrap();
    let found = process.stdout_line(LONG, |line| (line == "ready").then_some(()));
    assert_eq!(found, None);
}

#[test]
fn errors_name_the_program() {
    let error = |argv: &[&str]| {
        Process::spawn(&ProcessSpec {
            argv: argv.iter().map(ToString::to_string).collect(),
            ..ProcessSpec::default()
        })
        .unwrap_err()
        .to_string()
    };
    assert_eq!(error(&[]), "the command is empty");
    assert_eq!(
        error(&["no-such-program-here"]),
        "program `no-such-program-here` not found"
    );
    assert_eq!(error(&["/"]), "start `/`");
}

#[test]
#[cfg(target_os = "linux")]
fn a_core_that_is_not_there_is_refused() {
    let error = Process::spawn(&ProcessSpec {
        cores: vec![1_000_000],
        ..shell("true")
    })
    .unwrap_err();
    assert!(matches!(error, SpawnError::Pin(_)));
    assert!(error.to_string().contains("core 1000000"), "{error}");
}

#[test]
#[cfg(target_os = "linux")]
fn a_running_program_can_be_bound_and_requested() {
    let process = Process::spawn(&shell("exec sleep 100")).unwrap();
    let available = cores::available();
    assert_eq!(cores::of_process(process.id()), Some(available.clone()));
    let last = &available[available.len() - 1..];
    cores::pin_process(process.id(), last).unwrap();
    assert_eq!(cores::of_process(process.id()).as_deref(), Some(last));
    process.stop(LONG);
    assert!(cores::pin_process(u32::MAX, last).is_err());
}
