//! `cargo xtask autobahn`: Autobahn's fuzzing client of WebSockets against its own echo server, directly and through
//! `plimsoll up` as a gateway, whose result has to be the same in every case; with `--client`, its fuzzing server against the
//! WebSockets of k6 scripts, which have to pass every case.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::bench::{free_ports, target_directory};
use crate::packages;
use crate::server::{Server, wait_for};
use crate::step::{self, cargo};
use crate::{Failure, Outcome};

/// The last release, which is for Python 2.
const SUITE: &str = "autobahntestsuite==25.10.1";

/// The last release that makes environments of Python 2.
const VIRTUALENV: &str = "virtualenv==20.15.1";

/// Cases that are left out: limits and performance of an implementation (9) take minutes and judge nothing that passes
/// through, and compression (12, 13) is agreed between client and server, of which neither has it.
const LEFT_OUT: [&str; 3] = ["9.*", "12.*", "13.*"];

/// The echo server rejects a port in `host` that is not its own.
const GATEWAY: &str = "threads = 1\n[[listen]]\naddress = \"127.0.0.1:{port}\"\n[[route]]\nproxy = { to = \"http://127.0.0.1:{behind}\", host = \"server\", websocket = { idle_timeout = \"1m\" } }\n";

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Run every case, also those of limits and, of the gateway, of compression
    #[arg(long)]
    all: bool,

    /// Test the WebSockets of k6 scripts, with compression, instead of the gateway
    #[arg(long)]
    client: bool,
}

/// Sends back what the fuzzing server sends.
const CLIENT: &str = include_str!("autobahn_client.js");

/// What a case came to: how messages were handled, and how the connection was closed.
type Verdicts = BTreeMap<String, (String, String)>;

/// Runs the task.
pub(crate) fn run(root: &Path, arguments: &Arguments) -> Outcome {
    step::run(root, &mut cargo(&["build", "--locked"]))?;
    let target = target_directory(root)?;
    let wstest = installed(root, &target)?;
    let directory = target.join(format!("autobahn-{}", std::process::id()));
    fs::create_dir_all(&directory).map_err(|error| error.to_string())?;
    let outcome = if arguments.client {
        judge_client(root, &target, &directory, &wstest, arguments.all)
    } else {
        compare(root, &target, &directory, &wstest, arguments.all)
    };
    // A leftover lies in the target directory.
    fs::remove_dir_all(&directory).ok();
    outcome
}

/// Where the suite lies, which is installed if it is missing.
fn installed(root: &Path, target: &Path) -> Result<PathBuf, Failure> {
    let environment = target.join("peers/autobahn");
    let wstest = environment.join("bin/wstest");
    if wstest.exists() {
        return Ok(wstest);
    }
    let python = packages::find("python2.7", &pyenv());
    let python = python.ok_or(
        "Autobahn's suite is a program for Python 2.7, which is not installed; pyenv has it",
    )?;
    let tool = target.join("peers/virtualenv");
    let mut install = Command::new(&python);
    install.args(["-m", "pip", "install", "--target"]);
    step::run(root, install.arg(&tool).arg(VIRTUALENV))?;
    let mut make = Command::new(&python);
    make.args(["-m", "virtualenv"]).arg(&environment);
    step::run(root, make.env("PYTHONPATH", &tool))?;
    let mut install = Command::new(environment.join("bin/pip"));
    step::run(root, install.args(["install", SUITE]))?;
    Ok(wstest)
}

/// Where pyenv keeps versions of Python 2.7.
fn pyenv() -> Vec<PathBuf> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let versions = home.map(|home| home.join(".pyenv/versions"));
    let versions = versions.and_then(|versions| fs::read_dir(versions).ok());
    let versions = versions.into_iter().flatten().filter_map(Result::ok);
    versions
        .filter(|version| version.file_name().to_string_lossy().starts_with("2.7"))
        .map(|version| version.path().join("bin"))
        .collect()
}

fn compare(root: &Path, target: &Path, directory: &Path, wstest: &Path, all: bool) -> Outcome {
    let [port, front] = free_ports()?;
    let mut echo = Command::new(wstest);
    echo.args(["-m", "echoserver", "-w"])
        .arg(format!("ws://127.0.0.1:{port}"))
        .stdout(Stdio::null());
    let _echo = Server::start(&mut echo)?;
    let file = directory.join("gateway.toml");
    let text = GATEWAY
        .replace("{port}", &front.to_string())
        .replace("{behind}", &port.to_string());
    fs::write(&file, text).map_err(|error| error.to_string())?;
    let mut gateway = Command::new(target.join("debug/plimsoll"));
    let _gateway = Server::start(gateway.arg("up").arg(&file).stdout(Stdio::null()))?;
    for port in [port, front] {
        wait_for(port)?;
    }
    let direct = verdicts(root, directory, wstest, "direct", port, all)?;
    let through = verdicts(root, directory, wstest, "gateway", front, all)?;
    for (name, verdicts) in [("direct", &direct), ("gateway", &through)] {
        print_counts(name, verdicts);
    }
    let differing = direct.iter().filter_map(|(case, expected)| {
        let found = through.get(case);
        let is_same = found.map(passed) == Some(passed(expected));
        (!is_same).then(|| format!("{case}: {expected:?} and {found:?}"))
    });
    let differing: Vec<_> = differing.collect();
    if direct.is_empty() {
        return Err("the suite ran no case".into());
    }
    if differing.is_empty() && direct.len() == through.len() {
        return Ok(());
    }
    Err(format!(
        "other results through the gateway: {}",
        differing.join("; ")
    )
    .into())
}

