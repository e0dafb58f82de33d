//! A request as a cell of a table describes it, sent by curl.
//!
//! The first code span is the method and the path, or the URL; further ones are fields. `from 10.8.0.7` is the address of the client,
//! `session` keeps cookies, a `Content-Length` has the content that it announces, `WEBSOCKET /path` sends a message and waits for one, and
//! `TCP 5432` is a connection that the gateway does not read.

use std::io::Write as _;
use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};

use plimsoll_testkit::http::{HttpResponse, connect, talk};
use tungstenite::Message;

use super::expectation::spans;
use super::surroundings::{Ports, Surroundings};

/// A response.
#[derive(Debug, Default)]
pub(super) struct Received {
    /// 0 if there is none.
    pub(super) status: u16,
    head: String,
    content: String,
}

impl Received {
    pub(super) fn new(status: u16, head: &str, content: &str) -> Self {
        Self {
            status,
            head: head.to_owned(),
            content: content.to_owned(),
        }
    }

    fn parse(bytes: &[u8]) -> Self {
        let Some(response) = HttpResponse::parse(bytes) else {
            let content = String::from_utf8_lossy(bytes);
            return Self::new(0, "", &content);
        };
        let content = String::from_utf8_lossy(&response.body);
        Self::new(response.status, &response.head, &content)
    }

    /// The values of a field.
    pub(super) fn field(&self, name: &str) -> Option<String> {
        values(self.head.lines(), name)
    }

    pub(super) fn content(&self) -> &str {
        &self.content
    }

    /// The server that responded, as the page names it.
    pub(super) fn server(&self) -> &str {
        self.content.lines().next().unwrap_or_default()
    }

    /// The method and the target that it got.
    pub(super) fn request_line(&self) -> &str {
        self.content.lines().nth(1).unwrap_or_default()
    }

    /// A field that it got.
    pub(super) fn request_field(&self, name: &str) -> Option<String> {
        values(self.content.lines().skip(2), name)
    }
}

fn values<'l>(lines: impl Iterator<Item = &'l str>, name: &str) -> Option<String> {
    let fields = lines.filter_map(|line| line.split_once(':'));
    let values = fields
        .filter(|(known, _)| known.eq_ignore_ascii_case(name))
        .map(|(_, value)| value.trim().to_owned());
    let values: Vec<String> = values.collect();
    (!values.is_empty()).then(|| values.join(", "))
}

/// How often a row's request is sent.
pub(super) fn times(cell: &str) -> u32 {
    let words = [("twice", 2), ("three times", 3), ("five times", 5)];
    let found = words.iter().find(|(words, _)| cell.contains(words));
    found.map_or(1, |(_, times)| *times)
}

/// Whether the response need not be that of the page at once.
pub(super) fn is_later(cell: &str) -> bool {
    cell.contains(", later")
}

/// Sends the request of a cell.
///
/// - `jar`: the file of the cookies of its session.
pub(super) fn send(cell: &str, ports: &Ports, surroundings: &Surroundings, jar: &Path) -> Received {
    let mut spans = spans(cell).into_iter().map(|(text, _)| text);
    let first = spans.next().unwrap();
    let (method, target) = first.split_once(' ').unwrap();
    if method == "TCP" {
        let request = b"GET /tcp HTTP/1.1\r\nHost: tcp\r\nConnection: close\r\n\r\n";
        let port = ports.port(target).unwrap();
        return Received::parse(&talk((Ipv4Addr::LOCALHOST, port), request));
    }
    let url = if target.starts_with('/') {
        format!("http://shop.example.org{target}")
    } else {
        target.to_owned()
    };
    if method == "WEBSOCKET" {
        return message(&url.replacen("http", "ws", 1), ports);
    }
    let host = url.split('/').nth(2).unwrap();
    let mut curl = Command::new("curl");
    curl.args(["-sSik", "--http1.1", "--raw", "--path-as-is", "-m", "20"])
        .args(["--noproxy", "*"]);
    for port in ["80", "443"] {
        let ours = ports.port(port).unwrap();
        let pair = format!("{host}:{port}:127.0.0.1:{ours}");
        curl.args(["--connect-to", &pair]);
    }
    let mut content = Vec::new();
    for span in spans {
        if let Some(address) = span.strip_prefix("from ") {
            curl.args(["--interface", &surroundings.adapt(address)]);
        } else if span == "session" {
            curl.arg("-b").arg(jar).arg("-c").arg(jar);
        } else if let Some(length) = span.strip_prefix("Content-Length: ") {
            content = vec![b'x'; length.parse().unwrap()];
        } else {
            curl.args(["-H", &surroundings.with_tokens(&span)]);
        }
    }
    if !content.is_empty() {
        // A server that refuses much content need not read it, nor close the connection while it comes.
        let expect = if content.len() > 100_000 {
            "Expect: 100-continue"
        } else {
            "Expect:"
        };
        curl.args(["-H", expect, "--data-binary", "@-"]);
    }
    if method == "HEAD" {
        curl.arg("-I");
    } else {
        curl.args(["-X", method]);
    }
    let mut child = curl
        .arg(&url)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("curl is installed by `cargo xtask test`");
    // A server may refuse the content before it has read it.
    child.stdin.take().unwrap().write_all(&content).ok();
    let output = child.wait_with_output().unwrap();
    if output.stdout.is_empty() {
        return Received::new(0, "", &String::from_utf8_lossy(&output.stderr));
    }
    Received::parse(&output.stdout)
}

/// A message through a WebSocket, and the one that comes back.
fn message(url: &str, ports: &Ports) -> Received {
    let stream: TcpStream = connect((Ipv4Addr::LOCALHOST, ports.port("80").unwrap()));
    let (mut socket, response) = match tungstenite::client(url, stream) {
        Ok(opened) => opened,
        Err(error) => return Received::new(0, "", &error.to_string()),
    };
    socket.send(Message::text("hello")).unwrap();
    let received = socket.read().unwrap();
    Received::new(response.status().as_u16(), "", received.to_text().unwrap())
}
