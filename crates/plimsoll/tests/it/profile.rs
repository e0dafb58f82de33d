//! Profiles as people ask for them.

use insta::assert_snapshot;

use crate::plimsoll::{files_in, plimsoll};

/// More than any system gives.
const NO_PROCESS: &str = "1073741823";

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
fn both_problems_at_once() {
    let said = plimsoll(&[
        "profile", "--spawn", "'", "--before", "/nosuch", "--out", "out",
    ])
    .exits(2);
    assert!(said.stderr.contains("error: --before: "), "{said}");
    assert!(said.stderr.contains("error: --spawn: "), "{said}");
}

#[test]
fn a_profile_is_printed_and_written() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let out = out.to_str().unwrap();
    let busy = "sh -c 'while :; do :; done'";
    let arguments = ["profile", "--spawn", busy, "-z", "400ms", "--out", out];
    let said = plimsoll(&arguments);
    if said.code == Some(3) && said.stderr.contains("perf event") {
        // Where they are forbidden there is nothing to see.
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
