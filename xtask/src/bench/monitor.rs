//! `cargo xtask bench monitor`: what checks cost, of `plimsoll monitor` beside Gatus, and of one check on demand beside
//! `blackbox_exporter`.
//!
//! 500 endpoints are checked once a second, each over a fresh connection, against a server of this task, which counts
//! them. Both run the same configuration of Gatus. The figures are CPU time of the process per check, from
//! /proc/PID/stat, and its resident memory.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use super::process::cpu_seconds;
use super::{Arguments, cannot, free_ports, peers, target_directory};
use crate::clock::wait;
use crate::packages;
use crate::server::Server;
use crate::step;
use crate::{Failure, Outcome};

/// The version of Gatus that is measured and compared with.
pub(crate) const GATUS: (&str, &str) = ("github.com/TwiN/gatus/v5", "v5.36.0");
const BLACKBOX: (&str, &str) = ("github.com/prometheus/blackbox_exporter", "v0.28.0");

/// Endpoints, each checked once a second.
const ENDPOINTS: usize = 500;

/// What plimsoll may take of Gatus: a fifth of the CPU time, half of the memory.
const MOST_CPU: f64 = 0.2;
const MOST_MEMORY: f64 = 0.5;

/// Answers every request and closes the connection; counts them.
struct Origin {
    port: u16,
    count: Arc<AtomicU64>,
}

/// What a process took.
struct Taken {
    name: &'static str,
    checks: u64,
    /// Microseconds of CPU time.
    micros: f64,
    /// Bytes.
    memory: u64,
}

/// Runs the task.
pub(super) fn run(root: &Path, arguments: &Arguments) -> Outcome {
    let target = target_directory(root)?;
    let build = ["build", "--profile", "dist", "--locked", "-p", "plimsoll"];
    step::run(root, &mut step::cargo(&build))?;
    let peers = target.join("peers");
    if arguments.install_peers {
        for (module, name) in [(GATUS, "gatus"), (BLACKBOX, "blackbox_exporter")] {
            peers::go(root, &peers, module, name)?;
        }
    }
    let directory = target.join(format!("bench-monitor-{}", std::process::id()));
    fs::create_dir_all(&directory).map_err(|error| cannot("create", &directory, &error))?;
    let outcome = compare(
        &target.join("dist/plimsoll"),
        &peers,
        &directory,
        arguments.quick,
    );
    // A leftover lies in the target directory.
    fs::remove_dir_all(&directory).ok();
    outcome
}

fn compare(plimsoll: &Path, peers: &Path, directory: &Path, quick: bool) -> Outcome {
    let origin = Origin::start()?;
    let [port] = free_ports()?;
    let configuration = directory.join("config.yaml");
    fs::write(&configuration, gatus(origin.port, port))
        .map_err(|error| cannot("write", &configuration, &error))?;
    let (warm_up, seconds) = if quick { (3, 3) } else { (15, 60) };
    let mut all = Vec::new();
    let mut ours = Command::new(plimsoll);
    ours.arg("monitor").arg(&configuration);
    all.push(measure("plimsoll", ours, &origin, warm_up, seconds)?);
    let here = [peers.join("bin")];
    if let Some(program) = packages::find("gatus", &here) {
        let mut theirs = Command::new(program);
        theirs.env("GATUS_CONFIG_PATH", &configuration);
        all.push(measure("Gatus", theirs, &origin, warm_up, seconds)?);
    }
    let demanded = on_demand(plimsoll, &here, directory, &origin, seconds)?;
    println!(
        "\n{:<28} {:>10} {:>14} {:>10}",
        "", "checks", "CPU per check", "RSS"
    );
    for taken in all.iter().chain(&demanded) {
        taken.print();
    }
    let [ours, theirs] = all.as_slice() else {
        println!("\nGatus is not installed; add --install-peers");
        return Ok(());
    };
    let cpu = ours.each() / theirs.each();
    let memory = ours.memory as f64 / theirs.memory as f64;
    println!(
        "\nof Gatus: {cpu:.3} of the CPU per check (at most {MOST_CPU}), {memory:.3} of the memory (at most {MOST_MEMORY})"
    );
    if quick || (cpu <= MOST_CPU && memory <= MOST_MEMORY) {
        return Ok(());
    }
    Err("a limit is not met".into())
}

