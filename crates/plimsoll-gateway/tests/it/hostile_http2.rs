//! Servers that attack the gateway over HTTP/2.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use plimsoll_testkit::frames::{frame, goaway, settings};
use plimsoll_testkit::http::{connect, exchange, get};
use plimsoll_testkit::{Http2Answer, Http2Origin, Origin, eventually};

use crate::hostile::{MOST_HELD, MOST_READ, failures, gateway, peak, server};
use crate::server::{self, Served};

const DATA: u8 = 0x0;
const HEADERS: u8 = 0x1;
const RST_STREAM: u8 = 0x3;
const SETTINGS: u8 = 0x4;
const PING: u8 = 0x6;
const CONTINUATION: u8 = 0x9;
const END_STREAM: u8 = 0x1;
const END_HEADERS: u8 = 0x4;
const ACK: u8 = 0x1;

/// `:status: 200` (RFC 7541, appendix A).
const OK: &[u8] = &[0x88];

/// `:status: 103`: a literal whose name has index 8.
const EARLY_HINTS: &[u8] = &[0x08, 3, b'1', b'0', b'3'];

/// A literal field without indexing.
fn literal(name: &str, value: &[u8]) -> Vec<u8> {
    let length = |it: usize| u8::try_from(it).ok().filter(|it| *it < 127).unwrap();
    let mut field = vec![0, length(name.len())];
    field.extend(name.as_bytes());
    field.push(length(value.len()));
    field.extend(value);
    field
}

/// A server that sends SETTINGS, waits for a request and then runs `attack` with its stream; what it reads meanwhile is
/// thrown away. Returns the bytes that were taken from it too.
fn hostile(
    attack: impl Fn(&mut Attack, u32) + Send + Sync + 'static,
) -> (SocketAddr, Arc<AtomicU64>) {
    let taken = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&taken);
    let address = server(move |mut stream| {
        let mut writer = Attack {
            stream: stream.try_clone().unwrap(),
            taken: Arc::clone(&counted),
        };
        if !writer.send(&settings()) {
            return;
        }
        let mut preface = [0; 24];
        if stream.read_exact(&mut preface).is_err() {
            return;
        }
        while let Some((kind, flags, id)) = read_frame(&mut stream) {
            if kind == SETTINGS && flags & ACK == 0 {
                writer.send(&frame(SETTINGS, ACK, 0, &[]));
            }
            if kind == HEADERS {
                // Without a reader the gateway could not even say that it gives up.
                let mut rest = stream.try_clone().unwrap();
                thread::spawn(move || while read_frame(&mut rest).is_some() {});
                attack(&mut writer, id);
                return;
            }
        }
    });
    (address, taken)
}

/// The side that attacks.
struct Attack {
    stream: TcpStream,
    taken: Arc<AtomicU64>,
}

impl Attack {
    /// Whether the gateway still takes it.
    fn send(&mut self, bytes: &[u8]) -> bool {
        let is_sent = self.stream.write_all(bytes).is_ok();
        self.taken.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        is_sent
    }

    /// Sends the same bytes until the gateway closes.
    fn repeat(&mut self, bytes: &[u8]) {
        while self.send(bytes) {}
    }
}

/// Kind, flags and stream of the next frame.
fn read_frame(stream: &mut TcpStream) -> Option<(u8, u8, u32)> {
    let mut head = [0; 9];
    stream.read_exact(&mut head).ok()?;
    let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
    std::io::copy(
        &mut Read::take(&mut *stream, length.into()),
        &mut std::io::sink(),
    )
    .ok()?;
    let id = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
    Some((head[3], head[4], id))
}

const KEYS: &str = ", protocol = \"http2\", retry = false, response_timeout = \"10s\"";

fn attacked(
    attack: impl Fn(&mut Attack, u32) + Send + Sync + 'static,
) -> (Served, Origin, Arc<AtomicU64>) {
    let (address, taken) = hostile(attack);
    let (gateway, good) = gateway(address, KEYS);
    (gateway, good, taken)
}

