//! Result files and messages carry no secret of the command line.

use std::fs;
use std::path::Path;

use plimsoll_testkit::Origin;

use crate::plimsoll::{CommandOutput, plimsoll};

/// Stands in every secret of these tests.
const SECRET: &str = "hunter2";

#[test]
fn results_of_load_hold_no_secret() {
    let origin = Origin::builder().start();
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("run");
    let url = origin.url("/?api_key=hunter2&page=7");
    let output = plimsoll(&[
        "load",
        "-n",
        "20",
        "-c",
        "2",
        "-HAuthorization: Bearer hunter2",
        "-H=X-Api-Key: hunter2",
        "-d",
        "password=hunter2",
        "--json",
        "--out",
        out.to_str().unwrap(),
        &url.replace("http://", "http://hunter2@"),
    ])
    .exits(0);
    hides_secrets(&output, &out);
    assert!(output.stdout.contains("page=7"), "{output}");
}

#[test]
fn results_of_compare_hold_no_secret() {
    let origin = Origin::builder().start();
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("comparison");
    let url = origin.url("/");
    let load = format!(
        "{} load --json -n 10 -c 1 -a me:hunter2 -H 'X-Token: hunter2' {url}?token=hunter2",
        env!("CARGO_BIN_EXE_plimsoll")
    );
    let output = plimsoll(&[
        "compare",
        &load,
        &load,
        "--trials",
        "2",
        "--seconds",
        "1",
        "--json",
        "--out",
        out.to_str().unwrap(),
    ])
    .exits(0);
    hides_secrets(&output, &out);
}

#[track_caller]
fn hides_secrets(output: &CommandOutput, folder: &Path) {
    assert!(!output.stdout.contains(SECRET), "{output}");
    assert!(!output.stderr.contains(SECRET), "{output}");
    let mut files = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            let text = fs::read(&path).unwrap();
            let text = String::from_utf8_lossy(&text);
            assert!(!text.contains(SECRET), "{}: {text}", path.display());
            files += 1;
        }
    }
    assert!(files > 0);
}
