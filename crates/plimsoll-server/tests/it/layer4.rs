//! Connections and datagrams that are not HTTP.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use plimsoll_server::{
    Cut, Datagram, DatagramHandler, EchoHandler, Effects, EnginePlan, FirstBytes, Inspection,
    Limits, ListenerPlan, Serves, SessionId, StreamHandler, WorkerContext,
};
use plimsoll_testkit::eventually;
use plimsoll_wire::EcnCodepoint;
use plimsoll_wire::tls::ClientHello;
use tokio::io::AsyncWriteExt;

use crate::server::Server;

const PATIENCE: Duration = Duration::from_secs(20);

fn listening(serves: Serves) -> EnginePlan {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    EnginePlan::new(vec![ListenerPlan::new(address, serves)])
}

fn streams<H: StreamHandler + 'static>(make: impl Fn() -> H + Send + Sync + 'static) -> EnginePlan {
    listening(Serves::stream(Arc::new(move |_: &WorkerContext| {
        Rc::new(make())
    })))
}

/// Serves every connection by what it says, which begins with the bytes that were looked at.
fn saying(text: String) -> Inspection {
    Inspection::Decided(Box::new(|mut accepted| {
        Box::pin(async move {
            let peer = accepted.stream.socket().unwrap().peer_addr().unwrap();
            assert_eq!(accepted.connection.peer, peer);
            accepted.stream.write_all(text.as_bytes()).await.unwrap();
            let (mut from, mut to) = tokio::io::split(&mut accepted.stream);
            tokio::io::copy(&mut from, &mut to).await.unwrap();
            accepted.stream.shutdown().await.unwrap();
        })
    }))
}

/// Decides by the name that a [`ClientHello`] asks for, or by its absence.
struct ByName {
    looks: Arc<AtomicUsize>,
    greeting: &'static str,
}

impl StreamHandler for ByName {
    fn inspect(&self, first: FirstBytes<'_>) -> Inspection {
        self.looks.fetch_add(1, Ordering::SeqCst);
        match ClientHello::parse(first.bytes) {
            Ok(Some(hello)) => {
                let name = hello.server_name.unwrap_or_default();
                saying(format!("{} {name} {}:", self.greeting, first.bytes.len()))
            }
            Ok(None) if first.is_final && first.bytes.is_empty() => saying("silent:".to_owned()),
            Ok(None) => Inspection::NeedMore,
            Err(_) => Inspection::Rejected,
        }
    }
}

fn by_name(limits: Limits) -> (Server, Arc<AtomicUsize>) {
    let looks = Arc::<AtomicUsize>::default();
    let counted = Arc::clone(&looks);
    let plan = streams(move || ByName {
        looks: Arc::clone(&counted),
        greeting: "to",
    });
    (Server::start(&EnginePlan { limits, ..plan }), looks)
}

fn hello_for(name: &'static str) -> Vec<u8> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    let name = name.try_into().unwrap();
    let mut client = rustls::ClientConnection::new(Arc::new(config), name).unwrap();
    let mut hello = Vec::new();
    client.write_tls(&mut hello).unwrap();
    hello
}

#[test]
fn a_hello_in_ten_segments_is_seen_whole() {
    let (server, looks) = by_name(Limits::default());
    let hello = hello_for("upstream.example");
    let mut stream = server.connect();
    // It is polled before there is anything.
    eventually(|| looks.load(Ordering::SeqCst) == 1);
    for (number, segment) in hello.chunks(hello.len().div_ceil(10)).enumerate() {
        stream.write_all(segment).unwrap();
        eventually(|| looks.load(Ordering::SeqCst) == number + 2);
    }
    assert_eq!(looks.load(Ordering::SeqCst), 11);
    stream.write_all(b"more").unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let mut received = Vec::new();
    stream.read_to_end(&mut received).unwrap();
    let expected = format!("to upstream.example {}:", hello.len());
    // Then every byte from the first on.
    assert_eq!(received, [expected.as_bytes(), &hello, b"more"].concat());
}

/// Never has enough.
struct Greedy;

impl StreamHandler for Greedy {
    fn inspect(&self, first: FirstBytes<'_>) -> Inspection {
        assert_eq!(first.is_final, first.bytes.len() == 64 * 1024);
        Inspection::NeedMore
    }
}

