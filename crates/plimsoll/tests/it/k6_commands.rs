//! The command line of k6: `plimsoll k6 …`, and the program under that name.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

use plimsoll_testkit::Origin;
use serde_json::Value;

use crate::plimsoll::{CommandOutput, plimsoll, run};

/// A folder with the program under the name `k6`, and a script.
struct Folder {
    folder: tempfile::TempDir,
}

impl Folder {
    fn new(files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        symlink(env!("CARGO_BIN_EXE_plimsoll"), folder.path().join("k6")).unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        Self { folder }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The program as k6, in the folder, with the environment of a step in CI.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(self.path().join("k6"));
        command
            .args(arguments)
            .current_dir(self.path())
            .stdin(Stdio::null())
            .env_remove("K6_CLOUD_TOKEN");
        command
    }

    fn k6(&self, arguments: &[&str]) -> CommandOutput {
        run(&mut self.command(arguments))
    }
}

const EMPTY: &str = "export default function () {}";

/// What grafana/run-k6-action does: it asks for the version, verifies each script, runs it and reads its output.
#[test]
fn the_steps_of_the_action_work() {
    let folder = Folder::new(&[
        (
            "dev/valid.js",
            "import { sleep } from 'k6'; export const options = { vus: 2, duration: '1s' };
             export default function () { sleep(0.1); console.log(__ENV.A, __ENV.B, __ENV.SYSTEM); }",
        ),
        (
            "dev/invalid.js",
            "export const options = { scenarios: { a: { executor: 'constant-arrival-rate' } } };
             export default function () {}",
        ),
        ("dev/no-test.js", "export const notATest = 1;"),
    ]);
    let version = folder.k6(&["version"]).exits(0).stdout;
    let (_, number) = version.split_once('v').unwrap();
    let number = number.split_whitespace().next().unwrap();
    let numbers: Vec<u32> = number.split('.').map(|it| it.parse().unwrap()).collect();
    assert!(numbers.len() == 3 && numbers[0] >= 2, "{version}");
    let inspect = |script: &str| folder.k6(&["inspect", "--execution-requirements", script]);
    inspect("dev/valid.js").exits(0);
    assert_ne!(inspect("dev/invalid.js").code, Some(0));
    assert_ne!(inspect("dev/no-test.js").code, Some(0));
    // As the action splits its flags; older versions of it begin with `--address=`.
    let flags = "--address= --vus 1 --duration 1s --env A=flag -e B=e";
    let mut arguments = vec!["run"];
    arguments.extend(flags.split(' '));
    arguments.push("dev/valid.js");
    let output = run(folder.command(&arguments).env("SYSTEM", "inherited")).exits(0);
    assert!(
        output.stdout.contains("\n        script: dev/valid.js\n"),
        "{output}"
    );
    assert!(output.stdout.contains("\n        output: -\n"), "{output}");
    assert!(
        output
            .stderr
            .contains("level=info msg=\"flag e inherited\" source=console"),
        "{output}"
    );
}

#[test]
fn runs_have_the_exit_codes_of_k6() {
    let folder = Folder::new(&[
        ("ok.js", EMPTY),
        (
            "breached.js",
            "export const options = { thresholds: { iterations: ['count>5'] } };
             export default function () {}",
        ),
        ("broken.js", "export default function ("),
        (
            "aborted.js",
            "import exec from 'k6/execution'; export default function () { exec.test.abort('no'); }",
        ),
    ]);
    for (arguments, code) in [
        (&["run", "ok.js"][..], 0),
        (&["run", "breached.js"], 99),
        (&["run", "--no-thresholds", "breached.js"], 0),
        (&["run", "--no-thresholds=false", "breached.js"], 99),
        (&["run", "broken.js"], 107),
        (&["run", "aborted.js"], 108),
        (&["run", "missing.js"], 255),
        (&["run"], 255),
        (&["run", "--no-such-flag", "ok.js"], 255),
        (&["no-such-command"], 255),
        (&["--help"], 0),
        (&["--version"], 0),
        (&["run", "--help"], 0),
    ] {
        assert_eq!(folder.k6(arguments).code, Some(code), "{arguments:?}");
    }
    plimsoll(&["k6", "run", "--no-such-flag", "ok.js"]).exits(255);
    plimsoll(&["k6", "version"]).exits(0);
}

