//! A small proxy, HTTP or SOCKS, that records its requests.
//!
//! It never resolves a name: every name is 127.0.0.1 to it, so that tests need no name server and
//! can see that the name reached the proxy.

mod http;

mod socks;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};

use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use crate::background::Background;

/// A proxy on a port of its own.
#[derive(Debug)]
pub struct TestProxy {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<ProxyRequest>>>,
    _background: Background,
}

/// One request to a proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxyRequest {
    /// `CONNECT`, the method of an absolute-form request, `SOCKS4` or `SOCKS5`.
    pub how: String,
    /// As the client named it: `host:port`, or the URL in absolute form.
    pub target: String,
    /// The value of `Proxy-Authorization`, `user:password` of SOCKS 5 or the user id of SOCKS 4.
    pub credentials: Option<String>,
}

impl TestProxy {
    /// An HTTP proxy: `CONNECT` and absolute-form requests, one per connection.
    pub fn http() -> TestProxyBuilder {
        TestProxyBuilder::new(Kind::Http)
    }

    /// A SOCKS proxy: `CONNECT` of versions 4, 4a and 5.
    pub fn socks() -> TestProxyBuilder {
        TestProxyBuilder::new(Kind::Socks)
    }

    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its requests until now, in order.
    pub fn requests(&self) -> Vec<ProxyRequest> {
        self.requests.lock().expect("no holder panics").clone()
    }
}

/// A proxy to be set up.
#[derive(Debug)]
pub struct TestProxyBuilder {
    kind: Kind,
    plan: Plan,
    tls: Option<ServerConfig>,
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Http,
    Socks,
}

#[derive(Debug, Default)]
struct Plan {
    credentials: Option<(String, String)>,
    answer: Option<Vec<u8>>,
}

impl TestProxyBuilder {
    fn new(kind: Kind) -> Self {
        Self {
            kind,
            plan: Plan::default(),
            tls: None,
        }
    }

    /// Refuses clients without these.
    #[must_use]
    pub fn require(mut self, user: &str, password: &str) -> Self {
        self.plan.credentials = Some((user.to_owned(), password.to_owned()));
        self
    }

    /// Answers everything with these bytes, then closes.
    #[must_use]
    pub fn answer(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.plan.answer = Some(bytes.into());
        self
    }

    /// Is itself reached over TLS.
    #[must_use]
    pub fn tls(mut self, config: ServerConfig) -> Self {
        self.tls = Some(config);
        self
    }

    /// Binds and serves.
    pub fn start(self) -> TestProxy {
        let listener =
            std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
        listener.set_nonblocking(true).expect("a socket can be set");
        let address = listener
            .local_addr()
            .expect("a bound socket has an address");
        let requests = Arc::<Mutex<Vec<ProxyRequest>>>::default();
        let service = Arc::new(Service {
            kind: self.kind,
            plan: self.plan,
            requests: Arc::clone(&requests),
        });
        let tls = self.tls.map(|config| TlsAcceptor::from(Arc::new(config)));
        let background = Background::run("proxy", async move {
            let listener = TcpListener::from_std(listener).expect("it is non-blocking");
            loop {
                let Ok((stream, _)) = listener.accept().await else {
                    continue;
                };
                let service = Arc::clone(&service);
                let tls = tls.clone();
                tokio::spawn(async move {
                    match tls {
                        None => service.serve(stream).await,
                        Some(acceptor) => {
                            if let Ok(stream) = acceptor.accept(stream).await {
                                service.serve(stream).await;
                            }
                        }
                    }
                });
            }
        });
        TestProxy {
            address,
            requests,
            _background: background,
        }
    }
}

#[derive(Debug)]
struct Service {
    kind: Kind,
    plan: Plan,
    requests: Arc<Mutex<Vec<ProxyRequest>>>,
}

impl Service {
    /// An error ends the connection, which is all that a client could see.
    async fn serve(&self, stream: impl Stream) {
        let note = |request| {
            let mut requests = self.requests.lock().expect("no holder panics");
            requests.push(request);
        };
        match self.kind {
            Kind::Http => http::serve(stream, &self.plan, note).await.ok(),
            Kind::Socks => socks::serve(stream, &self.plan, note).await.ok(),
        };
    }
}

trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

/// Carries bytes both ways until both sides have ended.
async fn relay(mut client: impl Stream, mut target: TcpStream) -> std::io::Result<()> {
    tokio::io::copy_bidirectional(&mut client, &mut target).await?;
    Ok(())
}

/// Every name is this machine.
async fn dial(host: &str, port: u16) -> std::io::Result<TcpStream> {
    let host = host.trim_matches(['[', ']']);
    match host.parse::<std::net::IpAddr>() {
        Ok(address) => TcpStream::connect((address, port)).await,
        Err(_) => TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await,
    }
}