/// `/probe` of both, asked by a load generator at the same rate.
fn on_demand(
    plimsoll: &Path,
    here: &[PathBuf],
    directory: &Path,
    origin: &Origin,
    seconds: u64,
) -> Result<Vec<Taken>, Failure> {
    let mut all = Vec::new();
    let [ours, theirs] = free_ports()?;
    let configuration = directory.join("monitor.toml");
    let made = Command::new(plimsoll)
        .args(["monitor", "token", "t", "--write"])
        .output()
        .map_err(|error| error.to_string())?;
    let made = String::from_utf8_lossy(&made.stdout).into_owned();
    let (secret, lines) = made.split_once("\n\n").ok_or("no token was made")?;
    let text = format!("store = \"memory\"\n[limits]\nper_host = 1000\n{lines}");
    fs::write(&configuration, text).map_err(|error| cannot("write", &configuration, &error))?;
    let mut command = Command::new(plimsoll);
    command.arg("monitor").arg(&configuration);
    command.args(["--listen", &format!("127.0.0.1:{ours}")]);
    let probe = format!(
        "/probe?target=http://127.0.0.1:{}/&module=http_2xx",
        origin.port
    );
    let header = format!("authorization: Bearer {secret}");
    let url = format!("http://127.0.0.1:{ours}{probe}");
    all.push(asked(
        "plimsoll /probe",
        command,
        plimsoll,
        (&url, &header),
        origin,
        seconds,
    )?);
    if let Some(program) = packages::find("blackbox_exporter", here) {
        let modules = directory.join("blackbox.yml");
        let text = "modules:\n  http_2xx:\n    prober: http\n    http:\n      preferred_ip_protocol: ip4\n";
        fs::write(&modules, text).map_err(|error| cannot("write", &modules, &error))?;
        let mut command = Command::new(program);
        command.arg(format!("--config.file={}", modules.display()));
        command.arg(format!("--web.listen-address=127.0.0.1:{theirs}"));
        let url = format!("http://127.0.0.1:{theirs}{probe}");
        all.push(asked(
            "blackbox_exporter /probe",
            command,
            plimsoll,
            (&url, "accept: */*"),
            origin,
            seconds,
        )?);
    }
    Ok(all)
}

/// Measures while a load generator asks for 200 checks a second.
fn asked(
    name: &'static str,
    mut command: Command,
    plimsoll: &Path,
    (url, header): (&str, &str),
    origin: &Origin,
    seconds: u64,
) -> Result<Taken, Failure> {
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let server = Server::start(&mut command)?;
    listening(url)?;
    let mut load = Command::new(plimsoll);
    load.args([
        "load",
        url,
        "-q",
        "200",
        "-z",
        &format!("{}s", seconds + 2),
        "-H",
        header,
    ]);
    load.stdout(Stdio::null());
    let _load = Server::start(&mut load)?;
    wait(Duration::from_secs(1));
    window(name, &server, origin, seconds)
}

/// Waits until the server of a URL accepts connections.
fn listening(url: &str) -> Outcome {
    let address = url
        .trim_start_matches("http://")
        .split('/')
        .next()
        .unwrap_or_default();
    for _ in 0..200 {
        if TcpStream::connect(address).is_ok() {
            return Ok(());
        }
        wait(Duration::from_millis(50));
    }
    Err(format!("nothing listens at {address}").into())
}

fn measure(
    name: &'static str,
    mut command: Command,
    origin: &Origin,
    warm_up: u64,
    seconds: u64,
) -> Result<Taken, Failure> {
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let server = Server::start(&mut command)?;
    wait(Duration::from_secs(warm_up));
    window(name, &server, origin, seconds)
}

/// What a process takes from now on.
fn window(
    name: &'static str,
    server: &Server,
    origin: &Origin,
    seconds: u64,
) -> Result<Taken, Failure> {
    let (before, first) = (
        cpu_seconds(server.0.id())?,
        origin.count.load(Ordering::Relaxed),
    );
    wait(Duration::from_secs(seconds));
    let (after, last) = (
        cpu_seconds(server.0.id())?,
        origin.count.load(Ordering::Relaxed),
    );
    if last == first {
        return Err(format!("{name} made no check").into());
    }
    Ok(Taken {
        name,
        checks: last - first,
        micros: (after - before) * 1e6,
        memory: resident(server.0.id())?,
    })
}

impl Taken {
    /// Microseconds per check.
    fn each(&self) -> f64 {
        self.micros / self.checks as f64
    }

    fn print(&self) {
        let memory = self.memory as f64 / 1_048_576.0;
        let (name, checks, each) = (self.name, self.checks, self.each());
        println!("{name:<28} {checks:>10} {each:>11.1} µs {memory:>6.1} MiB");
    }
}

impl Origin {
    fn start() -> Result<Self, Failure> {
        let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
        let port = listener
            .local_addr()
            .map_err(|error| error.to_string())?
            .port();
        let count = Arc::<AtomicU64>::default();
        let counted = Arc::clone(&count);
        // Ends with the task.
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                answer(stream);
                counted.fetch_add(1, Ordering::Relaxed);
            }
        });
        Ok(Self { port, count })
    }
}

fn answer(mut stream: TcpStream) {
    const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok";

    stream.set_read_timeout(Some(Duration::from_secs(5))).ok();
    let (mut head, mut buffer) = (Vec::new(), [0; 2048]);
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => return,
            Ok(read) => head.extend_from_slice(&buffer[..read]),
        }
    }
    stream.write_all(ANSWER).ok();
}

/// The configuration of both.
fn gatus(origin: u16, port: u16) -> String {
    use std::fmt::Write as _;

    let mut text = format!(
        "web:\n  address: 127.0.0.1\n  port: {port}\nstorage:\n  type: memory\nconcurrency: 0\nendpoints:\n"
    );
    for number in 0..ENDPOINTS {
        let written = write!(
            text,
            "- name: e{number}\n  url: http://127.0.0.1:{origin}/\n  interval: 1s\n  conditions: ['[STATUS] == 200']\n"
        );
        written.expect("writing to memory does not fail");
    }
    text
}

fn resident(pid: u32) -> Result<u64, Failure> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"));
    let status = status.map_err(|error| format!("the process is gone: {error}"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    Ok(kilobytes.ok_or("the system does not report memory")? * 1024)
}
