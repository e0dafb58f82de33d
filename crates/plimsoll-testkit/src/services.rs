//! PostgreSQL, `MariaDB`, Redis, and a server with ClickHouse's HTTP interface, for tests and `cargo xtask services`.
//!
//! PostgreSQL, `MariaDB` and Redis are Debian's. ClickHouse is the engine of the Python package `chdb-core`, which `cargo xtask services install`
//! puts into a virtual environment under the target directory. Each server runs below a shell that ends it as soon as the
//! shell's standard input closes, so none outlives the process that started it, however that ends.
//!
//! Only the standard library and the file of [`free_port`] are used here: `xtask` compiles both too.

// `xtask` compiles this file by its path, and would look for the modules beside it.
#[path = "services/clickhouse.rs"]
mod clickhouse;

#[path = "services/postgres.rs"]
mod postgres;

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

pub use self::clickhouse::ClickHouseServer;
pub use self::postgres::PostgresServer;
use crate::free_port::free_port;

/// The unprivileged user of Debian: PostgreSQL refuses to run as root.
const NOBODY: u32 = 65_534;

/// The role that owns the databases of tests. It is no superuser, so row-level security holds it too.
const ROLE: &str = "plimsoll";

/// Runs a command until the standard input closes, and ends it. A line on the standard input before it closes keeps the
/// folder; without one the process was killed, or ended without dropping the server, and the folder is deleted.
const KEEPER: &str = r#"
signal=$1; folder=$2; shift 2
"$@" </dev/null & child=$!
trap '' INT TERM
keeps=$(cat)
kill -$signal $child 2>/dev/null
kill -CONT $child $(cat /proc/$child/task/$child/children) 2>/dev/null
wait $child
[ -n "$keeps" ] || rm -rf "$folder"
"#;

/// A server below its keeper.
#[derive(Debug)]
pub(crate) struct ChildProcess(Child);

impl ChildProcess {
    /// - `folder`: deleted at the end, if the process that started the server is gone by then.
    /// - `user`: that it runs as.
    fn start(command: &Command, folder: &Path, user: Option<u32>) -> Self {
        Self::start_until("INT", command, folder, user)
    }

    /// The same for a server that another signal ends.
    pub(crate) fn start_until(
        signal: &str,
        command: &Command,
        folder: &Path,
        user: Option<u32>,
    ) -> Self {
        let mut keeper = Command::new("sh");
        keeper
            .args(["-c", KEEPER, "keeper", signal])
            .arg(folder)
            .arg(command.get_program())
            .args(command.get_args())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit());
        // A signal of the terminal is for the process that started it.
        keeper.process_group(0);
        if let Some(user) = user {
            keeper.uid(user).gid(user);
        }
        Self(keeper.spawn().expect("a shell can be started"))
    }
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        if let Some(mut input) = self.0.stdin.take() {
            input.write_all(b"keep\n").ok();
        }
        self.0.wait().ok();
    }
}

/// The user that servers run as, if this process is root.
pub(crate) fn unprivileged() -> Option<u32> {
    let is_root = fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
    is_root.then_some(NOBODY)
}

/// A new folder of the user that servers run as.
pub(crate) fn new_folder(name: &str) -> PathBuf {
    static COUNT: AtomicU64 = AtomicU64::new(0);

    loop {
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("plimsoll-{name}-{}-{count}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        match fs::create_dir(&folder) {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => continue,
            outcome => outcome.expect("a folder can be made"),
        }
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).expect("it is ours");
        if let Some(user) = unprivileged() {
            chown(&folder, Some(user), Some(user)).expect("root may give it away");
        }
        return folder;
    }
}

/// A Redis of its own on a port of the loopback, which is deleted at the end.
#[derive(Debug)]
pub struct RedisServer {
    folder: PathBuf,
    /// Its port.
    pub port: u16,
    running: Option<ChildProcess>,
}

impl RedisServer {
    /// Starts one that needs a password, and waits until it accepts connections.
    pub fn start(password: &str) -> Self {
        /// In Debian every program of Redis is this one, under several names.
        const PROGRAM: &str = "/usr/bin/redis-check-rdb";

        assert!(
            Path::new(PROGRAM).is_file(),
            "there is no Redis; `cargo xtask services install` installs it"
        );
        let folder = new_folder("redis");
        let program = folder.join("redis-server");
        std::os::unix::fs::symlink(PROGRAM, &program).expect("the folder is ours");
        let port = free_port().expect("a port is free");
        let mut command = Command::new(&program);
        command
            .args(["--bind", "127.0.0.1", "--save", "", "--daemonize", "no"])
            .args(["--logfile", "/dev/null", "--port", &port.to_string()])
            .args(["--requirepass", password, "--dir"])
            .arg(&folder);
        let running = ChildProcess::start(&command, &folder, unprivileged());
        wait_until(|| std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());
        Self {
            folder,
            port,
            running: Some(running),
        }
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        self.running = None;
        fs::remove_dir_all(&self.folder).ok();
    }
}