/// The hostile server got nothing but a 502 to its client, a count, and few bytes read.
fn is_cut_off(gateway: &Served, taken: &AtomicU64) {
    let received = get(gateway.address(), "/bad");
    assert_eq!(received.status, 502, "{received:?}");
    assert!(taken.load(Ordering::Relaxed) < MOST_READ, "{taken:?}");
    let peak = peak(gateway);
    assert!(peak < MOST_HELD, "{peak}");
    assert!(failures(gateway) >= 1);
    assert_eq!(get(gateway.address(), "/").text(), "hello");
}

#[test]
fn headers_without_end_are_cut_off() {
    // One block in frames without end, empty ones too; and one whose fields the table makes large.
    let filler = literal("x", &[b'a'; 100]).repeat(100);
    let (gateway, _good, taken) = attacked(move |attack, id| {
        attack.send(&frame(HEADERS, 0, id, OK));
        attack.repeat(&frame(CONTINUATION, 0, id, &filler));
    });
    is_cut_off(&gateway, &taken);
    let (gateway, _good, taken) = attacked(|attack, id| {
        attack.send(&frame(HEADERS, 0, id, OK));
        attack.repeat(&frame(CONTINUATION, 0, id, &[]));
    });
    is_cut_off(&gateway, &taken);
    let (gateway, _good, taken) = attacked(|attack, id| {
        // A field that is put into the table once, and then named by one byte each time.
        let mut block = OK.to_vec();
        block.extend([0x40, 1, b'x', 100]);
        block.extend([b'a'; 100]);
        block.extend([0xbe; 16_000]);
        attack.send(&frame(HEADERS, END_HEADERS | END_STREAM, id, &block));
    });
    is_cut_off(&gateway, &taken);
}

#[test]
fn interim_responses_without_end_are_cut_off() {
    let (gateway, _good, taken) = attacked(|attack, id| {
        attack.repeat(&frame(HEADERS, END_HEADERS, id, EARLY_HINTS));
    });
    let request = b"GET /bad HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    let mut stream = connect(gateway.address());
    stream.write_all(request).unwrap();
    let mut all = String::new();
    stream.read_to_string(&mut all).unwrap();
    assert!(all.contains("HTTP/1.1 502"), "{}", all.len());
    assert!(taken.load(Ordering::Relaxed) < MOST_READ, "{taken:?}");
    assert!(failures(&gateway) >= 1);
    assert_eq!(get(gateway.address(), "/").text(), "hello");
}

/// As RFC 9113, section 8.1, has it: first the whole response, and after it the request for the client to stop.
#[test]
fn an_upload_that_no_server_reads_is_stopped_without_an_error() {
    let server = server::named("early");
    let gateway = server::gateway(&[&server.url()], "");
    let mut stream = connect(gateway.address());
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    bytes.extend(settings());
    // PUT, http, /, :authority a, of an unknown length (RFC 7541, appendix A).
    let fields = b"\x42\x03PUT\x86\x84\x41\x01a";
    bytes.extend(frame(1, 4, 1, fields));
    bytes.extend(frame(0, 0, 1, &[b'x'; 10_000]));
    stream.write_all(&bytes).unwrap();
    let (mut content, mut is_whole) = (Vec::new(), false);
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head).unwrap();
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; usize::try_from(length).unwrap()];
        stream.read_exact(&mut payload).unwrap();
        match head[3] {
            0 => {
                content.extend(payload);
                is_whole |= head[4] & 1 != 0;
            }
            3 => {
                assert_eq!(payload, [0; 4], "NO_ERROR");
                break;
            }
            _ => {}
        }
    }
    assert!(is_whole, "the reset comes after the response");
    assert_eq!(content, b"early");
}

