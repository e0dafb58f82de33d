//! Stand-ins of what lists servers: an API server of Kubernetes, an engine of containers, an agent of Consul. Each speaks the part
//! of its API that lists and watches, over a socket, from one list that a test sets.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

use serde_json::{Value, json};

/// Which API is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Kubernetes,
    Docker,
    Consul,
}

/// A stand-in.
pub(crate) struct Catalogue {
    shared: Arc<Shared>,
    address: SocketAddr,
    socket: PathBuf,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    servers: Vec<SocketAddr>,
    /// Counts changes from 1.
    version: u64,
    /// Versions up to this one are forgotten: a watch cannot go on from them.
    compacted: u64,
    is_away: bool,
    has_ended: bool,
    requests: Vec<String>,
}

trait Connection: Read + Write + Send {}
impl Connection for TcpStream {}
impl Connection for UnixStream {}

impl Catalogue {
    /// - `socket`: where it listens too.
    pub(crate) fn start(kind: Kind, socket: PathBuf) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared::default());
        shared.state.lock().unwrap().version = 1;
        let unix = UnixListener::bind(&socket).unwrap();
        let serve = move |shared: &Arc<Shared>, connection: Box<dyn Connection>| {
            let shared = Arc::clone(shared);
            thread::spawn(move || shared.serve(kind, connection));
        };
        let of_tcp = Arc::clone(&shared);
        thread::spawn(move || {
            while let Ok((connection, _)) = listener.accept() {
                if of_tcp.state.lock().unwrap().has_ended {
                    break;
                }
                serve(&of_tcp, Box::new(connection));
            }
        });
        let of_unix = Arc::clone(&shared);
        thread::spawn(move || {
            while let Ok((connection, _)) = unix.accept() {
                if of_unix.state.lock().unwrap().has_ended {
                    break;
                }
                serve(&of_unix, Box::new(connection));
            }
        });
        Self {
            shared,
            address,
            socket,
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn socket(&self) -> &std::path::Path {
        &self.socket
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.shared.state.lock().unwrap());
        self.shared.changed.notify_all();
    }

    /// Lists these from now on.
    pub(crate) fn set(&self, servers: &[SocketAddr]) {
        self.change(|state| {
            state.servers = servers.to_vec();
            state.version += 1;
        });
    }

    /// Closes all connections as soon as they are opened, and those that are.
    pub(crate) fn set_away(&self, is_away: bool) {
        self.change(|state| state.is_away = is_away);
    }

    /// Forgets the versions until now, so that a watch has to begin anew.
    pub(crate) fn compact(&self) {
        self.change(|state| state.compacted = state.version);
    }

    /// The paths of requests until now.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.shared.state.lock().unwrap().requests.clone()
    }
}

impl Drop for Catalogue {
    fn drop(&mut self) {
        self.change(|state| {
            state.has_ended = true;
            state.is_away = true;
        });
        // Those that accept look whether it has ended.
        drop(TcpStream::connect(self.address));
        drop(UnixStream::connect(&self.socket));
    }
}

impl Shared {
    /// Answers requests over one connection.
    fn serve(&self, kind: Kind, connection: Box<dyn Connection>) {
        let mut reader = BufReader::new(connection);
        while let Some(path) = read_head(&mut reader) {
            let mut state = self.state.lock().unwrap();
            state.requests.push(path.clone());
            let is_away = state.is_away;
            drop(state);
            if is_away {
                return;
            }
            let query = query_of(&path);
            let connection = reader.get_mut().as_mut();
            let is_over = match kind {
                Kind::Kubernetes if query.contains_key("watch") => {
                    self.watch(connection, &query);
                    true
                }
                Kind::Docker if path.starts_with("/events") => {
                    self.events(connection);
                    true
                }
                _ => {
                    let Some((fields, document)) = self.document(kind, &query) else {
                        return;
                    };
                    respond(connection, &fields, &document).is_err()
                }
            };
            if is_over {
                return;
            }
        }
    }

