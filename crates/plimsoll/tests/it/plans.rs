//! Plans of examples/ whose helper program is an example of the testkit, run for moments.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::plimsoll::{command, run};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// The helper program beside ours. Tests of the whole workspace have built it.
fn echo_program() {
    let profile = Path::new(env!("CARGO_BIN_EXE_plimsoll")).parent().unwrap();
    if profile.join("examples/echo").is_file() {
        return;
    }
    let name = match profile.file_name().unwrap().to_str().unwrap() {
        "debug" => "dev",
        name => name,
    };
    let arguments = [
        "build",
        "--package",
        "plimsoll-testkit",
        "--example",
        "echo",
    ];
    let status = Command::new(env!("CARGO"))
        .args(arguments)
        .args(["--profile", name])
        .current_dir(ROOT)
        .status()
        .unwrap();
    assert!(status.success());
}

#[test]
fn quic_that_ends_at_the_gateway_is_soaked() {
    echo_program();
    let folder = tempfile::tempdir().unwrap();
    let plan = format!("{ROOT}/examples/soak/gateway.toml");
    let out = folder.path().join("out");
    let arguments = [
        "soak",
        &plan,
        "--scenario",
        "quic termination",
        "-z",
        "4s",
        "--sample",
        "500ms",
        "--json",
        "--out",
        out.to_str().unwrap(),
    ];
    let output = run(&mut command(&arguments)).exits(0);
    let document = output.json();
    let scenario = &document["scenarios"][0];
    assert_eq!(scenario["name"], "quic termination");
    assert!(scenario["failure"].is_null(), "{output}");
    let load = &scenario["loads"][0];
    assert!(load["ok"].as_u64().unwrap() > 100, "{output}");
    assert_eq!(
        (&load["failed"], &load["failed_runs"]),
        (&0.into(), &0.into())
    );
    // Streams and connections of the gateway are watched.
    let series = scenario["series"].as_array().unwrap();
    let is_flows = |name: &str| name.contains("flows_active");
    assert!(
        series
            .iter()
            .any(|it| is_flows(it["name"].as_str().unwrap())),
        "{output}"
    );
}

#[test]
fn connections_and_datagrams_are_forwarded_to_an_echo() {
    echo_program();
    let folder = tempfile::tempdir().unwrap();
    let path = format!("{ROOT}/examples/sources/gateway-layer4.lab.toml");
    let text = fs::read_to_string(path).unwrap();
    // One load is enough, on whatever cores there are.
    let (targets, loads) = text.split_once("[[load]]").unwrap();
    let load = loads.split("[[load]]").nth(1).unwrap();
    let targets: String = targets
        .lines()
        .filter(|line| !line.contains("_cores"))
        .fold(String::new(), |text, line| text + line + "\n");
    let plan = folder.path().join("plan.toml");
    fs::write(&plan, format!("{targets}[[load]]{load}")).unwrap();
    let out = folder.path().join("out");
    let arguments = [
        "lab",
        plan.to_str().unwrap(),
        "--repeats",
        "1",
        "--warm-up",
        "0s",
        "--window",
        "1s",
        "--json",
        "--out",
        out.to_str().unwrap(),
    ];
    let output = run(&mut command(&arguments)).exits(0);
    let document = output.json();
    let cells = document["cells"].as_array().unwrap();
    let targets: Vec<_> = cells
        .iter()
        .map(|it| it["target"].as_str().unwrap())
        .collect();
    assert_eq!(targets, ["TCP", "SNI", "UDP", "QUIC"]);
    for cell in cells {
        assert_eq!(cell["connections"], 8);
        assert_eq!(
            (&cell["state"], &cell["errors"]),
            (&"measured".into(), &0.into()),
            "{output}"
        );
        let medians = &cell["medians"];
        for figure in [
            "rps",
            "p50_us",
            "p99_9_us",
            "peak_fds",
            "cpu_us_per_request",
        ] {
            assert!(medians[figure].as_f64().unwrap() > 0.0, "{figure}: {cell}");
        }
    }
}