#[test]
fn trailers_without_end_break_the_response_off() {
    let filler = literal("x", &[b'a'; 100]).repeat(100);
    let (gateway, _good, taken) = attacked(move |attack, id| {
        attack.send(&frame(HEADERS, END_HEADERS, id, OK));
        attack.send(&frame(DATA, 0, id, b"some"));
        attack.send(&frame(HEADERS, END_STREAM, id, &[]));
        attack.repeat(&frame(CONTINUATION, 0, id, &filler));
    });
    let mut stream = connect(gateway.address());
    stream
        .write_all(b"GET /bad HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        .unwrap();
    let mut all = Vec::new();
    stream.read_to_end(&mut all).ok();
    let text = String::from_utf8_lossy(&all);
    // Either nothing of it was sent on yet, or it never looks complete.
    assert!(
        text.starts_with("HTTP/1.1 502") || !text.ends_with("0\r\n\r\n"),
        "{text:?}"
    );
    assert!(taken.load(Ordering::Relaxed) < MOST_READ, "{taken:?}");
    let peak = peak(&gateway);
    assert!(peak < MOST_HELD, "{peak}");
    assert_eq!(get(gateway.address(), "/").text(), "hello");
}

#[test]
fn fields_that_would_split_a_response_are_not_sent_on() {
    for (name, value) in [
        ("x", &b"a\r\nset-cookie: b"[..]),
        ("x", b"a\nb"),
        ("x", b"a\0b"),
        ("x y", b"a"),
        ("X", b"a"),
        ("connection", b"close"),
        ("transfer-encoding", b"chunked"),
        (":path", b"/"),
    ] {
        let field = literal(name, value);
        let (gateway, _good, _) = attacked(move |attack, id| {
            let block = [OK, &field].concat();
            attack.send(&frame(HEADERS, END_HEADERS | END_STREAM, id, &block));
        });
        let received = get(gateway.address(), "/bad");
        assert!(
            !received.head.to_ascii_lowercase().contains("set-cookie"),
            "{received:?}"
        );
        // Fields of the connection may be dropped instead.
        let is_dropped =
            received.status == 200 && ["connection", "transfer-encoding"].contains(&name);
        assert!(received.status == 502 || is_dropped, "{name}: {received:?}");
        assert_eq!(get(gateway.address(), "/").text(), "hello");
    }
}

#[test]
fn a_response_before_the_end_of_its_request_is_sent_on() {
    let (gateway, _good, _) = attacked(|attack, id| {
        let status = [0x08, 3, b'4', b'1', b'3'];
        attack.send(&frame(HEADERS, END_HEADERS | END_STREAM, id, &status));
        // The rest of the content is not wanted.
        attack.send(&frame(RST_STREAM, 0, id, &0_u32.to_be_bytes()));
        thread::park();
    });
    let head = "POST /bad HTTP/1.1\r\nHost: a\r\nContent-Length: 67108864\r\n\r\n";
    let mut stream = connect(gateway.address());
    stream.write_all(head.as_bytes()).unwrap();
    let mut writer = stream.try_clone().unwrap();
    let writing = thread::spawn(move || {
        let piece = vec![b'x'; 64 << 10];
        while writer.write_all(&piece).is_ok() {}
    });
    let mut status = [0; 12];
    stream.read_exact(&mut status).unwrap();
    assert_eq!(&status, b"HTTP/1.1 413");
    drop(stream.shutdown(std::net::Shutdown::Both));
    writing.join().unwrap();
    assert_eq!(get(gateway.address(), "/").text(), "hello");
}

#[test]
fn storms_of_resets_and_goaways_cost_neither_retries_without_end_nor_the_healthy_server() {
    for answer in [
        Http2Answer::Reset(0xb),
        Http2Answer::Reset(7),
        Http2Answer::Vanish,
    ] {
        let storm = answer.clone();
        let origin = Http2Origin::builder()
            .answer(move |_, _| storm.clone())
            .start();
        let (gateway, _good) = gateway(origin.address(), ", protocol = \"http2\"");
        for _ in 0..50 {
            assert_eq!(get(gateway.address(), "/bad").status, 502, "{answer:?}");
        }
        // The budget: a fifth of the requests, and three a second.
        let requests = origin.requests();
        assert!((50..=110).contains(&requests), "{answer:?}: {requests}");
        assert_eq!(get(gateway.address(), "/").text(), "hello");
    }
    // GOAWAY on each connection before anything was looked at: requests may be sent again, but not without end.
    let connections = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&connections);
    let (address, _) = hostile(move |attack, _| {
        counted.fetch_add(1, Ordering::Relaxed);
        attack.send(&goaway(0, 0));
        attack.stream.shutdown(std::net::Shutdown::Both).ok();
    });
    let (gateway, _good) = gateway(address, ", protocol = \"http2\"");
    for _ in 0..50 {
        assert_eq!(get(gateway.address(), "/bad").status, 502);
    }
    let connections = connections.load(Ordering::Relaxed);
    assert!(connections <= 250, "{connections}");
    assert_eq!(get(gateway.address(), "/").text(), "hello");
}

