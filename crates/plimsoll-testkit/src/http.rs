//! A client of HTTP/1 for tests: bytes are sent as they are given, and what was received is read as a response.

use std::fmt::Write as _;
use std::io::{Read, Write as _};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

/// Longer than any test takes.
const PATIENCE: Duration = Duration::from_secs(20);

/// Bytes that are read of an answer, at most.
const MOST: u64 = 1 << 28;

/// The end of a head.
const BLANK_LINE: &[u8] = b"\r\n\r\n";

/// A complete response.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HttpResponse {
    /// Heads of interim responses before it.
    pub interims: Vec<String>,
    /// Its status.
    pub status: u16,
    /// Status line and fields, without the blank line.
    pub head: String,
    /// Its content, without the framing of chunks.
    pub body: Vec<u8>,
    /// Trailer fields, a line for each.
    pub trailers: String,
}

impl HttpResponse {
    /// The response that `bytes` are: all that a connection carried until it was closed. `None` if they are not a response or
    /// end within a head or a chunk.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let mut response = Self::default();
        let mut rest = bytes;
        loop {
            let end = find(rest, BLANK_LINE)?;
            // Values of fields may be in Latin-1.
            let head: String = rest[..end].iter().map(|byte| char::from(*byte)).collect();
            rest = &rest[end + BLANK_LINE.len()..];
            let status = head.split(' ').nth(1)?.get(..3)?.parse().ok()?;
            if matches!(status, 100 | 102..=199) {
                response.interims.push(head);
                continue;
            }
            response.status = status;
            response.head = head;
            break;
        }
        let coding = response.field("transfer-encoding");
        if coding.is_some_and(|it| it.eq_ignore_ascii_case("chunked")) && !rest.is_empty() {
            (response.body, response.trailers) = unchunked(rest)?;
        } else {
            response.body = rest.to_vec();
        }
        Some(response)
    }

    /// The value of the first field of that name, whatever its case.
    pub fn field(&self, name: &str) -> Option<&str> {
        field_of(&self.head, name)
    }

    /// The values of all fields of that name, joined.
    pub fn joined_field(&self, name: &str) -> Option<String> {
        let values: Vec<_> = values_of(&self.head, name).collect();
        (!values.is_empty()).then(|| values.join(", "))
    }

    /// Its content, which must be UTF-8.
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("the content is UTF-8")
    }

    /// The same.
    pub fn into_text(self) -> String {
        String::from_utf8(self.body).expect("the content is UTF-8")
    }
}

/// The value of the first field of that name in a head.
pub fn field_of<'h>(head: &'h str, name: &str) -> Option<&'h str> {
    values_of(head, name).next()
}

/// A connection with a limit on every read and write.
pub fn connect(address: impl ToSocketAddrs) -> TcpStream {
    let stream = TcpStream::connect(address).expect("the server listens");
    stream
        .set_read_timeout(Some(PATIENCE))
        .expect("the limit is not zero");
    stream
        .set_write_timeout(Some(PATIENCE))
        .expect("the limit is not zero");
    stream
}

/// Everything until the connection ends; one that is reset ends, too.
pub fn read_to_close(stream: &mut impl Read) -> Vec<u8> {
    let mut bytes = Vec::new();
    stream.take(MOST).read_to_end(&mut bytes).ok();
    bytes
}

/// Sends bytes over a connection of their own, and returns everything that comes back until it ends.
pub fn talk(address: impl ToSocketAddrs, bytes: &[u8]) -> Vec<u8> {
    let mut stream = connect(address);
    stream
        .write_all(bytes)
        .expect("the server reads the request");
    read_to_close(&mut stream)
}

/// The response to a request that has the server close the connection, which may not be reset.
pub fn exchange(address: impl ToSocketAddrs, request: &[u8]) -> HttpResponse {
    let mut stream = connect(address);
    stream
        .write_all(request)
        .expect("the server reads the request");
    let mut bytes = Vec::new();
    stream
        .take(MOST)
        .read_to_end(&mut bytes)
        .expect("the server closes the connection");
    parsed(&bytes)
}

