//! An engine that serves a directory, and its client.

use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use plimsoll_server::config::Compiler;
use plimsoll_server::{Address, Counters, Engine};
use plimsoll_testkit::http::{HttpResponse, connect, exchange};
use tempfile::TempDir;

pub(crate) struct Site {
    pub(crate) engine: Engine,
    pub(crate) address: SocketAddr,
    /// Of the last listener.
    pub(crate) admin: SocketAddr,
    directory: TempDir,
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

    pub(crate) fn get(&self, path: &str) -> HttpResponse {
        self.ask("GET", path, "")
    }

    /// - `fields`: lines, each with its end.
    pub(crate) fn ask(&self, method: &str, path: &str, fields: &str) -> HttpResponse {
        ask(self.address, "a", method, path, fields)
    }

    /// The same of the last listener.
    pub(crate) fn ask_admin(&self, method: &str, path: &str, fields: &str) -> HttpResponse {
        ask(self.admin, "localhost", method, path, fields)
    }
}

fn ask(address: SocketAddr, host: &str, method: &str, path: &str, fields: &str) -> HttpResponse {
    let request =
        format!("{method} {path} HTTP/1.1\r\nhost: {host}\r\n{fields}connection: close\r\n\r\n");
    let received = exchange(address, request.as_bytes());
    if let Some(length) = received.field("content-length")
        && method != "HEAD"
        && received.status != 304
    {
        assert_eq!(length, received.body.len().to_string());
    }
    received
}
