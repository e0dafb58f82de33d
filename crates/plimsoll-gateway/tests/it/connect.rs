//! Tunnels that clients open by CONNECT.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread;

use plimsoll_testkit::http::{connect, exchange};
use plimsoll_testkit::{Leaf, MaterialFiles, refused_address};

use crate::quic::client_of;
use crate::server::{Served, compiled};
use crate::tcp::metric;

/// A server of bytes that sends back what it gets, and its end.
fn echo() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            thread::spawn(move || {
                let mut copy = stream.try_clone().unwrap();
                std::io::copy(&mut copy, &mut stream).ok();
                stream.shutdown(Shutdown::Write).ok();
            });
        }
    });
    address
}

fn gateway(to: &str) -> Served {
    Served::new(&format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\n[[route]]\nname = \"out\"\nmethod = \"CONNECT\"\nconnect = {to}\n\
         [[route]]\nrespond = {{ body = \"page\" }}\n[admin]\naddress = \"127.0.0.1:0\"\n"
    ))
}

fn request(target: impl std::fmt::Display) -> String {
    format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n")
}

/// Reads the head of a response.
fn head(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    String::from_utf8(head).unwrap()
}

#[test]
fn a_tunnel_carries_bytes_to_a_permitted_target_and_each_end_by_itself() {
    let target = echo();
    let gateway = gateway(&format!("\"{target}\""));
    let mut stream = connect(gateway.address());
    // What comes with the request is the tunnel's.
    let opening = format!("{}early ", request(target));
    stream.write_all(opening.as_bytes()).unwrap();
    let head = head(&mut stream);
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    assert!(
        !head.to_ascii_lowercase().contains("content-length"),
        "{head}"
    );
    let long = "x".repeat(3_000_000);
    let mut writing = stream.try_clone().unwrap();
    let sent = long.clone();
    let writer = thread::spawn(move || {
        writing.write_all(sent.as_bytes()).unwrap();
        writing.shutdown(Shutdown::Write).unwrap();
    });
    let mut received = String::new();
    stream.read_to_string(&mut received).unwrap();
    writer.join().unwrap();
    assert!(received == format!("early {long}"), "{}", received.len());
    assert_eq!(metric(&gateway, "flows_total", "connect"), 1);
    plimsoll_testkit::eventually(|| metric(&gateway, "flows_ended_total", "client_closed") == 1);
}

#[test]
fn other_targets_are_forbidden_and_other_requests_reach_other_routes() {
    let (target, refused) = (echo(), refused_address());
    let gateway = gateway(&format!(
        "[\"{target}\", \"{refused}\", \"*.example.com:443\"]"
    ));
    let close = |text: String| text.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n");
    let status =
        |target: &str| exchange(gateway.address(), close(request(target)).as_bytes()).status;
    let port = target.port();
    for other in [
        format!("localhost:{port}"),
        "127.0.0.1:1".to_owned(),
        "example.com:443".to_owned(),
    ] {
        assert_eq!(status(&other), 403, "{other}");
    }
    assert_eq!(status(&refused.to_string()), 502);
    assert_eq!(metric(&gateway, "flows_ended_total", "connect_failed"), 1);
    assert_eq!(
        plimsoll_testkit::http::get(gateway.address(), "/").text(),
        "page"
    );
    // Without such a route CONNECT is refused.
    let without = Served::routes("[[route]]\necho = {}\n");
    let refused = exchange(without.address(), close(request(target)).as_bytes());
    assert_eq!(refused.status, 405);
}

#[test]
fn a_tunnel_is_a_stream_of_http2() {
    let target = echo();
    let gateway = gateway(&format!("{{ to = \"{target}\", idle_timeout = \"1m\" }}"));
    let text = crate::client::run_local(async {
        let stream = tokio::net::TcpStream::connect(gateway.address())
            .await
            .unwrap();
        let (mut client, connection) = h2::client::handshake(stream).await.unwrap();
        tokio::task::spawn_local(async move { connection.await.ok() });
        let request = http::Request::connect(target.to_string()).body(()).unwrap();
        let (response, mut send) = client.send_request(request, false).unwrap();
        let response = response.await.unwrap();
        assert_eq!(response.status(), 200);
        send.send_data("hello".into(), true).unwrap();
        let mut body = response.into_body();
        let mut received = Vec::new();
        while let Some(data) = body.data().await {
            received.extend_from_slice(&data.unwrap());
        }
        String::from_utf8(received).unwrap()
    });
    assert_eq!(text, "hello");
}

/// The head of a request by CONNECT (RFC 9114, section 4.4): `:method` by the table of QPACK, `:authority` as it is, and `more`.
fn http3_head(target: SocketAddr, more: &[u8]) -> Vec<u8> {
    let target = target.to_string();
    let mut block = vec![0, 0, 0xcf, 0x50, u8::try_from(target.len()).unwrap()];
    block.extend_from_slice(target.as_bytes());
    block.extend_from_slice(more);
    // HEADERS.
    frame(1, &block)
}

