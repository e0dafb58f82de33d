//! Reloading, draining, sharing a port.

use std::io::{Read, Write};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_model::Secret;
use plimsoll_server::{Admin, Counters, Engine, EngineError, Limits, Serves, WorkerContext};
use plimsoll_testkit::{eventually, refused_address};

use crate::server::{Server, expect, plan, read_all, text, undated};

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nhost: a\r\n\r\n";

fn answer(close: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: {}\r\n{close}\r\n{body}",
        body.len()
    )
}

#[test]
fn a_reload_reaches_open_connections() {
    let mut server = Server::start(&plan(Limits::default(), || text("old")));
    let mut stream = server.connect();
    stream.write_all(REQUEST).unwrap();
    expect(&mut stream, &answer("", "old"));
    server
        .engine
        .reload(&plan(Limits::default(), || text("new")))
        .unwrap();
    stream.write_all(REQUEST).unwrap();
    expect(&mut stream, &answer("", "new"));
    assert_eq!(server.engine.addresses(), [server.address]);
}

#[test]
fn a_reload_that_cannot_be_done_changes_nothing() {
    let taken = Server::hello();
    let mut server = Server::hello();
    let mut new = plan(Limits::default(), || text("new"));
    new.listeners[0].address = taken.address.into();
    assert!(matches!(
        server.engine.reload(&new),
        Err(EngineError::Listen { .. })
    ));
    let mut threads = plan(Limits::default(), || text("new"));
    threads.threads = 2;
    assert!(matches!(
        server.engine.reload(&threads),
        Err(EngineError::Fixed(_))
    ));
    let mut stream = server.connect();
    stream.write_all(REQUEST).unwrap();
    expect(&mut stream, &answer("", "hello"));
}

#[test]
fn listeners_come_and_go_with_a_reload() {
    let mut server = Server::hello();
    let mut old = server.connect();
    old.write_all(REQUEST).unwrap();
    expect(&mut old, &answer("", "hello"));
    let address = refused_address();
    let mut new = plan(Limits::default(), || text("new"));
    new.listeners[0].address = address.into();
    server.engine.reload(&new).unwrap();
    assert!(std::net::TcpStream::connect(server.address).is_err());
    // A connection of a listener that went is served to its end.
    old.write_all(REQUEST).unwrap();
    expect(&mut old, &answer("", "hello"));
    server.address = address;
    let mut stream = server.connect();
    stream.write_all(REQUEST).unwrap();
    expect(&mut stream, &answer("", "new"));
}

/// One answer that ends in `hello`.
fn read_answer(stream: &mut std::net::TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"\r\n\r\nhello") {
        let mut byte = [0];
        assert_eq!(stream.read(&mut byte).unwrap(), 1, "{bytes:?}");
        bytes.push(byte[0]);
    }
    bytes
}

#[test]
fn a_drain_answers_what_comes_and_says_that_it_is_the_last() {
    let server = Server::hello();
    let (mut busy, idle) = (server.connect(), server.connect());
    busy.write_all(REQUEST).unwrap();
    expect(&mut busy, &answer("", "hello"));
    let counters = Arc::clone(server.engine.counters());
    eventually(|| counters.open() == 2);
    let (begun, rest) = REQUEST.split_at(9);
    busy.write_all(begun).unwrap();
    let address = server.address;
    let draining = std::thread::spawn(move || server.engine.drain(Duration::from_secs(20)));
    eventually(|| std::net::TcpStream::connect(address).is_err());
    busy.write_all(rest).unwrap();
    // The listener is closed before connections get notice, so an answer may come in between.
    let (usual, last) = (
        answer("", "hello"),
        answer("connection: close\r\n", "hello"),
    );
    loop {
        let response = undated(&read_answer(&mut busy));
        if response == last {
            break;
        }
        assert_eq!(response, usual);
        busy.write_all(REQUEST).unwrap();
    }
    drop(idle);
    assert_eq!(draining.join().unwrap().cut_off, 0);
}

#[test]
fn a_port_is_not_shared_by_mistake() {
    let server = Server::hello();
    let mut second = plan(Limits::default(), || text("second"));
    second.listeners[0].address = server.address.into();
    let start = |plan: &_| Engine::start(plan, Arc::default());
    assert!(matches!(start(&second), Err(EngineError::Listen { .. })));
    second.listeners[0].shares_port = true;
    assert_eq!(start(&second).unwrap().addresses(), [server.address]);
}