    /// The list, with fields of the head; `None` once it is away.
    fn document(&self, kind: Kind, query: &HashMap<String, String>) -> Option<(String, Value)> {
        let mut state = self.state.lock().unwrap();
        match kind {
            Kind::Kubernetes => {
                let metadata = json!({"resourceVersion": state.version.to_string()});
                let items = slices(&state.servers);
                Some((String::new(), json!({"metadata": metadata, "items": items})))
            }
            Kind::Docker => {
                let containers = state.servers.iter().enumerate().map(|(number, server)| {
                    json!({
                        "Id": format!("c{number}"), "Names": [format!("/web-{number}")], "Status": "Up 2 minutes",
                        "Labels": {"plimsoll.upstream": "all", "plimsoll.port": server.port().to_string()},
                        "NetworkSettings": {"Networks": {"bridge": {"IPAddress": server.ip().to_string()}}},
                    })
                });
                Some((String::new(), containers.collect()))
            }
            Kind::Consul => {
                let index = query
                    .get("index")
                    .and_then(|it| it.parse().ok())
                    .unwrap_or(0);
                while state.version <= index && !state.is_away {
                    state = self.changed.wait(state).unwrap();
                }
                if state.is_away {
                    return None;
                }
                let instances = state.servers.iter().map(|server| {
                    json!({
                        "Node": {"Address": "192.0.2.1"},
                        "Service": {"Address": server.ip().to_string(), "Port": server.port()},
                        "Checks": [{"Status": "passing"}],
                    })
                });
                let fields = format!("X-Consul-Index: {}\r\n", state.version);
                Some((fields, instances.collect()))
            }
        }
    }

    /// Events from a version on, until it is away.
    fn watch(&self, connection: &mut dyn Connection, query: &HashMap<String, String>) {
        let mut version: u64 = query["resourceVersion"].parse().unwrap();
        let mut state = self.state.lock().unwrap();
        if begin_lines(connection).is_err() {
            return;
        }
        let mut known: HashMap<String, Value> = HashMap::new();
        loop {
            if state.is_away {
                return;
            }
            if version < state.compacted {
                let object =
                    json!({"kind": "Status", "code": 410, "message": "too old resource version"});
                drop(line(
                    connection,
                    &json!({"type": "ERROR", "object": object}),
                ));
                return;
            }
            if version < state.version {
                version = state.version;
                let now = slices(&state.servers);
                for mut slice in now.as_array().unwrap().clone() {
                    slice["metadata"]["resourceVersion"] = json!(version.to_string());
                    let name = slice["metadata"]["name"].as_str().unwrap().to_owned();
                    let kind = if known.insert(name, slice.clone()).is_some() {
                        "MODIFIED"
                    } else {
                        "ADDED"
                    };
                    if line(connection, &json!({"type": kind, "object": slice})).is_err() {
                        return;
                    }
                }
            }
            state = self.changed.wait(state).unwrap();
        }
    }

    /// An event for each change, until it is away.
    fn events(&self, connection: &mut dyn Connection) {
        let mut state = self.state.lock().unwrap();
        if begin_lines(connection).is_err() {
            return;
        }
        let mut version = state.version;
        loop {
            if state.is_away {
                return;
            }
            if version < state.version {
                version = state.version;
                if line(connection, &json!({"Type": "container", "Action": "start"})).is_err() {
                    return;
                }
            }
            state = self.changed.wait(state).unwrap();
        }
    }
}

/// Servers in two slices, as a service with many has them.
fn slices(servers: &[SocketAddr]) -> Value {
    let slice = |name: &str, rest: usize| {
        let mine = servers.iter().enumerate().filter(|(at, _)| at % 2 == rest);
        let ports: Vec<u16> = mine.clone().map(|(_, it)| it.port()).collect();
        let endpoints: Vec<_> = mine
            .map(|(_, it)| json!({"addresses": [it.ip().to_string()], "conditions": {"ready": true}}))
            .collect();
        json!({
            "metadata": {"name": name}, "addressType": "IPv4", "endpoints": endpoints,
            "ports": [{"name": "http", "port": ports.first(), "protocol": "TCP"}],
        })
    };
    json!([slice("all-a", 0), slice("all-b", 1)])
}

/// The target of a request without content; `None` at the end of the connection.
fn read_head(reader: &mut BufReader<Box<dyn Connection>>) -> Option<String> {
    let mut first = String::new();
    if reader.read_line(&mut first).ok()? == 0 {
        return None;
    }
    loop {
        let mut next = String::new();
        if reader.read_line(&mut next).ok()? == 0 {
            return None;
        }
        if next == "\r\n" {
            break;
        }
    }
    first.split(' ').nth(1).map(str::to_owned)
}

fn query_of(path: &str) -> HashMap<String, String> {
    let query = path.split_once('?').map_or("", |(_, query)| query);
    url::form_urlencoded::parse(query.as_bytes())
        .into_owned()
        .collect()
}

fn respond(connection: &mut dyn Connection, fields: &str, document: &Value) -> std::io::Result<()> {
    let text = document.to_string();
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n{fields}Content-Length: {}\r\n\r\n",
        text.len()
    );
    connection.write_all(format!("{head}{text}").as_bytes())
}

fn begin_lines(connection: &mut dyn Connection) -> std::io::Result<()> {
    connection.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
}

fn line(connection: &mut dyn Connection, document: &Value) -> std::io::Result<()> {
    let text = format!("{document}\n");
    connection.write_all(format!("{:x}\r\n{text}\r\n", text.len()).as_bytes())
}