#[test]
fn a_window_that_never_opens_holds_back_the_client_and_ends_in_time() {
    let opened = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&opened);
    let address = server(move |mut stream| {
        // SETTINGS_INITIAL_WINDOW_SIZE of 0.
        stream
            .write_all(&frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 0]))
            .ok();
        std::io::copy(&mut stream, &mut std::io::sink()).ok();
        counted.fetch_add(1, Ordering::Relaxed);
    });
    let keys = ", protocol = \"http2\", retry = false, response_timeout = \"700ms\"";
    let (gateway, _good) = gateway(address, keys);
    let mut stream = connect(gateway.address());
    let head =
        "POST /bad HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 67108864\r\n\r\n";
    stream.write_all(head.as_bytes()).unwrap();
    let sent = Arc::new(AtomicU64::new(0));
    let (mut writer, counted) = (stream.try_clone().unwrap(), Arc::clone(&sent));
    let writing = thread::spawn(move || {
        let piece = vec![b'x'; 64 << 10];
        while writer.write_all(&piece).is_ok() {
            counted.fetch_add(piece.len() as u64, Ordering::Relaxed);
        }
    });
    let mut status = [0; 12];
    stream.read_exact(&mut status).unwrap();
    assert_eq!(&status, b"HTTP/1.1 504");
    assert!(sent.load(Ordering::Relaxed) < MOST_READ, "{sent:?}");
    let peak = peak(&gateway);
    assert!(peak < MOST_HELD, "{peak}");
    assert_eq!(get(gateway.address(), "/").text(), "hello");
    drop(stream.shutdown(std::net::Shutdown::Both));
    writing.join().unwrap();
}

#[test]
fn pings_without_end_stop_when_their_responses_are_not_read() {
    let taken = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&taken);
    // It reads the request, and then no response to its PINGs.
    let address = server(move |mut stream| {
        let mut some = [0; 24];
        if stream.write_all(&settings()).is_err() || stream.read_exact(&mut some).is_err() {
            return;
        }
        let pings = frame(PING, 0, 0, &[7; 8]).repeat(100);
        while stream.write_all(&pings).is_ok() {
            counted.fetch_add(pings.len() as u64, Ordering::Relaxed);
        }
    });
    let keys = ", protocol = \"http2\", retry = false, response_timeout = \"3s\"";
    let (gateway, _good) = gateway(address, keys);
    let client = gateway.address();
    let request = thread::spawn(move || {
        let request = b"GET /bad HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
        exchange(client, request).status
    });
    // Once the buffers of the sockets are full the gateway reads no more, or it has closed.
    let mut before = u64::MAX;
    eventually(|| {
        assert_eq!(get(gateway.address(), "/").text(), "hello");
        let now = taken.load(Ordering::Relaxed);
        let is_still = now > 0 && now == before;
        before = now;
        is_still
    });
    assert!(taken.load(Ordering::Relaxed) < 64 << 20, "{taken:?}");
    assert!([502, 504].contains(&request.join().unwrap()));
}
