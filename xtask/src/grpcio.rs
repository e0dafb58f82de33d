//! `cargo xtask grpcio`: a service and a client of Python's grpcio, directly and through `plimsoll up` as a gateway, in the clear
//! and over TLS. What comes of each call has to be the same.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Map, Value};

use crate::bench::{free_ports, target_directory};
use crate::packages;
use crate::python::{self, Packages};
use crate::server::{Server, wait_for};
use crate::step::{self, cargo};
use crate::{Failure, Outcome};

const GRPCIO: Packages<'_> = Packages {
    found: |environment| python::has_module(environment, "grpc"),
    arguments: &["grpcio==1.85.1"],
};

const GATEWAY: &str = r#"threads = 2
[[listen]]
address = "127.0.0.1:{clear}"
[[listen]]
address = "127.0.0.1:{secure}"
tls = { cert = "{dir}/cert.pem", key = "{dir}/key.pem" }
[[route]]
proxy = "service"
[upstream.service]
servers = ["http://127.0.0.1:{service}"]
protocol = "http2"
"#;

/// Runs the task.
pub(crate) fn run(root: &Path) -> Outcome {
    packages::install(root, &[packages::OPENSSL])?;
    step::run(
        root,
        &mut cargo(&["build", "--locked", "--bin", "plimsoll"]),
    )?;
    let target = target_directory(root)?;
    let python = python::environment(root, &target.join("peers/grpcio"), &GRPCIO)?;
    let directory = target.join(format!("grpcio-{}", std::process::id()));
    fs::create_dir_all(&directory).map_err(|error| error.to_string())?;
    let outcome = compare(root, &target.join("debug/plimsoll"), &python, &directory);
    // A leftover lies in the target directory.
    fs::remove_dir_all(&directory).ok();
    outcome
}

fn compare(root: &Path, plimsoll: &Path, python: &Path, directory: &Path) -> Outcome {
    let [service, clear, secure] = free_ports()?;
    let script = root.join("xtask/src/grpcio.py");
    let certificate = directory.join("cert.pem");
    let mut make = Command::new("openssl");
    make.args(["req", "-x509", "-nodes", "-days", "2", "-newkey", "ec"])
        .args(["-pkeyopt", "ec_paramgen_curve:prime256v1"])
        .args(["-subj", "/CN=localhost"])
        .args(["-addext", "subjectAltName=DNS:localhost", "-keyout"])
        .arg(directory.join("key.pem"))
        .arg("-out")
        .arg(&certificate)
        .stderr(Stdio::null());
    step::run(root, &mut make)?;
    let mut serve = Command::new(python);
    let _service = Server::start(serve.arg(&script).arg("serve").arg(service.to_string()))?;
    let text = GATEWAY
        .replace("{dir}", &directory.to_string_lossy())
        .replace("{clear}", &clear.to_string())
        .replace("{secure}", &secure.to_string())
        .replace("{service}", &service.to_string());
    let file = directory.join("gateway.toml");
    fs::write(&file, text).map_err(|error| error.to_string())?;
    let mut up = Command::new(plimsoll);
    let _gateway = Server::start(up.arg("up").arg(&file).stdout(Stdio::null()))?;
    for port in [service, clear, secure] {
        wait_for(port)?;
    }
    let call = |port: u16, certificate: Option<&Path>| -> Result<Map<String, Value>, Failure> {
        let mut command = Command::new(python);
        command.arg(&script).arg("call").arg(port.to_string());
        let output = step::output(root, command.args(certificate))?;
        serde_json::from_str(&output).map_err(|error| format!("{error} in {output}").into())
    };
    let direct = call(service, None)?;
    let mut differing = Vec::new();
    for (name, port, certificate) in [
        ("in the clear", clear, None),
        ("over TLS", secure, Some(certificate.as_path())),
    ] {
        let through = call(port, certificate)?;
        println!(
            "{name}: {} results, {} directly",
            through.len(),
            direct.len()
        );
        for (case, expected) in &direct {
            let found = through.get(case);
            if found != Some(expected) {
                let found = found.map_or_else(|| "nothing".to_owned(), Value::to_string);
                differing.push(format!("{case} {name}: {found}, directly {expected}"));
            }
        }
    }
    if differing.is_empty() && !direct.is_empty() {
        return Ok(());
    }
    Err(format!(
        "other results through the gateway:\n{}",
        differing.join("\n")
    )
    .into())
}
