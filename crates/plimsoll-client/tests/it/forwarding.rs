//! Forwarded exchanges: one contract that every version of HTTP passes, and what is particular to pools.

mod contract;

mod http1_server;

mod http2_server;

mod http3_server;

mod pooling;

mod server;

mod uwsgi;

use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use plimsoll_client::forward::{Head, Pool, PoolOptions, ResponseHead, Speaks};
use plimsoll_client::{ConnectOptions, Endpoint, QuicOptions};
use plimsoll_model::Failure;
use plimsoll_testkit::Authority;
use plimsoll_wire::tls::{TlsSettings, Trust};
use tokio::net::TcpListener;

use crate::connecting::connector;
use server::{Server, serve_http1, serve_http2};

/// Runs a future that spawns local tasks.
pub(crate) fn run_local<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build_local(tokio::runtime::LocalOptions::default())
        .unwrap()
        .block_on(future)
}

/// The transports of the contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Over {
    Http1,
    Http1Tls,
    Http2,
    Http2Tls,
    Http3,
}

impl Over {
    pub(crate) const ALL: [Self; 5] = [
        Self::Http1,
        Self::Http1Tls,
        Self::Http2,
        Self::Http2Tls,
        Self::Http3,
    ];

    fn is_http1(self) -> bool {
        matches!(self, Self::Http1 | Self::Http1Tls)
    }

    fn is_tls(self) -> bool {
        matches!(self, Self::Http1Tls | Self::Http2Tls | Self::Http3)
    }
}

/// A server of the contract and a pool that leads there.
pub(crate) struct Ground {
    pub(crate) server: Rc<Server>,
    pub(crate) pool: Pool,
    pub(crate) endpoint: Endpoint,
}

impl Ground {
    pub(crate) async fn new(over: Over) -> Self {
        Self::with(over, PoolOptions::default()).await
    }

    pub(crate) async fn with(over: Over, options: PoolOptions) -> Self {
        let server = Rc::new(Server::default());
        let authority = Authority::new();
        let address = if over == Over::Http3 {
            Self::listen_quic(&server, &authority)
        } else {
            Self::listen(over, &server, &authority).await
        };
        let speaks = match over {
            Over::Http1 => Speaks::Http1,
            Over::Http2 => Speaks::Http2,
            Over::Http1Tls | Over::Http2Tls => Speaks::Negotiated,
            Over::Http3 => Speaks::Http3,
        };
        let scheme = if over.is_tls() { "https" } else { "http" };
        let quic = QuicOptions {
            stream_window: Some(options.stream_window),
            ..QuicOptions::default()
        };
        let quic_tls = tls(&authority, &[b"h3"]);
        Self {
            server,
            pool: Pool::new(
                connector(ConnectOptions {
                    tls: Some(tls(&authority, &[b"h2", b"http/1.1"])),
                    quic: Some(quic.compile(&quic_tls, false).unwrap()),
                    ..ConnectOptions::default()
                }),
                PoolOptions { speaks, ..options },
            ),
            endpoint: Endpoint::parse(&format!("{scheme}://{address}/")).unwrap(),
        }
    }

    fn listen_quic(server: &Rc<Server>, authority: &Authority) -> SocketAddr {
        let tls = authority.issue(&["127.0.0.1"]).server_config();
        let endpoint = http3_server::endpoint(tls);
        let address = endpoint.local_addr().unwrap();
        let server = Rc::clone(server);
        tokio::task::spawn_local(async move {
            while let Some(incoming) = endpoint.accept().await {
                server.connections.set(server.connections.get() + 1);
                tokio::task::spawn_local(http3_server::serve(Rc::clone(&server), incoming));
            }
        });
        address
    }

