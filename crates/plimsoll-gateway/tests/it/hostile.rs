//! Servers that send what they should not, or more than they should: the gateway stays within its bounds, and other
//! requests are served.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use plimsoll_testkit::http::{connect, exchange, get};
use plimsoll_testkit::{Origin, Script, Step, eventually};

use crate::server::Served;

/// Serves each connection by a function on a thread of its own, until the process ends.
pub(crate) fn server(serve: impl Fn(TcpStream) + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let serve = Arc::new(serve);
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let serve = Arc::clone(&serve);
            thread::spawn(move || serve(stream));
        }
    });
    address
}

/// Reads the head of a request.
fn read_head(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        if stream.read(&mut byte).ok()? == 0 {
            return None;
        }
        head.push(byte[0]);
    }
    String::from_utf8(head).ok()
}

/// A gateway with the hostile server at `/bad` and a good one elsewhere.
pub(crate) fn gateway(hostile: SocketAddr, keys: &str) -> (Served, Origin) {
    gateway_to(&format!("http://{hostile}"), keys)
}

/// The same for a server by its URL.
pub(crate) fn gateway_to(hostile: &str, keys: &str) -> (Served, Origin) {
    let good = Origin::hello();
    let url = good.url("");
    let gateway = Served::new(&format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\n[admin]\naddress = \"127.0.0.1:0\"\n\
        [[route]]\npath = \"/peak\"\npeak = {{}}\n\
        [[route]]\nprefix = \"/bad\"\nproxy = {{ to = \"{hostile}\"{keys} }}\n\
        [[route]]\nproxy = \"{}\"\n",
        url.trim_end_matches('/')
    ));
    peak(&gateway);
    (gateway, good)
}

/// The most bytes that the worker held at once since the last call, beyond what it held then.
pub(crate) fn peak(gateway: &Served) -> u64 {
    get(gateway.address(), "/peak").text().parse().unwrap()
}

/// Memory for one exchange: the limits of a head, a window of 256 KiB and buffers on either side, with room for vectors
/// that double.
pub(crate) const MOST_HELD: u64 = 2 << 20;

/// The failures that are counted of the hostile server.
pub(crate) fn failures(gateway: &Served) -> u64 {
    let metrics = get(gateway.addresses[1], "/metrics").into_text();
    let lines = metrics
        .lines()
        .filter(|it| it.starts_with("plimsoll_gateway_failures_total"));
    lines
        .filter_map(|it| it.rsplit_once(' ')?.1.parse::<u64>().ok())
        .sum()
}

/// Sends the same bytes without end once a request has come; returns how many were taken.
fn endless(first: &'static [u8], then: &'static [u8]) -> (SocketAddr, Arc<AtomicU64>) {
    let taken = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&taken);
    let address = server(move |mut stream| {
        if read_head(&mut stream).is_none() || stream.write_all(first).is_err() {
            return;
        }
        while stream.write_all(then).is_ok() {
            counted.fetch_add(then.len() as u64, Ordering::Relaxed);
        }
    });
    (address, taken)
}

/// Bytes that the gateway may read of a response that never becomes one, with those in the buffers of sockets.
pub(crate) const MOST_READ: u64 = 16 << 20;

#[test]
fn headers_without_end_are_cut_off() {
    let one_field = (
        b"HTTP/1.1 200 OK\r\nX: ".as_slice(),
        b"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa".as_slice(),
    );
    let many_fields = (
        b"HTTP/1.1 200 OK\r\n".as_slice(),
        b"x-a: 1\r\nx-b: 2\r\nx-c: 3\r\n".as_slice(),
    );
    for (first, then) in [one_field, many_fields] {
        let (hostile, taken) = endless(first, then);
        let (gateway, _good) = gateway(hostile, "");
        let received = get(gateway.address(), "/bad");
        assert_eq!(received.status, 502, "{received:?}");
        assert!(taken.load(Ordering::Relaxed) < MOST_READ, "{taken:?}");
        let peak = peak(&gateway);
        assert!(peak < MOST_HELD, "{peak}");
        assert!(failures(&gateway) >= 1);
        assert_eq!(get(gateway.address(), "/").text(), "hello");
    }
}

