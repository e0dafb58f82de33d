//! A small server of HTTP/1.1 that answers by path.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// Serves until the process ends.
#[derive(Debug, Clone)]
pub(crate) struct Server {
    address: SocketAddr,
    log: Arc<Mutex<Log>>,
}

#[derive(Debug, Default)]
struct Log {
    requests: Vec<Request>,
    connections: usize,
    peers: Vec<std::net::IpAddr>,
}

/// A request as it was received.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) target: String,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Server {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let log: Arc<Mutex<Log>> = Arc::default();
        let server = Self {
            address,
            log: Arc::clone(&log),
        };
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                log.lock().unwrap().connections += 1;
                if let Ok(peer) = stream.peer_addr() {
                    log.lock().unwrap().peers.push(peer.ip());
                }
                let log = Arc::clone(&log);
                thread::spawn(move || serve(&stream, &log));
            }
        });
        server
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.log.lock().unwrap().requests.clone()
    }

    /// Peer addresses of connections.
    pub(crate) fn peers(&self) -> Vec<std::net::IpAddr> {
        self.log.lock().unwrap().peers.clone()
    }

    pub(crate) fn connections(&self) -> usize {
        self.log.lock().unwrap().connections
    }
}

fn serve(stream: &TcpStream, log: &Mutex<Log>) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    loop {
        let mut head = String::new();
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).ok()? == 0 {
                return None;
            }
            if line == "\r\n" {
                break;
            }
            head.push_str(&line);
        }
        let field = |name: &str| {
            let lines = head.lines().filter_map(|line| line.split_once(": "));
            let mut found = lines.filter(|(other, _)| other.eq_ignore_ascii_case(name));
            found.next().map(|(_, value)| value.to_owned())
        };
        let length = field("content-length").and_then(|it| it.parse().ok());
        let mut body = vec![0; length.unwrap_or(0)];
        reader.read_exact(&mut body).ok()?;
        let mut words = head.split(' ').map(str::to_owned);
        let request = Request {
            method: words.next()?,
            target: words.next()?,
            head: head.clone(),
            body,
        };
        let reply = reply(&request, field("cookie").as_deref());
        log.lock().unwrap().requests.push(request.clone());
        let mut stream = stream;
        stream.write_all(&reply?).ok()?;
    }
}

/// A page with two forms and a link.
const FORMS: &str = "<title>Forms</title><a href=/echo?link=1>link</a>
<form method=post action=../echo><input name=user value=ann><input type=submit name=go value=now></form>
<form id=search action=/echo?old=1><input name=q value='a b'></form>";

/// A challenge of NTLM, of the domain CORP.
const CHALLENGE: &str = "TlRMTVNTUAACAAAACAAIADAAAAAFgoigASNFZ4mrze8AAAAAAAAAABAAEAA4AAAAQwBPAFIAUAACAAgAQwBPAFIAUAAAAAAA";

/// The type of the NTLM message in a request.
fn ntlm_message(head: &str) -> Option<u8> {
    let (_, message) = head.split_once("Authorization: NTLM ")?;
    // The first ten bytes, of which nine are whole groups: `NTLMSSP`, a zero byte, the type.
    match message.get(10..12)? {
        "AB" => Some(1),
        "AD" => Some(3),
        _ => None,
    }
}

/// `None` closes the connection.
fn reply(request: &Request, cookie: Option<&str>) -> Option<Vec<u8>> {
    let path = request.target.split('?').next().unwrap_or_default();
    let (status, fields, body): (&str, String, Vec<u8>) = match path {
        "/json" => (
            "200 OK",
            "Content-Type: application/json\r\n".to_owned(),
            br#"{"name":"n","list":[{"id":1,"tag":"a"},{"id":2,"tag":"b"}],"a.b":{"c":true},"empty":null}"#.to_vec(),
        ),
        "/redirect" => ("302 Found", "Location: /json\r\n".to_owned(), Vec::new()),
        "/endless" => ("302 Found", "Location: /endless\r\n".to_owned(), Vec::new()),
        "/cookie" => (
            "200 OK",
            "Set-Cookie: sid=s1; Path=/; HttpOnly; Max-Age=60\r\nSet-Cookie: other=o\r\n".to_owned(),
            cookie.unwrap_or("none").as_bytes().to_vec(),
        ),
        "/echo" => (
            "200 OK",
            "X-One: 1\r\nX-One: 2\r\n".to_owned(),
            request.body.clone(),
        ),
        "/page/forms" => ("200 OK", "Content-Type: text/html\r\n".to_owned(), FORMS.as_bytes().to_vec()),
        "/bytes" => ("200 OK", String::new(), vec![0, 255, 1]),
        "/404" => ("404 Not Found", String::new(), b"missing".to_vec()),
        "/gzip" => {
            // `printf hello | gzip -n`, which needs no library here.
            let body = [
                0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0xcb, 0x48, 0xcd, 0xc9, 0xc9, 7, 0, 0x86, 0xa6,
                0x10, 0x36, 5, 0, 0, 0,
            ];
            ("200 OK", "Content-Encoding: gzip\r\n".to_owned(), body.to_vec())
        }
        "/digest" if request.head.contains("Authorization: Digest") => {
            ("200 OK", String::new(), b"hello".to_vec())
        }
        "/digest" => (
            "401 Unauthorized",
            "WWW-Authenticate: Digest realm=\"r\", qop=\"auth\", nonce=\"n\"\r\n".to_owned(),
            Vec::new(),
        ),
        "/ntlm" => match ntlm_message(&request.head) {
            None => ("401 Unauthorized", "WWW-Authenticate: NTLM\r\n".to_owned(), Vec::new()),
            Some(1) => ("401 Unauthorized", format!("WWW-Authenticate: NTLM {CHALLENGE}\r\n"), Vec::new()),
            Some(_) => ("200 OK", String::new(), b"hello".to_vec()),
        },
        "/close" => return None,
        "/hang" => loop {
            thread::park();
        },
        _ => ("200 OK", String::new(), b"hello".to_vec()),
    };
    let mut bytes = format!(
        "HTTP/1.1 {status}\r\nContent-Length: {}\r\n{fields}\r\n",
        body.len()
    )
    .into_bytes();
    if request.method != "HEAD" {
        bytes.extend_from_slice(&body);
    }
    Some(bytes)
}
