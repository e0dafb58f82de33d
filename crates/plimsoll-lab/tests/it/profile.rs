//! Profiles of a real process.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use plimsoll_lab::profile::{
    CallGraph, Profile, ProfileError, ProfileKind, ProfilePlan, flame, take_profile, text,
};
use plimsoll_load::Interrupt;
use plimsoll_wire::process::{Process, ProcessSpec};

use crate::compare::example;

fn plan(pid: u32, call_graph: Option<CallGraph>) -> ProfilePlan {
    ProfilePlan {
        pids: vec![pid],
        duration: Duration::from_millis(700),
        frequency: 997,
        call_graph,
        kind: ProfileKind::Cpu,
    }
}

#[test]
fn a_wait_is_found_with_what_is_waited_for() {
    let ends = Arc::new(AtomicBool::new(false));
    let is_over = Arc::clone(&ends);
    let waiting = thread::Builder::new().name("planted-wait".to_owned());
    let waiting = waiting.spawn(move || {
        while !is_over.load(Ordering::Relaxed) {
            thread::park_timeout(Duration::from_millis(20));
        }
    });
    let waiting = waiting.unwrap();
    let own = std::process::id();
    let plan = ProfilePlan {
        kind: ProfileKind::OffCpu,
        ..plan(own, Some(CallGraph::FramePointers))
    };
    match take_profile(&plan, &Interrupt::default()) {
        Ok(profile) => {
            let threads = profile.threads();
            let planted = threads.iter().find(|it| it.name == "planted-wait");
            // A microsecond each: it waits for most of the time, and never for more than all of it.
            let waited = Duration::from_micros(planted.unwrap().samples);
            assert!(waited <= profile.duration + Duration::from_millis(50));
            assert!(waited * 4 > profile.duration, "{waited:?}");
            let folded = profile.folded();
            let mut stacks = folded.lines().filter(|it| it.starts_with("planted-wait;"));
            assert!(stacks.any(|stack| stack.contains("futex")), "{folded}");
            let table = text::table(&profile, text::FunctionOrder::Total, 20, 80);
            assert!(table.contains("of waiting in "), "{table}");
        }
        Err(error @ (ProfileError::OffCpuNotPermitted { .. } | ProfileError::Event { .. })) => {
            assert!(error.to_string().contains(&own.to_string()));
        }
        Err(error) => panic!("{error}"),
    }
    ends.store(true, Ordering::Relaxed);
    waiting.join().unwrap();
}

/// A profile of a program with one hot function; none where perf events are forbidden, if the error says so.
fn hot(call_graph: Option<CallGraph>) -> Option<Profile> {
    let process = Process::spawn(&ProcessSpec {
        argv: vec![example("hot_program")],
        ..ProcessSpec::default()
    })
    .unwrap();
    let profile = match take_profile(&plan(process.id(), call_graph), &Interrupt::default()) {
        Ok(profile) => Some(profile),
        Err(error @ (ProfileError::NotPermitted { .. } | ProfileError::Event { .. })) => {
            assert!(error.to_string().contains(&process.id().to_string()));
            None
        }
        Err(error) => panic!("{error}"),
    };
    process.stop(Duration::from_secs(1));
    profile
}

#[test]
fn a_hot_function_is_found_with_its_thread() {
    let Some(profile) = hot(Some(CallGraph::FramePointers)) else {
        return;
    };
    let functions = profile.functions();
    assert!(
        functions[0].frame.name.contains("planted_hot_function"),
        "{functions:?}"
    );
    assert!(functions[0].own * 2 > profile.samples());
    assert_eq!(profile.threads()[0].name, "hot-thread");
    assert!(profile.folded().starts_with("hot-thread;"));
    let svg = String::from_utf8(flame::svg(&profile, "hot").unwrap()).unwrap();
    assert!(svg.contains("planted_hot_function"));
    let table = text::table(&profile, text::FunctionOrder::Own, 5, 80);
    assert!(
        table.lines().all(|line| line.chars().count() <= 80),
        "{table}"
    );
}

/// Test programs are built without frame pointers, so this is by their unwind tables.
#[test]
fn a_stack_is_whole_without_being_requested() {
    let Some(profile) = hot(None) else {
        return;
    };
    let folded = profile.folded();
    let chain = "hot_program::main::{{closure}};hot_program::planted_caller;hot_program::planted_hot_function";
    let of = |line: &str| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap();
    let whole = folded.lines().filter(|line| {
        // From the thread's start on.
        line.contains("std::thread") && line.contains(chain)
    });
    let whole: u64 = whole.map(of).sum();
    assert!(whole * 10 > profile.samples() * 8, "{whole} in {folded}");
}

#[test]
fn a_process_that_is_not_there_is_reported() {
    let error = take_profile(&plan(u32::MAX / 4, None), &Interrupt::default()).unwrap_err();
    assert!(matches!(error, ProfileError::NoProcess(_)), "{error}");
}
