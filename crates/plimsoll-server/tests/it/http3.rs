//! HTTP/3 as a client sees it.

use std::future::poll_fn;
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, Bytes};
use h3::client::SendRequest;
use h3::error::{Code, ConnectionError, StreamError};
use h3_quinn::OpenStreams;
use http::{HeaderMap, Request, StatusCode};
use plimsoll_server::{
    Action, Answer, Cut, Delay, Echo, EnginePlan, Http3Limits, Http3Plan, Limits, Response, Serves,
};
use plimsoll_testkit::{Authority, eventually};
use plimsoll_wire::h1::{RequestError, RequestLimits};
use quinn::crypto::rustls::QuicClientConfig;
use quinn::{ConnectionError as Quic, Endpoint, TransportConfig, VarInt};

use crate::server::{Server, plan, read_all, text};

pub(crate) fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(async {
            tokio::time::timeout(Duration::from_secs(20), future)
                .await
                .unwrap()
        })
}

/// A server of `localhost`, and who vouches for it.
pub(crate) fn start(
    limits: Limits,
    threads: usize,
    make: impl Fn() -> Rc<dyn Action> + Send + Sync + 'static,
) -> (Server, Authority) {
    let authority = Authority::new();
    let server = Server::start(&http3_plan(&authority, limits, threads, make));
    (server, authority)
}

fn http3_plan(
    authority: &Authority,
    limits: Limits,
    threads: usize,
    make: impl Fn() -> Rc<dyn Action> + Send + Sync + 'static,
) -> EnginePlan {
    let mut plan = plan(limits, make);
    plan.threads = threads;
    let config = authority.issue(&["localhost"]).server_config();
    if let Serves::Http { tls, http3, .. } = &mut plan.listeners[0].serves {
        *tls = Some(Arc::new(config));
        *http3 = Some(Http3Plan::default());
    }
    plan
}

pub(crate) fn endpoint(authority: &Authority) -> Endpoint {
    endpoint_with(authority, TransportConfig::default())
}

