//! NATS with `JetStream`, by Debian's nats-server, for tests of fleets.

use std::fs;
use std::io::Read as _;
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use crate::free_port::free_port;
use crate::services::{ChildProcess, new_folder, unprivileged, wait_until};

/// A broker of its own on a port of the loopback, which is deleted at the end.
#[derive(Debug)]
pub struct NatsServer {
    folder: PathBuf,
    port: u16,
    has_streams: bool,
    has_tls: bool,
    running: Option<ChildProcess>,
}

impl NatsServer {
    /// Starts one, and waits until it takes connections.
    pub fn start() -> Self {
        Self::new(true)
    }

    /// Starts one without `JetStream`.
    pub fn start_without_streams() -> Self {
        Self::new(false)
    }

    /// Starts one with more configuration, in the syntax of its file.
    ///
    /// - `has_tls`: whether the configuration has TLS.
    pub fn start_with(config: &str, has_tls: bool) -> Self {
        let mut server = Self::prepare(true);
        server.has_tls = has_tls;
        fs::write(server.config(), config).expect("the folder is new");
        server.resume();
        server
    }

    fn new(has_streams: bool) -> Self {
        let mut server = Self::prepare(has_streams);
        server.resume();
        server
    }

    fn prepare(has_streams: bool) -> Self {
        let server = Self {
            folder: new_folder("nats"),
            port: free_port().expect("a port is free"),
            has_streams,
            has_tls: false,
            running: None,
        };
        fs::write(server.config(), "").expect("the folder is new");
        server
    }

    /// Where it listens.
    pub fn url(&self) -> String {
        self.url_of("")
    }

    /// The same with a user.
    ///
    /// - `user`: `NAME:PASSWORD@`, or empty.
    pub fn url_of(&self, user: &str) -> String {
        let scheme = if self.has_tls { "tls" } else { "nats" };
        format!("{scheme}://{user}127.0.0.1:{}", self.port)
    }

    fn config(&self) -> PathBuf {
        self.folder.join("config")
    }

    /// The folders of the streams that it keeps.
    pub fn streams(&self) -> Vec<PathBuf> {
        let folder = self.folder.join("data/jetstream/$G/streams");
        let entries = fs::read_dir(folder).into_iter().flatten();
        entries.flatten().map(|entry| entry.path()).collect()
    }

    /// Ends the broker; what it keeps stays.
    pub fn stop(&mut self) {
        self.running = None;
    }

    /// Starts the broker again on its port, and waits until it takes connections.
    pub fn resume(&mut self) {
        let mut command = Command::new("nats-server");
        command
            .args(["-a", "127.0.0.1", "-p", &self.port.to_string()])
            .arg("-c")
            .arg(self.config())
            .arg("-l")
            .arg(self.folder.join("log"));
        if self.has_streams {
            command.arg("-js").arg("-sd").arg(self.folder.join("data"));
        }
        let running = ChildProcess::start_until("TERM", &command, &self.folder, unprivileged());
        self.running = Some(running);
        wait_until(|| self.greets());
    }

    /// Whether a broker listens on the port, and not another server that was given it meanwhile.
    fn greets(&self) -> bool {
        let mut greeting = [0; 4];
        let read = TcpStream::connect(("127.0.0.1", self.port)).and_then(|mut stream| {
            stream.set_read_timeout(Some(Duration::from_secs(5)))?;
            stream.read_exact(&mut greeting)
        });
        read.is_ok() && greeting == *b"INFO"
    }

    /// Ends the broker and starts it again.
    pub fn restart(&mut self) {
        self.stop();
        self.resume();
    }
}

impl Drop for NatsServer {
    fn drop(&mut self) {
        self.running = None;
        fs::remove_dir_all(&self.folder).ok();
    }
}
