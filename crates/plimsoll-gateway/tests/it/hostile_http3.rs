//! Servers that attack the gateway over HTTP/3.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use plimsoll_testkit::http::{connect, get};
use plimsoll_testkit::{Authority, Http3Answer, Http3Origin, Leaf};
use quinn::crypto::rustls::QuicServerConfig;
use quinn::{RecvStream, SendStream, TransportConfig};

use crate::hostile::{MOST_HELD, MOST_READ, failures, gateway_to, peak};

/// Frames (RFC 9114, section 7.2) and a reserved one (section 7.2.8).
const DATA: u8 = 0x0;
const HEADERS: u8 = 0x1;
const RESERVED: u8 = 0x21;

/// The receive buffers of quinn for a socket: 32 batches of 64 datagrams of 1472 bytes, and more.
const ENDPOINT: u64 = 4 << 20;

/// Field sections of QPACK (RFC 9204): the prefix, and an entry of the static table.
const OK: &[u8] = &[0, 0, 0xd9];
const EARLY_HINTS: &[u8] = &[0, 0, 0xd8];

/// A length that is never reached: 2^62 - 1.
const ENDLESS: [u8; 8] = [0xff; 8];

fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
    let length = u8::try_from(payload.len())
        .ok()
        .filter(|it| *it < 64)
        .unwrap();
    [&[kind, length], payload].concat()
}

/// A literal field with a literal name.
fn literal(name: &str, value: &[u8]) -> Vec<u8> {
    let mut field = vec![0x20 | u8::try_from(name.len()).ok().filter(|it| *it < 7).unwrap()];
    field.extend(name.as_bytes());
    field.push(
        u8::try_from(value.len())
            .ok()
            .filter(|it| *it < 127)
            .unwrap(),
    );
    field.extend(value);
    field
}

/// A server that responds to each request with `first`, and then with `then` until the gateway gives up.
struct Hostile {
    address: SocketAddr,
    taken: Arc<AtomicU64>,
    _runtime: tokio::runtime::Runtime,
}

impl Hostile {
    fn new(first: Vec<u8>, then: Vec<u8>) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let taken = Arc::new(AtomicU64::new(0));
        let endpoint = {
            let _entered = runtime.enter();
            let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
            quinn::Endpoint::server(config(&leaf()), any).unwrap()
        };
        let address = endpoint.local_addr().unwrap();
        let counted = Arc::clone(&taken);
        runtime.spawn(async move {
            while let Some(incoming) = endpoint.accept().await {
                let (first, then) = (first.clone(), then.clone());
                let counted = Arc::clone(&counted);
                tokio::spawn(async move {
                    let Ok(connection) = incoming.await else {
                        return;
                    };
                    // The control stream with empty SETTINGS.
                    let mut control = connection.open_uni().await.unwrap();
                    control.write_all(&[0, 4, 0]).await.ok();
                    while let Ok((send, receive)) = connection.accept_bi().await {
                        tokio::spawn(read(receive));
                        let counted = Arc::clone(&counted);
                        tokio::spawn(respond(send, first.clone(), then.clone(), counted));
                    }
                });
            }
        });
        Self {
            address,
            taken,
            _runtime: runtime,
        }
    }

    fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }
}

fn leaf() -> Leaf {
    Authority::new().issue(&["localhost"])
}

fn config(leaf: &Leaf) -> quinn::ServerConfig {
    let mut tls = leaf.server_config();
    tls.alpn_protocols = vec![b"h3".to_vec()];
    let crypto = QuicServerConfig::try_from(tls).unwrap();
    let mut config = quinn::ServerConfig::with_crypto(Arc::new(crypto));
    config.transport_config(Arc::new(TransportConfig::default()));
    config
}

async fn read(mut receive: RecvStream) {
    let mut piece = [0; 4096];
    while let Ok(Some(_)) = receive.read(&mut piece).await {}
}

async fn respond(mut send: SendStream, first: Vec<u8>, then: Vec<u8>, taken: Arc<AtomicU64>) {
    if send.write_all(&first).await.is_err() {
        return;
    }
    if then.is_empty() {
        send.finish().ok();
        send.stopped().await.ok();
        return;
    }
    while send.write_all(&then).await.is_ok() {
        taken.fetch_add(then.len() as u64, Ordering::Relaxed);
    }
}

const KEYS: &str =
    ", protocol = \"http3\", tls = { insecure = true }, retry = false, response_timeout = \"20s\"";

