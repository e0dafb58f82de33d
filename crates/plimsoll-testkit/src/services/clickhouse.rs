//! ClickHouse's engine behind its HTTP interface, for tests.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{ChildProcess, environment_of_tests, new_folder};

/// The server of ClickHouse's HTTP interface.
const CLICKHOUSE: &str = include_str!("clickhouse.py");

/// A server with the engine of ClickHouse behind its HTTP interface, which is deleted at the end.
#[derive(Debug)]
pub struct ClickHouseServer {
    python: PathBuf,
    folder: PathBuf,
    port: u16,
    running: Option<ChildProcess>,
}

impl ClickHouseServer {
    /// The one of this process, which is shared by its tests.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<ClickHouseServer> = OnceLock::new();
        SHARED.get_or_init(|| Self::start(&environment_of_tests(), 0))
    }

    /// Starts one of its own, for a test that stops it.
    pub fn own() -> Self {
        Self::start(&environment_of_tests(), 0)
    }

    /// Starts a new one.
    ///
    /// - `environment`: the virtual environment with `chdb-core`.
    /// - `port`: of the loopback; 0 lets the system choose.
    pub fn start(environment: &Path, port: u16) -> Self {
        let python = environment.join("bin/python3");
        assert!(
            python.exists(),
            "there is no {}; `cargo xtask services install` makes it",
            environment.display()
        );
        let folder = new_folder("clickhouse");
        let mut server = Self {
            python,
            folder,
            port,
            running: None,
        };
        server.resume();
        server
    }

    /// Ends the server; its data stays.
    pub fn stop(&mut self) {
        self.running = None;
    }

    /// Starts the server again on its port, and waits until it takes connections.
    pub fn resume(&mut self) {
        let mut command = Command::new(&self.python);
        command
            .args(["-c", CLICKHOUSE])
            .arg(self.folder.join("data"))
            .arg(self.port.to_string());
        // The environment may lie where the unprivileged user cannot look, so root stays root.
        let mut kept = ChildProcess::start(&command, &self.folder, None);
        let output = kept.0.stdout.take().expect("it is piped");
        let mut first = String::new();
        BufReader::new(output)
            .read_line(&mut first)
            .expect("the server prints its port");
        self.port = first
            .trim()
            .parse()
            .unwrap_or_else(|_| panic!("the server prints its port, not `{}`", first.trim()));
        self.running = Some(kept);
    }

    /// The URL of a database that no other test has.
    pub fn database(&self) -> String {
        static COUNT: AtomicU64 = AtomicU64::new(0);

        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        self.url(&format!("test_{count}"))
    }

    /// The URL of a database.
    pub fn url(&self, database: &str) -> String {
        format!("http://127.0.0.1:{}/{database}", self.port)
    }
}

impl Drop for ClickHouseServer {
    fn drop(&mut self) {
        self.stop();
        fs::remove_dir_all(&self.folder).ok();
    }
}
