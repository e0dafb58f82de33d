//! Content of files as a client sees it.

use std::fs::File;
use std::io::{Read, Write};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use plimsoll_server::{
    Action, Cut, FilePart, Limits, Respond, Response, ResponseBody, Serves, WorkerContext,
};
use plimsoll_testkit::{Authority, eventually};

use crate::server::{Server, plan, read_all};

/// A file without a name, of which byte `i` is a letter that goes by `i`.
fn file(length: usize) -> Arc<File> {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&content(length)).unwrap();
    Arc::new(file)
}

fn content(length: usize) -> Vec<u8> {
    let letters = b"abcdefghijklmnopqrstuvwxyz".iter().cycle();
    letters.copied().take(length).collect()
}

fn serving(part: FilePart) -> impl Fn() -> Rc<dyn Action> + Send + Sync + 'static {
    move || {
        let body = ResponseBody::File(part.clone());
        Rc::new(Respond::new(Response::new(StatusCode::OK).with_body(body)))
    }
}

const GET: &str = "GET / HTTP/1.1\r\nhost: a\r\n\r\n";
const LAST: &str = "GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";

#[test]
fn parts_of_files_come_whole_and_in_their_order() {
    let length = 3 << 20;
    let part = FilePart::new(file(length), 0, length as u64);
    let server = Server::start(&plan(Limits::default(), serving(part.clone())));
    let answer = server.talk(format!("{GET}HEAD / HTTP/1.1\r\nhost: a\r\n\r\n{LAST}"));
    let content = String::from_utf8(content(length)).unwrap();
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n");
    let expected = format!("{head}\r\n{content}{head}\r\n{head}connection: close\r\n\r\n{content}");
    assert!(answer == expected, "{} bytes", answer.len());

    let server = Server::start(&plan(Limits::default(), serving(part.slice(26..31))));
    let answer = server.talk(LAST);
    assert!(
        answer.ends_with("content-length: 5\r\nconnection: close\r\n\r\nabcde"),
        "{answer}"
    );
    let server = Server::start(&plan(Limits::default(), serving(part.slice(5..5))));
    let answer = server.talk(format!("{GET}{LAST}"));
    assert_eq!(
        answer.matches("content-length: 0\r\n").count(),
        2,
        "{answer}"
    );
}

#[test]
fn they_come_over_tls_in_pieces() {
    let length = 300_000;
    let part = FilePart::new(file(length), 0, length as u64);
    let authority = Authority::new();
    let config = Arc::new(authority.issue(&["localhost"]).server_config());
    let mut plan = plan(Limits::default(), serving(part.clone()));
    let make = serving(part);
    plan.listeners[0].serves = Serves::Http {
        action: Arc::new(move |_: &WorkerContext| make()),
        tls: Some(config),
        http2: false,
        http3: None,
    };
    let server = Server::start(&plan);
    let mut stream = server.connect();
    let name = "localhost".try_into().unwrap();
    let mut roots = rustls::RootCertStore::empty();
    roots.add(authority.der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let mut client = rustls::ClientConnection::new(Arc::new(config), name).unwrap();
    let mut stream = rustls::Stream::new(&mut client, &mut stream);
    stream.write_all(LAST.as_bytes()).unwrap();
    let mut answer = Vec::new();
    // The server may leave without close_notify of TLS; the length shows whether all came.
    Read::by_ref(&mut stream)
        .take(1 << 20)
        .read_to_end(&mut answer)
        .ok();
    assert!(answer.ends_with(&content(length)), "{} bytes", answer.len());
}

#[test]
fn a_file_that_shrinks_ends_the_connection_within_the_content() {
    let file = file(100_000);
    let part = FilePart::new(Arc::clone(&file), 0, 200_000);
    let server = Server::start(&plan(Limits::default(), serving(part)));
    let answer = server.talk(format!("{GET}{GET}"));
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\ncontent-length: 200000\r\n"));
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    assert_eq!(body.len(), 100_000);
    eventually(|| server.engine.counters().open() == 0);
}

#[test]
fn a_client_that_does_not_read_a_file_is_cut_off() {
    let limits = Limits {
        write_timeout: Duration::from_millis(50),
        ..Limits::default()
    };
    let length = 64 << 20;
    let file = tempfile::tempfile().unwrap();
    file.set_len(length).unwrap();
    let part = FilePart::new(Arc::new(file), 0, length);
    let server = Server::start(&plan(limits, serving(part)));
    let mut stream = server.connect();
    stream.write_all(GET.as_bytes()).unwrap();
    let counters = server.engine.counters();
    eventually(|| counters.snapshot().cut(Cut::WriteTimeout) == 1);
    eventually(|| counters.open() == 0);
}

#[test]
fn many_clients_have_their_turns() {
    let length = 4 << 20;
    let part = FilePart::new(file(length), 0, length as u64);
    let server = Server::start(&plan(Limits::default(), serving(part)));
    let clients: Vec<_> = (0..8).map(|_| server.connect()).collect();
    let readers = clients.into_iter().map(|mut stream| {
        std::thread::spawn(move || {
            stream.write_all(LAST.as_bytes()).unwrap();
            read_all(&mut stream).len()
        })
    });
    let readers: Vec<_> = readers.collect();
    for reader in readers {
        assert!(reader.join().unwrap() > length);
    }
}
