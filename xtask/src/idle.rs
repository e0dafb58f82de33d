//! `cargo xtask idle`: what memory idle connections of HTTP/1 take, of `plimsoll up`, of a gateway, and of nginx beside them.
//!
//! Each connection has had one answer, through the gateway from a server behind it, and is kept open. What counts is the growth of the process's resident memory;
//! what the kernel holds for sockets is not in it.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use clap::Args;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::bench::{free_ports, target_directory};
use crate::packages;
use crate::server::Server;
use crate::step::{self, cargo};
use crate::{Failure, Outcome};

/// What is opened
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Connections
    #[arg(short, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..=20_000))]
    connections: u64,

    /// A program of plimsoll that is built already, instead of one that is built for release
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
}

/// Bytes that a connection of ours may take.
const MOST: u64 = 6 * 1024;

/// Descriptors that a process needs besides connections.
const OTHERS: u64 = 256;

/// Waiting for a server to listen, and for its memory to settle: so often, so long.
const LOOKS: u32 = 200;
const PAUSE: Duration = Duration::from_millis(50);

const PLIMSOLL_TOML: &str = r#"threads = 1
[limits]
connections = 65536
connections_per_address = 65536
idle_timeout = "10m"
[[listen]]
address = "127.0.0.1:{port}"
[[route]]
respond = { body = "hello world\n" }
"#;

/// The server behind the gateway is in the same process, with the few connections that sequential requests need.
const GATEWAY_TOML: &str = r#"threads = 1
[limits]
connections = 65536
connections_per_address = 65536
idle_timeout = "10m"
[[listen]]
name = "front"
address = "127.0.0.1:{port}"
[[listen]]
name = "back"
address = "127.0.0.1:{other}"
[[route]]
listen = "back"
respond = { body = "hello world\n" }
[[route]]
listen = "front"
proxy = "http://127.0.0.1:{other}"
"#;

const NGINX_CONF: &str = r#"daemon off;
master_process off;
pid {dir}/nginx.pid;
error_log {dir}/error.log;
events { worker_connections 65536; }
http {
  access_log off;
  keepalive_timeout 600;
  client_body_temp_path {dir}/body;
  proxy_temp_path {dir}/proxy;
  fastcgi_temp_path {dir}/fastcgi;
  uwsgi_temp_path {dir}/uwsgi;
  scgi_temp_path {dir}/scgi;
  server {
    listen 127.0.0.1:{port} backlog=8192;
    location / { return 200 "hello world\n"; }
  }
}
"#;

/// Runs the task.
pub(crate) fn run(root: &Path, arguments: &Arguments) -> Outcome {
    raise_descriptors(arguments.connections + OTHERS)?;
    let target = target_directory(root)?;
    let program = if let Some(program) = &arguments.program {
        root.join(program)
    } else {
        let build = [
            "build",
            "--profile",
            "dist",
            "--locked",
            "--bin",
            "plimsoll",
        ];
        step::run(root, &mut cargo(&build))?;
        target.join("dist/plimsoll")
    };
    let directory = target.join(format!("idle-{}", std::process::id()));
    fs::create_dir_all(&directory).map_err(|error| error.to_string())?;
    let outcome = compare(&program, &directory, arguments.connections);
    // A leftover lies in the target directory.
    fs::remove_dir_all(&directory).ok();
    outcome
}