#[test]
fn what_cannot_be_decided_is_closed_and_counted() {
    let limits = Limits {
        header_timeout: Duration::from_millis(50),
        ..Limits::default()
    };
    let (server, _) = by_name(limits);
    let cut = |cut| server.engine.counters().snapshot().cut(cut);
    // A record of which the rest does not come.
    assert_eq!(server.talk(b"\x16\x03\x01\x02\x00"), "");
    assert_eq!(cut(Cut::HeaderTimeout), 1);
    // No bytes at all may be enough for a decision.
    let mut silent = server.connect();
    let mut expected = [0; 7];
    silent.read_exact(&mut expected).unwrap();
    assert_eq!(&expected, b"silent:");
    // Something else.
    assert_eq!(server.talk(b"GET / HTTP/1.1\r\n"), "");
    assert_eq!(cut(Cut::HeaderTimeout), 1);
    assert_eq!(cut(Cut::FirstBytes), 0);

    let server = Server::start(&streams(|| Greedy));
    let mut stream = server.connect();
    stream.write_all(&vec![0; 64 * 1024]).unwrap();
    assert_eq!(stream.read(&mut [0]).unwrap(), 0);
    assert_eq!(server.engine.counters().snapshot().cut(Cut::FirstBytes), 1);
}

#[test]
fn a_reload_replaces_the_handler_of_streams() {
    let (mut server, looks) = by_name(Limits::default());
    let plan = streams(move || ByName {
        looks: Arc::clone(&looks),
        greeting: "now to",
    });
    server.engine.reload(&plan).unwrap();
    let mut stream = server.connect();
    stream.write_all(&hello_for("a.example")).unwrap();
    let mut expected = [0; 16];
    stream.read_exact(&mut expected).unwrap();
    assert_eq!(&expected, b"now to a.example");
}

/// Forwards the datagrams of each client by a separate session, and closes sessions on request or when idle.
#[derive(Default)]
struct Sessions {
    by_peer: HashMap<SocketAddr, (SessionId, SocketAddr)>,
    next: u64,
}

struct Relay {
    upstream: SocketAddr,
    /// Shared with the handler before and after, if that one goes on.
    sessions: Rc<RefCell<Sessions>>,
    /// Replies come with that in front.
    mark: &'static str,
    idle: Option<Duration>,
    wake: Option<Instant>,
}

impl Relay {
    fn client_of(&self, session: SessionId) -> Option<(SocketAddr, SocketAddr)> {
        let sessions = self.sessions.borrow();
        let mut all = sessions.by_peer.iter();
        all.find_map(|(peer, (known, local))| (*known == session).then_some((*local, *peer)))
    }
}

impl DatagramHandler for Relay {
    fn on_datagram(&mut self, now: Instant, datagram: &Datagram<'_>, effects: &mut Effects) {
        let mut sessions = self.sessions.borrow_mut();
        let known = sessions.by_peer.get(&datagram.peer).copied();
        let (session, _) = known.unwrap_or_else(|| {
            sessions.next += 1;
            let session = SessionId(sessions.next);
            effects.open(session, self.upstream, false);
            let opened = (session, datagram.local);
            sessions.by_peer.insert(datagram.peer, opened);
            opened
        });
        effects.send(session, datagram.ecn, datagram.bytes);
        self.wake = self.idle.map(|idle| now + idle);
    }

    fn on_reply(
        &mut self,
        _: Instant,
        session: SessionId,
        ecn: Option<EcnCodepoint>,
        bytes: &[u8],
        effects: &mut Effects,
    ) {
        if let Some((local, peer)) = self.client_of(session) {
            effects.reply(local, peer, ecn, &[self.mark.as_bytes(), bytes].concat());
        }
    }

    fn on_failure(
        &mut self,
        _: Instant,
        session: SessionId,
        error: io::ErrorKind,
        effects: &mut Effects,
    ) {
        if let Some((local, peer)) = self.client_of(session) {
            effects.reply(local, peer, None, format!("{error:?}").as_bytes());
        }
    }

    fn on_wake(&mut self, _: Instant, effects: &mut Effects) {
        self.wake = None;
        for (peer, (session, local)) in self.sessions.borrow_mut().by_peer.drain() {
            effects.close(session);
            effects.reply(local, peer, None, b"idle");
        }
    }

    fn next_wake(&self) -> Option<Instant> {
        self.wake
    }

    fn keeps(&self, session: SessionId) -> bool {
        self.client_of(session).is_some()
    }
}

/// - `identity`: of the sessions; those of the same one go on after a reload.
fn relay(
    upstream: SocketAddr,
    identity: &'static str,
    mark: &'static str,
    idle: Option<Duration>,
) -> EnginePlan {
    listening(Serves::Datagram(Arc::new(
        move |context: &WorkerContext| {
            Box::new(Relay {
                upstream,
                sessions: context.state(identity, RefCell::default),
                mark,
                idle,
                wake: None,
            })
        },
    )))
}

