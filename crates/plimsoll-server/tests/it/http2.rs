//! HTTP/2 as a client sees it, in the clear and over TLS.

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use h2::client::SendRequest;
use http::{Request, StatusCode};
use plimsoll_server::{Delay, Echo, Limits, Redirect, Serves, WorkerContext};
use plimsoll_testkit::Authority;
use plimsoll_wire::h1::RequestError;
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
