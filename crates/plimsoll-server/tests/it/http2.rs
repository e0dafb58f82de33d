//! HTTP/2 as a client sees it, in the clear and over TLS.

use std::io::{Read as _, Write as _};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use h2::client::SendRequest;
use http::{Request, StatusCode};
use plimsoll_server::{Delay, Echo, Limits, Redirect, Serves, WorkerContext};
use plimsoll_testkit::{Authority, frames};
use plimsoll_wire::h1::{RequestError, RequestLimits};
use tokio::net::TcpStream;

use crate::server::{Server, plan, text};

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

pub(crate) async fn connect(address: SocketAddr) -> SendRequest<Bytes> {
    let stream = TcpStream::connect(address).await.unwrap();
    let (requests, connection) = h2::client::handshake(stream).await.unwrap();
    tokio::spawn(async move { drop(connection.await) });
    requests
}

/// Status and content of one exchange.
async fn exchange(
    requests: &SendRequest<Bytes>,
    request: Request<()>,
    content: Option<Bytes>,
) -> (http::response::Parts, Vec<u8>) {
    let mut requests = requests.clone().ready().await.unwrap();
    let (response, mut stream) = requests.send_request(request, content.is_none()).unwrap();
    if let Some(content) = content {
        stream.send_data(content, true).unwrap();
    }
    let (parts, mut body) = response.await.unwrap().into_parts();
    let mut received = Vec::new();
    while let Some(piece) = body.data().await {
        let piece = piece.unwrap();
        body.flow_control().release_capacity(piece.len()).unwrap();
        received.extend_from_slice(&piece);
    }
    (parts, received)
}

fn get(path: &str) -> Request<()> {
    Request::get(format!("http://a{path}")).body(()).unwrap()
}

