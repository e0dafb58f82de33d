//! Where it listens: files, sockets that were inherited, both families, datagrams.

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::time::Duration;

use plimsoll_server::{
    Address, Cut, EchoHandler, Engine, EngineError, EnginePlan, Inherited, Limits, Serves,
    WorkerContext,
};
use plimsoll_testkit::Authority;

use crate::server::{Server, plan, text};

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";

fn start(plan: &EnginePlan) -> Engine {
    Engine::start(plan, Arc::default()).unwrap()
}

fn at(address: Address, threads: usize) -> EnginePlan {
    let mut plan = plan(Limits::default(), || text("hello"));
    plan.threads = threads;
    plan.listeners[0].address = address;
    plan
}

fn is_answered(mut stream: impl Read + Write) -> bool {
    stream.write_all(REQUEST).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("\r\n\r\nhello")
}

#[test]
fn a_socket_in_the_file_system_is_served_by_all_workers_and_goes_with_the_engine() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("web.sock");
    let mut plan = at(Address::Unix(path.clone()), 3);
    plan.listeners[0].mode = Some(0o620);
    // Which has no addresses to count by.
    plan.limits.connections_per_address = 1;
    let mut engine = start(&plan);
    assert_eq!(engine.bound(&plan), [Address::Unix(path.clone())]);
    let mode = fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o620);
    let waiting = UnixStream::connect(&path).unwrap();
    for _ in 0..10 {
        assert!(is_answered(UnixStream::connect(&path).unwrap()));
    }
    drop(waiting);
    engine.reload(&plan).unwrap();
    assert!(is_answered(UnixStream::connect(&path).unwrap()));
    let second = Engine::start(&plan, Arc::default());
    assert!(matches!(second, Err(EngineError::Listen { .. })));
    // A second process takes over, and the first does not take the file away from it.
    plan.listeners[0].shares_port = true;
    let second = start(&plan);
    assert_eq!(engine.drain(Duration::from_secs(20)).cut_off, 0);
    assert!(is_answered(UnixStream::connect(&path).unwrap()));
    drop(second);
    assert!(!path.exists());
}

#[test]
fn inherited_sockets_are_known_by_their_names() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("own.sock");
    let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = port.local_addr().unwrap();
    let connection = TcpStream::connect(address).unwrap();
    let file = UnixListener::bind(&path).unwrap();
    let inherited = Arc::new(Inherited::new([
        ("web".to_owned(), OwnedFd::from(port)),
        ("file".to_owned(), OwnedFd::from(file)),
        ("other".to_owned(), OwnedFd::from(connection)),
    ]));
    let named = |name: &str| Address::Inherited(name.to_owned());
    let mut plan = at(named("web"), 2);
    plan.inherited = Arc::clone(&inherited);
    plan.listeners.push(plan.listeners[0].clone());
    plan.listeners[1].address = named("file");
    let mut engine = start(&plan);
    assert_eq!(engine.bound(&plan), [address.into(), named("file")]);
    for _ in 0..4 {
        assert!(is_answered(TcpStream::connect(address).unwrap()));
        assert!(is_answered(UnixStream::connect(&path).unwrap()));
    }
    engine.reload(&plan).unwrap();
    assert!(is_answered(TcpStream::connect(address).unwrap()));
    drop(engine);
    // It was not the engine that made it.
    assert!(path.exists());
    for (name, reason) in [
        ("nobody", "there are web, file, other"),
        ("other", "does not listen"),
    ] {
        plan.listeners[1].address = named(name);
        let Err(EngineError::Listen { source, .. }) = Engine::start(&plan, Arc::default()) else {
            panic!("{name} is served");
        };
        assert!(source.to_string().contains(reason), "{source}");
    }
}

#[test]
fn the_address_of_all_is_that_of_both_families() {
    let any = SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0));
    let engine = start(&at(any.into(), 1));
    let port = engine.addresses()[0].port();
    assert!(is_answered(
        TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap()
    ));
    assert!(is_answered(
        TcpStream::connect((Ipv6Addr::LOCALHOST, port)).unwrap()
    ));
    // An address of one family is only that.
    let one = SocketAddr::from((Ipv6Addr::LOCALHOST, 0));
    let engine = start(&at(one.into(), 1));
    let port = engine.addresses()[0].port();
    assert!(TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err());
}

#[test]
fn a_client_is_the_same_by_both_families() {
    let any = SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0));
    let mut plan = at(any.into(), 1);
    plan.limits.connections_per_address = 1;
    let engine = start(&plan);
    let address = (Ipv4Addr::LOCALHOST, engine.addresses()[0].port());
    let _first = TcpStream::connect(address).unwrap();
    let counters = Arc::clone(engine.counters());
    plimsoll_testkit::eventually(|| counters.open() == 1);
    let mut second = TcpStream::connect(address).unwrap();
    second.write_all(REQUEST).unwrap();
    plimsoll_testkit::eventually(|| counters.snapshot().cut(Cut::ConnectionsOfAddress) == 1);
}

#[test]
fn datagrams_come_back_and_their_port_is_apart_from_that_of_tcp() {
    let mut plan = at(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into(), 2);
    let engine = start(&plan);
    let address = engine.addresses()[0];
    plan.listeners[0].address = address.into();
    plan.listeners[0].serves =
        Serves::Datagram(Arc::new(|_: &WorkerContext| Box::new(EchoHandler)));
    let datagrams = start(&plan);
    let client = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    client
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    client.send_to(b"over here", address).unwrap();
    let mut buffer = [0; 32];
    let (length, from) = client.recv_from(&mut buffer).unwrap();
    assert_eq!((&buffer[..length], from), (&b"over here"[..], address));
    assert!(is_answered(TcpStream::connect(address).unwrap()));
    drop(datagrams);
}

#[test]
fn http_at_a_port_for_tls_gets_a_plain_answer() {
    let authority = Authority::new();
    let mut plan = plan(Limits::default(), || text("hello"));
    if let Serves::Http { tls, .. } = &mut plan.listeners[0].serves {
        *tls = Some(Arc::new(authority.issue(&["localhost"]).server_config()));
    }
    let server = Server::start(&plan);
    let answer = server.talk("GET / HTTP/1.1\r\nhost: a\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
    assert!(
        answer.ends_with("this port speaks HTTPS, not HTTP\n"),
        "{answer}"
    );
}