    async fn listen(over: Over, server: &Rc<Server>, authority: &Authority) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address: SocketAddr = listener.local_addr().unwrap();
        let acceptor = over.is_tls().then(|| {
            let mut config = authority.issue(&["127.0.0.1"]).server_config();
            let alpn: &[u8] = if over.is_http1() { b"http/1.1" } else { b"h2" };
            config.alpn_protocols = vec![alpn.to_vec()];
            tokio_rustls::TlsAcceptor::from(Arc::new(config))
        });
        let accepting = Rc::clone(server);
        tokio::task::spawn_local(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (server, acceptor) = (Rc::clone(&accepting), acceptor.clone());
                server.connections.set(server.connections.get() + 1);
                tokio::task::spawn_local(async move {
                    match acceptor {
                        None if over.is_http1() => serve_http1(server, stream).await,
                        None => serve_http2(server, stream).await,
                        Some(acceptor) => {
                            let Ok(stream) = acceptor.accept(stream).await else {
                                return;
                            };
                            if over.is_http1() {
                                serve_http1(server, stream).await;
                            } else {
                                serve_http2(server, stream).await;
                            }
                        }
                    }
                });
            }
        });
        address
    }

    /// Makes a plain exchange to its end.
    pub(crate) async fn get(&self, target: &str) -> Result<Answer, Failure> {
        self.send("GET", target, Chunks::none()).await
    }

    pub(crate) async fn send(
        &self,
        method: &str,
        target: &str,
        body: Chunks,
    ) -> Result<Answer, Failure> {
        let lease = self.pool.acquire(&self.endpoint).await;
        let lease = lease.map_err(|error| error.failure)?;
        let mut exchange = lease.begin(&Head::new(method, target, &()), body)?;
        let mut answer = Answer::default();
        loop {
            let head = exchange.head().await.map_err(|error| error.failure)?;
            if !head.is_interim() {
                answer.head = Some(head);
                break;
            }
            answer.interim.push(head.status.as_u16());
        }
        while let Some(frame) = exchange.frame().await {
            let frame = frame.map_err(|error| error.failure)?;
            match frame.into_data() {
                Ok(data) => answer.content.extend_from_slice(&data),
                Err(frame) => answer.trailers = frame.into_trailers().ok(),
            }
        }
        Ok(answer)
    }
}

fn tls(authority: &Authority, alpn: &[&[u8]]) -> Arc<rustls::ClientConfig> {
    let files = plimsoll_testkit::MaterialFiles::new();
    let settings = TlsSettings {
        trust: Trust::Only(files.write("roots.pem", &authority.pem())),
        alpn: alpn.iter().map(|name| name.to_vec()).collect(),
        ..TlsSettings::default()
    };
    settings.compile().unwrap()
}

/// A response that was read to its end.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    pub(crate) interim: Vec<u16>,
    pub(crate) head: Option<ResponseHead>,
    pub(crate) content: Vec<u8>,
    pub(crate) trailers: Option<HeaderMap>,
}

impl Answer {
    pub(crate) fn status(&self) -> u16 {
        self.head.as_ref().unwrap().status.as_u16()
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.content).unwrap()
    }
}

/// A request body of given parts, with or without an announced length.
#[derive(Default)]
pub(crate) struct Chunks {
    pub(crate) parts: Vec<Result<Frame<Bytes>, &'static str>>,
    pub(crate) length: Option<u64>,
    /// Behind the parts, more is announced than ever comes.
    pub(crate) is_endless: bool,
    /// Errors come only once this server has received content.
    pub(crate) gate: Option<Rc<Server>>,
}

impl Chunks {
    pub(crate) fn none() -> Self {
        Self {
            length: Some(0),
            ..Self::default()
        }
    }

    /// Parts of an unknown length.
    pub(crate) fn streamed(parts: &[&str]) -> Self {
        let part = |text: &&str| Ok(Frame::data(Bytes::copy_from_slice(text.as_bytes())));
        Self {
            parts: parts.iter().rev().map(part).collect(),
            ..Self::default()
        }
    }

    /// A body of a known length.
    pub(crate) fn whole(text: &str) -> Self {
        Self {
            length: Some(text.len() as u64),
            ..Self::streamed(&[text])
        }
    }

    pub(crate) fn then(mut self, part: Result<Frame<Bytes>, &'static str>) -> Self {
        self.parts.insert(0, part);
        self
    }

    pub(crate) fn endless(mut self) -> Self {
        self.is_endless = true;
        self
    }
}

impl Body for Chunks {
    type Data = Bytes;
    type Error = &'static str;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, &'static str>>> {
        let is_closed = |server: &Rc<Server>| server.received.get() == 0;
        if matches!(self.parts.last(), Some(Err(_))) && self.gate.as_ref().is_some_and(is_closed) {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        match self.parts.pop() {
            None if self.is_endless => Poll::Pending,
            part => Poll::Ready(part),
        }
    }

    fn size_hint(&self) -> SizeHint {
        self.length.map_or_else(SizeHint::new, SizeHint::with_exact)
    }
}
