//! A mock on an engine, and a client of bare bytes.

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_mock::{Folder, Mock, MockPlan, SharedMock};
use plimsoll_server::{
    Action, Counters, Engine, EnginePlan, ListenerPlan, MakeAction, Notices, Serves, WorkerContext,
};
use tempfile::TempDir;

/// Longer than any test takes.
const PATIENCE: Duration = Duration::from_secs(20);

/// A folder of files, served.
pub(crate) struct Served {
    pub(crate) folder: TempDir,
    pub(crate) shared: Arc<SharedMock>,
    engine: Engine,
}

/// A received response.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    /// The value of a field.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().skip(1);
        lines.find_map(|line| {
            let (field, value) = line.split_once(": ")?;
            field.eq_ignore_ascii_case(name).then_some(value)
        })
    }
}

pub(crate) fn make(shared: &Arc<SharedMock>) -> Arc<MakeAction> {
    let shared = Arc::clone(shared);
    Arc::new(move |_: &WorkerContext| {
        Rc::new(Mock::new(Arc::clone(&shared), "/")) as Rc<dyn Action>
    })
}

/// Writes files, each with its folders.
pub(crate) fn files(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

impl Served {
    /// The files themselves.
    pub(crate) fn folder(files: &[(&str, &str)]) -> Self {
        let folder = self::files(files);
        let plan = MockPlan::of_folder(Folder::new(folder.path()).unwrap());
        Self::start(folder, SharedMock::fixed(plan))
    }

    /// The rules of `rules.toml`.
    pub(crate) fn rules(rules: &str) -> Self {
        Self::rules_with(rules, &[])
    }

    /// The same with files beside it.
    pub(crate) fn rules_with(rules: &str, files: &[(&str, &str)]) -> Self {
        let folder = self::files(files);
        let file = folder.path().join("rules.toml");
        fs::write(&file, rules).unwrap();
        let shared = SharedMock::of_file(&file, &Notices::default())
            .unwrap_or_else(|problems| panic!("{problems:?}"));
        Self::start(folder, shared)
    }

    pub(crate) fn start(folder: TempDir, shared: Arc<SharedMock>) -> Self {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let listener = ListenerPlan::new(address, Serves::clear(make(&shared)));
        let plan = EnginePlan::new(vec![listener]);
        let engine = Engine::start(&plan, Arc::<Counters>::default()).unwrap();
        Self {
            folder,
            shared,
            engine,
        }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.engine.addresses()[0]
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(Path::new(name))
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    pub(crate) fn get(&self, target: &str) -> Answer {
        self.ask("GET", target, &[], "")
    }

    pub(crate) fn ask(&self, method: &str, target: &str, fields: &[&str], body: &str) -> Answer {
        ask(
            self.address(),
            method,
            target,
            &[&["host: a"], fields].concat(),
            body,
        )
    }

    /// All that comes back until the connection ends.
    pub(crate) fn talk(&self, request: &[u8]) -> Vec<u8> {
        talk(self.address(), request)
    }
}

/// Sends a request to that port.
///
/// - `fields`: `host` among them.
pub(crate) fn ask(
    address: SocketAddr,
    method: &str,
    target: &str,
    fields: &[&str],
    body: &str,
) -> Answer {
    let mut request = format!("{method} {target} HTTP/1.1\r\nconnection: close\r\n");
    for field in fields {
        request.push_str(field);
        request.push_str("\r\n");
    }
    if !body.is_empty() {
        let length = format!("content-length: {}\r\n", body.len());
        request.push_str(&length);
    }
    request.push_str("\r\n");
    request.push_str(body);
    let bytes = talk(address, request.as_bytes());
    answer(&bytes).unwrap_or_else(|| panic!("{}", String::from_utf8_lossy(&bytes)))
}

fn talk(address: SocketAddr, request: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(request).unwrap();
    let mut bytes = Vec::new();
    // A connection that is reset ends, too.
    let _ended = Read::by_ref(&mut stream)
        .take(1 << 28)
        .read_to_end(&mut bytes);
    bytes
}

fn answer(bytes: &[u8]) -> Option<Answer> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
    // Values of fields may be in Latin-1.
    let head: String = bytes[..end].iter().map(|byte| char::from(*byte)).collect();
    let status = head.split(' ').nth(1)?.parse().ok()?;
    let mut body = bytes[end + 4..].to_vec();
    if head
        .to_ascii_lowercase()
        .contains("transfer-encoding: chunked")
    {
        body = unchunked(&body)?;
    }
    Some(Answer { status, head, body })
}

fn unchunked(mut bytes: &[u8]) -> Option<Vec<u8>> {
    let mut whole = Vec::new();
    loop {
        let end = bytes.windows(2).position(|two| two == b"\r\n")?;
        let length = std::str::from_utf8(&bytes[..end]).ok()?;
        let length = usize::from_str_radix(length, 16).ok()?;
        if length == 0 {
            return Some(whole);
        }
        bytes = bytes.get(end + 2..)?;
        whole.extend_from_slice(bytes.get(..length)?);
        bytes = bytes.get(length + 2..)?;
    }
}
