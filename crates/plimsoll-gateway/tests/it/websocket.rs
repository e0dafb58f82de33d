//! WebSockets through the gateway.

use std::io::{Read, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use plimsoll_testkit::http::{connect, exchange, read_to_close};
use plimsoll_testkit::{Origin, WebSocketOrigin, eventually};
use tungstenite::Message;

use plimsoll_client::forward::Speaks;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::client::{open_websocket, pool, run_local, websocket};
use crate::hostile::{MOST_HELD, peak, server};
use crate::pairs::{MOST_TAKEN, until_still};
use crate::server::{Served, compiled, gateway};

#[test]
fn messages_pass_both_ways_and_the_end_is_passed_on() {
    let origin = WebSocketOrigin::echo();
    let gateway = gateway(&[&format!("http://{}", origin.address())], "");
    let stream = connect(gateway.address());
    let url = format!("ws://{}/chat", gateway.address());
    let (mut socket, response) = tungstenite::client(url, stream).unwrap();
    assert_eq!(response.status(), 101);
    for text in ["one", "two", &"long".repeat(50_000)] {
        socket.send(Message::text(text)).unwrap();
        assert_eq!(socket.read().unwrap(), Message::text(text));
    }
    assert_eq!(origin.open_connections(), 1);
    socket.close(None).unwrap();
    while socket.read().is_ok() {}
    drop(socket);
    eventually(|| origin.open_connections() == 0);
}

#[test]
fn a_server_that_does_not_agree_answers_itself() {
    let origin = Origin::hello();
    let url = origin.url("");
    let gateway = gateway(&[url.trim_end_matches('/')], "");
    let request = "GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade, close\r\nUpgrade: websocket\r\n\
        Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    assert_eq!(exchange(gateway.address(), request.as_bytes()).status, 200);
    let head = origin.heads().pop().unwrap();
    assert!(
        head.to_ascii_lowercase().contains("upgrade: websocket"),
        "{head}"
    );
}

#[test]
fn other_protocols_are_not_upgraded_to() {
    let origin = Origin::hello();
    let url = origin.url("");
    let gateway = gateway(&[url.trim_end_matches('/')], "");
    let request = "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n\
        HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n\r\n";
    let mut stream = connect(gateway.address());
    std::io::Write::write_all(&mut stream, request.as_bytes()).unwrap();
    eventually(|| origin.requests() == 1);
    let head = origin.heads().pop().unwrap().to_ascii_lowercase();
    assert!(
        !head.contains("h2c") && !head.contains("http2-settings"),
        "{head}"
    );
}

/// A gateway whose route to a raw server has these keys, with what the server does with each connection.
fn upgrading(
    keys: &str,
    serve: impl Fn(TcpStream, String) + Send + 'static,
) -> (Served, thread::JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let serving = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            head.push(byte[0]);
        }
        serve(stream, String::from_utf8(head).unwrap());
    });
    let text = format!("[[route]]\nproxy = {{ to = \"http://{address}\", {keys} }}\n");
    (Served::routes(&text), serving)
}

#[test]
fn docker_attach_is_forwarded_with_ends_that_close_one_after_the_other() {
    // With the content of `docker exec` and without that of `docker attach`.
    for content in ["", "{\"Tty\":true}"] {
        let (gateway, serving) = upgrading(
            "upgrades = [\"websocket\", \"tcp\"]",
            move |mut stream, head| {
                let head = head.to_ascii_lowercase();
                assert!(
                    head.starts_with("post /containers/a/attach?stdin=1 http/1.1\r\n"),
                    "{head}"
                );
                assert!(head.contains("\r\nupgrade: tcp\r\n"), "{head}");
                assert!(head.contains("\r\nconnection: upgrade\r\n"), "{head}");
                let mut received = vec![0; content.len()];
                stream.read_exact(&mut received).unwrap();
                assert_eq!(received, content.as_bytes());
                let response = "HTTP/1.1 101 UPGRADED\r\nContent-Type: application/vnd.docker.raw-stream\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\nfirst ";
                stream.write_all(response.as_bytes()).unwrap();
                // All of the standard input, up to its end.
                let mut input = Vec::new();
                Read::by_ref(&mut stream)
                    .take(1 << 20)
                    .read_to_end(&mut input)
                    .unwrap();
                stream.write_all(&input).unwrap();
            },
        );
        let mut stream = connect(gateway.address());
        let length = content.len();
        let request = format!(
            "POST /containers/a/attach?stdin=1 HTTP/1.1\r\nHost: docker\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\
             Content-Type: text/plain\r\nContent-Length: {length}\r\n\r\n{content}"
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"first ") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            head.push(byte[0]);
        }
        let head = String::from_utf8(head).unwrap().to_ascii_lowercase();
        assert!(head.starts_with("http/1.1 101 "), "{head}");
        assert!(head.contains("\r\nupgrade: tcp\r\n"), "{head}");
        assert!(head.contains("vnd.docker.raw-stream"), "{head}");
        let input = vec![7; 100_000];
        stream.write_all(&input).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        assert_eq!(read_to_close(&mut stream), input);
        serving.join().unwrap();
    }
}