#[test]
fn errors_that_end_a_run_are_lines_of_the_log() {
    let folder = Folder::new(&[
        (
            "breached.js",
            "export const options = { thresholds: { iterations: ['count>5'] } };
             export default function () { console.log('\\u001b[31mred'); }",
        ),
        ("broken.js", "export default function ("),
        (
            "aborted.js",
            "import exec from 'k6/execution'; export default function () { exec.test.abort('no'); }",
        ),
    ]);
    for script in ["breached.js", "broken.js", "aborted.js", "missing.js"] {
        let json = folder.k6(&["run", "--quiet", "--log-format=json", script]);
        let lines = json.stderr.lines();
        let lines: Vec<Value> = lines
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(lines.last().unwrap()["level"], "error", "{json}");
        let plain = folder.k6(&["run", "--quiet", script]);
        let is_line = |line: &str| line.starts_with("time=\"") && line.contains(" level=");
        assert!(plain.stderr.lines().all(is_line), "{plain}");
        assert!(plain.stderr.contains(" level=error msg="), "{plain}");
    }
    let raw = folder.k6(&["run", "--quiet", "--log-format=raw", "breached.js"]);
    assert_eq!(
        raw.stderr,
        "red\nthresholds on metrics 'iterations' have been crossed\n"
    );
}

/// Those of `k6 run --help` of version 2.2: each is honoured or refused by its name.
#[test]
fn every_flag_of_k6_is_known() {
    const FLAGS: &[&str] = &[
        "--vus=1",
        "--iterations=1",
        "--execution-segment=0:1",
        "--execution-segment-sequence=0,1",
        "--paused=false",
        "--no-setup",
        "--no-teardown",
        "--max-redirects=1",
        "--batch=1",
        "--batch-per-host=1",
        "--rps=1",
        "--user-agent=a",
        "--http-debug",
        "--http-debug=full",
        "--insecure-skip-tls-verify",
        "--no-connection-reuse",
        "--no-vu-connection-reuse",
        "--min-iteration-duration=1ms",
        "--throw",
        "-w",
        "--blacklist-ip=10.0.0.0/8",
        "--block-hostnames=a.test",
        "--summary-trend-stats=avg",
        "--summary-time-unit=ms",
        "--system-tags=url",
        "--tag=a=b",
        "--console-output=console.log",
        "--discard-response-bodies",
        "--local-ips=127.0.0.1",
        "--dns=policy=any",
        "--include-system-env-vars",
        "--include-system-env-vars=false",
        "--compatibility-mode=base",
        "--compatibility-mode=extended",
        "--type=js",
        "-tjs",
        "--env=A=b",
        "-eNAME",
        "--no-thresholds",
        "--summary-mode=full",
        "--summary-export=summary.json",
        "--new-machine-readable-summary",
        "--traces-output=none",
        "--out=json=samples.json",
        "--linger=false",
        "--no-usage-report",
        "--address=",
        "--log-output=stdout",
        "--log-format=raw",
        "--no-color",
        "--quiet",
        "--verbose",
        "--secret-source=mock=a=b",
        "--profiling-enabled=false",
        "--config=config.json",
    ];
    let folder = Folder::new(&[("ok.js", EMPTY), ("config.json", "{}")]);
    for flag in FLAGS {
        let output = folder.k6(&["run", flag, "ok.js"]);
        assert_eq!(output.code, Some(0), "{flag}: {output}");
    }
    // Later ones count, as in k6.
    folder
        .k6(&["run", "--vus", "2", "--vus", "1", "ok.js"])
        .exits(0);
    for (flag, code) in [
        ("--traces-output=otel", 255),
        ("--features=native-histograms", 255),
        ("--profiling-enabled", 255),
        ("--out=cloud", 255),
        ("--log-output=loki", 104),
        ("--env=1a=b", 255),
        ("--compatibility-mode=other", 255),
        ("--type=wasm", 255),
    ] {
        let output = folder.k6(&["run", flag, "ok.js"]).exits(code);
        let name = flag.split('=').next().unwrap();
        assert!(output.stderr.contains(name), "{flag}: {output}");
    }
}

