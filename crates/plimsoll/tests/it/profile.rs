//! Profiles as people ask for them.

use std::process::Stdio;

use insta::assert_snapshot;
use plimsoll_testkit::eventually;

use crate::load::interrupt;
use crate::plimsoll::{Said, command, files_in, plimsoll};

/// More than any system gives.
const NO_PROCESS: &str = "1073741823";

/// Where perf events are forbidden there is nothing to see, and that is told.
fn refused(said: &Said) -> bool {
    let reasons = ["does not permit to sample", "cannot open a perf event"];
    said.code == Some(3) && reasons.iter().any(|reason| said.stderr.contains(reason))
}

#[test]
fn what_cannot_be_profiled() {
    assert_snapshot!(plimsoll(&["profile", "--pid", NO_PROCESS]), @"
    error: --pid: there is no process 1073741823
    exit 3
    ");
    assert_snapshot!(plimsoll(&["profile", "--spawn", "server 'a"]), @"
    error: --spawn: `server 'a` is not a command: a quote is not closed, or it is empty
    exit 2
    ");
    let said = plimsoll(&["profile", "--spawn", "/nosuch/server"]).exits(3);
    assert!(said.stderr.contains("--spawn: "), "{said}");
    assert!(said.stderr.contains("/nosuch/server"), "{said}");
}

#[test]
fn an_earlier_profile_that_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let before = folder.path().to_str().unwrap();
    let out = folder.path().join("out");
    let said = plimsoll(&[
        "profile",
        "--pid",
        NO_PROCESS,
        "--before",
        before,
        "--out",
        out.to_str().unwrap(),
    ])
    .exits(2);
    let expected = format!("error: --before: cannot read {before}/profile.folded: ");
    assert!(said.stderr.starts_with(&expected), "{said}");
    assert!(!out.exists());
}

#[test]
fn all_problems_at_once() {
    let said = plimsoll(&[
        "profile", "--spawn", "'", "--before", "/nosuch", "--out", "out", "--every", "1ms",
    ])
    .exits(2);
    assert!(said.stderr.contains("error: --before: "), "{said}");
    assert!(said.stderr.contains("error: --spawn: "), "{said}");
    assert!(
        said.stderr
            .contains("error: --every: must be at least 100ms"),
        "{said}"
    );
}

#[test]
fn a_profile_is_printed_and_written() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let out = out.to_str().unwrap();
    let busy = "sh -c 'while :; do :; done'";
    let arguments = ["profile", "--spawn", busy, "-z", "400ms", "--out", out];
    let said = plimsoll(&arguments);
    if refused(&said) {
        return;
    }
    let said = said.exits(0);
    assert!(said.stdout.contains("function\n"), "{said}");
    let files = ["profile.folded", "profile.pb.gz", "profile.svg"];
    assert_eq!(files_in(out.as_ref()), files);
    let again = folder.path().join("again");
    let again = again.to_str().unwrap();
    let arguments = [
        "profile", "--spawn", busy, "-z", "400ms", "--out", again, "--before", out,
    ];
    plimsoll(&arguments).exits(0);
    assert!(files_in(again.as_ref()).contains(&"difference.svg".to_owned()));
}

#[test]
fn profiles_are_numbered_until_ctrl_c() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let busy = "sh -c 'while :; do :; done'";
    let arguments = [
        "profile",
        "--spawn",
        busy,
        "-z",
        "1h",
        "--every",
        "100ms",
        "--out",
        out.to_str().unwrap(),
    ];
    let mut child = command(&arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The folded stacks are written last.
    let second = out.join("0002").join("profile.folded");
    eventually(|| second.exists() || child.try_wait().unwrap().is_some());
    if second.exists() {
        interrupt(child.id());
    }
    let said = Said::of(child.wait_with_output().unwrap());
    if refused(&said) {
        return;
    }
    let said = said.exits(130);
    assert!(said.stdout.starts_with("profile 0001: "), "{said}");
    assert!(said.stdout.contains("\nprofile 0002: "), "{said}");
    let files = ["profile.folded", "profile.pb.gz", "profile.svg"];
    assert_eq!(files_in(&out.join("0001")), files);
}
