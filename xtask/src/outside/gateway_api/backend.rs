//! Servers of services: each says what it received.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use serde_json::{Map, Value, json};

/// The field of requests that names one of the response, as `NAME:VALUE`.
pub(super) const SET_FIELD: &str = "X-Echo-Set-Header";

/// Services by their namespace and name, with their ports.
#[derive(Default)]
pub(super) struct Backends {
    ports: Mutex<HashMap<String, u16>>,
    /// Services and targets of all requests so far.
    received: Arc<Mutex<Vec<(String, String)>>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Backends {
    /// The port of a service, which is started if need be; 9, where nothing listens, if it cannot be.
    pub(super) fn port(&self, service: &str) -> u16 {
        let mut ports = locked(&self.ports);
        if let Some(port) = ports.get(service) {
            return *port;
        }
        let Ok(listener) = TcpListener::bind(("127.0.0.1", 0)) else {
            return 9;
        };
        let port = listener.local_addr().map_or(9, |it| it.port());
        ports.insert(service.to_owned(), port);
        let (service, received) = (service.to_owned(), Arc::clone(&self.received));
        // It ends with the task.
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (service, received) = (service.clone(), Arc::clone(&received));
                thread::spawn(move || {
                    // A client that leaves early misses the answer alone.
                    answer(stream, &service, &received).ok();
                });
            }
        });
        port
    }

    /// Whether a service has received a target; waits two seconds at most.
    pub(super) fn has_received(&self, service: &str, target: &str) -> bool {
        for _ in 0..200 {
            let all = locked(&self.received);
            if all.iter().any(|(name, it)| name == service && it == target) {
                return true;
            }
            drop(all);
            thread::park_timeout(Duration::from_millis(10));
        }
        false
    }
}

/// Answers one request and closes.
fn answer(
    stream: TcpStream,
    service: &str,
    received: &Mutex<Vec<(String, String)>>,
) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let first = lines.next().transpose()?.unwrap_or_default();
    let mut words = first.split(' ');
    let (method, target) = (
        words.next().unwrap_or_default(),
        words.next().unwrap_or_default(),
    );
    let (mut fields, mut set) = (Map::new(), String::new());
    while let Some(line) = lines.next().transpose()?.filter(|it| !it.is_empty()) {
        let (name, value) = line.split_once(':').unwrap_or_default();
        let (name, value) = (name.to_ascii_lowercase(), value.trim());
        if name.eq_ignore_ascii_case(SET_FIELD) {
            set.push_str(&value.replacen(':', ": ", 1));
            set.push_str("\r\n");
        }
        let joined = match fields.get(&name).and_then(Value::as_str) {
            Some(before) => format!("{before},{value}"),
            None => value.to_owned(),
        };
        fields.insert(name, joined.into());
    }
    locked(received).push((service.to_owned(), target.to_owned()));
    if let Some(delay) = delay(target) {
        thread::park_timeout(delay);
    }
    let content =
        json!({ "service": service, "method": method, "target": target, "fields": fields });
    let content = content.to_string();
    let length = content.len();
    let content = if method == "HEAD" { "" } else { &content };
    let mut stream = stream;
    write!(
        stream,
        "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {length}\r\n{set}\r\n{content}"
    )
}

/// `?delay=1s`, as tests of timeouts ask for it.
fn delay(target: &str) -> Option<Duration> {
    let (_, text) = target.split_once("delay=")?;
    let text = text.split('&').next()?;
    match text.strip_suffix("ms") {
        Some(number) => Some(Duration::from_millis(number.parse().ok()?)),
        None => Some(Duration::from_secs(text.strip_suffix('s')?.parse().ok()?)),
    }
}