pub(crate) fn endpoint_with(authority: &Authority, transport: TransportConfig) -> Endpoint {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(authority.der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    tls.alpn_protocols = vec![b"h3".to_vec()];
    let crypto = QuicClientConfig::try_from(tls).unwrap();
    let mut endpoint = Endpoint::client((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
    let mut config = quinn::ClientConfig::new(Arc::new(crypto));
    config.transport_config(Arc::new(transport));
    endpoint.set_default_client_config(config);
    endpoint
}

pub(crate) async fn open(authority: &Authority, address: SocketAddr) -> quinn::Connection {
    let endpoint = endpoint(authority);
    endpoint
        .connect(address, "localhost")
        .unwrap()
        .await
        .unwrap()
}

pub(crate) type Requests = SendRequest<OpenStreams, Bytes>;

pub(crate) async fn speak(
    quic: quinn::Connection,
) -> (Requests, tokio::task::JoinHandle<ConnectionError>) {
    let transport = h3_quinn::Connection::new(quic);
    let (mut connection, requests) = h3::client::new(transport).await.unwrap();
    let driver = tokio::spawn(async move { poll_fn(|cx| connection.poll_close(cx)).await });
    (requests, driver)
}

/// Head, content and trailer fields of one exchange.
pub(crate) async fn exchange(
    requests: &mut Requests,
    request: Request<()>,
    content: &[u8],
) -> Result<(http::response::Parts, Vec<u8>, Option<HeaderMap>), StreamError> {
    let mut stream = requests.send_request(request).await?;
    if !content.is_empty() {
        stream.send_data(Bytes::copy_from_slice(content)).await?;
    }
    stream.finish().await?;
    let (parts, ()) = stream.recv_response().await?.into_parts();
    let mut received = Vec::new();
    while let Some(mut piece) = stream.recv_data().await? {
        received.extend_from_slice(&piece.copy_to_bytes(piece.remaining()));
    }
    let trailers = stream.recv_trailers().await?;
    Ok((parts, received, trailers))
}

pub(crate) fn get(path: &str) -> Request<()> {
    Request::get(format!("https://localhost{path}"))
        .body(())
        .unwrap()
}

#[test]
fn requests_are_answered_and_counted() {
    let (server, authority) = start(Limits::default(), 1, || text("hello"));
    run(async {
        let endpoint = endpoint(&authority);
        let quic = endpoint.connect(server.address, "localhost").unwrap();
        let quic = quic.await.unwrap();
        let (mut requests, _driver) = speak(quic.clone()).await;
        for _ in 0..3 {
            let (parts, body, _) = exchange(&mut requests, get("/"), b"").await.unwrap();
            assert_eq!(parts.status, StatusCode::OK);
            assert_eq!(parts.headers["content-length"], "5");
            assert!(parts.headers.contains_key("date"));
            assert_eq!(body, b"hello");
        }
        let head = Request::head("https://localhost/").body(()).unwrap();
        let (parts, body, _) = exchange(&mut requests, head, b"").await.unwrap();
        assert_eq!((parts.status, body.len()), (StatusCode::OK, 0));
        let post = Request::post("https://localhost/").body(()).unwrap();
        let (_, body, _) = exchange(&mut requests, post, b"unread").await.unwrap();
        assert_eq!(body, b"hello");
        quic.close(VarInt::from_u32(0x100), b"");
        endpoint.wait_idle().await;
    });
    let snapshot = server.engine.counters().snapshot();
    assert_eq!(snapshot.requests[3][1], 5);
    eventually(|| server.engine.counters().open() == 0);
    let snapshot = server.engine.counters().snapshot();
    assert_eq!(snapshot.cut.iter().sum::<u64>(), 0, "{:?}", snapshot.cut);
}

#[test]
fn content_goes_both_ways_and_waits_for_neither_side() {
    let (server, authority) = start(Limits::default(), 1, || {
        Rc::new(Delay::new(Duration::from_millis(2), Rc::new(Echo)))
    });
    run(async {
        let quic = open(&authority, server.address).await;
        let (mut requests, _driver) = speak(quic).await;
        let post = Request::post("https://localhost/").body(()).unwrap();
        let stream = requests.send_request(post).await.unwrap();
        // More than lies in any window, and only read once all is sent.
        let (mut send, mut receive) = stream.split();
        let content: Vec<u8> = (0..=250).cycle().take(8_000_000).collect();
        let bytes = Bytes::from(content.clone());
        let sending = async move {
            send.send_data(bytes).await.unwrap();
            let mut trailers = HeaderMap::new();
            trailers.insert("x-end", "yes".parse().unwrap());
            send.send_trailers(trailers).await.unwrap();
            send.finish().await.unwrap();
        };
        let receiving = async {
            let response = receive.recv_response().await.unwrap();
            assert_eq!(response.status(), StatusCode::OK);
            let mut received = Vec::new();
            while let Some(mut piece) = receive.recv_data().await.unwrap() {
                received.extend_from_slice(&piece.copy_to_bytes(piece.remaining()));
            }
            received
        };
        let ((), received) = tokio::join!(sending, receiving);
        assert!(received == content);
    });
}

#[test]
fn clients_of_tcp_are_informed() {
    let (server, authority) = start(Limits::default(), 1, || text("hello"));
    let mut roots = rustls::RootCertStore::empty();
    roots.add(authority.der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let client = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = "localhost".try_into().unwrap();
    let tls = rustls::ClientConnection::new(Arc::new(client), name).unwrap();
    let mut stream = rustls::StreamOwned::new(tls, server.connect());
    stream
        .write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
        .unwrap();
    let mut answer = Vec::new();
    std::io::Read::read_to_end(&mut stream, &mut answer).unwrap();
    let answer = String::from_utf8(answer).unwrap();
    let expected = format!(
        "\r\nalt-svc: h3=\":{}\"; ma=86400\r\n",
        server.address.port()
    );
    assert!(answer.contains(&expected), "{answer}");
    // In the clear, the answer could come from anywhere on the way.
    let clear = Server::hello();
    let mut stream = clear.connect();
    stream
        .write_all(b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
        .unwrap();
    assert!(!read_all(&mut stream).contains("alt-svc"));
}

#[test]
fn a_client_may_come_from_another_address() {
    let (server, authority) = start(Limits::default(), 4, || text("hello"));
    run(async {
        // By the addresses of both ends, three of four would reach another worker.
        for _ in 0..8 {
            let endpoint = endpoint(&authority);
            let quic = endpoint.connect(server.address, "localhost").unwrap();
            let (mut requests, _driver) = speak(quic.await.unwrap()).await;
            let (parts, ..) = exchange(&mut requests, get("/"), b"").await.unwrap();
            assert_eq!(parts.status, StatusCode::OK);
            let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
            endpoint.rebind(socket).unwrap();
            let (parts, ..) = exchange(&mut requests, get("/"), b"").await.unwrap();
            assert_eq!(parts.status, StatusCode::OK);
        }
    });
    assert_eq!(server.engine.counters().snapshot().accepted, 8);
}

/// Answers later, or panics.
struct Moody;

impl Action for Moody {
    fn handle(&self, request: &plimsoll_server::Request<'_>) -> Answer {
        assert_ne!(request.path, "/panic", "a mistake in an action");
        Answer::later(async {
            tokio::time::sleep(Duration::from_millis(20)).await;
            Response::text(StatusCode::OK, "later")
        })
    }
}

#[test]
fn a_panic_ends_its_stream_and_nothing_else() {
    let (server, authority) = start(Limits::default(), 1, || Rc::new(Moody));
    run(async {
        let quic = open(&authority, server.address).await;
        let (mut requests, _driver) = speak(quic).await;
        let error = exchange(&mut requests, get("/panic"), b"").await;
        let error = error.map(|_| ()).unwrap_err();
        let StreamError::RemoteTerminate { code, .. } = error else {
            panic!("{error}");
        };
        assert_eq!(code, Code::H3_INTERNAL_ERROR);
        let (_, body, _) = exchange(&mut requests, get("/"), b"").await.unwrap();
        assert_eq!(body, b"later");
    });
    assert_eq!(server.engine.counters().snapshot().panics, 1);
}

#[test]
fn a_drain_answers_what_is_under_way_and_rejects_the_rest() {
    let (server, authority) = start(Limits::default(), 1, || Rc::new(Moody));
    let counters = Arc::clone(server.engine.counters());
    run(async {
        let quic = open(&authority, server.address).await;
        let (mut requests, driver) = speak(quic.clone()).await;
        let (_, body, _) = exchange(&mut requests, get("/"), b"").await.unwrap();
        assert_eq!(body, b"later");
        let mut under_way = requests.send_request(get("/")).await.unwrap();
        under_way.finish().await.unwrap();
        eventually(|| counters.open() == 1);
        let draining = std::thread::spawn(move || server.engine.drain(Duration::from_secs(20)));
        let response = under_way.recv_response().await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        let mut body = under_way.recv_data().await.unwrap().unwrap();
        assert_eq!(body.copy_to_bytes(body.remaining()), "later");
        drop(under_way);
        // The end is announced before it comes.
        let closed = driver.await.unwrap();
        assert!(closed.is_h3_no_error(), "{closed}");
        let drained = tokio::task::spawn_blocking(|| draining.join().unwrap());
        assert_eq!(drained.await.unwrap().cut_off, 0);
    });
}

/// No client has to wait for its idle timeout to learn that the server is gone.
#[test]
fn connections_are_closed_without_an_error_when_the_server_stops() {
    let (server, authority) = start(Limits::default(), 1, || {
        Rc::new(Delay::new(Duration::from_mins(10), text("late")))
    });
    let counters = Arc::clone(server.engine.counters());
    run(async {
        let idle = open(&authority, server.address).await;
        let busy = open(&authority, server.address).await;
        let (mut requests, _driver) = speak(busy.clone()).await;
        let mut under_way = requests.send_request(get("/")).await.unwrap();
        under_way.finish().await.unwrap();
        eventually(|| counters.open() == 2);
        let stopping = std::thread::spawn(move || server.engine.drain(Duration::ZERO));
        for quic in [idle, busy] {
            match quic.closed().await {
                Quic::ApplicationClosed(close) => {
                    let expected = VarInt::from_u32(0x100);
                    assert_eq!(close.error_code, expected, "H3_NO_ERROR");
                }
                other => panic!("{other}"),
            }
        }
        let stopped = tokio::task::spawn_blocking(|| stopping.join().unwrap());
        stopped.await.unwrap();
    });
}

/// The action reads nothing, or too much is announced.
#[test]
fn an_early_response_comes_while_the_client_still_sends() {
    let limits = Limits {
        request: RequestLimits {
            body_bytes: 1000,
            ..RequestLimits::default()
        },
        ..Limits::default()
    };
    for (limits, announced, expected) in
        [(Limits::default(), None, 200), (limits, Some(1 << 30), 413)]
    {
        let (server, authority) = start(limits, 1, || text("early"));
        run(async {
            let quic = open(&authority, server.address).await;
            let (mut requests, _driver) = speak(quic).await;
            let mut post = Request::post("https://localhost/");
            if let Some(length) = announced {
                post = post.header("content-length", length);
            }
            let stream = requests.send_request(post.body(()).unwrap()).await.unwrap();
            let (mut send, mut receive) = stream.split();
            // Until the server wants no more.
            let sending = async move {
                let piece = Bytes::from_static(&[b'x'; 10_000]);
                while send.send_data(piece.clone()).await.is_ok() {}
            };
            let receiving = async {
                let response = receive.recv_response().await.unwrap();
                let mut received = Vec::new();
                while let Some(mut piece) = receive.recv_data().await.unwrap() {
                    received.extend_from_slice(&piece.copy_to_bytes(piece.remaining()));
                }
                (response.status().as_u16(), received.is_empty())
            };
            let ((), (status, is_empty)) = tokio::join!(sending, receiving);
            assert_eq!((status, is_empty), (expected, false));
        });
    }
}

#[test]
fn a_reload_reaches_open_connections_and_may_end_http3() {
    let (mut server, authority) = start(Limits::default(), 1, || text("old"));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let address = server.address;
    let quic = runtime.block_on(open(&authority, address));
    let (mut requests, _driver) = runtime.block_on(speak(quic));
    let mut ask = || {
        let answer = runtime.block_on(exchange(&mut requests, get("/"), b""));
        answer.map(|(_, body, _)| String::from_utf8(body).unwrap())
    };
    assert_eq!(ask().unwrap(), "old");
    let new = http3_plan(&authority, Limits::default(), 1, || text("new"));
    server.engine.reload(&new).unwrap();
    assert_eq!(ask().unwrap(), "new");
    let mut without = new;
    if let Serves::Http { http3, .. } = &mut without.listeners[0].serves {
        *http3 = None;
    }
    server.engine.reload(&without).unwrap();
    // The connection is served to its end, but there are no new ones.
    assert_eq!(ask().unwrap(), "new");
    let refused = runtime.block_on(async {
        let endpoint = endpoint(&authority);
        endpoint.connect(address, "localhost").unwrap().await
    });
    assert!(
        matches!(refused, Err(Quic::ConnectionClosed(_))),
        "{refused:?}"
    );
}

#[test]
fn mistakes_are_refused_as_over_http1() {
    let (server, authority) = start(Limits::default(), 1, || text("hello"));
    run(async {
        let quic = open(&authority, server.address).await;
        let (mut requests, _driver) = speak(quic.clone()).await;
        let mut request = get("/");
        for number in 0..101 {
            let name = http::HeaderName::try_from(format!("x-{number}")).unwrap();
            request
                .headers_mut()
                .insert(name, http::HeaderValue::from_static("y"));
        }
        let (parts, ..) = exchange(&mut requests, request, b"").await.unwrap();
        assert_eq!(parts.status.as_u16(), 431);
        // A thousand references to one field, each of which counts for 36 bytes.
        let (mut send, mut receive) = quic.open_bi().await.unwrap();
        send.write_all(&[1, 0x43, 0xea, 0, 0]).await.unwrap();
        send.write_all(&[0xc0 | 2; 1000]).await.unwrap();
        send.finish().unwrap();
        let answer = receive.read_to_end(1000).await.unwrap();
        // HEADERS whose block ends in `431` by the code of Huffman (RFC 7541, appendix B).
        let (head, status) = ([1, 8], [0x69, 0x90, 0xff]);
        let is_refused = answer.starts_with(&head) && answer.ends_with(&status);
        assert!(is_refused, "{answer:?}");
        for (name, value) in [
            ("connection", "close"),
            ("transfer-encoding", "chunked"),
            ("content-length", "1, 1"),
            ("content-length", "7"),
        ] {
            let mut request = get("/");
            request
                .headers_mut()
                .insert(name, http::HeaderValue::from_static(value));
            let answer = exchange(&mut requests, request, b"").await;
            // A length that is not kept is known only to those who read the content.
            assert_eq!(answer.is_ok(), value == "7", "{name}: {value}");
        }
    });
    let snapshot = server.engine.counters().snapshot();
    assert_eq!(snapshot.refused(RequestError::TooManyFields), 1);
    assert_eq!(snapshot.refused(RequestError::HeadTooLarge), 1);
    assert_eq!(snapshot.http3_resets[1], 3);
}

/// A HEADERS frame for `POST /` at `localhost`.
fn head() -> Vec<u8> {
    // :method POST, :scheme https and :path / are 20, 23 and 1 of the static table; :authority is a literal.
    let mut block = vec![0, 0, 0xd4, 0xd7, 0xc1, 0x50, 9];
    block.extend_from_slice(b"localhost");
    let mut frame = vec![1, u8::try_from(block.len()).unwrap()];
    frame.extend_from_slice(&block);
    frame
}

/// Sends `bytes` as a request, and waits until the server closes the connection.
async fn closes_after(authority: &Authority, address: SocketAddr, bytes: &[u8]) -> VarInt {
    let quic = open(authority, address).await;
    let mut control = quic.open_uni().await.unwrap();
    control.write_all(&[0, 4, 0]).await.unwrap();
    let (mut send, _receive) = quic.open_bi().await.unwrap();
    send.write_all(bytes).await.unwrap();
    send.finish().unwrap();
    match quic.closed().await {
        Quic::ApplicationClosed(close) => close.error_code,
        other => panic!("{other}"),
    }
}

#[test]
fn what_breaks_the_rules_ends_the_connection() {
    let (server, authority) = start(Limits::default(), 1, || Rc::new(Echo));
    let code = |code: Code| VarInt::from_u64(code.value()).unwrap();
    run(async {
        let frames = |content: &[u8]| [&head(), content].concat();
        for (bytes, expected) in [
            // Content that ends within its frame.
            (frames(&[0, 10, b'x']), Code::H3_FRAME_ERROR),
            (frames(&[0, 10]), Code::H3_FRAME_ERROR),
            (vec![0, 1, b'x'], Code::H3_FRAME_UNEXPECTED),
            // A head of a gigabyte.
            (
                vec![1, 0xc0, 0, 0, 0, 0x40, 0, 0, 0],
                Code::H3_EXCESSIVE_LOAD,
            ),
            // Frames that bring nothing.
            (frames(&[0, 0].repeat(200)), Code::H3_EXCESSIVE_LOAD),
        ] {
            let closed = closes_after(&authority, server.address, &bytes).await;
            assert_eq!(closed, code(expected), "{bytes:?}");
        }
    });
    eventually(|| server.engine.counters().open() == 0);
    let snapshot = server.engine.counters().snapshot();
    assert_eq!(snapshot.cut(Cut::Http3), 3, "{:?}", snapshot.cut);
    assert_eq!(snapshot.cut(Cut::Http3HeaderList), 1);
    assert_eq!(snapshot.cut(Cut::Http3EmptyFrames), 1);
    assert_eq!(snapshot.panics, 0);
}

/// A HEADERS frame of literal fields with literal names.
fn literals(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut block = vec![0, 0];
    for (name, value) in fields {
        // Lengths of names up to 6 fit their prefix of three bits.
        let length = u8::try_from(name.len()).unwrap();
        match length {
            0..7 => block.push(0x20 | length),
            _ => block.extend([0x27, length - 7]),
        }
        block.extend_from_slice(name.as_bytes());
        block.push(u8::try_from(value.len()).unwrap());
        block.extend_from_slice(value.as_bytes());
    }
    let mut frame = vec![1, 0x40, u8::try_from(block.len()).unwrap()];
    frame.extend_from_slice(&block);
    frame
}

/// A malformed message is an error of its stream, and of nothing else (RFC 9114, section 4.1.2).
#[test]
fn malformed_pseudo_fields_are_errors_of_their_stream() {
    let (server, authority) = start(Limits::default(), 1, || Rc::new(Echo));
    let good = [
        (":method", "POST"),
        (":scheme", "https"),
        (":authority", "localhost"),
        (":path", "/"),
    ];
    let with = |more: &[(&str, &str)]| literals(&[&good[..], more].concat());
    let content = [0, 1, b'x'];
    let code = VarInt::from_u64(Code::H3_MESSAGE_ERROR.value()).unwrap();
    run(async {
        let quic = open(&authority, server.address).await;
        let mut control = quic.open_uni().await.unwrap();
        control.write_all(&[0, 4, 0]).await.unwrap();
        for (name, bytes, is_refused) in [
            (
                "good",
                [with(&[]), content.to_vec(), literals(&[("a", "b")])].concat(),
                false,
            ),
            ("second path", with(&[(":path", "/other")]), true),
            ("second method", with(&[(":method", "GET")]), true),
            ("of responses", with(&[(":status", "200")]), true),
            ("unknown", with(&[(":x", "y")]), true),
            (
                "behind others",
                literals(&[
                    (":method", "GET"),
                    ("a", "b"),
                    (":scheme", "https"),
                    (":authority", "localhost"),
                    (":path", "/"),
                ]),
                true,
            ),
            (
                "unknown behind others",
                with(&[("a", "b"), (":x", "y")]),
                true,
            ),
            (
                "fragment",
                literals(&[
                    (":method", "GET"),
                    (":scheme", "https"),
                    (":authority", "localhost"),
                    (":path", "/#a"),
                ]),
                true,
            ),
            (
                "trailers",
                [
                    with(&[]),
                    content.to_vec(),
                    literals(&[(":path", "/other")]),
                ]
                .concat(),
                true,
            ),
        ] {
            let (mut send, mut receive) = quic.open_bi().await.unwrap();
            send.write_all(&bytes).await.ok();
            send.finish().ok();
            match receive.read_to_end(10_000).await {
                Ok(response) => assert!(!is_refused && !response.is_empty(), "{name}"),
                Err(quinn::ReadToEndError::Read(quinn::ReadError::Reset(found))) => {
                    assert!(is_refused && found == code, "{name}: {found}");
                }
                Err(other) => panic!("{name}: {other}"),
            }
        }
        quic.close(0_u32.into(), b"");
    });
    assert_eq!(server.engine.counters().snapshot().panics, 0);
}

#[test]
fn requests_that_are_taken_back_are_counted() {
    let limits = Limits {
        http3: Http3Limits {
            resets: 20,
            ..Http3Limits::default()
        },
        ..Limits::default()
    };
    let (server, authority) = start(limits, 1, || Rc::new(Moody));
    run(async {
        let quic = open(&authority, server.address).await;
        let mut control = quic.open_uni().await.unwrap();
        control.write_all(&[0, 4, 0]).await.unwrap();
        while let Ok((mut send, mut receive)) = quic.open_bi().await {
            let sent = send.write_all(&head()).await;
            let cancelled = VarInt::from_u32(0x10c);
            send.reset(cancelled).ok();
            receive.stop(cancelled).ok();
            if sent.is_err() {
                break;
            }
        }
        let Quic::ApplicationClosed(close) = quic.closed().await else {
            panic!("the server did not close it");
        };
        assert_eq!(close.error_code.into_inner(), 0x107);
    });
    eventually(|| server.engine.counters().open() == 0);
    let snapshot = server.engine.counters().snapshot();
    assert_eq!(snapshot.cut(Cut::Http3Resets), 1);
    assert!(snapshot.http3_resets[0] > 20);
}

#[test]
fn clients_beyond_the_usual_prove_their_address() {
    let limits = Limits {
        http3: Http3Limits {
            unvalidated: 0,
            ..Http3Limits::default()
        },
        ..Limits::default()
    };
    let (server, authority) = start(limits, 2, || text("hello"));
    run(async {
        let quic = open(&authority, server.address).await;
        let (mut requests, _driver) = speak(quic).await;
        let (parts, ..) = exchange(&mut requests, get("/"), b"").await.unwrap();
        assert_eq!(parts.status, StatusCode::OK);
    });
}
