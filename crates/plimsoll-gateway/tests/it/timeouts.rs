//! Time limits that end a response after its head: the client sees that it is not complete, and the server's side is
//! cancelled.

use std::io::{Read as _, Write as _};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use plimsoll_client::forward::Speaks;
use plimsoll_testkit::{Origin, WebSocketOrigin, eventually};
use tungstenite::Message;

use crate::client::{connect, get, read_until_cut};
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
    let metrics = get(gateway.addresses[2], "/metrics").text();
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