#[test]
fn a_server_switches_to_the_protocol_that_was_requested_or_is_at_fault() {
    for (keys, asked, agreed, status) in [
        ("upgrades = \"any\"", "SPDY/3.1", "spdy/3.1", 101),
        ("upgrades = \"any\"", "SPDY/3.1", "tcp", 502),
        ("upgrades = [\"SPDY/3.1\"]", "spdy/3.1", "h2c", 502),
    ] {
        let (gateway, serving) = upgrading(keys, move |mut stream, head| {
            let wanted = format!("upgrade: {asked}\r\n");
            assert!(head.contains(&wanted), "{head}");
            let response = format!(
                "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: {agreed}\r\n\r\n"
            );
            stream.write_all(response.as_bytes()).unwrap();
        });
        let request = format!(
            "POST /exec HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: {asked}\r\nContent-Length: 0\r\n\r\n"
        );
        let mut stream = connect(gateway.address());
        stream.write_all(request.as_bytes()).unwrap();
        let mut start = [0; 12];
        stream.read_exact(&mut start).unwrap();
        assert_eq!(
            start[9..],
            *status.to_string().as_bytes(),
            "{keys} {asked} {agreed}"
        );
        serving.join().unwrap();
    }
}

#[test]
fn protocols_that_carry_requests_are_never_upgraded_to() {
    let origin = Origin::hello();
    let url = origin.url("");
    for keys in ["upgrades = \"any\"", "upgrades = [\"tcp\"]"] {
        let text = format!("[[route]]\nproxy = {{ to = \"{url}\", {keys} }}\n");
        let gateway = Served::routes(&text);
        for name in [
            "h2c", "H2C", "HTTP/2.0", "TLS/1.0", "h2c, tcp", "tcp, h2c", "a b", "other",
        ] {
            if name == "other" && keys.contains("any") {
                continue;
            }
            let request = format!(
                "GET / HTTP/1.1\r\nHost: a\r\nConnection: close, upgrade\r\nUpgrade: {name}\r\n\r\n"
            );
            assert_eq!(
                exchange(gateway.address(), request.as_bytes()).status,
                200,
                "{name}"
            );
            let head = origin.heads().pop().unwrap().to_ascii_lowercase();
            assert!(!head.contains("upgrade"), "{name}: {head}");
        }
    }
    for (keys, expected) in [
        ("upgrades = [\"h2c\"]", "`h2c` carries requests"),
        ("upgrades = [\"HTTP/2.0\"]", "`HTTP/2.0` carries requests"),
        ("upgrades = [\"tcp\", \"any\"]", "stands alone"),
        ("upgrades = [\"a b\"]", "is not the name"),
        (
            "upgrades = [\"websocket\"], websocket = false",
            "says otherwise",
        ),
        (
            "upgrades = [\"tcp\"], websocket = { pings = 1 }",
            "is not among",
        ),
    ] {
        let text = format!(
            "[[listen]]\naddress = \"127.0.0.1:0\"\n[[route]]\nproxy = {{ to = \"{url}\", {keys} }}\n"
        );
        let problems = compiled(&text).unwrap_err();
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].to_string().contains(expected), "{problems:?}");
    }
}

#[test]
fn another_method_than_get_opens_no_websocket_and_stays_what_it_is() {
    let origin = Origin::hello();
    let url = origin.url("");
    let gateway = gateway(&[url.trim_end_matches('/')], "");
    for method in ["POST", "DELETE"] {
        let request = format!(
            "{method} /hook HTTP/1.1\r\nHost: a\r\nConnection: upgrade, close\r\nUpgrade: websocket\r\n\
            Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nContent-Length: 0\r\n\r\n"
        );
        assert_eq!(exchange(gateway.address(), request.as_bytes()).status, 200);
        let head = origin.heads().pop().unwrap();
        assert!(head.starts_with(&format!("{method} /hook ")), "{head}");
        assert!(!head.to_ascii_lowercase().contains("upgrade"), "{head}");
    }
}

