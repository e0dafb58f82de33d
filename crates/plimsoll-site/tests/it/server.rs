//! An engine that serves a directory, and a client of bare bytes.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use plimsoll_server::config::Compiler;
use plimsoll_server::{Address, Counters, Engine};
use tempfile::TempDir;

/// Longer than any test takes.
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) struct Site {
    pub(crate) engine: Engine,
    pub(crate) address: SocketAddr,
    /// Of the last listener.
    pub(crate) admin: SocketAddr,
    directory: TempDir,
}

/// One response, its header fields in order.
#[derive(Debug)]
pub(crate) struct Received {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Site {
    /// Serves `files`, with more keys for `files = { … }`.
    pub(crate) fn new(files: &[(&str, &[u8])], keys: &str) -> Self {
        Self::with_routes(
            files,
            &format!("[[route]]\nfiles = {{ root = \"site\", {keys} }}\n"),
        )
    }

    pub(crate) fn with_routes(files: &[(&str, &[u8])], routes: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("site")).unwrap();
        for (name, content) in files {
            let file = directory.path().join("site").join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, content).unwrap();
        }
        let text = format!("threads = 1\n[[listen]]\naddress = \"127.0.0.1:0\"\n{routes}");
        let counters = Arc::<Counters>::default();
        let mut compiler = Compiler::new(directory.path(), &counters);
        compiler.actions.push(plimsoll_site::FILES);
        compiler
            .admin_paths
            .push(plimsoll_site::refresh_path(&compiler.states));
        let plan = compiler.compile(&text).unwrap();
        let engine = Engine::start(&plan.engine, counters).unwrap();
        let bound = engine.bound(&plan.engine);
        let port = |address: Option<&Address>| address.unwrap().port().unwrap();
        Self {
            address: port(bound.first()),
            admin: port(bound.last()),
            engine,
            directory,
        }
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.directory.path().join("site")
    }

    pub(crate) fn outside(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn connect(&self) -> TcpStream {
        connect(self.address)
    }

    pub(crate) fn get(&self, path: &str) -> Received {
        self.ask("GET", path, "")
    }

    /// - `fields`: lines, each with its end.
    pub(crate) fn ask(&self, method: &str, path: &str, fields: &str) -> Received {
        ask(self.address, "a", method, path, fields)
    }

    /// The same of the last listener.
    pub(crate) fn ask_admin(&self, method: &str, path: &str, fields: &str) -> Received {
        ask(self.admin, "localhost", method, path, fields)
    }
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

fn ask(address: SocketAddr, host: &str, method: &str, path: &str, fields: &str) -> Received {
    let mut stream = connect(address);
    let request =
        format!("{method} {path} HTTP/1.1\r\nhost: {host}\r\n{fields}connection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut bytes = Vec::new();
    Read::by_ref(&mut stream)
        .take(1 << 26)
        .read_to_end(&mut bytes)
        .unwrap();
    Received::parse(&bytes, method == "HEAD")
}

impl Received {
    fn parse(bytes: &[u8], to_head: bool) -> Self {
        let end = bytes
            .windows(4)
            .position(|window| window == b"\r\n\r\n")
            .unwrap();
        let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
        let received = Self {
            status: head.get(9..12).unwrap().parse().unwrap(),
            head,
            body: bytes[end + 4..].to_vec(),
        };
        if let Some(length) = received.field("content-length")
            && !to_head
            && received.status != 304
        {
            assert_eq!(length, received.body.len().to_string());
        }
        received
    }

    /// All values of a field, joined.
    pub(crate) fn field(&self, name: &str) -> Option<String> {
        let values: Vec<_> = self
            .head
            .lines()
            .filter_map(|line| line.split_once(": "))
            .filter(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
            .collect();
        (!values.is_empty()).then(|| values.join(", "))
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }
}