#[test]
fn the_same_port_speaks_it_by_prior_knowledge() {
    let server = Server::hello();
    run(async {
        let requests = connect(server.address).await;
        for _ in 0..3 {
            let (parts, body) = exchange(&requests, get("/"), None).await;
            assert_eq!(parts.status, StatusCode::OK);
            assert_eq!(parts.headers["content-length"], "5");
            assert!(parts.headers.contains_key("date"));
            assert_eq!(body, b"hello");
        }
        let head = Request::head("http://a/").body(()).unwrap();
        let (parts, body) = exchange(&requests, head, None).await;
        assert_eq!((parts.status, body.len()), (StatusCode::OK, 0));
        let post = Request::post("http://a/").body(()).unwrap();
        let unread = Some(Bytes::from_static(b"unread"));
        assert_eq!(exchange(&requests, post, unread).await.1, b"hello");
    });
    assert!(
        server
            .talk("GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
            .ends_with("hello")
    );
    let snapshot = server.engine.counters().snapshot();
    assert_eq!(snapshot.requests[2][1], 5);
    assert_eq!(snapshot.requests[1][1], 1);
}

#[test]
fn answers_that_take_time_and_content_in_pieces() {
    let server = Server::start(&plan(Limits::default(), || {
        Rc::new(Delay::new(Duration::from_millis(2), Rc::new(Echo)))
    }));
    run(async {
        let requests = connect(server.address).await;
        let content = Bytes::from(vec![b'x'; 300_000]);
        let post = Request::post("http://a/").body(()).unwrap();
        let (parts, body) = exchange(&requests, post, Some(content.clone())).await;
        assert_eq!(parts.status, StatusCode::OK);
        assert!(body == content);
    });
}

#[test]
fn mistakes_are_refused_as_over_http1() {
    let server = Server::hello();
    run(async {
        let requests = connect(server.address).await;
        let request = Request::get("http://a/")
            .header("host", "b")
            .body(())
            .unwrap();
        let (parts, _) = exchange(&requests, request, None).await;
        assert_eq!(parts.status, StatusCode::BAD_REQUEST);
        let mut request = get("/");
        let value = http::HeaderValue::from_static(" 1");
        request.headers_mut().insert("x-debug", value);
        let (parts, _) = exchange(&requests, request, None).await;
        assert_eq!(parts.status, StatusCode::BAD_REQUEST);
        let mut request = get("/");
        for number in 0..101 {
            let name = http::HeaderName::try_from(format!("x-{number}")).unwrap();
            request
                .headers_mut()
                .insert(name, http::HeaderValue::from_static("y"));
        }
        let (parts, _) = exchange(&requests, request, None).await;
        assert_eq!(parts.status.as_u16(), 431);
    });
    let snapshot = server.engine.counters().snapshot();
    assert_eq!(snapshot.refused(RequestError::HostMismatch), 1);
    assert_eq!(snapshot.refused(RequestError::FieldValue), 1);
    assert_eq!(snapshot.refused(RequestError::TooManyFields), 1);
}

#[test]
fn over_tls_the_protocol_is_chosen_by_alpn() {
    let authority = Authority::new();
    let mut config = authority.issue(&["localhost"]).server_config();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let mut plan = plan(Limits::default(), || text("never"));
    plan.listeners[0].serves = Serves::Http {
        action: Arc::new(|_: &WorkerContext| {
            Rc::new(Redirect::new(301, "https://{host}{path}{query}").unwrap())
        }),
        tls: Some(Arc::new(config)),
        http2: true,
        http3: None,
    };
    let server = Server::start(&plan);
    let mut roots = rustls::RootCertStore::empty();
    roots.add(authority.der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut client = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    client.alpn_protocols = vec![b"h2".to_vec()];
    run(async {
        let stream = TcpStream::connect(server.address).await.unwrap();
        let connector = tokio_rustls::TlsConnector::from(Arc::new(client));
        let name = "localhost".try_into().unwrap();
        let stream = connector.connect(name, stream).await.unwrap();
        let (requests, connection) = h2::client::handshake(stream).await.unwrap();
        tokio::spawn(async move { drop(connection.await) });
        let request = Request::get("https://localhost/a?b").body(()).unwrap();
        let (parts, _) = exchange(&requests, request, None).await;
        assert_eq!(parts.status, StatusCode::MOVED_PERMANENTLY);
        assert_eq!(parts.headers["location"], "https://localhost/a?b");
    });
}

/// Reads frames until `is_last`; panics for a reset before.
fn read_frames(stream: &mut std::net::TcpStream, is_last: impl Fn(u8, u8, &[u8]) -> bool) {
    use std::io::Read;
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head).unwrap();
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; usize::try_from(length).unwrap()];
        stream.read_exact(&mut payload).unwrap();
        if is_last(head[3], head[4], &payload) {
            return;
        }
        assert!(head[3] != 3, "RST_STREAM {payload:?}");
    }
}

#[test]
fn an_early_response_comes_well_before_the_reset_of_what_the_client_still_sends() {
    use std::io::Write;
    const END_STREAM: u8 = 1;
    let limits = || Limits {
        request: RequestLimits {
            body_bytes: 1000,
            ..RequestLimits::default()
        },
        discard_bytes: 20_000,
        ..Limits::default()
    };
    let large = Limits {
        discard_bytes: 20_000,
        ..Limits::default()
    };
    // Too much is announced; too much comes; the action does not care.
    let cases: [(Limits, Option<&[u8]>, bool); 3] = [
        (limits(), Some(b"70000000"), false),
        (limits(), None, true),
        (large, Some(b"60000000"), false),
    ];
    for (limits, announced, echoes) in cases {
        let server = Server::start(&plan(limits, move || {
            if echoes { Rc::new(Echo) } else { text("early") }
        }));
        let mut stream = server.connect();
        // POST, http, /, :authority a, content-length (RFC 7541, appendix A).
        let mut fields = vec![0x83, 0x86, 0x84, 0x41, 1, b'a'];
        if let Some(length) = announced {
            fields.extend([0x5c, 8]);
            fields.extend(length);
        }
        let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
        bytes.extend(frames::settings());
        bytes.extend(frames::frame(1, 4, 1, &fields));
        let piece = frames::frame(0, 0, 1, &[b'x'; 10_000]);
        bytes.extend(&piece);
        stream.write_all(&bytes).unwrap();
        read_frames(&mut stream, |kind, flags, _| {
            matches!(kind, 0 | 1) && flags & END_STREAM != 0
        });
        // The client goes on for a while, and the stream stands.
        for _ in 0..3 {
            stream.write_all(&piece).unwrap();
        }
        stream.write_all(&frames::frame(6, 0, 0, &[7; 8])).unwrap();
        read_frames(&mut stream, |kind, flags, _| kind == 6 && flags == 1);
        // It is reset in the end, without an error.
        read_frames(&mut stream, |kind, _, payload| {
            kind == 3 && payload == [0, 0, 0, 0]
        });
    }
}