fn compare(program: &Path, directory: &Path, connections: u64) -> Outcome {
    let [port, other, front, back] = free_ports()?;
    let write = |name: &str, text: &str, port: u16| {
        let text = text
            .replace("{port}", &port.to_string())
            .replace("{other}", &back.to_string())
            .replace("{dir}", &directory.display().to_string());
        let file = directory.join(name);
        let written = fs::write(&file, text);
        written.map(|()| file).map_err(|error| error.to_string())
    };
    println!("{connections} connections, each idle after one answer:\n");
    println!(
        "{:<12} {:>14} {:>14} {:>14}",
        "", "RSS before", "RSS after", "each"
    );
    let mut command = Command::new(program);
    command
        .arg("up")
        .arg(write("plimsoll.toml", PLIMSOLL_TOML, port)?);
    let ours = measure("plimsoll", command, port, connections)?;
    let mut command = Command::new(program);
    command
        .arg("up")
        .arg(write("gateway.toml", GATEWAY_TOML, front)?);
    let gateway = measure("gateway", command, front, connections)?;
    if let Some(nginx) = packages::find("nginx", &[]) {
        let mut command = Command::new(nginx);
        command
            .arg("-p")
            .arg(directory)
            .arg("-c")
            .arg(write("nginx.conf", NGINX_CONF, other)?);
        measure("nginx", command, other, connections)?;
    }
    let most = ours.max(gateway);
    if most > MOST {
        return Err(format!("an idle connection takes {most} bytes, more than {MOST}").into());
    }
    Ok(())
}

/// Bytes of memory for each of so many idle connections.
fn measure(name: &str, mut command: Command, port: u16, connections: u64) -> Result<u64, Failure> {
    command.stdout(Stdio::null()).stderr(Stdio::inherit());
    let server = Server::start(&mut command)?;
    let is_listening = || TcpStream::connect(("127.0.0.1", port)).is_ok();
    if !(0..LOOKS).any(|_| is_listening() || wait()) {
        return Err(format!("{name} does not listen").into());
    }
    // What the first connections bring is the server's own.
    for _ in 0..16 {
        idle(port)?;
    }
    let before = settled(&server)?;
    let held = (0..connections)
        .map(|_| idle(port))
        .collect::<Result<Vec<_>, _>>()?;
    let after = settled(&server)?;
    drop(held);
    let each = after.saturating_sub(before) / connections;
    let shown = |bytes: u64| format!("{:.1} MiB", bytes as f64 / 1_048_576.0);
    println!(
        "{name:<12} {:>14} {:>14} {:>14}",
        shown(before),
        shown(after),
        format!("{each} B")
    );
    Ok(each)
}

/// A connection that has had an answer.
fn idle(port: u16) -> Result<TcpStream, Failure> {
    const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let ask = || {
        let mut stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_read_timeout(Some(Duration::from_secs(20)))?;
        stream.write_all(REQUEST)?;
        let mut answer = Vec::new();
        while !answer.ends_with(b"hello world\n") {
            let mut buffer = [0; 1024];
            match stream.read(&mut buffer)? {
                0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
                read => answer.extend_from_slice(&buffer[..read]),
            }
        }
        Ok::<_, std::io::Error>(stream)
    };
    ask().map_err(|error| format!("a connection failed: {error}").into())
}

/// Resident memory once it is the same twice, in bytes.
fn settled(server: &Server) -> Result<u64, Failure> {
    let mut last = resident(server.0.id())?;
    for _ in 0..LOOKS {
        wait();
        let now = resident(server.0.id())?;
        if now == last {
            break;
        }
        last = now;
    }
    Ok(last)
}

fn resident(pid: u32) -> Result<u64, Failure> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"));
    let status = status.map_err(|error| format!("the server is gone: {error}"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    Ok(kilobytes.ok_or("the system does not report memory")? * 1024)
}

/// Waits a little; yields nothing.
#[expect(clippy::disallowed_methods, reason = "a task measures by the clock")]
fn wait() -> bool {
    thread::sleep(PAUSE);
    false
}

fn raise_descriptors(wanted: u64) -> Outcome {
    let limit = getrlimit(Resource::Nofile);
    if limit.maximum.is_some_and(|maximum| maximum < wanted) {
        return Err(format!("{wanted} descriptors are needed; raise the limit (ulimit -n)").into());
    }
    let current = limit.current.map(|current| current.max(wanted));
    let raised = Rlimit { current, ..limit };
    setrlimit(Resource::Nofile, raised).map_err(|error| error.to_string().into())
}
