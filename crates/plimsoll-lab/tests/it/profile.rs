//! Profiles of a real process.

use std::time::Duration;

use plimsoll_lab::profile::{ProfileError, ProfilePlan, flame, take, text};
use plimsoll_load::Interrupt;
use plimsoll_wire::process::{Process, ProcessSpec};

use crate::compare::example;

fn plan(pid: u32) -> ProfilePlan {
    ProfilePlan {
        pids: vec![pid],
        duration: Duration::from_millis(700),
        frequency: 997,
    }
}

#[test]
fn a_hot_function_is_found_with_its_thread() {
    let process = Process::spawn(&ProcessSpec {
        argv: vec![example("hot_program")],
        ..ProcessSpec::default()
    })
    .unwrap();
    let profile = match take(&plan(process.id()), &Interrupt::default()) {
        Ok(profile) => profile,
        // Where perf events are forbidden there is nothing to look at, and that is said.
        Err(error @ (ProfileError::NotPermitted { .. } | ProfileError::Event { .. })) => {
            assert!(error.to_string().contains(&process.id().to_string()));
            return;
        }
        Err(error) => panic!("{error}"),
    };
    process.stop(Duration::from_secs(1));
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
    let table = text::table(&profile, 5, 80);
    assert!(
        table.lines().all(|line| line.chars().count() <= 80),
        "{table}"
    );
}

#[test]
fn a_process_that_is_not_there_is_told() {
    let error = take(&plan(u32::MAX / 4), &Interrupt::default()).unwrap_err();
    assert!(matches!(error, ProfileError::NoProcess(_)), "{error}");
}
