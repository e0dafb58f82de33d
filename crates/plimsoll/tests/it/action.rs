//! What the GitHub action runs, over a repository with a server in it, and the comment that it writes to a pull request, with a
//! stand-in for `gh`.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use plimsoll_testkit::free_port;

use crate::plimsoll::CommandOutput;

/// A server that answers once it has computed for as long as a file says.
const SERVER: &str = r"
import sys, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
COST = float(open('cost').read())
class Handler(BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    def do_GET(self):
        end = time.thread_time() + COST
        while time.thread_time() < end:
            pass
        self.send_response(200)
        self.send_header('Content-Length', '2')
        self.end_headers()
        self.wfile.write(b'ok')
    def log_message(self, *arguments):
        pass
ThreadingHTTPServer(('127.0.0.1', int(sys.argv[1])), Handler).serve_forever()
";

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

/// A repository whose base has a server that costs so much, in seconds of a request, and whose last commit has another.
fn repository(base: &str, new: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let git = |arguments: &[&str]| {
        let who = ["-c", "user.name=a", "-c", "user.email=a@example.org"];
        let mut command = Command::new("git");
        command.args(who).args(arguments).current_dir(folder.path());
        let output = command.output().expect("git is installed");
        assert!(output.status.success(), "{output:?}");
    };
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    git(&["init", "--quiet", "--initial-branch", "main"]);
    write("server.py", SERVER);
    write("cost", base);
    git(&["add", "."]);
    git(&["commit", "--quiet", "--message", "base"]);
    git(&["switch", "--quiet", "--create", "change"]);
    write("cost", new);
    git(&[
        "commit",
        "--quiet",
        "--all",
        "--allow-empty",
        "--message",
        "change",
    ]);
    folder
}

/// Runs the action's script in a repository; its output, and the comment.
fn run_action(repository: &Path, variables: &[(&str, &str)]) -> (CommandOutput, String) {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/action/run.sh");
    let output = Command::new("bash")
        .arg(script)
        .current_dir(repository)
        .env("PLIMSOLL", env!("CARGO_BIN_EXE_plimsoll"))
        .env("SERVER", "python3 server.py {port}")
        .env("PORT", free_port().unwrap().to_string())
        .envs([("DURATION", "1s"), ("WARM_UP", "0s"), ("CONNECTIONS", "2")])
        .envs([("TRIALS", "3"), ("TRIAL_SECONDS", "1"), ("UNTIL_SURE", "3")])
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    let comment = fs::read_to_string(repository.join("plimsoll-results/comment.md"));
    (
        CommandOutput::from_output(output),
        comment.unwrap_or_default(),
    )
}

#[test]
fn a_commit_that_is_slower_than_its_base_fails() {
    let repository = repository("0.0002", "0.005");
    let (output, comment) = run_action(repository.path(), &[("BASE", "main")]);
    let output = output.exits(1);
    assert!(comment.contains("### Load test"), "{output}\n{comment}");
    assert!(
        comment.contains("### Compared with "),
        "{output}\n{comment}"
    );
    assert!(
        comment.ends_with("**Failed: the comparison.**\n"),
        "{output}\n{comment}"
    );
    let worktrees = Command::new("git")
        .args(["worktree", "list"])
        .current_dir(repository.path())
        .output();
    let worktrees = String::from_utf8(worktrees.unwrap().stdout).unwrap();
    assert_eq!(worktrees.lines().count(), 1, "{worktrees}");
}

#[test]
fn a_threshold_that_is_not_met_fails_without_a_base() {
    let repository = repository("0", "0");
    let variables = [
        ("THRESHOLDS", "p50 < 1 ns\np99 < 1 min"),
        ("EXPECT", "status == 200"),
    ];
    let (output, comment) = run_action(repository.path(), &variables);
    let output = output.exits(1);
    assert!(
        comment.ends_with("**Failed: the load test.**\n"),
        "{output}\n{comment}"
    );
}

#[test]
fn verdicts_of_the_comparison_decide_the_step() {
    // How a comparison ends depends on the machine: a stand-in exits with a given code.
    let folder = tempfile::tempdir().unwrap();
    let stand_in = folder.path().join("plimsoll");
    let text = r#"#!/bin/sh
while [ $# -gt 0 ]; do
    case "$1" in
        load) is_load=1 ;;
        --markdown) echo loaded >"$2" ;;
        --out) mkdir -p "$2"; echo compared >"$2/compare.txt" ;;
    esac
    shift
done
[ -n "$is_load" ] || exit "$ENDS"
"#;
    fs::write(&stand_in, text).unwrap();
    fs::set_permissions(&stand_in, fs::Permissions::from_mode(0o755)).unwrap();
    for (ends, if_unsure, code, verdict) in [
        ("0", "fail", 0, ""),
        ("1", "pass", 1, "**Failed: the comparison.**"),
        (
            "4",
            "fail",
            1,
            "**Failed: the comparison, which cannot tell.**",
        ),
        ("4", "pass", 0, ""),
        // What could not be run is no verdict.
        ("3", "pass", 3, ""),
    ] {
        let repository = repository("0", "0");
        let variables = [
            ("BASE", "main"),
            ("IF_UNSURE", if_unsure),
            ("ENDS", ends),
            ("PLIMSOLL", stand_in.to_str().unwrap()),
        ];
        let (output, comment) = run_action(repository.path(), &variables);
        let output = output.exits(code);
        assert_eq!(
            comment.contains("compared"),
            code != 3,
            "{output}\n{comment}"
        );
        assert_eq!(
            comment.contains("**Failed"),
            !verdict.is_empty(),
            "{output}\n{comment}"
        );
        assert!(comment.contains(verdict), "{output}\n{comment}");
    }
}
