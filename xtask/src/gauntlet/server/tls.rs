//! TLS before a server of the gauntlet: `plimsoll up` with a certificate that it signs itself.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::Failure;
use crate::server::Server;

/// A process that ends TLS until the value is dropped.
pub(super) struct Terminator {
    _process: Server,
    address: SocketAddr,
}

impl Terminator {
    pub(super) fn start(
        program: &Path,
        folder: &Path,
        server: SocketAddr,
    ) -> Result<Self, Failure> {
        let file = folder.join("tls.toml");
        let text = format!(
            "[[listen]]\naddress = \"127.0.0.1:0\"\ntls = [{{ self_signed = true }}]\n\
             [[route]]\nprefix = \"/\"\nproxy = {{ to = \"http://{server}\" }}\n"
        );
        fs::write(&file, text).map_err(|error| format!("{}: {error}", file.display()))?;
        let mut command = Command::new(program);
        command
            .arg("up")
            .arg(&file)
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let child = command.spawn();
        let child =
            child.map_err(|error| format!("cannot start {}: {error}", program.display()))?;
        let mut process = Server(child);
        let stdout = process.0.stdout.take().ok_or("plimsoll up has no output")?;
        let address = BufReader::new(stdout)
            .lines()
            .map_while(Result::ok)
            .find_map(|line| {
                let (_, address) = line.split_once("https://")?;
                let end = |c: char| !(c.is_ascii_digit() || c == '.' || c == ':');
                address.split(end).next()?.parse().ok()
            });
        Ok(Self {
            _process: process,
            address: address.ok_or("plimsoll up does not listen")?,
        })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }
}