/// The frames of `hi`, masked with zeros, and of the echo (RFC 6455, section 5.7).
const HI: [u8; 8] = [0x81, 0x82, 0, 0, 0, 0, b'h', b'i'];
const ECHO: [u8; 4] = [0x81, 2, b'h', b'i'];

#[test]
fn websockets_pass_between_versions_of_http() {
    const TLS: &str =
        "[[listen]]\naddress = \"127.0.0.1:0\"\ntls = { self_signed = true }\nhttp3 = true\n";
    let origin = WebSocketOrigin::echo();
    // A gateway that takes extended CONNECT stands for a server that speaks HTTP/2 and HTTP/3.
    let behind = Served::new(&format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\n{TLS}[[route]]\nproxy = \"http://{}\"\n",
        origin.address()
    ));
    let (clear, tls) = (behind.addresses[0], behind.addresses[1]);
    let backs = [
        (format!("http://{}", origin.address()), "http1"),
        (format!("http://{clear}"), "http2"),
        (format!("https://{tls}"), "http2"),
        (format!("https://{tls}"), "http3"),
    ];
    for (url, protocol) in &backs {
        let front = Served::new(&format!(
            "[[listen]]\naddress = \"127.0.0.1:0\"\n{TLS}[[route]]\nproxy = \"all\"\n\
             [upstream.all]\nservers = [\"{url}\"]\nprotocol = \"{protocol}\"\ntls = {{ insecure = true }}\n"
        ));
        let (clear, tls) = (front.addresses[0], front.addresses[1]);
        for (speaks, url) in [
            (Speaks::Http1, format!("http://{clear}")),
            (Speaks::Http2, format!("http://{clear}")),
            (Speaks::Http2, format!("https://{tls}")),
            (Speaks::Http3, format!("https://{tls}")),
        ] {
            let (status, echoed) = open_websocket(speaks, &url, &HI, ECHO.len());
            let expected = if speaks == Speaks::Http1 { 101 } else { 200 };
            assert_eq!(status, expected, "{speaks:?} to {protocol}");
            assert_eq!(echoed, ECHO, "{speaks:?} to {protocol}");
        }
    }
    // A connection that a client leaves ends all the way.
    eventually(|| origin.open_connections() == 0);
}

#[test]
fn a_server_that_does_not_read_holds_its_client_back() {
    const TLS: &str =
        "[[listen]]\naddress = \"127.0.0.1:0\"\ntls = { self_signed = true }\nhttp3 = true\n";
    let unread = server(|stream| {
        let _socket = tungstenite::accept(stream).unwrap();
        // Until the test ends.
        thread::park();
    });
    let behind = Served::new(&format!("{TLS}[[route]]\nproxy = \"http://{unread}\"\n"));
    let tls = behind.address();
    // A message that goes on for ever: a frame of a gigabyte, masked with zeros.
    let mut frame = vec![0x82, 0xff, 0, 0, 0, 0, 0x40, 0, 0, 0, 0, 0, 0, 0];
    frame.resize(64 << 10, b'x');
    for (url, protocol) in [
        (format!("http://{unread}"), "http1"),
        (format!("https://{tls}"), "http2"),
        (format!("https://{tls}"), "http3"),
    ] {
        let front = Served::new(&format!(
            "[[listen]]\naddress = \"127.0.0.1:0\"\n{TLS}[[route]]\npath = \"/peak\"\npeak = {{}}\n[[route]]\nproxy = \"all\"\n\
             [upstream.all]\nservers = [\"{url}\"]\nprotocol = \"{protocol}\"\ntls = {{ insecure = true }}\n"
        ));
        for speaks in [Speaks::Http1, Speaks::Http2, Speaks::Http3] {
            let name = format!("{speaks:?} to {protocol}");
            let sent = AtomicU64::new(0);
            run_local(async {
                let pool = pool(speaks);
                let url = format!("https://{}/", front.addresses[1]);
                let (_, mut stream) = websocket(&pool, speaks, &url).await;
                peak(&front);
                let sending = async {
                    while stream.write_all(&frame).await.is_ok() {
                        sent.fetch_add(frame.len() as u64, Ordering::Relaxed);
                    }
                };
                let taken = tokio::select! {
                    () = sending => panic!("{name}: it broke off"),
                    taken = until_still(&sent, 0, &front) => taken,
                };
                assert!(taken < MOST_TAKEN, "{name}: {taken}");
                let held = peak(&front);
                assert!(held < MOST_HELD, "{name}: {held}");
            });
        }
    }
}