/// The response to a request over a connection of its own, which may be reset behind it.
///
/// - `fields`: lines without their ends, `host` among them.
pub fn request(
    address: impl ToSocketAddrs,
    method: &str,
    target: &str,
    fields: &[&str],
    body: &str,
) -> HttpResponse {
    let mut request = format!("{method} {target} HTTP/1.1\r\nconnection: close\r\n");
    for field in fields {
        request.push_str(field);
        request.push_str("\r\n");
    }
    if !body.is_empty() {
        write!(request, "content-length: {}\r\n", body.len()).expect("a String grows");
    }
    request.push_str("\r\n");
    request.push_str(body);
    parsed(&talk(address, request.as_bytes()))
}

/// Gets a path over a connection of its own.
pub fn get(address: impl ToSocketAddrs, path: &str) -> HttpResponse {
    get_with(address, path, "")
}

/// The same with fields, each ending with CRLF.
pub fn get_with(address: impl ToSocketAddrs, path: &str, fields: &str) -> HttpResponse {
    let request =
        format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{fields}\r\n");
    exchange(address, request.as_bytes())
}

fn parsed(bytes: &[u8]) -> HttpResponse {
    let response = HttpResponse::parse(bytes);
    response.unwrap_or_else(|| panic!("no response: {}", String::from_utf8_lossy(bytes)))
}

fn values_of<'h>(head: &'h str, name: &str) -> impl Iterator<Item = &'h str> {
    let fields = head.lines().filter_map(|line| line.split_once(':'));
    fields
        .filter(move |(known, _)| known.eq_ignore_ascii_case(name))
        .map(|(_, value)| value.trim())
}

/// The content of chunks, and the trailers behind them.
fn unchunked(mut bytes: &[u8]) -> Option<(Vec<u8>, String)> {
    let mut whole = Vec::new();
    loop {
        let end = find(bytes, b"\r\n")?;
        let length = std::str::from_utf8(&bytes[..end]).ok()?;
        let length = usize::from_str_radix(length.split(';').next()?, 16).ok()?;
        bytes = bytes.get(end + 2..)?;
        if length == 0 {
            let trailers = bytes.strip_suffix(b"\r\n")?;
            return Some((whole, String::from_utf8_lossy(trailers).into_owned()));
        }
        whole.extend_from_slice(bytes.get(..length)?);
        bytes = bytes.get(length + 2..)?;
    }
}

fn find(bytes: &[u8], part: &[u8]) -> Option<usize> {
    bytes.windows(part.len()).position(|it| it == part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_ends_with_the_connection_or_with_its_chunks() {
        let plain = b"HTTP/1.1 200 OK\r\nX-A: b\r\nx-a:c\r\n\r\nhello";
        let response = HttpResponse::parse(plain).unwrap();
        assert_eq!((response.status, response.text()), (200, "hello"));
        assert_eq!(response.field("x-a"), Some("b"));
        assert_eq!(response.joined_field("X-a").as_deref(), Some("b, c"));
        let chunked = b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\nHTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n\
                        5;x=y\r\nhello\r\n1\r\n!\r\n0\r\nx-sum: 7\r\n\r\n";
        let response = HttpResponse::parse(chunked).unwrap();
        assert_eq!(response.text(), "hello!");
        assert_eq!(response.trailers, "x-sum: 7\r\n");
        assert_eq!(field_of(&response.interims[0], "link"), Some("</a>"));
    }

    #[test]
    fn what_breaks_off_is_no_response() {
        for text in [
            "",
            "HTTP/1.1 200 OK\r\n",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhel",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n0\r\n",
        ] {
            assert_eq!(HttpResponse::parse(text.as_bytes()), None, "{text:?}");
        }
    }
}