/// All of the response to `GET /bad`, interim ones too.
fn received(address: SocketAddr) -> String {
    let mut stream = connect(address);
    stream
        .write_all(b"GET /bad HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        .unwrap();
    let mut all = Vec::new();
    stream.read_to_end(&mut all).ok();
    String::from_utf8_lossy(&all).into_owned()
}

#[test]
fn headers_interim_responses_and_unknown_frames_without_end_are_cut_off() {
    let endless_head = [&[HEADERS][..], &ENDLESS, OK].concat();
    let interim = frame(HEADERS, EARLY_HINTS);
    let unknown = frame(RESERVED, b"");
    for (name, first, then) in [
        ("head", endless_head, literal("x", &[b'a'; 100]).repeat(100)),
        ("interim", interim.clone(), interim.repeat(100)),
        ("unknown", unknown.clone(), unknown.repeat(1000)),
    ] {
        let hostile = Hostile::new(first, then);
        let (gateway, _good) = gateway_to(&format!("https://{}", hostile.address), KEYS);
        let text = received(gateway.address());
        assert!(text.contains("HTTP/1.1 502"), "{name}: {text}");
        assert!(hostile.taken() < MOST_READ, "{name}: {}", hostile.taken());
        let peak = peak(&gateway);
        assert!(peak < MOST_HELD + ENDPOINT, "{name}: {peak}");
        assert!(failures(&gateway) >= 1, "{name}");
        assert_eq!(get(gateway.address(), "/").text(), "hello");
    }
}

#[test]
fn trailers_without_end_break_the_response_off() {
    let first = [
        &frame(HEADERS, OK)[..],
        &frame(DATA, b"some"),
        &[HEADERS],
        &ENDLESS,
        &[0, 0],
    ]
    .concat();
    let hostile = Hostile::new(first, literal("x", &[b'a'; 100]).repeat(100));
    let (gateway, _good) = gateway_to(&format!("https://{}", hostile.address), KEYS);
    let text = received(gateway.address());
    assert!(
        text.starts_with("HTTP/1.1 502") || !text.ends_with("0\r\n\r\n"),
        "{text:?}"
    );
    assert!(hostile.taken() < MOST_READ, "{}", hostile.taken());
    let peak = peak(&gateway);
    assert!(peak < MOST_HELD + ENDPOINT, "{peak}");
    assert_eq!(get(gateway.address(), "/").text(), "hello");
}

#[test]
fn fields_that_would_split_a_response_are_not_sent_on() {
    for (name, value) in [
        ("x", &b"a\r\nset-cookie: b"[..]),
        ("x", b"a\nb"),
        ("x", b"a\0b"),
        ("x y", b"a"),
        ("X", b"a"),
    ] {
        let block = [OK, &literal(name, value)].concat();
        let hostile = Hostile::new(frame(HEADERS, &block), Vec::new());
        let (gateway, _good) = gateway_to(&format!("https://{}", hostile.address), KEYS);
        let text = received(gateway.address());
        assert!(text.starts_with("HTTP/1.1 502"), "{name}: {text:?}");
        assert_eq!(get(gateway.address(), "/").text(), "hello");
    }
}

#[test]
fn a_response_before_the_end_of_its_request_is_sent_on() {
    let status = [0, 0, 0x5f, 0x09, 3, b'4', b'1', b'3'];
    let hostile = Hostile::new(frame(HEADERS, &status), Vec::new());
    let (gateway, _good) = gateway_to(&format!("https://{}", hostile.address), KEYS);
    let mut stream = connect(gateway.address());
    let head = "POST /bad HTTP/1.1\r\nHost: a\r\nContent-Length: 67108864\r\n\r\n";
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
fn storms_of_resets_goaways_and_ends_of_connections_cost_neither_retries_without_end_nor_the_healthy_server()
 {
    for answer in [
        Http3Answer::Reset(0x102),
        Http3Answer::Reset(0x10b),
        Http3Answer::Close,
        // Its own stream is among those that GOAWAY rejects, so the response counts only if it comes first.
        Http3Answer::GoAway,
    ] {
        let storm = answer.clone();
        let origin = Http3Origin::builder(leaf().server_config())
            .answer(move |_, _| storm.clone())
            .start();
        let keys = ", protocol = \"http3\", tls = { insecure = true }";
        let (gateway, _good) = gateway_to(origin.url("").trim_end_matches('/'), keys);
        for _ in 0..30 {
            let status = get(gateway.address(), "/bad").status;
            let may_arrive = answer == Http3Answer::GoAway && status == 200;
            assert!(status == 502 || may_arrive, "{answer:?}: {status}");
        }
        // The budget: a fifth of the requests, and three a second.
        let requests = origin.requests();
        assert!(requests <= 90, "{answer:?}: {requests}");
        if answer != Http3Answer::GoAway {
            assert!(failures(&gateway) >= 30, "{answer:?}");
        }
        assert_eq!(get(gateway.address(), "/").text(), "hello");
    }
}