/// A gateway to a server that echoes, with this `websocket`.
fn limited(origin: &WebSocketOrigin, websocket: &str) -> Served {
    Served::routes(&format!(
        "[[route]]\nproxy = {{ to = \"http://{}\", websocket = {websocket} }}\n",
        origin.address()
    ))
}

fn open(gateway: &Served) -> tungstenite::WebSocket<TcpStream> {
    let stream = connect(gateway.address());
    let url = format!("ws://{}/chat", gateway.address());
    tungstenite::client(url, stream).unwrap().0
}

/// The code of the Close frame that ends it.
fn closed_with(socket: &mut tungstenite::WebSocket<TcpStream>) -> u16 {
    loop {
        if let Message::Close(frame) = socket.read().unwrap() {
            return frame.unwrap().code.into();
        }
    }
}

#[test]
fn messages_and_pings_beyond_the_limits_close_the_websocket() {
    let origin = WebSocketOrigin::echo();
    let gateway = limited(&origin, "{ max_message = \"1000B\", pings = 3 }");
    let mut socket = open(&gateway);
    let fits = "a".repeat(1000);
    socket.send(Message::text(&fits)).unwrap();
    assert_eq!(socket.read().unwrap(), Message::text(&fits));
    socket.send(Message::text("a".repeat(1001))).unwrap();
    assert_eq!(closed_with(&mut socket), 1009);
    let mut socket = open(&gateway);
    for _ in 0..4 {
        socket.send(Message::Ping(b"x".to_vec().into())).unwrap();
    }
    assert_eq!(closed_with(&mut socket), 1008);
    eventually(|| origin.open_connections() == 0);
}

#[test]
fn limits_hold_on_streams_of_http2_and_http3() {
    let origin = WebSocketOrigin::echo();
    let front = Served::new(&format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\ntls = {{ self_signed = true }}\nhttp3 = true\n\
         [[route]]\nproxy = {{ to = \"http://{}\", websocket = {{ max_message = \"2B\", pings = 1, idle_timeout = \"1s\" }} }}\n",
        origin.address()
    ));
    let url = format!("https://{}", front.address());
    // A text of three bytes, and two pings (RFC 6455, section 5.5.2).
    let long = [0x81, 0x83, 0, 0, 0, 0, b'a', b'b', b'c'];
    let pings = [[0x89, 0x80, 0, 0, 0, 0]; 2].concat();
    for speaks in [Speaks::Http1, Speaks::Http2, Speaks::Http3] {
        for (bytes, code) in [(&long[..], 1009), (&pings, 1008), (&[], 1001)] {
            let closed = run_local(async {
                let (_, mut stream) = websocket(&pool(speaks), speaks, &url).await;
                stream.write_all(bytes).await.unwrap();
                stream.flush().await.unwrap();
                let mut frame = [0; 2];
                stream.read_exact(&mut frame).await.unwrap();
                while frame == [0x8a, 0] {
                    // A pong to the first ping.
                    stream.read_exact(&mut frame).await.unwrap();
                }
                assert_eq!(frame[0], 0x88, "{speaks:?} {code}");
                stream.read_u16().await.unwrap()
            });
            assert_eq!(closed, code, "{speaks:?}");
        }
    }
    eventually(|| origin.open_connections() == 0);
}

#[test]
fn silence_closes_a_websocket_in_order() {
    let origin = WebSocketOrigin::echo();
    let gateway = limited(&origin, "{ idle_timeout = \"300ms\" }");
    let mut socket = open(&gateway);
    assert_eq!(closed_with(&mut socket), 1001);
    eventually(|| origin.open_connections() == 0);
}

#[test]
fn websockets_can_be_turned_off() {
    let origin = Origin::hello();
    let url = origin.url("");
    let gateway = Served::routes(&format!(
        "[[route]]\nproxy = {{ to = \"{}\", websocket = false }}\n",
        url.trim_end_matches('/')
    ));
    let request = "GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade, close\r\nUpgrade: websocket\r\n\
        Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    assert_eq!(exchange(gateway.address(), request.as_bytes()).status, 200);
    let head = origin.heads().pop().unwrap().to_ascii_lowercase();
    assert!(!head.contains("upgrade"), "{head}");
}
