//! The servers of the pages: each responds with its name and the request that it got.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::thread;

use plimsoll_testkit::refused_address;
use tungstenite::handshake::derive_accept_key;
use tungstenite::protocol::{Role, WebSocket};

/// The addresses of the pages, each with that of a server here.
///
/// | path | response |
/// |---|---|
/// | `/slow` | none |
/// | `/verify` | 200 with `X-User` for clients with the cookie of a session, else 401 |
/// | `/healthz` | 503 of `10.0.0.4`, and 200 of others |
/// | `/….html` | some kilobytes of HTML |
///
/// A server accepts WebSockets and sends messages back. Nothing listens at `10.0.0.9`.
pub(super) fn start() -> Vec<(String, String)> {
    let names = [
        "10.0.0.1:8080",
        "10.0.0.2:8080",
        "10.0.0.4:8080",
        "10.0.0.5:9000",
    ];
    let mut servers: Vec<_> = names
        .into_iter()
        .map(|name| (name.to_owned(), format!("127.0.0.1:{}", listen(name))))
        .collect();
    servers.push(("10.0.0.9:8080".to_owned(), refused_address().to_string()));
    servers
}

fn listen(name: &'static str) -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let stream = stream.unwrap();
            thread::spawn(move || serve(name, &stream));
        }
    });
    port
}

/// A request that a server got.
#[derive(Default)]
struct Request {
    /// Method and target.
    line: String,
    /// Names in lower case.
    fields: Vec<(String, String)>,
    content: usize,
}

impl Request {
    fn read(reader: &mut BufReader<&TcpStream>) -> Option<Self> {
        let mut request = Self::default();
        let mut line = line_of(reader)?;
        if line.starts_with("PROXY ") {
            request.fields.push(("proxied".to_owned(), line));
            line = line_of(reader)?;
        }
        line.rsplit_once(' ')?.0.clone_into(&mut request.line);
        loop {
            let line = line_of(reader)?;
            let Some((name, value)) = line.split_once(':') else {
                break;
            };
            let field = (name.to_ascii_lowercase(), value.trim().to_owned());
            request.fields.push(field);
        }
        if request.field("transfer-encoding").is_some() {
            loop {
                let length = usize::from_str_radix(&line_of(reader)?, 16).ok()?;
                let mut chunk = vec![0; length + 2];
                reader.read_exact(&mut chunk).ok()?;
                request.content += length;
                if length == 0 {
                    break;
                }
            }
        } else if let Some(length) = request.field("content-length") {
            request.content = length.parse().ok()?;
            let mut content = vec![0; request.content];
            reader.read_exact(&mut content).ok()?;
        }
        Some(request)
    }

    fn field(&self, name: &str) -> Option<&str> {
        let mut fields = self.fields.iter();
        fields.find(|it| it.0 == name).map(|it| it.1.as_str())
    }

    /// Without the query.
    fn path(&self) -> &str {
        let target = self.line.split(' ').nth(1).unwrap_or_default();
        target.split('?').next().unwrap_or_default()
    }
}

fn line_of(reader: &mut BufReader<&TcpStream>) -> Option<String> {
    let mut line = String::new();
    (reader.read_line(&mut line).ok()? > 0).then(|| line.trim_end().to_owned())
}

/// Serves a connection until it ends.
fn serve(name: &str, stream: &TcpStream) {
    let (mut reader, mut writer) = (BufReader::new(stream), stream);
    while let Some(request) = Request::read(&mut reader) {
        if request.path() == "/slow" {
            // Until the gateway gives up.
            line_of(&mut reader);
            return;
        }
        if let Some(key) = request.field("sec-websocket-key") {
            send_messages_back(stream, key);
            return;
        }
        let is_last = request
            .field("connection")
            .is_some_and(|it| it.eq_ignore_ascii_case("close"));
        let response = response(name, &request);
        if writer.write_all(response.as_bytes()).is_err() || is_last {
            return;
        }
    }
}

fn response(name: &str, request: &Request) -> String {
    let (mut status, mut more) = ("200 OK", "");
    if request.path() == "/verify" {
        let cookies = request.field("cookie").unwrap_or_default();
        if cookies.contains("session=ann") {
            more = "X-User: ann\r\n";
        } else {
            (status, more) = ("401 Unauthorized", "X-Login: /login\r\n");
        }
    }
    if (name, request.path()) == ("10.0.0.4:8080", "/healthz") {
        status = "503 Service Unavailable";
    }
    let mut content = format!("{name}\n{}\n", request.line);
    for (name, value) in &request.fields {
        writeln!(content, "{name}: {value}").unwrap();
    }
    writeln!(content, "{} bytes", request.content).unwrap();
    let mut kind = "text/plain";
    if request.path().rsplit('.').next() == Some("html") {
        kind = "text/html";
        content.push_str(&"a line of the page\n".repeat(200));
    }
    let length = content.len();
    if request.line.starts_with("HEAD ") {
        content.clear();
    }
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nX-Powered-By: app\r\n{more}Content-Length: {length}\r\n\r\n{content}"
    )
}

fn send_messages_back(mut stream: &TcpStream, key: &str) {
    let head = format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {}\r\n\r\n",
        derive_accept_key(key.as_bytes())
    );
    if stream.write_all(head.as_bytes()).is_err() {
        return;
    }
    let mut socket = WebSocket::from_raw_socket(stream, Role::Server, None);
    while let Ok(message) = socket.read() {
        if !message.is_text() || socket.send(message).is_err() {
            return;
        }
    }
}
