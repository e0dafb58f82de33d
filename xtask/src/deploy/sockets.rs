//! Socket units: systemd opens the port, and the server answers at it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{cannot, read, write};
use crate::bench::free_ports;
use crate::server::Server;
use crate::step;
use crate::{Failure, Outcome};

/// Verifies each unit, and has `systemd-socket-activate` start its server by the first request.
pub(super) fn check(root: &Path, program: &Path, directory: &Path) -> Outcome {
    let folder = root.join("packaging/systemd");
    let entries = fs::read_dir(&folder).map_err(|error| cannot("list", &folder, &error))?;
    let mut units: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|file| file.extension().is_some_and(|it| it == "socket"))
        .collect();
    units.sort();
    if units.is_empty() {
        return Err(format!("{} has no socket units", folder.display()).into());
    }
    for unit in units {
        let mut verify = Command::new("systemd-analyze");
        step::run(root, verify.args(["verify", "--man=no"]).arg(&unit))?;
        answers(root, program, &unit, directory)
            .map_err(|Failure(message)| format!("{}: {message}", unit.display()))?;
    }
    Ok(())
}

/// The server of the unit's name, with a site in place of what it forwards to, at the socket that it is given.
fn answers(root: &Path, program: &Path, unit: &Path, directory: &Path) -> Outcome {
    let text = read(unit)?;
    let value = |key: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(key));
        line.and_then(|line| line.strip_prefix('='))
            .map(str::to_owned)
    };
    let name = value("FileDescriptorName").ok_or("has no FileDescriptorName")?;
    value("ListenStream").ok_or("has no ListenStream")?;
    let site = directory.join("activated");
    fs::create_dir_all(&site).map_err(|error| cannot("make", &site, &error))?;
    write(&site.join("index.html"), "activated\n")?;
    let file = directory.join("activated.toml");
    let folder = site.display();
    write(
        &file,
        &format!(
            "[[listen]]\naddress = \"inherited:{name}\"\n\n[[route]]\nfiles = {{ root = \"{folder}\" }}\n"
        ),
    )?;
    let [port] = free_ports()?;
    let address = format!("127.0.0.1:{port}");
    let mut activate = Command::new("systemd-socket-activate");
    activate
        .arg(format!("--listen={address}"))
        .arg(format!("--fdname={name}"))
        .arg(program)
        .arg("up")
        .arg(&file)
        .stdout(Stdio::null());
    let _server = Server::start(&mut activate)?;
    let mut curl = Command::new("curl");
    curl.args(["-sS", "--fail", "--retry", "20", "--retry-all-errors"]);
    curl.args(["--retry-delay", "1"]);
    let content = step::output(root, curl.arg(format!("http://{address}/")))?;
    if content == "activated\n" {
        Ok(())
    } else {
        Err(format!("the server at the socket answers `{content}`").into())
    }
}
