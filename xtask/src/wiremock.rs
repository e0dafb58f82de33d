//! `cargo xtask wiremock`: what tests do with WireMock's own client library, on `plimsoll mock` and on WireMock itself.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use crate::bench::{self, free_ports, target_directory};
use crate::packages;
use crate::server::Server;
use crate::step::{self, cargo};
use crate::{Failure, Outcome};

/// Runs the task.
pub(crate) fn run(root: &Path) -> Outcome {
    for program in ["java", "mvn"] {
        if packages::find(program, &[]).is_none() {
            return Err(format!("{program} is not installed: the client is one of Java").into());
        }
    }
    step::run(root, &mut cargo(&["build", "--locked"]))?;
    let target = target_directory(root)?;
    let peers = target.join("peers");
    let jar = bench::wiremock_jar(root, &peers)?;
    let directory = target.join(format!("wiremock-{}", std::process::id()));
    fs::create_dir_all(directory.join("mappings")).map_err(|error| error.to_string())?;
    let outcome = on_both(root, &target, &directory, &jar);
    // A leftover lies in the target directory.
    fs::remove_dir_all(&directory).ok();
    outcome
}

fn on_both(root: &Path, target: &Path, directory: &Path, jar: &Path) -> Outcome {
    let program = root.join("xtask/src/wiremock/WireMockClient.java");
    let client = |port: &str, admin: &str| {
        let mut java = Command::new("java");
        java.arg("-cp").arg(jar).arg(&program).args([port, admin]);
        step::run(root, &mut java)
    };
    let (_theirs, port) = theirs(directory, jar)?;
    // That the client is right is shown by the server that it was made for.
    client(&port, &port)?;
    let (_ours, [port, admin]) = ours(target, directory)?;
    client(&port, &admin)
}

fn theirs(directory: &Path, jar: &Path) -> Result<(Server, String), Failure> {
    let [port] = free_ports()?;
    let mut command = Command::new("java");
    command
        .arg("-jar")
        .arg(jar)
        .arg("--root-dir")
        .arg(directory);
    command
        .args(["--bind-address", "127.0.0.1", "--port", &port.to_string()])
        .stdout(Stdio::null());
    let mut server = Server::start(&mut command)?;
    for _ in 0..300 {
        if TcpStream::connect(("127.0.0.1", port)).is_ok() {
            return Ok((server, port.to_string()));
        }
        let ended = server.0.try_wait().map_err(|error| error.to_string())?;
        if let Some(status) = ended {
            return Err(format!("WireMock has ended: {status}").into());
        }
        thread::park_timeout(Duration::from_millis(100));
    }
    Err("WireMock does not listen".into())
}

fn ours(target: &Path, directory: &Path) -> Result<(Server, [String; 2]), Failure> {
    let mut command = Command::new(target.join("debug/plimsoll"));
    command.arg("mock").arg("--import").arg(directory);
    command
        .args(["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"])
        .stdout(Stdio::piped());
    let mut server = Server::start(&mut command)?;
    let stdout = server.0.stdout.take().ok_or("the server has no output")?;
    let ports: Vec<String> = BufReader::new(stdout)
        .lines()
        .map_while(Result::ok)
        .take(2)
        .filter_map(|line| Some(line.trim_end_matches('/').rsplit_once(':')?.1.to_owned()))
        .collect();
    let ports = ports.try_into();
    Ok((server, ports.map_err(|_| "plimsoll mock does not listen")?))
}
