//! The configurations of the compose file, on the loopback instead of a network of containers.

use std::path::Path;
use std::process::{Command, Stdio};

use super::{read, write};
use crate::Outcome;
use crate::bench::free_ports;
use crate::server::{Server, wait_for};
use crate::step;

/// Paths of the gateway, and what their contents have.
const EXPECTED: [(&str, &str); 2] = [
    ("/", "<title>plimsoll</title>"),
    ("/api/hello", "\"hello\""),
];

/// Checks both files, then requests the site and the mock through the gateway.
pub(super) fn check(root: &Path, program: &Path, directory: &Path) -> Outcome {
    let folder = root.join("packaging/compose");
    let [port, metrics, site, mock] = free_ports()?;
    let at = |port: u16| format!("127.0.0.1:{port}");
    let text = read(&folder.join("gateway.toml"))?
        .replace("0.0.0.0:8080", &at(port))
        .replace("0.0.0.0:9090", &at(metrics))
        .replace("site:8080", &at(site))
        .replace("mock:8080", &at(mock));
    let gateway = directory.join("compose-gateway.toml");
    write(&gateway, &text)?;
    let mut monitor = Command::new(program);
    monitor.args(["monitor", "--check"]);
    step::run(root, monitor.arg(folder.join("monitor.toml")))?;

    let start = |name: &str, operand: &Path, listen: Option<u16>| {
        let mut command = Command::new(program);
        command.arg(name).arg(operand).stdout(Stdio::null());
        if let Some(port) = listen {
            command.args(["--listen", &at(port)]);
        }
        Server::start(&mut command)
    };
    let _processes = [
        start("serve", &folder.join("site"), Some(site))?,
        start("mock", &folder.join("mock"), Some(mock))?,
        start("up", &gateway, None)?,
    ];
    for port in [site, mock, port] {
        wait_for(port)?;
    }
    for (path, expected) in EXPECTED {
        let mut curl = Command::new("curl");
        curl.args(["-sS", "--fail", "--retry", "5", "--retry-all-errors"]);
        let content = step::output(root, curl.arg(format!("http://{}{path}", at(port))))?;
        if !content.contains(expected) {
            return Err(format!("compose: {path} has no {expected}: {content}").into());
        }
    }
    Ok(())
}
