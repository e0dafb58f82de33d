//! Profiles as people ask for them.

use std::process::Stdio;
use std::time::Duration;

use insta::assert_snapshot;
use plimsoll_testkit::services::folder_of_py_spy;
use plimsoll_testkit::{Origin, Script, eventually};
use plimsoll_wire::process::{Output, Process, ProcessSpec};

use crate::load::interrupt;
use crate::plimsoll::{CommandOutput, command, files_in, plimsoll, run};

/// Until a program has started.
const TIMEOUT: Duration = Duration::from_secs(20);

/// More than any system gives.
const NO_PROCESS: &str = "1073741823";

/// Where perf events are forbidden there is nothing to see, and the message says so.
pub(crate) fn refused(output: &CommandOutput) -> bool {
    let reasons = ["does not permit to sample", "cannot open a perf event"];
    output.code == Some(3) && reasons.iter().any(|reason| output.stderr.contains(reason))
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
    let output = plimsoll(&["profile", "--spawn", "/nosuch/server"]).exits(3);
    assert!(output.stderr.contains("--spawn: "), "{output}");
    assert!(output.stderr.contains("/nosuch/server"), "{output}");
}

/// A program in Python that computes in two functions, and says when it does.
const PYTHON: &str = "
def planted_hot(): return sum(i * i for i in range(2000))
def planted_outer():
    while True: planted_hot()
print('ready', flush=True)
planted_outer()
";

/// What a profile says of a program in Python, with this search path; none where perf events are forbidden.
fn of_python(path: &str) -> Option<String> {
    let python = Process::spawn(&ProcessSpec {
        argv: ["python3", "-c", PYTHON].map(str::to_owned).to_vec(),
        stdout: Output::Captured,
        ..ProcessSpec::default()
    });
    let python = python.unwrap();
    let ready = python.stdout_line(TIMEOUT, |line| (line == "ready").then_some(()));
    assert!(ready.is_some(), "{}", python.stderr_tail());
    let pid = python.id().to_string();
    let output = run(command(&["profile", "--pid", &pid, "-z", "2s"]).env("PATH", path));
    (!refused(&output)).then(|| output.exits(0).stdout)
}

#[test]
fn functions_in_python_are_named_by_py_spy() {
    let Some(table) = of_python(folder_of_py_spy().to_str().unwrap()) else {
        return;
    };
    assert!(!table.contains("have no names"), "{table}");
    let row = |name: &str| -> Vec<f64> {
        let line = table.lines().find(|line| line.contains(name));
        let words = line.unwrap_or_else(|| panic!("{table}")).split_whitespace();
        words.filter_map(|word| word.parse().ok()).collect()
    };
    assert!(row("planted_hot")[1] > 50.0, "{table}");
    assert!(row("planted_outer")[1] > 50.0, "{table}");
    assert!(row("planted_outer")[0] < 50.0, "{table}");
}

#[test]
fn without_py_spy_a_profile_says_why_functions_in_python_have_no_names() {
    let Some(table) = of_python("/nonexistent") else {
        return;
    };
    assert!(
        table.contains("have no names: py-spy is not installed (`pip install py-spy`)"),
        "{table}"
    );
}

/// A program in Go that spends its time in a function which its compiler puts into another one.
const GO: &str = r"
package main

func plantedInlined(x uint64) uint64 { return x*6364136223846793005 + 1442695040888963407 }

//go:noinline
func plantedCaller(n uint64) uint64 {
	var x uint64
	for i := uint64(0); i < n; i++ {
		x ^= plantedInlined(x + i)
	}
	return x
}

func main() {
	for plantedCaller(1_000_000) != 1 {
	}
}
";

/// Where there is no Go there is nothing to see.
#[test]
fn functions_that_go_has_inlined_are_named() {
    if plimsoll_wire::process::find("go").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("main.go"), GO).unwrap();
    let mut compiler = std::process::Command::new("go");
    compiler.args(["build", "-o", "planted", "main.go"]);
    compiler.env("GOTOOLCHAIN", "local");
    let built = compiler.current_dir(folder.path()).output().unwrap();
    assert!(built.status.success(), "{built:?}");
    let program = folder.path().join("planted");
    let go = Process::spawn(&ProcessSpec {
        argv: vec![program.to_str().unwrap().to_owned()],
        ..ProcessSpec::default()
    });
    let go = go.unwrap();
    let pid = go.id().to_string();
    let results = folder.path().join("profile");
    let out = results.to_str().unwrap();
    let output = plimsoll(&["profile", "--pid", &pid, "-z", "2s", "--out", out]);
    if refused(&output) {
        return;
    }
    let output = output.exits(0);
    let stacks = std::fs::read_to_string(results.join("profile.folded")).unwrap();
    let count = |part: &str| -> u64 {
        let found = stacks.lines().filter(|line| line.contains(part));
        let counts = found.filter_map(|line| line.rsplit_once(' ')?.1.parse::<u64>().ok());
        counts.sum()
    };
    let all = count("");
    // On top of its caller, whose own loop takes the rest.
    let inlined = count("main.plantedCaller;main.plantedInlined");
    assert!(
        inlined * 5 > all,
        "{inlined} of {all} in {output}\n{stacks}"
    );
    assert!(count("main.plantedCaller") * 10 > all * 8, "{stacks}");
}

