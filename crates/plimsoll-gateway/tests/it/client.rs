//! Clients of every version of HTTP.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use plimsoll_client::forward::{Head, Pool, PoolOptions, Speaks, Upgraded};
use plimsoll_client::{ConnectOptions, ConnectPlan, Connector, Endpoint, QuicOptions};
use plimsoll_model::Failure;
use plimsoll_wire::tls::{TlsSettings, Trust};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// Longer than any test takes.
const PATIENCE: Duration = Duration::from_secs(20);

/// Connections of one version of HTTP, to servers with any certificate.
pub(crate) fn pool(speaks: Speaks) -> Pool {
    let alpn = match speaks {
        // These tests ask for one version.
        Speaks::Negotiated => Speaks::Http2.alpn(),
        speaks => speaks.alpn(),
    };
    let settings = TlsSettings {
        trust: Trust::Anyone,
        alpn: alpn.iter().map(|name| name.to_vec()).collect(),
        ..TlsSettings::default()
    };
    let tls = settings.compile().unwrap();
    let quic = QuicOptions::default().compile(&tls, false).ok();
    let plan = ConnectPlan::new(ConnectOptions {
        tls: Some(tls),
        quic,
        ..ConnectOptions::default()
    });
    let options = PoolOptions {
        speaks,
        ..PoolOptions::default()
    };
    Pool::new(Connector::new(plan.unwrap().into()), options)
}

/// Posts `body` by one version of HTTP, reading the response while it is sent; returns status, content and trailers.
pub(crate) fn post(
    speaks: Speaks,
    url: &str,
    body: Bytes,
) -> (u16, Bytes, Option<http::HeaderMap>) {
    run_local(async {
        let endpoint = Endpoint::parse(url).unwrap();
        let lease = pool(speaks).acquire(&endpoint).await.unwrap();
        let head = Head::new("POST", endpoint.path_and_query(), &());
        let mut exchange = lease.begin(&head, Full::new(body)).unwrap();
        let head = exchange.final_head().await.unwrap();
        let content = exchange.into_response_body().collect().await.unwrap();
        let trailers = content.trailers().cloned();
        (head.status.as_u16(), content.to_bytes(), trailers)
    })
}

/// Gets a URL and reads its response to the end; returns status, bytes of content and why it is not complete.
pub(crate) fn read_until_cut(speaks: Speaks, url: &str) -> (u16, u64, Option<Failure>) {
    run_local(async {
        let endpoint = Endpoint::parse(url).unwrap();
        let lease = pool(speaks).acquire(&endpoint).await.unwrap();
        let head = Head::new("GET", endpoint.path_and_query(), &());
        let mut exchange = lease.begin(&head, Full::<Bytes>::default()).unwrap();
        let status = exchange.final_head().await.unwrap().status.as_u16();
        let mut bytes = 0;
        loop {
            match exchange.frame().await {
                None => return (status, bytes, None),
                Some(Err(incomplete)) => return (status, bytes, Some(incomplete.failure)),
                Some(Ok(frame)) => bytes += frame.data_ref().map_or(0, Bytes::len) as u64,
            }
        }
    })
}

/// Opens a WebSocket by one version of HTTP, sends `bytes` and reads so many; returns the status too.
pub(crate) fn open_websocket(
    speaks: Speaks,
    url: &str,
    bytes: &[u8],
    expected: usize,
) -> (u16, Vec<u8>) {
    run_local(async {
        let (status, mut stream) = websocket(&pool(speaks), speaks, url).await;
        stream.write_all(bytes).await.unwrap();
        stream.flush().await.unwrap();
        let mut echoed = vec![0; expected];
        stream.read_exact(&mut echoed).await.unwrap();
        (status, echoed)
    })
}

/// Opens a WebSocket; returns the status too.
pub(crate) async fn websocket(pool: &Pool, speaks: Speaks, url: &str) -> (u16, Upgraded) {
    let endpoint = Endpoint::parse(url).unwrap();
    let lease = pool.acquire(&endpoint).await.unwrap();
    lease.settled().await;
    let fields = [
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ];
    // Over HTTP/2 and HTTP/3 there is no key (RFC 8441, section 5).
    let (method, fields) = match speaks {
        Speaks::Http1 => ("GET", fields.to_vec()),
        _ => ("CONNECT", fields[..1].to_vec()),
    };
    let head = Head {
        upgrade: Some("websocket"),
        ..Head::new(method, "/", &fields)
    };
    let mut exchange = lease.begin(&head, Full::<Bytes>::default()).unwrap();
    let head = exchange.final_head().await.unwrap();
    (head.status.as_u16(), exchange.upgrade().unwrap())
}

/// Runs a future that spawns local tasks.
pub(crate) fn run_local<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build_local(tokio::runtime::LocalOptions::default())
        .unwrap()
        .block_on(async { tokio::time::timeout(PATIENCE * 3, future).await.unwrap() })
}