/// A frame with fields as literals with literal names.
fn headers(flags: u8, stream: u32, fields: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        block.push(0);
        for text in [name, value] {
            block.push(u8::try_from(text.len()).unwrap());
            block.extend_from_slice(text.as_bytes());
        }
    }
    frame(1, flags, stream, &block)
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// Kind, flags, stream and payload of the next frame.
fn next_frame(stream: &mut std::net::TcpStream) -> (u8, u8, u32, Vec<u8>) {
    let mut head = [0; 9];
    stream.read_exact(&mut head).unwrap();
    let [a, b, c, kind, flags, id @ ..] = head;
    let mut payload = vec![0; u32::from_be_bytes([0, a, b, c]) as usize];
    stream.read_exact(&mut payload).unwrap();
    (kind, flags, u32::from_be_bytes(id), payload)
}

/// A malformed message is an error of its stream, and of nothing else (RFC 9113, section 8.1.1).
#[test]
fn malformed_pseudo_fields_are_errors_of_their_stream() {
    const END_STREAM: u8 = 1;
    const END_HEADERS: u8 = 4;
    let server = Server::start(&plan(Limits::default(), || Rc::new(Echo)));
    let good = [
        (":method", "POST"),
        (":scheme", "http"),
        (":authority", "a"),
        (":path", "/"),
    ];
    let with = |more: &[(&'static str, &'static str)]| [&good[..], more].concat();
    let fragment = [
        (":method", "POST"),
        (":scheme", "http"),
        (":authority", "a"),
        (":path", "/#b"),
    ];
    let trailer = ("a", "b");
    for (name, head, trailers, is_refused) in [
        ("good", with(&[]), trailer, false),
        ("second path", with(&[(":path", "/other")]), trailer, true),
        ("second method", with(&[(":method", "GET")]), trailer, true),
        (
            "behind others",
            with(&[("a", "b"), (":path", "/")]),
            trailer,
            true,
        ),
        ("fragment", fragment.to_vec(), trailer, true),
        ("trailers", with(&[]), (":path", "/other"), true),
    ] {
        let mut stream = std::net::TcpStream::connect(server.address).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        let bytes = [
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
            frame(4, 0, 0, &[]),
            headers(END_HEADERS, 1, &head),
            frame(0, 0, 1, b"x"),
            headers(END_HEADERS | END_STREAM, 1, &[trailers]),
            // The connection goes on.
            headers(END_HEADERS | END_STREAM, 3, &good),
        ];
        stream.write_all(&bytes.concat()).unwrap();
        let (mut first, mut second) = (None, None);
        while first.is_none() || second.is_none() {
            let (kind, flags, id, payload) = next_frame(&mut stream);
            let end = match kind {
                3 => Some(payload),
                _ if flags & END_STREAM != 0 && kind < 2 => Some(Vec::new()),
                _ => None,
            };
            match id {
                1 => first = first.or(end),
                3 => second = second.or(end),
                _ => assert_ne!(kind, 7, "{name}: the connection ends"),
            }
        }
        // PROTOCOL_ERROR.
        let expected = if is_refused {
            vec![0, 0, 0, 1]
        } else {
            Vec::new()
        };
        assert_eq!(first, Some(expected), "{name}");
        assert_eq!(second, Some(Vec::new()), "{name}");
    }
}
