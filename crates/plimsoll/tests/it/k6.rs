//! `plimsoll load` with scripts of k6: the whole program against the embedded origin's neighbour, a real server.

use std::io::Write as _;
use std::process::Stdio;

use plimsoll_testkit::Origin;

use crate::plimsoll::{CommandOutput, command, plimsoll};

fn script(directory: &tempfile::TempDir, text: &str) -> String {
    let path = directory.path().join("script.js");
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_script_runs_with_flags_variables_and_an_exported_summary() {
    let origin = Origin::hello();
    let directory = tempfile::tempdir().unwrap();
    let script = script(
        &directory,
        "import http from 'k6/http'; import { check } from 'k6';
         export default function () {
           const r = http.get(`${__ENV.BASE}/`);
           check(r, { 'is hello': (r) => r.body.includes('hello') });
           if (__ITER === 0 && __VU === 1) console.log('hello from', __ENV.WHO);
         }",
    );
    let summary = directory.path().join("summary.json");
    let base = format!("BASE={}", origin.url(""));
    let output = plimsoll(&[
        "load",
        "-u",
        "2",
        "-i",
        "10",
        "-e",
        &base,
        "--env",
        "WHO=me",
        "--summary-export",
        summary.to_str().unwrap(),
        &script,
    ])
    .exits(0);
    assert!(
        output.stderr.contains("hello from me  source=console"),
        "{output}"
    );
    for expected in [
        "checks_succeeded...",
        "100.00% 10 out of 10",
        "✓ is hello",
        "http_reqs",
    ] {
        assert!(
            output.stdout.contains(expected),
            "no {expected} in {output}"
        );
    }
    assert_eq!(origin.requests(), 10);
    let summary: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(summary).unwrap()).unwrap();
    assert_eq!(summary["metrics"]["http_reqs"]["count"], 10);
}

#[test]
fn a_script_comes_from_standard_input() {
    let mut command = command(&["load", "-i", "3", "--summary-mode", "disabled", "-"]);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin
        .write_all(b"export default () => console.log(__ITER)")
        .unwrap();
    drop(stdin);
    let output = CommandOutput::of(child.wait_with_output().unwrap()).exits(0);
    assert_eq!(
        output.stderr.matches("source=console").count(),
        3,
        "{output}"
    );
    assert_eq!(output.stdout, "");
}

#[test]
fn exit_codes_and_messages_are_for_people() {
    let directory = tempfile::tempdir().unwrap();
    for (text, code, expected) in [
        (
            "export const options = { thresholds: { iterations: ['count>1'] } }; export default () => {}",
            99,
            "thresholds on metrics 'iterations' have been crossed",
        ),
        (
            "export const options = { vuss: 1, tlsAuth: [] }; export default () => {}",
            104,
            "options.tlsAuth is not supported by plimsoll",
        ),
        (
            "import { browser } from 'k6/browser'; export default () => {}",
            107,
            "browser automation is not supported by plimsoll",
        ),
        (
            "import exec from 'k6/execution'; export default () => exec.test.abort('stop')",
            108,
            "test aborted: stop",
        ),
    ] {
        let script = script(&directory, text);
        let output = plimsoll(&["load", &script]).exits(code);
        assert!(
            output.stderr.contains(expected),
            "no {expected} in {output}"
        );
    }
    let output = plimsoll(&["load", "none.js"]).exits(107);
    assert!(output.stderr.contains("cannot read none.js"), "{output}");
    let output = plimsoll(&["load", "script.ts"]).exits(107);
    assert!(output.stderr.contains("script.ts"), "{output}");
    let output = plimsoll(&["load", "--stage", "soon", "script.js"]).exits(2);
    assert!(
        output.stderr.contains("is not a stage such as 30s:10"),
        "{output}"
    );
}

#[test]
fn a_signal_ends_a_script_with_its_summary() {
    let directory = tempfile::tempdir().unwrap();
    let script = script(
        &directory,
        "import { sleep } from 'k6'; export default () => { console.log('started'); sleep(600) }",
    );
    let mut child = command(&["load", "-d", "1h", &script])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stderr = std::io::BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    std::io::BufRead::read_line(&mut stderr, &mut line).unwrap();
    assert!(line.contains("started"), "{line}");
    let id = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(id, rustix::process::Signal::INT).unwrap();
    let output = CommandOutput::of(child.wait_with_output().unwrap()).exits(105);
    assert!(output.stdout.contains("TOTAL RESULTS"), "{output}");
}

#[test]
fn typescript_runs_with_options_of_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let script = directory.path().join("script.ts");
    std::fs::write(
        &script,
        "import { Options } from 'k6/options';
         export const options: Options = { tags: { of: 'script' } };
         export default function (): void { const vu: number = __VU; console.log(`vu ${vu as number}`); }",
    )
    .unwrap();
    let script = script.to_str().unwrap();
    let config = directory.path().join("options.json");
    std::fs::write(&config, "{ \"vus\": 2, \"iterations\": 6 }").unwrap();
    let config = config.to_str().unwrap();
    let output = plimsoll(&["load", "--config", config, script]).exits(0);
    assert_eq!(
        output.stderr.matches("source=console").count(),
        6,
        "{output}"
    );
    let output = plimsoll(&["load", "-c", config, "-i", "3", script]).exits(0);
    assert_eq!(
        output.stderr.matches("source=console").count(),
        3,
        "{output}"
    );
    std::fs::write(config, "[]").unwrap();
    let output = plimsoll(&["load", "-c", config, script]).exits(104);
    assert!(
        output.stderr.contains("is not an object of options"),
        "{output}"
    );
    std::fs::write(script, "enum A { B }").unwrap();
    let output = plimsoll(&["load", script]).exits(107);
    assert!(
        output
            .stderr
            .contains("script.ts:1:1: enums are more than types"),
        "{output}"
    );
}