/// A `MariaDB` of its own on a port of the loopback, which is deleted at the end.
#[derive(Debug)]
pub struct MariaDbServer {
    folder: PathBuf,
    /// Its port.
    pub port: u16,
    running: Option<ChildProcess>,
}

impl MariaDbServer {
    /// Starts one that executes statements first, and waits until it takes connections.
    ///
    /// - `statements`: one in each line.
    pub fn start(statements: &str) -> Self {
        const PROGRAM: &str = "/usr/sbin/mariadbd";

        assert!(
            Path::new(PROGRAM).is_file(),
            "there is no MariaDB; `cargo xtask services install` installs it"
        );
        let folder = new_folder("mariadb");
        let data = format!("--datadir={}", folder.join("data").display());
        let mut install = Command::new("mariadb-install-db");
        install
            .args(["--no-defaults", "--skip-test-db", "--skip-name-resolve"])
            .args(["--auth-root-authentication-method=normal", &data])
            .current_dir("/");
        run_as_unprivileged(&mut install);
        let first = folder.join("first.sql");
        fs::write(&first, statements).expect("the folder is ours");
        fs::set_permissions(&first, fs::Permissions::from_mode(0o644)).expect("it is ours");
        let port = free_port().expect("a port is free");
        let mut command = Command::new(PROGRAM);
        command
            .args(["--no-defaults", "--bind-address=127.0.0.1", &data])
            .args([
                "--skip-name-resolve",
                "--skip-log-bin",
                "--log-error=/dev/null",
            ])
            .arg(format!("--socket={}", folder.join("socket").display()))
            .arg(format!("--pid-file={}", folder.join("pid").display()))
            .arg(format!("--init-file={}", first.display()))
            .arg(format!("--port={port}"));
        let running = ChildProcess::start_until("TERM", &command, &folder, unprivileged());
        wait_until(|| std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());
        Self {
            folder,
            port,
            running: Some(running),
        }
    }
}

impl Drop for MariaDbServer {
    fn drop(&mut self) {
        self.running = None;
        fs::remove_dir_all(&self.folder).ok();
    }
}

/// A Mosquitto of its own on a port of the loopback, with one user, which is deleted at the end.
#[derive(Debug)]
pub struct MqttServer {
    folder: PathBuf,
    /// Its port.
    pub port: u16,
    running: Option<ChildProcess>,
}

impl MqttServer {
    /// Starts one, and waits until it takes connections.
    pub fn start(user: &str, password: &str) -> Self {
        let folder = new_folder("mosquitto");
        let passwords = folder.join("passwords");
        let mut hash = Command::new("mosquitto_passwd");
        hash.args(["-b", "-c"])
            .arg(&passwords)
            .args([user, password]);
        run_as_unprivileged(&mut hash);
        let port = free_port().expect("a port is free");
        let config = folder.join("mosquitto.conf");
        let text = format!(
            "listener {port} 127.0.0.1\nallow_anonymous false\npassword_file {}\nlog_dest none\nuser nobody\n",
            passwords.display()
        );
        fs::write(&config, text).expect("the folder is ours");
        fs::set_permissions(&config, fs::Permissions::from_mode(0o644)).expect("it is ours");
        let mut command = Command::new("mosquitto");
        command.arg("-c").arg(&config);
        let running = ChildProcess::start(&command, &folder, unprivileged());
        wait_until(|| std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());
        Self {
            folder,
            port,
            running: Some(running),
        }
    }
}

impl Drop for MqttServer {
    fn drop(&mut self) {
        self.running = None;
        fs::remove_dir_all(&self.folder).ok();
    }
}

/// A server of its own on a port of the loopback, which is deleted at the end.
#[derive(Debug)]
pub struct PortServer {
    folder: PathBuf,
    /// Its port.
    pub port: u16,
    running: Option<ChildProcess>,
}

impl PortServer {
    /// NTP by chrony, which leaves the clock of this machine alone.
    ///
    /// - `stratum`: without one it has no time to serve.
    pub fn ntp(stratum: Option<u8>) -> Self {
        Self::start("chrony", |folder, port| {
            let local = stratum.map_or(String::new(), |stratum| {
                format!("local stratum {stratum}\n")
            });
            let config = write_config(
                folder,
                &format!(
                    "port {port}\nbindaddress 127.0.0.1\nallow 127.0.0.1\ncmdport 0\nbindcmdaddress /\npidfile {}\n{local}",
                    folder.join("pid").display()
                ),
            );
            let mut command = Command::new("/usr/sbin/chronyd");
            command.args(["-x", "-U", "-n", "-f"]).arg(config);
            command.arg("-l").arg(folder.join("log"));
            command
        })
    }