/// Seven samples of one function, as field numbers and values of Protocol Buffers.
const PPROF: &[u8] = b"\x0a\x04\x08\x01\x10\x02\x12\x06\x0a\x01\x01\x12\x01\x07\x22\x06\x08\x01\x22\x02\x08\x01\x2a\x04\x08\x01\x10\x03\x32\x00\x32\x07samples\x32\x05count\x32\x03hot";

#[test]
fn a_server_gives_the_profile_that_it_takes_of_itself() {
    let mut answer =
        format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", PPROF.len()).into_bytes();
    answer.extend_from_slice(PPROF);
    let origin = Origin::scripted(Script::serve(answer));
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (out, firefox) = (path("out"), path("server.json"));
    let url = origin.url("/");
    let output = plimsoll(&[
        "profile",
        &url,
        "-z",
        "2s",
        "--out",
        &out,
        "--firefox",
        &firefox,
    ])
    .exits(0);
    assert!(output.stdout.starts_with("7 samples"), "{output}");
    assert!(output.stdout.contains("100 %  hot"), "{output}");
    assert!(
        origin.heads()[0].starts_with("GET /debug/pprof/profile?seconds=2 "),
        "{:?}",
        origin.heads()
    );
    assert_eq!(
        files_in(out.as_ref()),
        ["profile.folded", "profile.pb.gz", "profile.svg"]
    );
    let document: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&firefox).unwrap()).unwrap();
    assert_eq!(
        document["threads"][0]["samples"]["weight"],
        serde_json::json!([7])
    );
}

#[test]
fn a_load_with_a_profile_of_its_window() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let out = out.to_str().unwrap();
    let arguments = [
        "load",
        "-z",
        "1s",
        "--warm-up",
        "200ms",
        "-c",
        "2",
        "--no-tui",
        "--profile",
        "--out",
        out,
    ];
    let output = plimsoll(&arguments).exits(0);
    let names = files_in(out.as_ref());
    if output.stderr.contains("warning: --profile") {
        // Not permitted here: reported, and the other files are there.
        assert!(names.contains(&"report.html".to_owned()), "{names:?}");
        return;
    }
    for name in [
        "profile.folded",
        "profile.pb.gz",
        "profile.svg",
        "report.html",
    ] {
        assert!(names.contains(&name.to_owned()), "{name} in {names:?}");
    }
    let page = std::fs::read_to_string(format!("{out}/report.html")).unwrap();
    assert!(page.contains("href=\"profile.svg\""), "{page}");
    let stacks = std::fs::read_to_string(format!("{out}/profile.folded")).unwrap();
    // The origin is a plimsoll too, but not this one: it serves.
    assert!(stacks.contains("plimsoll_server"), "{stacks}");

    assert_snapshot!(plimsoll(&["load", "--profile", "--out", "x", "http://127.0.0.1:1/"]), @"
    error: --profile: needs the processes of the server
      hint: name them with --pid, or start them with --spawn
    exit 2
    ");
}

#[test]
fn what_no_server_gives() {
    let origin = Origin::hello();
    let output = plimsoll(&["profile", &origin.url("/x"), "-z", "1s"]).exits(3);
    assert!(
        output.stderr.contains("no profile in the format"),
        "{output}"
    );
    assert_snapshot!(plimsoll(&["profile", "ftp://h/", "-H", "a", "--every", "1ms"]), @"
    error: -H: `a` is not of the form `Name: value`
    error: URL: `ftp://h/` is not an http or https URL
    error: --every: needs --out or --push
    error: --every: must be at least 100ms
    exit 2
    ");
    let both = plimsoll(&["profile", "http://h/", "--pid", "1"]).exits(2);
    assert!(both.stderr.contains("cannot be used with"), "{both}");
}

#[test]
fn an_earlier_profile_that_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let before = folder.path().to_str().unwrap();
    let out = folder.path().join("out");
    let output = plimsoll(&[
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
    assert!(output.stderr.starts_with(&expected), "{output}");
    assert!(!out.exists());
}

#[test]
fn all_problems_at_once() {
    let output = plimsoll(&[
        "profile", "--spawn", "'", "--before", "/nosuch", "--out", "out", "--every", "1ms",
    ])
    .exits(2);
    assert!(output.stderr.contains("error: --before: "), "{output}");
    assert!(output.stderr.contains("error: --spawn: "), "{output}");
    assert!(
        output
            .stderr
            .contains("error: --every: must be at least 100ms"),
        "{output}"
    );
}

#[test]
fn a_profile_is_printed_and_written() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let out = out.to_str().unwrap();
    let busy = "sh -c 'while :; do :; done'";
    let arguments = ["profile", "--spawn", busy, "-z", "400ms", "--out", out];
    let output = plimsoll(&arguments);
    if refused(&output) {
        return;
    }
    let output = output.exits(0);
    assert!(output.stdout.contains("function\n"), "{output}");
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
    let output = CommandOutput::from_output(child.wait_with_output().unwrap());
    if refused(&output) {
        return;
    }
    let output = output.exits(130);
    assert!(output.stdout.starts_with("profile 0001: "), "{output}");
    assert!(output.stdout.contains("\nprofile 0002: "), "{output}");
    let files = ["profile.folded", "profile.pb.gz", "profile.svg"];
    assert_eq!(files_in(&out.join("0001")), files);
}
