//! One plain request over HTTP/1.0: does a server answer, and what does its counting page say.
//!
//! Not a client: no TLS beyond connecting, no redirects, no keep-alive. Experiments measure with
//! other programs; this only asks whether they may begin.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use url::Url;

/// Longest answer that is looked at, in bytes.
const ANSWER_LIMIT: u64 = 64 * 1024;

/// Whether the server behind `url` answers: any status line for `http`, a connection for `https`.
pub(crate) fn answers(url: &Url, timeout: Duration) -> io::Result<()> {
    let mut stream = connect(url, timeout)?;
    if url.scheme() == "https" {
        return Ok(());
    }
    request(&mut stream, url)?;
    let mut start = [0; 5];
    stream.read_exact(&mut start)?;
    if &start == b"HTTP/" {
        Ok(())
    } else {
        Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "the answer is not HTTP",
        ))
    }
}

/// The body of the answer, if its status is 200.
pub(crate) fn fetch(url: &Url, timeout: Duration) -> io::Result<String> {
    let invalid = |message: String| io::Error::new(io::ErrorKind::InvalidData, message);
    if url.scheme() != "http" {
        return Err(invalid(format!(
            "`{}` is not asked for counts, only http",
            url.scheme()
        )));
    }
    let mut stream = connect(url, timeout)?;
    request(&mut stream, url)?;
    let mut answer = Vec::new();
    stream.take(ANSWER_LIMIT).read_to_end(&mut answer)?;
    let answer = String::from_utf8_lossy(&answer);
    let (head, body) = answer
        .split_once("\r\n\r\n")
        .ok_or_else(|| invalid("the answer is not HTTP".to_owned()))?;
    let status = head.lines().next().unwrap_or_default();
    if status.split_whitespace().nth(1) == Some("200") {
        Ok(body.to_owned())
    } else {
        Err(invalid(format!("the server answered `{status}`")))
    }
}

fn connect(url: &Url, timeout: Duration) -> io::Result<TcpStream> {
    let host = url.host_str().unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let port = url.port_or_known_default().unwrap_or(80);
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    for address in (host, port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, timeout) {
            Ok(stream) => {
                stream.set_read_timeout(Some(timeout))?;
                stream.set_write_timeout(Some(timeout))?;
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn request(stream: &mut TcpStream, url: &Url) -> io::Result<()> {
    let target = match url.query() {
        Some(query) => format!("{}?{query}", url.path()),
        None => url.path().to_owned(),
    };
    let host = match (url.host_str().unwrap_or_default(), url.port()) {
        (host, Some(port)) => format!("{host}:{port}"),
        (host, None) => host.to_owned(),
    };
    // In one piece: a server may answer and close after its first read.
    let head = format!("GET {target} HTTP/1.0\r\nhost: {host}\r\nconnection: close\r\n\r\n");
    stream.write_all(head.as_bytes())
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(5);

    /// A server that answers one connection with `answer`, after reading the request's head.
    fn server(answer: &'static str) -> Url {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut head = Vec::new();
            let mut byte = [0; 1];
            while !head.ends_with(b"\r\n\r\n") {
                stream.read_exact(&mut byte).unwrap();
                head.push(byte[0]);
            }
            stream.write_all(answer.as_bytes()).unwrap();
        });
        format!("http://127.0.0.1:{port}/status?full")
            .parse()
            .unwrap()
    }

    #[test]
    fn any_status_is_an_answer() {
        answers(&server("HTTP/1.1 503 Busy\r\n\r\n"), TIMEOUT).unwrap();
    }

    #[test]
    fn other_protocols_are_not() {
        let error = answers(&server("SSH-2.0-x\r\n"), TIMEOUT).unwrap_err();
        assert_eq!(error.to_string(), "the answer is not HTTP");
    }

    #[test]
    fn a_page_needs_status_200() {
        let page = fetch(&server("HTTP/1.1 200 OK\r\na: b\r\n\r\nhello"), TIMEOUT);
        assert_eq!(page.unwrap(), "hello");
        let error = fetch(&server("HTTP/1.1 404 Not Found\r\n\r\n"), TIMEOUT).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the server answered `HTTP/1.1 404 Not Found`"
        );
    }

    #[test]
    fn nobody_there_is_refused() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        drop(listener);
        let error = answers(&url.parse().unwrap(), TIMEOUT).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
    }
}