#[test]
fn a_flag_with_a_value_takes_the_place_of_an_option() {
    let folder = Folder::new(&[(
        "script.js",
        "export const options = { noSetup: true, throw: true };
         export function setup() { console.log('setup'); }
         export default function () { console.log(`name [${__ENV.NAME}]`); }",
    )]);
    let output = folder.k6(&["run", "-e", "NAME", "script.js"]).exits(0);
    assert!(!output.stderr.contains("setup"), "{output}");
    assert!(output.stderr.contains("name []"), "{output}");
    let output = folder
        .k6(&["run", "--no-setup=false", "--quiet", "script.js"])
        .exits(0);
    assert!(
        output.stderr.contains("msg=setup source=console"),
        "{output}"
    );
    assert!(!output.stdout.contains("script:"), "{output}");
}

#[test]
fn cloud_commands_are_refused_as_without_a_token() {
    let folder = Folder::new(&[("ok.js", EMPTY)]);
    for arguments in [
        &["cloud", "run", "ok.js"][..],
        &["cloud", "run", "--local-execution", "ok.js"],
        &["cloud", "login"],
        &["cloud", "ok.js"],
    ] {
        let output = folder.k6(arguments).exits(255);
        assert!(output.stderr.contains("token"), "{output}");
    }
    let output = run(folder
        .command(&["cloud", "run", "ok.js"])
        .env("K6_CLOUD_TOKEN", "x"));
    assert!(output.exits(255).stderr.contains("K6_CLOUD_TOKEN"));
}

#[test]
fn options_are_inspected_as_by_k6() {
    let folder = Folder::new(&[(
        "script.js",
        "export const options = { stages: [{ duration: '90s', target: 4 }, { duration: 1500, target: 0 }],
           thresholds: { http_reqs: ['count>1'] } };
         export default function () {}",
    )]);
    let plain = folder.k6(&["inspect", "script.js"]).exits(0).json();
    assert_eq!(plain["stages"][0]["duration"], "1m30s");
    assert_eq!(plain["stages"][1]["duration"], "1.5s");
    assert_eq!(plain["scenarios"], Value::Null);
    assert!(plain.get("maxVUs").is_none());
    let whole = folder.k6(&["inspect", "--execution-requirements", "script.js"]);
    let whole = whole.exits(0).json();
    assert_eq!(whole["stages"], plain["stages"]);
    assert_eq!(whole["scenarios"]["default"]["executor"], "ramping-vus");
    assert_eq!(
        (&whole["maxVUs"], &whole["totalDuration"]),
        (&4.into(), &"2m1.5s".into())
    );
    let script = folder.path().join("script.js");
    let script = script.to_str().unwrap();
    let checked = plimsoll(&["load", "--check", "-u", "7", "-d", "5s", script]);
    let checked = checked.exits(0).json();
    let scenario = &checked["scenarios"]["default"];
    assert_eq!(scenario["executor"], "constant-vus");
    assert_eq!(
        (&checked["maxVUs"], &checked["totalDuration"]),
        (&7.into(), &"35s".into())
    );
}

#[test]
fn an_archive_runs_without_its_files_and_with_its_options() {
    let folder = Folder::new(&[
        (
            "tests/script.js",
            "import { name } from './lib/name.js'; import http from 'k6/http';
             const rows = open('../data/rows.csv');
             export const options = { tags: { a: 'b' } };
             export default function () { console.log(name, rows.trim(), __ENV.WHO, __ENV.HOME === undefined, __VU); }",
        ),
        ("tests/lib/name.js", "export const name = 'from a module';"),
        ("data/rows.csv", "1,2\n"),
    ]);
    let path = folder.path().join("test.tar");
    let tar = path.to_str().unwrap();
    let arguments = [
        "archive",
        "-e",
        "WHO=archived",
        "-u",
        "2",
        "-i",
        "2",
        "-O",
        tar,
        "tests/script.js",
    ];
    folder.k6(&arguments).exits(0);
    std::fs::remove_dir_all(folder.path().join("tests")).unwrap();
    std::fs::remove_dir_all(folder.path().join("data")).unwrap();
    let quiet = ["run", "--quiet", "--include-system-env-vars=false", tar];
    let output = folder.k6(&quiet).exits(0);
    let line = "from a module 1,2 archived true";
    assert_eq!(output.stderr.matches(line).count(), 2, "{output}");
    assert!(
        output.stdout.contains("vus_max") || output.stdout.contains("iterations"),
        "{output}"
    );
    let options = folder.k6(&["inspect", tar]).exits(0).json();
    assert_eq!(
        (&options["vus"], &options["iterations"]),
        (&2.into(), &2.into())
    );
    assert_eq!(options["tags"]["a"], "b");
    // The command line takes precedence, and `load` takes archives, too.
    let output = plimsoll(&["load", "-i", "1", "-u", "1", "-e", "WHO=me", tar]).exits(0);
    assert_eq!(output.stderr.matches("1,2 me").count(), 1, "{output}");
    // From standard input, and by its type where the name says nothing.
    let file = std::fs::File::open(&path).unwrap();
    run(folder.command(&["run", "--quiet", "-"]).stdin(file)).exits(0);
    folder
        .k6(&["run", "--quiet", "--type=archive", tar])
        .exits(0);
    folder.k6(&["run", "--quiet", "--type=js", tar]).exits(107);
    let arguments = [
        "archive",
        "--exclude-env-vars",
        "-e",
        "WHO=x",
        "-O",
        "other.tar",
        tar,
    ];
    folder.k6(&arguments).exits(0);
    let output = folder.k6(&["run", "--quiet", "other.tar"]).exits(0);
    assert!(output.stderr.contains("1,2 undefined"), "{output}");
}

