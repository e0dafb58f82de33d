//! Servers of plimsoll and plain exchanges with them.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::Failure;
use crate::server::Server;

/// How long a server may take for one answer before it counts as silent.
const PATIENCE: Duration = Duration::from_secs(3);

/// A running server and its port.
pub(super) struct Serving {
    /// Stopped with the value.
    _server: Server,
    pub(super) port: u16,
}

/// Starts `plimsoll` with `arguments` on a free port. Fails with what it printed if it does not listen.
pub(super) fn serve(plimsoll: &Path, arguments: &[&str]) -> Result<Serving, String> {
    let mut command = Command::new(plimsoll);
    command
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let child = command.spawn().map_err(|error| error.to_string())?;
    let mut server = Server(child);
    let stdout = server.0.stdout.take().ok_or("the server has no output")?;
    let mut lines = BufReader::new(stdout).lines().map_while(Result::ok);
    let port = lines.find_map(|line| {
        let (_, port) = line.trim_end_matches('/').rsplit_once(':')?;
        port.parse().ok()
    });
    if let Some(port) = port {
        return Ok(Serving {
            _server: server,
            port,
        });
    }
    let mut complaint = String::new();
    if let Some(mut stderr) = server.0.stderr.take() {
        stderr.read_to_string(&mut complaint).ok();
    }
    let first: String = complaint.lines().take(3).collect::<Vec<_>>().join(" / ");
    Err(format!("does not start: {first}"))
}

/// A response to bytes that were sent.
#[derive(Debug, Default)]
pub(super) struct Answer {
    /// 0 if none came.
    pub(super) status: u16,
    pub(super) fields: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
    /// Whether the server closed the connection within the time given.
    pub(super) is_closed: bool,
}

impl Answer {
    pub(super) fn field(&self, name: &str) -> Option<&str> {
        let found = self
            .fields
            .iter()
            .find(|(it, _)| it.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// Sends `bytes` and reads until the server closes or says no more for `patience`.
pub(super) fn raw(port: u16, bytes: &[u8], patience: Duration) -> Answer {
    let mut answer = Answer::default();
    let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) else {
        return answer;
    };
    stream.set_read_timeout(Some(patience)).ok();
    stream.set_write_timeout(Some(PATIENCE)).ok();
    // A server may close while it is being written to; what it sent before counts.
    stream.write_all(bytes).ok();
    let mut received = Vec::new();
    let mut buffer = [0; 16 << 10];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => {
                answer.is_closed = true;
                break;
            }
            Ok(count) => received.extend_from_slice(&buffer[..count]),
            Err(error) => {
                answer.is_closed = error.kind() == std::io::ErrorKind::ConnectionReset;
                break;
            }
        }
    }
    parse(&received, &mut answer);
    answer
}

/// One request whose connection ends with its response.
pub(super) fn request(
    port: u16,
    method: &str,
    target: &str,
    fields: &[(String, String)],
    body: Option<&str>,
) -> Answer {
    let mut head =
        format!("{method} {target} HTTP/1.1\r\nhost: localhost:{port}\r\nconnection: close\r\n");
    for (name, value) in fields {
        head.extend([name, ": ", value, "\r\n"]);
    }
    if let Some(body) = body {
        head.extend(["content-length: ", &body.len().to_string(), "\r\n"]);
    }
    head.push_str("\r\n");
    head.push_str(body.unwrap_or_default());
    raw(port, head.as_bytes(), PATIENCE)
}

/// A server as clients name it, and where it is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Origin<'a> {
    pub(super) scheme: &'a str,
    pub(super) host: &'a str,
    pub(super) address: Ipv4Addr,
    pub(super) port: u16,
}

/// Sends a request with curl, which leaves the path as it is.
///
/// - `request`: the method and the target, fields behind `+`, and content behind `|`.
/// - `more`: further arguments of curl.
pub(super) fn by_curl(
    origin: &Origin<'_>,
    request: &str,
    more: &[&str],
) -> Result<Answer, Failure> {
    let (head, content) = match request.split_once('|') {
        Some((head, content)) => (head, Some(content)),
        None => (request, None),
    };
    let mut fields = head.split(" + ");
    let line = fields.next().unwrap_or_default();
    let (method, target) = line.split_once(' ').ok_or("a request has a target")?;
    let Origin {
        scheme,
        host,
        address,
        port,
    } = origin;
    let mut curl = Command::new("curl");
    curl.args(["-sk", "-i", "--raw", "--http1.1", "--path-as-is"]);
    curl.args(["--max-time", "20", "--resolve"]);
    curl.arg(format!("{host}:{port}:{address}"));
    match method {
        "HEAD" => curl.arg("--head"),
        method => curl.args(["-X", method]),
    };
    for field in fields {
        curl.args(["-H", field]);
    }
    if content.is_some() {
        curl.args(["--data-binary", "@-"]);
    }
    curl.args(more);
    curl.arg(format!("{scheme}://{host}:{port}{target}"));
    curl.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = curl.spawn().map_err(|error| format!("curl: {error}"))?;
    if let Some(mut stdin) = child.stdin.take() {
        // It may not want all of it.
        stdin.write_all(content.unwrap_or_default().as_bytes()).ok();
    }
    let output = child.wait_with_output();
    let output = output.map_err(|error| format!("curl: {error}"))?;
    let mut answer = Answer::default();
    parse(&output.stdout, &mut answer);
    Ok(answer)
}

/// Reads a response.
pub(super) fn parse(received: &[u8], answer: &mut Answer) {
    let Some(end) = received.windows(4).position(|it| it == b"\r\n\r\n") else {
        return;
    };
    let head = String::from_utf8_lossy(&received[..end]).into_owned();
    let mut lines = head.split("\r\n");
    let status = lines.next().and_then(|line| line.split(' ').nth(1));
    answer.status = status.and_then(|it| it.parse().ok()).unwrap_or(0);
    // Interim responses are not the answer.
    if (100..200).contains(&answer.status) && answer.status != 101 && received.len() > end + 4 {
        return parse(&received[end + 4..], answer);
    }
    answer.fields = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_owned(), value.trim().to_owned()))
        .collect();
    let rest = &received[end + 4..];
    let is_chunked = answer
        .field("transfer-encoding")
        .is_some_and(|it| it.eq_ignore_ascii_case("chunked"));
    answer.body = if is_chunked {
        unchunked(rest)
    } else {
        let length = answer
            .field("content-length")
            .and_then(|it| it.parse().ok());
        rest[..length.unwrap_or(rest.len()).min(rest.len())].to_vec()
    };
}

fn unchunked(mut rest: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(end) = rest.windows(2).position(|it| it == b"\r\n") {
        let size = String::from_utf8_lossy(&rest[..end]).into_owned();
        let size = size.split(';').next().unwrap_or_default().trim();
        let Ok(size) = usize::from_str_radix(size, 16) else {
            break;
        };
        let from = (end + 2).min(rest.len());
        let to = (from + size).min(rest.len());
        body.extend_from_slice(&rest[from..to]);
        if size == 0 {
            break;
        }
        rest = &rest[(to + 2).min(rest.len())..];
    }
    body
}
