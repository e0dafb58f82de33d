//! Connections that a proxy passes on.

use std::io::Write;
use std::net::SocketAddr;
use std::rc::Rc;

use plimsoll_server::{Action, Answer, Cut, Limits, Request, Response};
use plimsoll_testkit::eventually;
use plimsoll_wire::{ProxiedEnds, ProxyProtocol};

use crate::server::{Server, expect, plan};

/// Answers with the address of the client.
struct Who;

impl Action for Who {
    fn handle(&self, request: &Request<'_>) -> Answer {
        let text = request.peer.ip().to_string();
        Answer::now(Response::text(http::StatusCode::OK, text))
    }
}

fn server(limits: Limits, network: &str) -> Server {
    let mut plan = plan(limits, || Rc::new(Who));
    plan.listeners[0].proxied_by = vec![network.parse().unwrap()];
    Server::start(&plan)
}

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nhost: a\r\n\r\n";

fn answer(client: &str) -> String {
    let length = client.len();
    format!(
        "HTTP/1.1 200 OK\r\ncontent-length: {length}\r\ncontent-type: text/plain; charset=utf-8\r\n\r\n{client}"
    )
}

fn ends() -> ProxiedEnds {
    ProxiedEnds {
        source: SocketAddr::from(([192, 0, 2, 7], 4711)),
        destination: SocketAddr::from(([198, 51, 100, 1], 80)),
    }
}

#[test]
fn the_client_is_whom_the_proxy_names() {
    let server = server(Limits::default(), "127.0.0.0/8");
    for version in [ProxyProtocol::V1, ProxyProtocol::V2] {
        for (sent, client) in [(Some(ends()), "192.0.2.7"), (None, "127.0.0.1")] {
            let header = version.header(sent);
            // All at once, then in two pieces.
            for cut in [0, header.len() / 2] {
                let mut stream = server.connect();
                stream.write_all(&header[..cut]).unwrap();
                let rest = [&header[cut..], REQUEST].concat();
                stream.write_all(&rest).unwrap();
                expect(&mut stream, &answer(client));
            }
        }
    }
    // A connection is counted as the client's.
    eventually(|| server.engine.counters().open() == 0);
}

#[test]
fn a_proxy_must_say_and_others_must_not() {
    let proxied = server(Limits::default(), "127.0.0.0/8");
    let mut stream = proxied.connect();
    stream.write_all(REQUEST).unwrap();
    let snapshot = || proxied.engine.counters().snapshot();
    eventually(|| snapshot().cut(Cut::ProxyHeader) == 1 && snapshot().open == 0);
    assert_eq!(snapshot().answered(), 0);
    let alone = server(Limits::default(), "10.0.0.0/8");
    let mut stream = alone.connect();
    stream.write_all(REQUEST).unwrap();
    expect(&mut stream, &answer("127.0.0.1"));
    let header = ProxyProtocol::V1.header(Some(ends()));
    let refused = alone.talk([&header[..], REQUEST].concat());
    assert!(refused.starts_with("HTTP/1.1 400 "), "{refused}");
}

#[test]
fn each_client_of_a_proxy_has_its_own_limit() {
    let limits = Limits {
        connections_per_address: 1,
        ..Limits::default()
    };
    let server = server(limits, "127.0.0.0/8");
    let begin = |last: u8| {
        let ends = ProxiedEnds {
            source: SocketAddr::from(([192, 0, 2, last], 1)),
            ..ends()
        };
        let mut stream = server.connect();
        let header = ProxyProtocol::V2.header(Some(ends));
        stream.write_all(&[&header[..], REQUEST].concat()).unwrap();
        stream
    };
    let (mut one, mut other) = (begin(1), begin(2));
    expect(&mut one, &answer("192.0.2.1"));
    expect(&mut other, &answer("192.0.2.2"));
    let again = begin(1);
    eventually(|| {
        let snapshot = server.engine.counters().snapshot();
        snapshot.cut(Cut::ConnectionsOfAddress) == 1
    });
    drop(again);
}

/// Answers with both ends of the connection.
struct Ends;

impl Action for Ends {
    fn handle(&self, request: &Request<'_>) -> Answer {
        let info = request.connection();
        let text = format!("{} {}", info.peer, info.local);
        Answer::now(Response::text(http::StatusCode::OK, text))
    }
}

#[test]
fn both_ends_are_those_that_the_proxy_names() {
    let mut plan = plan(Limits::default(), || Rc::new(Ends));
    plan.listeners[0].proxied_by = vec!["127.0.0.0/8".parse().unwrap()];
    let server = Server::start(&plan);
    for version in [ProxyProtocol::V1, ProxyProtocol::V2] {
        let header = version.header(Some(ends()));
        let mut stream = server.connect();
        stream.write_all(&[&header, REQUEST].concat()).unwrap();
        expect(&mut stream, &answer("192.0.2.7:4711 198.51.100.1:80"));
    }
}
