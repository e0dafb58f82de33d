//! A real nginx on a free port, configured in a directory of its own.

use std::fs;
use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;

use plimsoll_testkit::http::exchange;
use plimsoll_testkit::{eventually, free_ports};
use plimsoll_wire::process::{Process, ProcessSpec};
use tempfile::TempDir;

/// An nginx that is configured and that somebody else may start.
#[derive(Debug)]
pub(crate) struct Nginx {
    directory: TempDir,
    port: u16,
    proxied_port: u16,
}

impl Nginx {
    /// Answers every request with 12 bytes, and `/status` with its own counters; on its second port
    /// it wants a PROXY header and answers with what that says.
    pub(crate) fn configure() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let [port, proxied_port] = free_ports().unwrap();
        let path = directory.path().display().to_string();
        let configuration = include_str!("nginx.conf")
            .replace("{dir}", &path)
            .replace("{port}", &port.to_string())
            .replace("{proxied_port}", &proxied_port.to_string());
        fs::write(directory.path().join("nginx.conf"), configuration).unwrap();
        Self {
            directory,
            port,
            proxied_port,
        }
    }

    /// The command that starts it in the foreground.
    pub(crate) fn command(&self) -> String {
        let path = Path::new(self.directory.path()).display();
        format!("nginx -p {path} -c {path}/nginx.conf")
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// Starts it and waits until it serves.
    pub(crate) fn start(self) -> Running {
        let argv = shlex::split(&self.command()).unwrap();
        let process = Process::spawn(&ProcessSpec {
            argv,
            ..ProcessSpec::default()
        })
        .expect("nginx is installed by `cargo xtask test`");
        eventually(|| self.is_listening());
        Running {
            nginx: self,
            process,
        }
    }

    /// Whether anything listens on its port.
    pub(crate) fn is_listening(&self) -> bool {
        TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).is_ok()
    }

    /// Requests in its access log.
    pub(crate) fn logged_requests(&self) -> usize {
        let log = self.directory.path().join("access.log");
        fs::read_to_string(log).unwrap().lines().count()
    }
}

/// An nginx that runs until it is dropped.
#[derive(Debug)]
pub(crate) struct Running {
    nginx: Nginx,
    process: Process,
}

impl Running {
    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }

    pub(crate) fn url(&self, path: &str) -> String {
        self.nginx.url(path)
    }

    /// Where it wants a PROXY header.
    pub(crate) fn proxied_url(&self) -> String {
        format!("http://127.0.0.1:{}/", self.nginx.proxied_port)
    }

    /// Requests by its own counters, this one included.
    pub(crate) fn requests(&self) -> u64 {
        let request = b"GET /status HTTP/1.0\r\n\r\n";
        let answer = exchange((Ipv4Addr::LOCALHOST, self.nginx.port), request);
        let counters = answer
            .text()
            .lines()
            .skip_while(|line| !line.contains("accepts handled requests"))
            .nth(1)
            .unwrap();
        counters.split_whitespace().nth(2).unwrap().parse().unwrap()
    }
}
