//! The comment that the GitHub action writes to a pull request, with a stand-in for `gh`.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

/// Lists a comment of the action and one of somebody else if `earlier` is there, as the interface of GitHub does with `--jq`, and
/// notes its other calls.
const GH: &str = r#"#!/usr/bin/env bash
case "$*" in
    *--paginate*) if [ -e "$LOG/earlier" ]; then printf '%s\n' 4711 4712; fi ;;
    *) printf '%s\n' "$@" >> "$LOG/calls" ;;
esac
"#;

/// What `gh` was called with to write, if it was.
fn calls(folder: &Path, has_earlier: bool, comment: Option<&str>) -> Option<String> {
    let programs = folder.join("bin");
    let results = folder.join("results");
    for folder in [&programs, &results] {
        fs::create_dir_all(folder).unwrap();
    }
    let gh = programs.join("gh");
    fs::write(&gh, GH).unwrap();
    fs::set_permissions(&gh, fs::Permissions::from_mode(0o755)).unwrap();
    if has_earlier {
        fs::write(folder.join("earlier"), "").unwrap();
    }
    if let Some(comment) = comment {
        fs::write(results.join("comment.md"), comment).unwrap();
    }
    let script = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../packaging/action/comment.sh"
    );
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path =
        std::env::join_paths(std::iter::once(programs.clone()).chain(std::env::split_paths(&path)));
    let status = Command::new("bash")
        .arg(script)
        .env("PATH", path.unwrap())
        .env("LOG", folder)
        .env("FOLDER", &results)
        .env("REPOSITORY", "shop/web")
        .env("PULL_REQUEST", "7")
        .status()
        .unwrap();
    assert!(status.success());
    fs::read_to_string(folder.join("calls")).ok()
}

#[test]
fn a_pull_request_has_one_comment_which_later_runs_replace() {
    let text = "| p99 | 3 ms |\n`$(id)` \"quoted\"";
    let folder = tempfile::tempdir().unwrap();
    let first = calls(folder.path(), false, Some(text)).unwrap();
    let body = format!("body=<!-- plimsoll load test -->\n{text}\n");
    let expected = format!(
        "api\n--silent\n--method\nPOST\nrepos/shop/web/issues/7/comments\n--raw-field\n{body}"
    );
    assert_eq!(first, expected);
    let folder = tempfile::tempdir().unwrap();
    let second = calls(folder.path(), true, Some(text)).unwrap();
    assert!(
        second.contains("PATCH\nrepos/shop/web/issues/comments/4711\n"),
        "{second}"
    );
    assert!(second.ends_with(&body), "{second}");
}

#[test]
fn a_run_without_a_result_writes_no_comment() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(calls(folder.path(), true, None), None);
}