#[test]
fn a_script_to_start_from_runs() {
    let folder = Folder::new(&[(
        "own.txt",
        "// {{ .ScriptName }} {{ .ProjectID }}\nexport default () => {};\n",
    )]);
    folder.k6(&["new"]).exits(0);
    let text = std::fs::read_to_string(folder.path().join("script.js")).unwrap();
    assert!(text.contains("k6/http"), "{text}");
    folder.k6(&["new"]).exits(255);
    folder.k6(&["new", "-f"]).exits(0);
    folder
        .k6(&["new", "--template", "browser", "b.js"])
        .exits(255);
    let arguments = [
        "new",
        "--template",
        "own.txt",
        "--project-id",
        "7",
        "own.js",
    ];
    folder.k6(&arguments).exits(0);
    let text = std::fs::read_to_string(folder.path().join("own.js")).unwrap();
    assert!(text.starts_with("// own.js 7\n"), "{text}");
    folder.k6(&["run", "own.js"]).exits(0);
}

#[test]
fn options_of_requests_reach_the_server() {
    let origin = Origin::hello();
    let folder = Folder::new(&[(
        "script.js",
        "import http from 'k6/http'; export default function () { http.get(`${__ENV.BASE}/`); }",
    )]);
    let base = format!("BASE={}", origin.url(""));
    let arguments = [
        "run",
        "-i",
        "3",
        "-e",
        &base,
        "--summary-export",
        "summary.json",
        "script.js",
    ];
    folder.k6(&arguments).exits(0);
    let summary = std::fs::read(folder.path().join("summary.json")).unwrap();
    let summary: Value = serde_json::from_slice(&summary).unwrap();
    assert_eq!(summary["metrics"]["http_reqs"]["count"], 3);
}

#[test]
fn the_file_of_the_console_has_what_functions_print() {
    let folder = Folder::new(&[
        (
            "ok.js",
            "console.log('init', __VU); export default function () { console.log('iteration'); }",
        ),
        (
            "broken.js",
            "console.log('init'); throw new Error('broken');",
        ),
    ]);
    let lines = |name: &str| {
        let text = std::fs::read_to_string(folder.path().join(name)).ok()?;
        let messages = text.lines().filter_map(|line| line.split_once("msg="));
        let mut messages: Vec<_> = messages.map(|(_, text)| text.to_owned()).collect();
        messages.sort();
        Some(messages)
    };
    let output = folder.k6(&["run", "--console-output=ok.log", "ok.js"]);
    let output = output.exits(0);
    // Module code prints to the log.
    assert_eq!(lines("ok.log").unwrap(), ["iteration"], "{output}");
    assert!(output.stderr.contains("init 1"), "{output}");
    let output = folder.k6(&["run", "--console-output=broken.log", "broken.js"]);
    output.exits(107);
    assert_eq!(lines("broken.log"), None);
    let output = folder.k6(&["run", "--console-output=none/ok.log", "ok.js"]);
    let output = output.exits(255);
    assert!(output.stderr.contains("--console-output"), "{output}");
}