fn bound() -> UdpSocket {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

fn receive(socket: &UdpSocket) -> (String, SocketAddr) {
    let mut buffer = [0; 2048];
    let (length, from) = socket.recv_from(&mut buffer).unwrap();
    let text = String::from_utf8_lossy(&buffer[..length]).into_owned();
    (text, from)
}

#[test]
fn datagrams_are_relayed_by_sockets_of_the_worker_that_outlive_a_reload() {
    let upstream = bound();
    let address = upstream.local_addr().unwrap();
    let mut server = Server::start(&relay(address, "a", "1 ", None));
    let clients = [bound(), bound()];
    let mut sources = Vec::new();
    for (number, client) in clients.iter().enumerate() {
        let text = format!("hello {number}");
        client.send_to(text.as_bytes(), server.address).unwrap();
        let (received, source) = receive(&upstream);
        assert_eq!(received, text);
        sources.push(source);
    }
    assert_ne!(
        sources[0], sources[1],
        "each client has a socket of its own"
    );
    upstream.send_to(b"reply", sources[1]).unwrap();
    assert_eq!(receive(&clients[1]), ("1 reply".to_owned(), server.address));
    // Another handler that knows the sessions goes on with them.
    server
        .engine
        .reload(&relay(address, "a", "2 ", None))
        .unwrap();
    upstream.send_to(b"late", sources[0]).unwrap();
    assert_eq!(receive(&clients[0]).0, "2 late");
    clients[0].send_to(b"again", server.address).unwrap();
    assert_eq!(receive(&upstream), ("again".to_owned(), sources[0]));
    // One that does not begins anew.
    server
        .engine
        .reload(&relay(address, "b", "3 ", None))
        .unwrap();
    // The old socket is closed; its port is held here, or the system could choose it for the new one.
    let mut held = None;
    eventually(|| {
        held = UdpSocket::bind(sources[0]).ok();
        held.is_some()
    });
    clients[0].send_to(b"anew", server.address).unwrap();
    let (received, source) = receive(&upstream);
    assert_eq!(received, "anew");
    assert_ne!(source, sources[0]);
    upstream.send_to(b"reply", source).unwrap();
    assert_eq!(receive(&clients[0]).0, "3 reply");
}

#[test]
fn a_handler_of_datagrams_is_woken_and_hears_of_failures() {
    let upstream = bound();
    let idle = Some(Duration::from_millis(20));
    let address = upstream.local_addr().unwrap();
    let server = Server::start(&relay(address, "a", "", idle));
    let client = bound();
    for _ in 0..2 {
        client.send_to(b"hello", server.address).unwrap();
        assert_eq!(receive(&upstream).0, "hello");
        assert_eq!(receive(&client).0, "idle");
    }
    // Its port is closed.
    drop(upstream);
    let server = Server::start(&relay(address, "a", "", None));
    client.send_to(b"hello", server.address).unwrap();
    assert_eq!(receive(&client).0, "ConnectionRefused");
}

#[test]
fn sessions_have_a_bound() {
    let upstream = bound();
    let address = upstream.local_addr().unwrap();
    let mut plan = relay(address, "a", "", None);
    plan.limits.connections = 1;
    let server = Server::start(&plan);
    let clients = [bound(), bound()];
    clients[0].send_to(b"one", server.address).unwrap();
    assert_eq!(receive(&upstream).0, "one");
    clients[1].send_to(b"two", server.address).unwrap();
    assert_eq!(receive(&clients[1]).0, "QuotaExceeded");
    let snapshot = server.engine.counters().snapshot();
    assert_eq!(snapshot.cut(Cut::Connections), 1);
}

#[test]
fn replies_leave_from_the_address_that_the_client_sent_to() {
    let mut plan = listening(Serves::Datagram(Arc::new(|_: &WorkerContext| {
        Box::new(EchoHandler)
    })));
    plan.listeners[0].address = "0.0.0.0:0".parse::<SocketAddr>().unwrap().into();
    let server = Server::start(&plan);
    let client = bound();
    // The whole network is this machine; the socket takes datagrams from that address alone.
    let address = SocketAddr::from(([127, 0, 0, 9], server.address.port()));
    client.connect(address).unwrap();
    client.send(b"hello").unwrap();
    assert_eq!(receive(&client), ("hello".to_owned(), address));
}