fn frame(kind: u8, content: &[u8]) -> Vec<u8> {
    // Below 64, a number of QUIC is one byte.
    let length = u8::try_from(content.len()).ok().filter(|it| *it < 64);
    let mut frame = vec![kind, length.unwrap()];
    frame.extend_from_slice(content);
    frame
}

/// Takes a number of QUIC off the front (RFC 9000, section 16).
fn number(bytes: &[u8]) -> (usize, &[u8]) {
    let (number, rest) = bytes.split_at(1 << (bytes[0] >> 6));
    let first = usize::from(number[0] & 0x3f);
    let number = number[1..].iter();
    (
        number.fold(first, |sum, byte| sum << 8 | usize::from(*byte)),
        rest,
    )
}

/// The first field of a response's head, as it is encoded, and the content of its DATA frames.
fn response(mut bytes: &[u8]) -> (u8, Vec<u8>) {
    let (mut status, mut data) = (0, Vec::new());
    while !bytes.is_empty() {
        let (kind, rest) = number(bytes);
        let (length, rest) = number(rest);
        let (content, rest) = rest.split_at(length);
        match kind {
            0 => data.extend_from_slice(content),
            // The prefix has two bytes.
            1 => status = content[2],
            _ => {}
        }
        bytes = rest;
    }
    (status, data)
}

#[test]
fn a_tunnel_is_a_stream_of_http3() {
    let (target, other) = (echo(), refused_address());
    let (leaf, files) = (Leaf::self_signed(&["localhost"]), MaterialFiles::new());
    let gateway = Served::new(&format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\ntls = {{ cert = \"{}\", key = \"{}\" }}\nhttp3 = true\n\
        [[route]]\nmethod = \"CONNECT\"\nconnect = \"{target}\"\n",
        files.write("cert.pem", leaf.pem()).display(),
        files.write("key.pem", leaf.key_pem()).display(),
    ));
    let at = gateway.address();
    let (granted, refused, malformed) = crate::client::run_local(async move {
        let client = client_of(leaf.der(), b"h3");
        let connection = client.connect(at, "localhost").unwrap().await.unwrap();
        let mut control = connection.open_uni().await.unwrap();
        // A control stream with empty SETTINGS.
        control.write_all(&[0, 4, 0]).await.unwrap();
        let exchange = async |head: Vec<u8>| {
            let (mut send, mut receive) = connection.open_bi().await.unwrap();
            send.write_all(&head).await.unwrap();
            send.write_all(&frame(0, b"hello")).await.unwrap();
            // A stream that was refused may be stopped before this.
            send.finish().ok();
            receive.read_to_end(1 << 16).await
        };
        let granted = exchange(http3_head(target, &[])).await.unwrap();
        let refused = exchange(http3_head(other, &[])).await.unwrap();
        // `:path: /`, which such a request has not.
        let malformed = exchange(http3_head(target, &[0xc1])).await;
        (granted, refused, malformed)
    });
    // `:status: 200` is the field 25 of the table.
    assert_eq!(response(&granted), (0xd9, b"hello".to_vec()));
    let (status, content) = response(&refused);
    assert_ne!(status, 0xd9);
    assert_eq!(content, b"no tunnel may lead there\n");
    assert!(malformed.is_err(), "{malformed:?}");
}

#[test]
fn every_key_is_in_the_schema_and_errors_are_reported() {
    let text = "[[listen]]\naddress = \"127.0.0.1:0\"\n[[route]]\nmethod = \"CONNECT\"\n\
        connect = { to = [\"a.example:443\"], connect_timeout = \"1s\", idle_timeout = \"1m\" }\n";
    assert!(compiled(text).is_ok());
    let document = serde_json::to_value(toml::from_str::<toml::Table>(text).unwrap()).unwrap();
    let schema: serde_json::Value = serde_json::from_str(plimsoll_server::config::SCHEMA).unwrap();
    jsonschema::validate(&schema, &document).unwrap();
    let wrong = "[[listen]]\naddress = \"127.0.0.1:0\"\n[[route]]\nconnect = \"a:1\"\n\
        [[route]]\nmethod = \"CONNECT\"\nconnect = { to = \"nowhere\", idle = 3 }\n";
    let problems = compiled(wrong).unwrap_err();
    let shown: Vec<String> = problems
        .iter()
        .map(|it| format!("{it} {:?}", it.hint))
        .collect();
    let shown = shown.join("\n");
    for part in [
        "is for the method CONNECT alone",
        "method = \\\"CONNECT\\\"",
        "`nowhere` is not HOST:PORT",
        "unknown key",
    ] {
        assert!(shown.contains(part), "no {part} in {shown}");
    }
}