    /// Prometheus, which scrapes itself.
    pub fn prometheus() -> Self {
        let server = Self::start("prometheus", |folder, port| {
            let config = write_config(
                folder,
                &format!(
                    "scrape_configs:\n- job_name: itself\n  scrape_interval: 200ms\n  scrape_timeout: 200ms\n  \
                     static_configs: [{{targets: ['127.0.0.1:{port}']}}]\n"
                ),
            );
            let mut command = Command::new("prometheus");
            command
                .arg(format!("--config.file={}", config.display()))
                .arg(format!(
                    "--storage.tsdb.path={}",
                    folder.join("data").display()
                ))
                .arg(format!("--web.listen-address=127.0.0.1:{port}"))
                .arg("--log.level=error");
            command
        });
        server.wait();
        server
    }

    /// `RabbitMQ` with the user `ann`, whose password is `secret word`, the virtual host `shop` and its queue `jobs`.
    pub fn rabbitmq() -> Self {
        /// The server below a mapper of ports of its own: otherwise it starts one that outlives it.
        const SCRIPT: &str = r#"
epmd -port "$ERL_EPMD_PORT" -address 127.0.0.1 & mapper=$!
/usr/lib/rabbitmq/bin/rabbitmq-server >/dev/null 2>&1 & server=$!
trap 'kill -TERM $server' TERM
while kill -0 $server 2>/dev/null; do wait $server; done
kill $mapper
"#;
        const DEFINITIONS: &str = r#"{
            "vhosts": [{"name": "shop"}],
            "users": [{"name": "ann", "password": "secret word", "tags": ""}],
            "permissions": [{"user": "ann", "vhost": "shop", "configure": ".*", "write": ".*", "read": ".*"}],
            "queues": [{"name": "jobs", "vhost": "shop", "durable": true, "auto_delete": false, "arguments": {}}]
        }"#;

        assert!(
            Path::new("/usr/lib/rabbitmq/bin/rabbitmq-server").is_file(),
            "there is no RabbitMQ; `cargo xtask services install` installs it"
        );
        let folder = new_folder("rabbitmq");
        let write = |name: &str, text: &str| {
            let path = folder.join(name);
            fs::write(&path, text).expect("the folder is ours");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("it is ours");
            path
        };
        let definitions = write("definitions.json", DEFINITIONS);
        let free = || free_port().expect("a port is free");
        let (port, mapper, distribution) = (free(), free(), free());
        let config = write(
            "rabbitmq.conf",
            &format!(
                "listeners.tcp.default = 127.0.0.1:{port}\nload_definitions = {}\nlog.console = false\nlog.file = false\n",
                definitions.display()
            ),
        );
        let mut command = Command::new("env");
        for (name, value) in [
            ("HOME", folder.display().to_string()),
            ("ERL_EPMD_PORT", mapper.to_string()),
            ("RABBITMQ_NODENAME", format!("test{port}@localhost")),
            ("RABBITMQ_DIST_PORT", distribution.to_string()),
            (
                "RABBITMQ_MNESIA_BASE",
                folder.join("data").display().to_string(),
            ),
            (
                "RABBITMQ_LOG_BASE",
                folder.join("log").display().to_string(),
            ),
            ("RABBITMQ_CONFIG_FILE", config.display().to_string()),
            (
                "RABBITMQ_ENABLED_PLUGINS_FILE",
                folder.join("plugins").display().to_string(),
            ),
            ("RABBITMQ_CONF_ENV_FILE", "/dev/null".to_owned()),
        ] {
            command.arg(format!("{name}={value}"));
        }
        command.args(["sh", "-c", SCRIPT]);
        let running = ChildProcess::start_until("TERM", &command, &folder, unprivileged());
        let server = Self {
            folder,
            port,
            running: Some(running),
        };
        server.wait();
        server
    }

    /// NATS with one user.
    pub fn nats(user: &str, password: &str) -> Self {
        let server = Self::start("nats", |folder, port| {
            let mut command = Command::new("nats-server");
            command
                .args(["-a", "127.0.0.1", "-p", &port.to_string()])
                .args(["--user", user, "--pass", password])
                .arg("-l")
                .arg(folder.join("log"));
            command
        });
        server.wait();
        server
    }

    /// LDAP by `OpenLDAP`: `dc=example,dc=org` with people below it, and `cn=admin` of that password.
    pub fn ldap(password: &str) -> Self {
        let server = Self::start("slapd", |folder, port| {
            let data = folder.join("data");
            fs::create_dir(&data).expect("the folder is ours");
            if let Some(user) = unprivileged() {
                chown(&data, Some(user), Some(user)).expect("root may give it away");
            }
            let config = write_config(
                folder,
                &format!(
                    "include /etc/ldap/schema/core.schema\ninclude /etc/ldap/schema/cosine.schema\n\
                     include /etc/ldap/schema/inetorgperson.schema\nmodulepath /usr/lib/ldap\nmoduleload back_mdb\n\
                     pidfile {0}/pid\nargsfile {0}/args\ndatabase mdb\nmaxsize 10485760\nsuffix \"dc=example,dc=org\"\n\
                     rootdn \"cn=admin,dc=example,dc=org\"\nrootpw \"{password}\"\ndirectory {0}/data\n",
                    folder.display()
                ),
            );
            let entries = folder.join("entries.ldif");
            fs::write(
                &entries,
                "dn: dc=example,dc=org\nobjectClass: dcObject\nobjectClass: organization\no: Example\ndc: example\n\n\
                 dn: cn=Ann,dc=example,dc=org\nobjectClass: person\ncn: Ann\nsn: Arc\n\n\
                 dn: cn=Bob,dc=example,dc=org\nobjectClass: person\ncn: Bob\nsn: Ball\n",
            )
            .expect("the folder is ours");
            fs::set_permissions(&entries, fs::Permissions::from_mode(0o644)).expect("it is ours");
            let mut add = Command::new("/usr/sbin/slapadd");
            add.arg("-f").arg(&config).arg("-l").arg(&entries);
            run_as_unprivileged(&mut add);
            let mut command = Command::new("/usr/sbin/slapd");
            command
                .args(["-d", "0", "-h", &format!("ldap://127.0.0.1:{port}/")])
                .arg("-f")
                .arg(config);
            command
        });
        server.wait();
        server
    }

    /// An agent of SNMP whose host has the name `tested`.
    pub fn snmp(community: &str) -> Self {
        Self::start("snmpd", |folder, port| {
            let text = format!("rocommunity {community} 127.0.0.1\nsysName tested\n");
            let config = write_config(folder, &text);
            let mut command = Command::new("env");
            command
                .arg(format!("SNMP_PERSISTENT_DIR={}", folder.display()))
                .args(["/usr/sbin/snmpd", "-f", "-Ln", "-C", "-c"])
                .arg(config)
                .arg(format!("udp:127.0.0.1:{port}"));
            command
        })
    }

    fn start(name: &str, command: impl FnOnce(&Path, u16) -> Command) -> Self {
        let folder = new_folder(name);
        let port = free_port().expect("a port is free");
        let command = command(&folder, port);
        let running = ChildProcess::start(&command, &folder, unprivileged());
        Self {
            folder,
            port,
            running: Some(running),
        }
    }

    fn wait(&self) {
        wait_until(|| std::net::TcpStream::connect(("127.0.0.1", self.port)).is_ok());
    }
}