#[test]
fn interim_responses_without_end_are_cut_off() {
    let interim = b"HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\n\r\n";
    let (hostile, taken) = endless(b"", interim);
    let (gateway, _good) = gateway(hostile, "");
    let mut stream = connect(gateway.address());
    stream
        .write_all(b"GET /bad HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        .unwrap();
    let mut all = String::new();
    stream.read_to_string(&mut all).unwrap();
    assert!(all.contains("HTTP/1.1 502"), "{}", all.len());
    assert!(taken.load(Ordering::Relaxed) < MOST_READ, "{taken:?}");
    let peak = peak(&gateway);
    assert!(peak < MOST_HELD, "{peak}");
    assert_eq!(get(gateway.address(), "/").text(), "hello");
}

#[test]
fn content_without_end_is_read_as_fast_as_the_client_takes_it() {
    let (hostile, taken) = endless(
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"10\r\n0123456789abcdef\r\n",
    );
    let (gateway, _good) = gateway(hostile, "");
    let mut stream = connect(gateway.address());
    stream
        .write_all(b"GET /bad HTTP/1.1\r\nHost: a\r\n\r\n")
        .unwrap();
    let mut some = [0; 64];
    stream.read_exact(&mut some).unwrap();
    // Once the buffers are full nothing more is read: the number stops.
    let mut before = u64::MAX;
    eventually(|| {
        let now = taken.load(Ordering::Relaxed);
        assert_eq!(get(gateway.address(), "/").text(), "hello");
        let is_still = now == before;
        before = now;
        is_still
    });
    assert!(taken.load(Ordering::Relaxed) < 64 << 20, "{taken:?}");
    let peak = peak(&gateway);
    assert!(peak < MOST_HELD, "{peak}");
}

/// Sends so much content to each request, and counts those that are over.
fn lengthy(length: usize) -> (SocketAddr, Arc<AtomicU64>) {
    let over = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&over);
    let address = server(move |mut stream| {
        while let Some(head) = read_head(&mut stream) {
            let streams = if head.contains("/stream") {
                "X-Accel-Buffering: no\r\n"
            } else {
                ""
            };
            let head = format!("HTTP/1.1 200 OK\r\n{streams}Content-Length: {length}\r\n\r\n");
            let is_sent = stream.write_all(head.as_bytes()).is_ok()
                && stream.write_all(&vec![b'a'; length]).is_ok();
            if !is_sent {
                return;
            }
            counted.fetch_add(1, Ordering::SeqCst);
        }
    });
    (address, over)
}