/// Runs cases, those of compression too, by a k6 script as the client.
fn judge_client(root: &Path, target: &Path, directory: &Path, wstest: &Path, all: bool) -> Outcome {
    let [port] = free_ports()?;
    let out = directory.join("client");
    let spec = json!({
        "url": format!("ws://127.0.0.1:{port}"),
        "outdir": out,
        "cases": ["*"],
        // Those of limits and performance take minutes.
        "exclude-cases": if all { &[][..] } else { &["9.*"] },
        "exclude-agent-cases": {},
    });
    let file = directory.join("client.json");
    let script = directory.join("client.js");
    fs::write(&file, spec.to_string())
        .and_then(|()| fs::write(&script, CLIENT))
        .map_err(|error| error.to_string())?;
    let mut server = Command::new(wstest);
    server.args(["-m", "fuzzingserver", "-s"]).arg(&file);
    // It serves its pages on a port of its own, which may be taken, unless there are none.
    server.arg("--webport=0").stdout(Stdio::null());
    let _server = Server::start(&mut server)?;
    wait_for(port)?;
    let mut client = Command::new(target.join("debug/plimsoll"));
    client
        .args(["load", "--quiet", "--summary-mode", "disabled", "--env"])
        .arg(format!("BASE=ws://127.0.0.1:{port}"))
        .arg(&script);
    step::run(root, &mut client)?;
    let verdicts = report(&out, "plimsoll")?;
    print_counts("client", &verdicts);
    let failed = verdicts.iter().filter(|(_, verdict)| {
        let kinds = [&verdict.0, &verdict.1];
        kinds.iter().any(|kind| !ACCEPTED.contains(&kind.as_str()))
    });
    let failed: Vec<_> = failed
        .map(|(case, (behavior, close))| format!("{case}: {behavior}, {close}"))
        .collect();
    if verdicts.is_empty() {
        return Err("the suite ran no case".into());
    }
    if failed.is_empty() {
        return Ok(());
    }
    Err(format!("failed cases: {}", failed.join("; ")).into())
}

/// Verdicts of cases that pass. Servers may offer parameters of compression that the client does not want: those cases are not
/// implemented.
const ACCEPTED: [&str; 4] = ["OK", "NON-STRICT", "INFORMATIONAL", "UNIMPLEMENTED"];

fn print_counts(name: &str, verdicts: &Verdicts) {
    let kinds = [
        "OK",
        "NON-STRICT",
        "INFORMATIONAL",
        "UNIMPLEMENTED",
        "FAILED",
    ];
    let counts = kinds.map(|kind| {
        let found = verdicts.values().filter(|(behavior, _)| behavior == kind);
        format!("{} {kind}", found.count())
    });
    println!("{name}: {} cases, {}", verdicts.len(), counts.join(", "));
}

/// The verdicts with `NON-STRICT` as `OK`: whether a server closes within a message or behind it depends on how the bytes
/// are cut, and the echo server itself has other numbers of both in each run.
fn passed((behavior, close): &(String, String)) -> (&str, &str) {
    let merged = |verdict| match verdict {
        "NON-STRICT" => "OK",
        other => other,
    };
    (merged(behavior), merged(close))
}

/// Runs the fuzzing client and reads its report.
fn verdicts(
    root: &Path,
    directory: &Path,
    wstest: &Path,
    name: &str,
    port: u16,
    all: bool,
) -> Result<Verdicts, Failure> {
    let out = directory.join(name);
    let left_out: &[&str] = if all { &[] } else { &LEFT_OUT };
    let spec = json!({
        "outdir": out,
        "servers": [{ "agent": name, "url": format!("ws://127.0.0.1:{port}") }],
        "cases": ["*"],
        "exclude-cases": left_out,
        "exclude-agent-cases": {},
    });
    let file = directory.join(format!("{name}.json"));
    fs::write(&file, spec.to_string()).map_err(|error| error.to_string())?;
    let mut client = Command::new(wstest);
    client.args(["-m", "fuzzingclient", "-s"]).arg(&file);
    step::run(root, client.stdout(Stdio::null()))?;
    report(&out, name)
}

/// Reads the report of an agent.
fn report(out: &Path, agent: &str) -> Result<Verdicts, Failure> {
    let report = fs::read_to_string(out.join("index.json"));
    let report = report.map_err(|error| format!("the suite wrote no report: {error}"))?;
    let report: Value = serde_json::from_str(&report).map_err(|error| error.to_string())?;
    let cases = report.get(agent).and_then(Value::as_object);
    let cases = cases.ok_or("the report has no results")?;
    let text = |case: &Value, key: &str| case[key].as_str().unwrap_or_default().to_owned();
    Ok(cases
        .iter()
        .map(|(number, case)| {
            let verdict = (text(case, "behavior"), text(case, "behaviorClose"));
            (number.clone(), verdict)
        })
        .collect())
}