impl Drop for PortServer {
    fn drop(&mut self) {
        self.running = None;
        fs::remove_dir_all(&self.folder).ok();
    }
}

/// Writes a configuration that the user of servers may read.
fn write_config(folder: &Path, text: &str) -> PathBuf {
    let config = folder.join("config");
    fs::write(&config, text).expect("the folder is ours");
    fs::set_permissions(&config, fs::Permissions::from_mode(0o644)).expect("it is ours");
    config
}

fn run_as_unprivileged(command: &mut Command) {
    if let Some(user) = unprivileged() {
        command.uid(user).gid(user);
    }
    let output = command.output().expect("the program can be started");
    assert!(
        output.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// The URL of a new database: on the server that `PLIMSOLL_TEST_CLICKHOUSE_URL` names, or on the shared one.
#[expect(clippy::disallowed_methods, reason = "a setting of the tests")]
pub fn clickhouse_database() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);

    let Ok(url) = std::env::var("PLIMSOLL_TEST_CLICKHOUSE_URL") else {
        return ClickHouseServer::shared().database();
    };
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let process = std::process::id();
    format!(
        "{}/plimsoll_test_{process}_{count}",
        url.trim_end_matches('/')
    )
}

/// The folder with `py-spy`, which `cargo xtask services install` puts beside ClickHouse's engine.
pub fn folder_of_py_spy() -> PathBuf {
    environment_of_tests().join("bin")
}

/// Beside the programs of tests: `target/services/venv` for `target/debug/deps/it`.
fn environment_of_tests() -> PathBuf {
    let program = std::env::current_exe().expect("a process has a program");
    let target = program.ancestors().nth(3).expect("it lies in target");
    target.join("services/venv")
}

/// Waits for a server that was started.
#[expect(
    clippy::disallowed_methods,
    reason = "bounded, and only while a server starts"
)]
pub(crate) fn wait_until(is_ready: impl Fn() -> bool) {
    for _ in 0..1_200 {
        if is_ready() {
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("the server does not take connections within a minute");
}