#[test]
fn the_admin_port_reports_what_happens_also_during_a_drain() {
    let counters = Arc::<Counters>::default();
    let mut plan = plan(Limits::default(), || text("hello"));
    let shown = Arc::clone(&counters);
    plan.listeners[0].is_last = true;
    plan.listeners[0].serves = Serves::Http {
        action: Arc::new(move |_: &WorkerContext| {
            let token = Secret::new("0123456789abcdef".to_owned());
            Rc::new(Admin::new(Arc::clone(&shown), Some(token)))
        }),
        tls: None,
        http2: true,
        http3: None,
    };
    let engine = Engine::start(&plan, counters).unwrap();
    let address = engine.addresses()[0];
    let ask = |path: &str, token: &str| {
        let mut stream = std::net::TcpStream::connect(address).unwrap();
        let request = format!(
            "GET {path} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {token}\r\nconnection: close\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).unwrap();
        read_all(&mut stream)
    };
    let token = "0123456789abcdef";
    assert!(ask("/metrics", "0123456789abcdeg").starts_with("HTTP/1.1 401 "));
    let metrics = ask("/metrics", token);
    for line in [
        "plimsoll_connections_total 2",
        "plimsoll_route_requests_total{route=\"admin\",status=\"4xx\"} 1",
        "plimsoll_refused_requests_total{reason=\"host_missing\"} 0",
    ] {
        assert!(
            metrics.contains(&format!("\n{line}\n")),
            "no `{line}` in {metrics}"
        );
    }
    assert!(ask("/healthz", token).starts_with("HTTP/1.1 200 "));
    assert!(ask("/readyz", token).ends_with("{\"status\":\"ok\"}\n"));
    // A connection that stays open keeps the drain waiting; the others are gone by then.
    eventually(|| engine.counters().open() == 0);
    let mut waiting = std::net::TcpStream::connect(address).unwrap();
    waiting.write_all(b"GET").unwrap();
    eventually(|| engine.counters().open() == 1);
    let counters = Arc::clone(engine.counters());
    let draining = std::thread::spawn(move || engine.drain(Duration::from_secs(20)));
    eventually(|| counters.is_draining());
    let answer = ask("/readyz", token);
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    drop(waiting);
    assert_eq!(draining.join().unwrap().cut_off, 0);
}

#[test]
fn each_free_port_is_another_one() {
    let mut plan = plan(Limits::default(), || text("hello"));
    plan.listeners.push(plan.listeners[0].clone());
    let mut engine = Engine::start(&plan, Arc::default()).unwrap();
    let bound = engine.bound(&plan);
    assert_ne!(bound[0], bound[1]);
    engine.reload(&plan).unwrap();
    assert_eq!(engine.bound(&plan), bound);
    for address in bound {
        let address = address.port().unwrap();
        let mut stream = std::net::TcpStream::connect(address).unwrap();
        stream.write_all(REQUEST).unwrap();
        expect(&mut stream, &answer("", "hello"));
    }
}

#[test]
fn figures_without_a_token_are_not_for_web_pages() {
    for metrics_only in [false, true] {
        let counters = Arc::<Counters>::default();
        let shown = Arc::clone(&counters);
        let server = Engine::start(
            &plan(Limits::default(), move || {
                let counters = Arc::clone(&shown);
                Rc::new(if metrics_only {
                    Admin::metrics(counters, None, None, true)
                } else {
                    Admin::new(counters, None)
                })
            }),
            counters,
        );
        let server = server.unwrap();
        let ask = |fields: &str| {
            let mut stream = std::net::TcpStream::connect(server.addresses()[0]).unwrap();
            let request = format!("GET /metrics HTTP/1.1\r\n{fields}connection: close\r\n\r\n");
            stream.write_all(request.as_bytes()).unwrap();
            read_all(&mut stream)
        };
        for (fields, status) in [
            ("host: localhost:9090\r\n", "200"),
            ("host: 127.0.0.1\r\n", "200"),
            ("host: [::1]:9090\r\n", "200"),
            // A name that its owner made to mean the loopback.
            ("host: rebound.example\r\n", "403"),
            ("host: localhost\r\norigin: http://evil.example\r\n", "403"),
        ] {
            let answer = ask(fields);
            assert!(
                answer.starts_with(&format!("HTTP/1.1 {status} ")),
                "{fields}: {answer}"
            );
        }
    }
}