#[test]
fn a_slow_client_keeps_a_server_at_work_unless_its_responses_are_read_ahead() {
    // More than the buffers of two connections hold.
    let length = 48 << 20;
    let (server, over) = lengthy(length);
    let (gateway, _good) = gateway(server, ", buffer_response = \"64MiB\"");
    let slow = |path: &str| {
        let mut stream = connect(gateway.address());
        let head = format!("GET /bad{path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        let mut begin = [0; 12];
        stream.read_exact(&mut begin).unwrap();
        assert_eq!(&begin, b"HTTP/1.1 200");
        stream
    };
    // This one goes out as it comes.
    let streamed = slow("/stream");
    let mut ahead = slow("");
    eventually(|| over.load(Ordering::SeqCst) == 1);
    let mut all = Vec::new();
    ahead.read_to_end(&mut all).unwrap();
    let text = String::from_utf8(all).unwrap();
    let (head, content) = text.split_once("\r\n\r\n").unwrap();
    assert!(
        head.to_ascii_lowercase()
            .contains(&format!("content-length: {length}")),
        "{head}"
    );
    assert_eq!(content.len(), length);
    assert_eq!(over.load(Ordering::SeqCst), 1);
    drop(streamed);
    // A client that goes away ends the response of its server, of which not everything fits.
    let (endless, taken) = endless(
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"10\r\n0123456789abcdef\r\n",
    );
    let (gateway, _good) = super::hostile::gateway(endless, ", buffer_response = \"1MiB\"");
    let mut stream = connect(gateway.address());
    stream
        .write_all(b"GET /bad HTTP/1.1\r\nHost: a\r\n\r\n")
        .unwrap();
    let mut some = [0; 64];
    stream.read_exact(&mut some).unwrap();
    let is_still = || {
        let before = taken.load(Ordering::Relaxed);
        assert_eq!(get(gateway.address(), "/").text(), "hello");
        before == taken.load(Ordering::Relaxed)
    };
    eventually(is_still);
    assert!(taken.load(Ordering::Relaxed) < 64 << 20, "{taken:?}");
    assert!(peak(&gateway) < MOST_HELD);
}

#[test]
fn responses_that_two_readers_could_understand_differently_are_not_sent_on() {
    for answer in [
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
        "HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nContent-Length: 5, 6\r\n\r\nhello!",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;\r\nhello\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: xchunked\r\nContent-Length: 5\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nX-A: a\r\n b: c\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nX-A : a\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nX-A: a\x00b\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nX-A: a\rSet-Cookie: b\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 20 OK\r\nContent-Length: 0\r\n\r\n",
        "HTTP/2.0 200 OK\r\nContent-Length: 0\r\n\r\n",
    ] {
        let origin = Origin::scripted(Script::serve(answer));
        let (gateway, _good) = gateway(origin.address(), ", retry = false");
        let mut stream = connect(gateway.address());
        stream
            .write_all(b"GET /bad HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            .unwrap();
        let mut all = Vec::new();
        stream.read_to_end(&mut all).ok();
        let text = String::from_utf8_lossy(&all);
        let is_refused = text.starts_with("HTTP/1.1 502");
        let is_broken_off = text.starts_with("HTTP/1.1 200") && !text.ends_with("0\r\n\r\n");
        assert!(is_refused || is_broken_off, "{answer:?}: {text:?}");
        assert!(!text.contains("Set-Cookie"), "{answer:?}: {text:?}");
    }
}

#[test]
fn a_second_response_behind_the_first_reaches_no_client() {
    let answer = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhelloHTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison";
    let origin = Origin::scripted(Script::serve(answer));
    let (gateway, _good) = gateway(origin.address(), "");
    for _ in 0..5 {
        assert_eq!(get(gateway.address(), "/bad").text(), "hello");
    }
    // Each on a connection of its own, since none could be used again.
    assert_eq!(origin.connections(), 5);
}

#[test]
fn a_response_before_the_end_of_its_request_is_sent_and_the_connection_not_used_again() {
    let answer = "HTTP/1.1 413 Too Large\r\nContent-Length: 4\r\n\r\nlong";
    let hostile = server(move |mut stream| {
        if read_head(&mut stream).is_some() {
            stream.write_all(answer.as_bytes()).ok();
            // Reads nothing more.
            thread::park();
        }
    });
    let (gateway, _good) = gateway(hostile, "");
    let mut stream = connect(gateway.address());
    let length = 64 << 20;
    let head = format!("POST /bad HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n");
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
fn connections_that_are_reset_all_the_time_cost_neither_retries_without_end_nor_the_healthy_server()
{
    let accepted = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&accepted);
    let script = Script::new().then(Step::ReadHead).then(Step::Reset);
    let resetting = Origin::builder()
        .script(move |_| {
            counted.fetch_add(1, Ordering::Relaxed);
            script.clone()
        })
        .start();
    let (gateway, _good) = gateway(resetting.address(), "");
    for _ in 0..100 {
        let received = get(gateway.address(), "/bad");
        assert_eq!(received.status, 502, "{received:?}");
    }
    // The budget: a fifth of the requests, and three a second.
    let attempts = accepted.load(Ordering::Relaxed);
    assert!((100..=160).contains(&attempts), "{attempts}");
    assert_eq!(failures(&gateway), attempts);
    assert_eq!(get(gateway.address(), "/").text(), "hello");
}

/// Requests that two readers could understand differently reach a server not at all, or as one request that has one
/// meaning.
#[test]
fn what_reaches_a_server_has_one_meaning() {
    let seen = Arc::new(std::sync::Mutex::new(Vec::<u8>::new()));
    let received = Arc::clone(&seen);
    let address = server(move |mut stream| {
        let mut piece = [0; 4096];
        while let Ok(count) = stream.read(&mut piece) {
            if count == 0 {
                return;
            }
            let mut all = received.lock().unwrap();
            all.extend_from_slice(&piece[..count]);
            if all.windows(4).any(|it| it == b"\r\n\r\n") {
                stream
                    .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
                    .ok();
            }
        }
    });
    let gateway = Served::routes(&format!("[[route]]\nproxy = \"http://{address}\"\n"));
    let hidden = "GET /hidden HTTP/1.1\r\nHost: a\r\n\r\n";
    let cases = [
        // Two lengths, two codings, and both.
        format!(
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nContent-Length: {}\r\n\r\n{hidden}",
            hidden.len()
        ),
        format!(
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{hidden}"
        ),
        format!(
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n{hidden}"
        ),
        format!(
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n{hidden}"
        ),
        format!(
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n{hidden}"
        ),
        format!(
            "POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{hidden}"
        ),
        format!(
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +{}\r\n\r\n{hidden}",
            hidden.len()
        ),
        format!(
            "POST / HTTP/1.1\r\nHost: a\r\nX: y\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{hidden}"
        ),
        format!(
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\x0bchunked\r\n\r\n0\r\n\r\n{hidden}"
        ),
        // Chunks that end early for one reader.
        format!(
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0x5\r\nhello\r\n0\r\n\r\n{hidden}"
        ),
        format!(
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\nhello\r\n0\r\n\r\n{hidden}"
        ),
        format!(
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\nhello\r\n0\r\n\r\n{hidden}"
        ),
        // Folded and empty names, two hosts, a host that differs from the target.
        format!("GET / HTTP/1.1\r\nHost: a\r\nX: y\r\n Transfer-Encoding: chunked\r\n\r\n{hidden}"),
        format!("GET / HTTP/1.1\r\nHost: a\r\n: y\r\n\r\n{hidden}"),
        format!("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n{hidden}"),
        format!("GET http://b/ HTTP/1.1\r\nHost: a\r\n\r\n{hidden}"),
        // An upgrade that would carry requests past the routes.
        format!(
            "GET / HTTP/1.1\r\nHost: a\r\nUpgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\nContent-Length: {}\r\n\r\n{hidden}",
            hidden.len()
        ),
    ];
    for case in cases {
        seen.lock().unwrap().clear();
        let mut stream = connect(gateway.address());
        stream.write_all(case.as_bytes()).unwrap();
        drop(stream.shutdown(std::net::Shutdown::Write));
        let mut all = Vec::new();
        stream.read_to_end(&mut all).ok();
        let seen = String::from_utf8_lossy(&seen.lock().unwrap()).into_owned();
        if seen.is_empty() {
            assert!(
                all.starts_with(b"HTTP/1.1 4") || all.starts_with(b"HTTP/1.1 5"),
                "{case:?}"
            );
            continue;
        }
        // Where it is forwarded, the hidden request is content, or one that the gateway has seen too and routed.
        let head = seen.split("\r\n\r\n").next().unwrap().to_ascii_lowercase();
        for name in ["transfer-encoding", "upgrade", "http2-settings"] {
            assert!(!head.contains(&format!("\n{name}:")), "{case:?}: {seen:?}");
        }
        let count = |text: &str| head.matches(text).count();
        assert!(
            count("\ncontent-length:") <= 1 && count("\nhost:") == 1,
            "{case:?}: {seen:?}"
        );
        let heads = seen.matches(" HTTP/1.1\r\nhost: ").count();
        let responses = String::from_utf8_lossy(&all)
            .matches("HTTP/1.1 200")
            .count();
        assert_eq!(heads, responses, "{case:?}: {seen:?}");
    }
    // A plain request is forwarded as before.
    let request = "GET /plain HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    assert_eq!(exchange(gateway.address(), request.as_bytes()).text(), "ok");
}
