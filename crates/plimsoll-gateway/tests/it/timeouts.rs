//! Time limits that end a response after its head: the client sees that it is not complete, and the server's side is
//! cancelled.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;

use plimsoll_client::forward::Speaks;
use plimsoll_testkit::http::{connect, get};
use plimsoll_testkit::{Origin, WebSocketOrigin, eventually};
use tungstenite::Message;

use crate::client::read_until_cut;
use crate::hostile::server;
use crate::server::Served;

const FRONTS: [Speaks; 3] = [Speaks::Http1, Speaks::Http2, Speaks::Http3];

/// A server that sends a head and chunks, without end or only one; counts the connections that ended.
fn chunks(is_endless: bool) -> (SocketAddr, Arc<AtomicU64>) {
    let ended = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&ended);
    let address = server(move |mut stream| {
        let mut head = Vec::new();
        let mut byte = [0];
        while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|it| it > 0) {
            head.extend_from_slice(&byte);
        }
        let first = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        let mut sent = stream.write_all(first);
        while sent.is_ok() {
            sent = stream.write_all(b"5\r\nhello\r\n");
            if !is_endless {
                break;
            }
        }
        // Until the gateway closes.
        stream.read_exact(&mut byte).ok();
        counted.fetch_add(1, Ordering::Relaxed);
    });
    (address, ended)
}

/// A gateway with every version of HTTP in front, and an admin port.
fn gateway(server: SocketAddr, keys: &str) -> Served {
    Served::new(&format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\n\
        [[listen]]\naddress = \"127.0.0.1:0\"\ntls = {{ self_signed = true }}\nhttp3 = true\n\
        [admin]\naddress = \"127.0.0.1:0\"\n[[route]]\nproxy = \"all\"\n\
        [upstream.all]\nservers = \"http://{server}\"\n{keys}\n"
    ))
}

fn url(gateway: &Served, speaks: Speaks) -> String {
    match speaks {
        Speaks::Http1 => format!("http://{}/", gateway.addresses[0]),
        _ => format!("https://{}/", gateway.addresses[1]),
    }
}

fn timed_out(gateway: &Served, limit: &str) -> u64 {
    let metrics = get(gateway.addresses[2], "/metrics").into_text();
    let name = format!("plimsoll_gateway_timeouts_total{{upstream=\"all\",limit=\"{limit}\"}} ");
    let line = metrics.lines().find_map(|line| line.strip_prefix(&name));
    line.unwrap_or_else(|| panic!("{name}: {metrics}"))
        .parse()
        .unwrap()
}

#[test]
fn the_total_time_cuts_a_response_of_a_silent_and_of_an_endless_server() {
    for is_endless in [false, true] {
        let (server, ended) = chunks(is_endless);
        let gateway = gateway(server, "timeout = \"150ms\"");
        for (number, speaks) in (1..).zip(FRONTS) {
            let (status, bytes, failure) = read_until_cut(speaks, &url(&gateway, speaks));
            assert_eq!(status, 200, "{speaks:?}");
            assert!(bytes >= 5, "{speaks:?}: {bytes}");
            assert!(failure.is_some(), "{speaks:?}: it looks complete");
            eventually(|| ended.load(Ordering::Relaxed) == number);
            assert_eq!(timed_out(&gateway, "total"), number, "{speaks:?}");
        }
        assert_eq!(timed_out(&gateway, "idle"), 0);
    }
}

#[test]
fn silence_within_a_response_cuts_it() {
    let (server, ended) = chunks(false);
    let gateway = gateway(server, "idle_timeout = \"100ms\"");
    for (number, speaks) in (1..).zip(FRONTS) {
        let (status, bytes, failure) = read_until_cut(speaks, &url(&gateway, speaks));
        assert_eq!((status, bytes), (200, 5), "{speaks:?}");
        assert!(failure.is_some(), "{speaks:?}: it looks complete");
        eventually(|| ended.load(Ordering::Relaxed) == number);
        assert_eq!(timed_out(&gateway, "idle"), number, "{speaks:?}");
    }
    assert_eq!(timed_out(&gateway, "total"), 0);
}

#[test]
fn a_response_that_does_not_begin_gets_a_504_and_counts_by_its_limit() {
    let silent = Origin::silent();
    let address = silent.url("").replace("http://", "");
    let address: SocketAddr = address.trim_end_matches('/').parse().unwrap();
    for (keys, limit) in [
        ("timeout = \"100ms\"", "total"),
        ("response_timeout = \"100ms\"\nretry = false", "response"),
    ] {
        let gateway = gateway(address, keys);
        assert_eq!(get(gateway.address(), "/").status, 504, "{limit}");
        assert_eq!(timed_out(&gateway, limit), 1, "{limit}");
    }
}

/// The head of a request with ten bytes of content.
const HEAD: &[u8] =
    b"POST /up HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 10\r\n\r\n";

/// Reads a request with ten bytes of content to its end.
fn read_request(stream: &mut TcpStream) {
    let mut request = Vec::new();
    let mut byte = [0];
    while !request.ends_with(b"\r\n\r\n0123456789") && stream.read(&mut byte).is_ok_and(|it| it > 0)
    {
        request.extend_from_slice(&byte);
    }
}

