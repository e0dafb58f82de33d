//! A PostgreSQL of Debian's for tests.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{ChildProcess, ROLE, new_folder, run_as_unprivileged, unprivileged, wait_until};

/// A PostgreSQL of its own, which is deleted at the end.
#[derive(Debug)]
pub struct PostgresServer {
    programs: PathBuf,
    folder: PathBuf,
    port: Option<u16>,
    running: Option<ChildProcess>,
}

impl PostgresServer {
    /// The one of this process, which is shared by its tests.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<PostgresServer> = OnceLock::new();
        SHARED.get_or_init(|| Self::start(None))
    }

    /// Starts a new one on a socket in its folder, and on a port of the loopback if one is given.
    pub fn start(port: Option<u16>) -> Self {
        let programs = postgres_programs();
        let folder = new_folder("postgres");
        let mut initdb = Command::new(programs.join("initdb"));
        initdb
            .args(["--auth=trust", "--username=postgres", "--encoding=UTF8"])
            .args(["--locale=C.UTF-8", "--no-sync", "-D"])
            .arg(folder.join("data"))
            .current_dir("/");
        run_as_unprivileged(&mut initdb);
        let mut server = Self {
            programs,
            folder,
            port,
            running: None,
        };
        server.resume();
        server.sql("postgres", &format!("CREATE ROLE {ROLE} LOGIN CREATEDB"));
        server
    }

    /// Starts a standby of this one, which must have a port, on another port: it follows what this one writes.
    #[must_use]
    pub fn start_standby(&self, port: u16) -> Self {
        let folder = new_folder("postgres");
        let mut copy = Command::new(self.programs.join("pg_basebackup"));
        copy.args(["-h", "127.0.0.1", "-U", "postgres", "--no-sync"])
            .args(["--checkpoint=fast", "--write-recovery-conf", "-p"])
            .arg(self.port.expect("the first one has a port").to_string())
            .arg("-D")
            .arg(folder.join("data"))
            .current_dir("/");
        run_as_unprivileged(&mut copy);
        let mut standby = Self {
            programs: self.programs.clone(),
            folder,
            port: Some(port),
            running: None,
        };
        standby.resume();
        standby
    }

    /// Waits until a standby has all that this one has written up to now: before, even its tables may be missing.
    pub fn wait_for_standby(&self, standby: &Self) {
        let written = self.sql("postgres", "SELECT pg_current_wal_lsn()");
        let replayed = format!("SELECT pg_last_wal_replay_lsn() >= '{written}'");
        wait_until(|| standby.sql("postgres", &replayed) == "t");
    }

    /// Makes a standby the one that is written to.
    pub fn promote(&self) {
        assert_eq!(self.sql("postgres", "SELECT pg_promote()"), "t");
    }

    /// Has what this one acknowledges from now on be with its standby already.
    pub fn replicate_synchronously(&self) {
        self.sql(
            "postgres",
            "ALTER SYSTEM SET synchronous_standby_names = '*'",
        );
        self.sql("postgres", "SELECT pg_reload_conf()");
        let shown = || self.sql("postgres", "SHOW synchronous_standby_names");
        let states = "SELECT string_agg(sync_state, ',') FROM pg_stat_replication";
        wait_until(|| shown() == "*" && self.sql("postgres", states) == "sync");
    }

    /// Ends the server; its data stays.
    pub fn stop(&mut self) {
        self.running = None;
    }

    /// Kills the server, as a crash does: pending statements get no response and are not sent to a standby.
    pub fn crash(&mut self) {
        self.signal("QUIT");
        self.stop();
    }

    /// Stops all its processes: it accepts connections and does not respond, until it is dropped.
    pub fn freeze(&self) {
        self.signal("STOP");
    }

    /// Sends a signal to the server and the processes of its connections.
    fn signal(&self, signal: &str) {
        let file = self.folder.join("data").join("postmaster.pid");
        let text = fs::read_to_string(file).unwrap_or_default();
        let Some(first) = text.lines().next() else {
            return;
        };
        let children = format!("/proc/{first}/task/{first}/children");
        let children = fs::read_to_string(children).unwrap_or_default();
        Command::new("kill")
            .arg(format!("-{signal}"))
            .args([first].into_iter().chain(children.split_whitespace()))
            .stderr(Stdio::null())
            .status()
            .ok();
    }

    /// Starts the server again, and waits until it takes connections.
    pub fn resume(&mut self) {
        let mut command = Command::new(self.programs.join("postgres"));
        command.arg("-D").arg(self.folder.join("data"));
        let listen = self.port.map_or("", |_| "127.0.0.1");
        for setting in [
            format!("listen_addresses={listen}"),
            format!("port={}", self.port.unwrap_or(5432)),
            format!("unix_socket_directories={}", self.folder.display()),
            "fsync=off".to_owned(),
            "max_connections=200".to_owned(),
            "log_min_messages=panic".to_owned(),
            "log_min_error_statement=panic".to_owned(),
        ] {
            command.arg("-c").arg(setting);
        }
        self.running = Some(ChildProcess::start(&command, &self.folder, unprivileged()));
        let socket = self
            .folder
            .join(format!(".s.PGSQL.{}", self.port.unwrap_or(5432)));
        wait_until(|| socket.exists() && self.psql("postgres", "SELECT 1").status.success());
    }

    /// Makes a new database and returns its URL.
    pub fn database(&self) -> String {
        static COUNT: AtomicU64 = AtomicU64::new(0);

        let name = format!("test_{}", COUNT.fetch_add(1, Ordering::Relaxed));
        self.sql("postgres", &format!("CREATE DATABASE {name} OWNER {ROLE}"));
        self.url(&name)
    }

    /// The URL of a database.
    pub fn url(&self, database: &str) -> String {
        if let Some(port) = self.port {
            return format!("postgres://{ROLE}@127.0.0.1:{port}/{database}?sslmode=disable");
        }
        let folder = self.folder.display().to_string().replace('/', "%2F");
        format!("postgres://{ROLE}@{folder}/{database}")
    }

    /// Runs a statement as the superuser of a database, and returns its rows as lines.
    pub fn sql(&self, database: &str, statement: &str) -> String {
        let output = self.psql(database, statement);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{statement}: {errors}");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    fn psql(&self, database: &str, statement: &str) -> std::process::Output {
        Command::new(self.programs.join("psql"))
            .args(["-X", "-q", "-A", "-t", "-U", "postgres", "-d", database])
            .args(["-p", &self.port.unwrap_or(5432).to_string(), "-h"])
            .arg(&self.folder)
            .args(["-c", statement])
            .output()
            .expect("psql can be started")
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        // One that was frozen could not end.
        self.signal("CONT");
        self.stop();
        fs::remove_dir_all(&self.folder).ok();
    }
}

/// The folder of Debian's newest PostgreSQL programs.
fn postgres_programs() -> PathBuf {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten();
    let newest = versions
        .flatten()
        .filter_map(|entry| {
            let version: u32 = entry.file_name().to_str()?.parse().ok()?;
            let programs = entry.path().join("bin");
            programs
                .join("initdb")
                .is_file()
                .then_some((version, programs))
        })
        .max();
    newest
        .expect("there is no PostgreSQL; `cargo xtask services install` installs it")
        .1
}
