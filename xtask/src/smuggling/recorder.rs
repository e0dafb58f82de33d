//! A relay before a server, which keeps what reaches it.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use crate::Failure;

/// Accepts connections for a server, and keeps their bytes in both directions.
pub(super) struct Recorder {
    port: u16,
    behind: u16,
    connections: Arc<Mutex<Vec<Arc<Mutex<Bytes>>>>>,
}

/// What passed on one connection.
#[derive(Default)]
struct Bytes {
    to_server: Vec<u8>,
    to_client: Vec<u8>,
}

type Direction = fn(&mut Bytes) -> &mut Vec<u8>;

impl Recorder {
    /// - `behind`: the port of the server.
    pub(super) fn start(behind: u16) -> Result<Self, Failure> {
        let cannot = |error: std::io::Error| format!("cannot record: {error}");
        let listener = TcpListener::bind(("127.0.0.1", 0)).map_err(cannot)?;
        let port = listener.local_addr().map_err(cannot)?.port();
        let connections = Arc::<Mutex<Vec<_>>>::default();
        let kept = Arc::clone(&connections);
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let Ok(server) = TcpStream::connect(("127.0.0.1", behind)) else {
                    continue;
                };
                let bytes = Arc::<Mutex<Bytes>>::default();
                if let Ok(mut kept) = kept.lock() {
                    kept.push(Arc::clone(&bytes));
                }
                relay(client, server, bytes);
            }
        });
        Ok(Self {
            port,
            behind,
            connections,
        })
    }

    /// Where connections are accepted.
    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// Waits until the server accepts connections.
    #[expect(
        clippy::disallowed_methods,
        reason = "the server is another program, which reports nothing"
    )]
    pub(super) fn wait_for_server(&self) -> Result<(), Failure> {
        for _ in 0..500 {
            if TcpStream::connect(("127.0.0.1", self.behind)).is_ok() {
                return Ok(());
            }
            thread::sleep(Duration::from_millis(20));
        }
        Err(format!("nothing listens at port {}", self.behind).into())
    }

    /// The requests that reached the server, sorted; each must have one meaning, and one response.
    ///
    /// - `front`: the port of the gateway, which is replaced, so that the requests of several runs can be compared.
    pub(super) fn requests(&self, front: u16) -> Result<Vec<String>, Failure> {
        let connections = self.connections.lock().map_err(|error| error.to_string())?;
        let mut all = Vec::new();
        for connection in connections.iter() {
            let bytes = connection.lock().map_err(|error| error.to_string())?;
            let requests = split(&bytes.to_server)?;
            let responses = String::from_utf8_lossy(&bytes.to_client);
            let responses = responses.matches("HTTP/1.1 ").count();
            if responses > requests.len() {
                let text = String::from_utf8_lossy(&bytes.to_server);
                return Err(format!(
                    "{responses} responses to what is {} requests: {text:?}",
                    requests.len()
                )
                .into());
            }
            all.extend(requests);
        }
        let port = format!(":{front}");
        let mut all: Vec<_> = all.iter().map(|it| it.replace(&port, ":PORT")).collect();
        all.sort();
        all.dedup();
        Ok(all)
    }
}

fn relay(client: TcpStream, server: TcpStream, bytes: Arc<Mutex<Bytes>>) {
    let copies = || Some((client.try_clone().ok()?, server.try_clone().ok()?));
    let Some((client_too, server_too)) = copies() else {
        return;
    };
    let both = Arc::clone(&bytes);
    thread::spawn(move || copy(client, server, &bytes, |it| &mut it.to_server));
    thread::spawn(move || copy(server_too, client_too, &both, |it| &mut it.to_client));
}

fn copy(mut from: TcpStream, mut to: TcpStream, bytes: &Mutex<Bytes>, direction: Direction) {
    let mut piece = [0; 16_384];
    while let Ok(count @ 1..) = from.read(&mut piece) {
        if let Ok(mut bytes) = bytes.lock() {
            direction(&mut bytes).extend_from_slice(&piece[..count]);
        }
        if to.write_all(&piece[..count]).is_err() {
            break;
        }
    }
    to.shutdown(Shutdown::Write).ok();
}

/// The requests in bytes, read strictly: anything that two readers could understand differently is an error.
fn split(mut bytes: &[u8]) -> Result<Vec<String>, Failure> {
    let mut requests = Vec::new();
    while !bytes.is_empty() {
        let Some(end) = find(bytes, b"\r\n\r\n") else {
            return Err(format!("no whole head: {:?}", String::from_utf8_lossy(bytes)).into());
        };
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let odd = |reason: &str| Failure::from(format!("{reason}: {head:?}"));
        if head.replace("\r\n", "").contains(['\r', '\n', '\0']) {
            return Err(odd("a bare CR, LF or NUL"));
        }
        let mut lines = head.split("\r\n");
        if lines.next().is_none_or(|line| line.split(' ').count() != 3) {
            return Err(odd("an odd request line"));
        }
        let mut length = None;
        let mut is_chunked = false;
        let mut hosts = 0;
        for line in lines {
            let Some((name, value)) = line.split_once(':') else {
                return Err(odd("a line without a colon"));
            };
            let is_token = |it: u8| it.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&it);
            if name.is_empty() || !name.bytes().all(is_token) {
                return Err(odd("an odd name"));
            }
            match (name.to_ascii_lowercase().as_str(), value.trim()) {
                ("content-length", value)
                    if length.is_none() && value.bytes().all(|it| it.is_ascii_digit()) =>
                {
                    length = value.parse::<usize>().ok();
                }
                ("transfer-encoding", "chunked") if !is_chunked => is_chunked = true,
                ("content-length" | "transfer-encoding" | "upgrade", _) => {
                    return Err(odd("odd framing"));
                }
                ("host", _) => hosts += 1,
                _ => {}
            }
        }
        if hosts != 1 || (is_chunked && length.is_some()) {
            return Err(odd("two lengths, or not one host"));
        }
        let rest = &bytes[end + 4..];
        let taken = if is_chunked {
            chunks(rest)
        } else {
            Some(length.unwrap_or(0).min(rest.len()))
        };
        // Content that breaks off is the end of its connection.
        let taken = taken.unwrap_or(rest.len());
        requests.push(format!(
            "{head}\r\n\r\n{}",
            String::from_utf8_lossy(&rest[..taken])
        ));
        bytes = &rest[taken..];
    }
    Ok(requests)
}

/// Bytes of chunks up to the end of their trailers; nothing if they are not whole.
fn chunks(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        let line = find(&bytes[at..], b"\r\n")?;
        let digits = std::str::from_utf8(&bytes[at..at + line]).ok()?;
        let size = usize::from_str_radix(digits, 16).ok()?;
        at += line + 2;
        if size == 0 {
            let rest = &bytes[at..];
            if rest.starts_with(b"\r\n") {
                return Some(at + 2);
            }
            return Some(at + find(rest, b"\r\n\r\n")? + 4);
        }
        at += size;
        (bytes.get(at..at + 2)? == b"\r\n").then_some(())?;
        at += 2;
    }
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|it| it == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_split_strictly() {
        let plain = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
        let content = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi";
        let chunked = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nx: y\r\n\r\n";
        let all = [plain, content, chunked, plain].concat();
        assert_eq!(split(all.as_bytes()).ok().map(|it| it.len()), Some(4));
        for odd in [
            "GET / HTTP/1.1\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\nb: c\r\n\r\n",
            "GET / HTTP/1.1\r\nHost : a\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: +1\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\n",
        ] {
            assert!(split(odd.as_bytes()).is_err(), "{odd:?}");
        }
    }
}