#[test]
fn a_slow_upload_is_not_a_late_response() {
    let whole = server(|mut stream| {
        read_request(&mut stream);
        stream
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            .ok();
    });
    let silent = Origin::silent();
    let gateway = Served::routes(&format!(
        "[[route]]\npath = \"/silent\"\nproxy = {{ to = \"{}\", response_timeout = \"100ms\", retry = false }}\n\
        [[route]]\nproxy = {{ to = \"http://{whole}\", response_timeout = \"100ms\", retry = false }}\n",
        silent.url("").trim_end_matches('/'),
    ));
    let mut stream = connect(gateway.address());
    stream.write_all(HEAD).unwrap();
    for piece in [b"01234".as_slice(), b"567", b"89"] {
        stream.write_all(piece).unwrap();
        // These begin later and have the same limit, so that much has passed by then, twice.
        for _ in 0..2 {
            assert_eq!(get(gateway.address(), "/silent").status, 504);
        }
    }
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    assert!(response.starts_with("HTTP/1.1 200 "), "{response}");
}

#[test]
fn a_server_that_took_the_whole_upload_has_its_time_for_the_response() {
    let (release, held) = mpsc::channel::<()>();
    let held = Arc::new(Mutex::new(held));
    let server = server(move |mut stream| {
        read_request(&mut stream);
        held.lock().unwrap().recv().ok();
    });
    let gateway = gateway(server, "response_timeout = \"100ms\"\nretry = false");
    let mut stream = connect(gateway.address());
    stream.write_all(HEAD).unwrap();
    stream.write_all(b"0123456789").unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    assert!(response.starts_with("HTTP/1.1 504 "), "{response}");
    assert_eq!(timed_out(&gateway, "response"), 1);
    drop(release);
}

#[test]
fn a_server_that_stops_reading_the_upload_is_late() {
    let (release, held) = mpsc::channel::<()>();
    let held = Arc::new(Mutex::new(held));
    let server = server(move |stream| {
        held.lock().unwrap().recv().ok();
        drop(stream);
    });
    let gateway = gateway(
        server,
        "response_timeout = \"100ms\"\nretry = false\n[limits]\nbody = \"2GiB\"",
    );
    let mut stream = connect(gateway.address());
    let mut writer = stream.try_clone().unwrap();
    let writing = thread::spawn(move || {
        // More than all buffers on the way hold.
        let request = b"POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 1073741824\r\n\r\n";
        let mut sent = writer.write_all(request);
        let piece = vec![b'x'; 1 << 20];
        for _ in 0..1024 {
            sent = sent.and_then(|()| writer.write_all(&piece));
        }
        sent
    });
    let mut status = [0; 13];
    stream.read_exact(&mut status).unwrap();
    assert_eq!(&status, b"HTTP/1.1 504 ");
    assert_eq!(timed_out(&gateway, "response"), 1);
    drop(stream);
    gateway.end();
    assert!(writing.join().unwrap().is_err(), "nobody took a gigabyte");
    drop(release);
}

#[test]
fn a_route_has_other_limits_than_its_upstream() {
    let silent = Origin::silent();
    let (endless, _) = chunks(false);
    let gateway = Served::new(&format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\n[admin]\naddress = \"127.0.0.1:0\"\n\
        [[route]]\npath = \"/response\"\nproxy = {{ to = \"silent\", response_timeout = \"50ms\" }}\n\
        [[route]]\npath = \"/total\"\nproxy = {{ to = \"silent\", timeout = \"50ms\" }}\n\
        [[route]]\npath = \"/idle\"\nproxy = {{ to = \"all\", idle_timeout = \"50ms\" }}\n\
        [upstream.silent]\nservers = \"{}\"\nretry = false\nresponse_timeout = \"1h\"\ntimeout = \"1h\"\n\
        [upstream.all]\nservers = \"http://{endless}\"\nidle_timeout = \"1h\"\n",
        silent.url("").trim_end_matches('/')
    ));
    assert_eq!(get(gateway.address(), "/response").status, 504);
    assert_eq!(get(gateway.address(), "/total").status, 504);
    let url = format!("http://{}/idle", gateway.address());
    let (status, bytes, failure) = read_until_cut(Speaks::Http1, &url);
    assert_eq!((status, bytes), (200, 5));
    assert!(failure.is_some(), "it looks complete");
}

#[test]
fn a_websocket_outlives_the_total_time() {
    let (echo, silent) = (WebSocketOrigin::echo(), Origin::silent());
    let text = format!(
        "[[route]]\npath = \"/silent\"\nproxy = {{ to = \"{}\", timeout = \"100ms\" }}\n\
        [[route]]\nproxy = {{ to = \"http://{}\", timeout = \"100ms\" }}\n",
        silent.url("").trim_end_matches('/'),
        echo.address()
    );
    let gateway = Served::routes(&text);
    let stream = connect(gateway.address());
    let url = format!("ws://{}/chat", gateway.address());
    let (mut socket, _) = tungstenite::client(url, stream).unwrap();
    // It begins later and has the same limit, so that of the WebSocket has passed by then.
    assert_eq!(get(gateway.address(), "/silent").status, 504);
    socket.send(Message::text("still here")).unwrap();
    assert_eq!(socket.read().unwrap(), Message::text("still here"));
}
