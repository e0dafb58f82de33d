//! What `plimsoll load` does with a terminal.

use std::fs;
use std::io::Write;
use std::process::{Child, Command, Stdio};

use plimsoll_testkit::{Origin, eventually};

use crate::plimsoll::command;

const TAKEN_OVER: &str = "\x1b[?1049h";
const GIVEN_BACK: &str = "\x1b[?1049l";

/// The program with these arguments on a terminal of its own, which `script` makes.
fn on_a_terminal(arguments: &str, origin: &Origin) -> Child {
    let program = command(&[]).get_program().to_owned();
    Command::new("script")
        .args(["--quiet", "--return", "--command"])
        .arg(format!(
            "stty rows 24 columns 80; exec {} {arguments} {}",
            program.to_string_lossy(),
            origin.url("/")
        ))
        .arg("/dev/null")
        .env("TERM", "xterm-256color")
        .env_remove("NO_COLOR")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("script is part of bsdutils, which every Debian has")
}

fn output(child: Child) -> (String, Option<i32>) {
    let output = child.wait_with_output().unwrap();
    (
        String::from_utf8(output.stdout).unwrap(),
        output.status.code(),
    )
}

#[test]
fn q_gives_the_terminal_back_and_prints_the_summary() {
    for key in ["q", "\x03"] {
        let origin = Origin::hello();
        let mut child = on_a_terminal("load -c 1 -q 50 -z 1m", &origin);
        eventually(|| origin.requests() > 10);
        child
            .stdin
            .as_mut()
            .unwrap()
            .write_all(key.as_bytes())
            .unwrap();
        let (shown, code) = output(child);
        let (view, after) = shown.split_once(GIVEN_BACK).unwrap();
        assert!(view.contains(TAKEN_OVER), "{shown}");
        assert!(view.contains("requests/s"), "{shown}");
        assert!(after.contains("status     200 100 %"), "{shown}");
        assert!(after.contains("interrupted"), "{shown}");
        assert_eq!(code, Some(130), "{shown}");
    }
}

#[test]
fn a_terminal_that_goes_away_ends_the_program() {
    let origin = Origin::hello();
    let mut script = on_a_terminal("load -c 1 -q 50 -z 1m", &origin);
    eventually(|| origin.requests() > 10);
    let children = format!("/proc/{0}/task/{0}/children", script.id());
    let program: u32 = fs::read_to_string(children)
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    assert!(is_running(program));
    // The other side of the terminal is closed.
    script.kill().unwrap();
    script.wait().unwrap();
    eventually(|| !is_running(program));
}

/// Whether a process is there and not only waited for.
fn is_running(process: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    !status.is_empty() && !status.contains("State:\tZ")
}

#[test]
fn an_error_is_seen_after_the_terminal_is_given_back() {
    let origin = Origin::hello();
    let child = on_a_terminal("load -n 5 -c 1 --markdown /nowhere/at/all", &origin);
    let (shown, code) = output(child);
    let (_, after) = shown.split_once(GIVEN_BACK).unwrap();
    assert!(after.contains("cannot write /nowhere/at/all"), "{shown}");
    assert_eq!(code, Some(3), "{shown}");
}

#[test]
fn lines_take_the_place_of_the_view_if_they_are_requested() {
    let origin = Origin::hello();
    let (shown, code) = output(on_a_terminal("load --no-tui -c 1 -q 20 -z 1s", &origin));
    assert!(!shown.contains(TAKEN_OVER), "{shown}");
    assert!(shown.contains("req/s  p50"), "{shown}");
    assert_eq!(code, Some(0), "{shown}");
}

#[test]
fn without_a_terminal_a_line_a_second_is_logged_if_requested() {
    let origin = Origin::hello();
    let arguments = ["load", "--no-tui", "-c", "1", "-q", "20", "-z", "1s"];
    let mut command = command(&arguments);
    let output = crate::plimsoll::run(command.arg(origin.url("/"))).exits(0);
    assert_eq!(output.stderr.lines().count(), 1, "{output}");
    assert!(output.stderr.contains("req/s  p50"), "{output}");
    assert!(!output.stderr.contains('\x1b'), "{output}");
}
