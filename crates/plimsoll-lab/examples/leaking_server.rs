//! A server with a planted leak: `leaking_server PORT BYTES/s|BYTES/1000|REQUESTS/exit [CAP]` keeps so many bytes for
//! every second or every 1,000 requests, until it has CAP of them, or ends after so many requests. It counts panics that it never
//! has at /metrics.
//!
//! Connections are kept alive, so that a load generator can make many requests.

use std::error::Error;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use plimsoll_model::Clock as _;
use plimsoll_wire::SystemClock;

/// The leaked memory.
#[derive(Default)]
struct Leak {
    kept: Mutex<Vec<Vec<u8>>>,
    owed: AtomicUsize,
    /// Thousandths of bytes.
    parts: AtomicUsize,
    held: AtomicUsize,
    cap: usize,
    /// Requests after which the program ends.
    requests: AtomicUsize,
    most_requests: usize,
}

impl Leak {
    /// Keeps a thousandth of `bytes` more.
    fn add_part(&self, bytes: usize) {
        let before = self.parts.fetch_add(bytes, Ordering::Relaxed);
        self.add((before + bytes) / 1000 - before / 1000);
    }

    /// Keeps `bytes` more, in pieces of whole pages.
    fn add(&self, bytes: usize) {
        const PIECE: usize = 16 * 1024;

        let owed = self.owed.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let pieces = owed / PIECE;
        let is_full = self.held.load(Ordering::Relaxed) >= self.cap;
        if pieces == 0 || is_full {
            return;
        }
        self.owed.fetch_sub(pieces * PIECE, Ordering::Relaxed);
        self.held.fetch_add(pieces * PIECE, Ordering::Relaxed);
        let mut kept = self.kept.lock().expect("no holder panics");
        kept.extend((0..pieces).map(|_| vec![1; PIECE]));
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    const USAGE: &str = "usage: leaking_server PORT BYTES/s|BYTES/1000|REQUESTS/exit [CAP]";

    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [port, how, rest @ ..] = arguments.as_slice() else {
        return Err(USAGE.into());
    };
    let (bytes, per) = how.split_once('/').ok_or(USAGE)?;
    let bytes: usize = bytes.parse()?;
    let leak = Arc::new(Leak {
        cap: rest.first().map_or(Ok(usize::MAX), |cap| cap.parse())?,
        most_requests: if per == "exit" { bytes } else { usize::MAX },
        ..Leak::default()
    });
    let per_thousand = if per == "1000" { bytes } else { 0 };
    if per == "s" {
        let leak = Arc::clone(&leak);
        std::thread::spawn(move || {
            let begun = SystemClock.now();
            let mut added = 0;
            loop {
                std::thread::park_timeout(Duration::from_millis(10));
                let millis = SystemClock.now().duration_since(begun).as_millis();
                let due = usize::try_from(millis).unwrap_or(usize::MAX) * bytes / 1000;
                leak.add(due - added);
                added = due;
            }
        });
    }
    let listener = TcpListener::bind(("127.0.0.1", port.parse()?))?;
    for stream in listener.incoming() {
        let (stream, leak) = (stream?, Arc::clone(&leak));
        // A client that went away is no reason to stop.
        std::thread::spawn(move || serve(stream, &leak, per_thousand).ok());
    }
    Ok(())
}

fn serve(mut stream: TcpStream, leak: &Leak, per_thousand: usize) -> std::io::Result<()> {
    let mut head = [0; 4096];
    stream.set_nodelay(true)?;
    loop {
        let length = stream.read(&mut head)?;
        if length == 0 {
            return Ok(());
        }
        if leak.requests.fetch_add(1, Ordering::Relaxed) >= leak.most_requests {
            std::process::abort();
        }
        leak.add_part(per_thousand);
        let kept = leak.held.load(Ordering::Relaxed);
        let body = if head.starts_with(b"GET /metrics") {
            format!(
                "# TYPE held_bytes gauge\nheld_bytes {kept}\n# TYPE panics_total counter\npanics_total 0\n"
            )
        } else {
            "ok".to_owned()
        };
        write!(
            stream,
            "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )?;
        if head.starts_with(b"GET / HTTP/1.0") {
            return Ok(());
        }
    }
}
