//! A server that does on each connection what its script says.

pub(crate) mod http2_origin;

pub(crate) mod http3_origin;

pub(crate) mod websocket_origin;

mod connection;

mod lateness;

mod script;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustls::ServerConfig;
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

use crate::background::Background;
pub(crate) use crate::origin::connection::{Io, follow};
pub use crate::origin::script::{HELLO, Script, Step};

/// A scripted server on a port, or at a path, of its own.
#[derive(Debug)]
pub struct Origin {
    address: Option<SocketAddr>,
    path: Option<PathBuf>,
    is_tls: bool,
    shared: Arc<OriginState>,
    background: Background,
}

impl Origin {
    /// Answers every request with [`HELLO`] and keeps connections open.
    pub fn hello() -> Self {
        Self::builder().start()
    }

    /// Follows `script` on each connection.
    pub fn scripted(script: Script) -> Self {
        Self::builder().script(move |_| script.clone()).start()
    }

    /// Accepts connections and reads from them, but never answers.
    pub fn silent() -> Self {
        Self::scripted(Script::new().then(Step::Swallow))
    }

    /// An origin to be set up: [`hello`](Self::hello) by default.
    pub fn builder() -> OriginBuilder {
        OriginBuilder {
            address: Ipv4Addr::LOCALHOST.into(),
            port: 0,
            path: None,
            tls: None,
            script: Box::new(|_| Script::hello()),
        }
    }

    /// The address that it listens on. Panics if that is a unix socket.
    pub fn address(&self) -> SocketAddr {
        self.address.expect("the origin listens on TCP")
    }

    /// Its port. Panics if it listens on a unix socket.
    pub fn port(&self) -> u16 {
        self.address().port()
    }

    /// Its URL with `path`, which begins with a slash; the host is its address, or `localhost` for
    /// a unix socket.
    pub fn url(&self, path: &str) -> String {
        let scheme = if self.is_tls { "https" } else { "http" };
        match self.address {
            Some(address) => format!("{scheme}://{address}{path}"),
            None => format!("{scheme}://localhost{path}"),
        }
    }

    /// Requests whose head has been read.
    pub fn requests(&self) -> u64 {
        self.shared.requests.load(Ordering::SeqCst)
    }

    /// Connections accepted, those with a failed TLS handshake included.
    pub fn connections(&self) -> u64 {
        self.shared.connections.load(Ordering::SeqCst)
    }

    /// Connections that are open now.
    pub fn open_connections(&self) -> u64 {
        self.shared.open.load(Ordering::SeqCst)
    }

    /// TLS handshakes that failed.
    pub fn failed_handshakes(&self) -> u64 {
        self.shared.failed_handshakes.load(Ordering::SeqCst)
    }

    /// The heads of the first requests, as they came, at most 256.
    pub fn heads(&self) -> Vec<String> {
        self.shared.heads.lock().expect("no holder panics").clone()
    }

    /// Bytes read in all, of heads and bodies.
    pub fn bytes_read(&self) -> u64 {
        self.shared.bytes_read.load(Ordering::SeqCst)
    }

    /// Stops every answer, on open and on new connections, until [`resume`](Self::resume).
    pub fn stall(&self) {
        self.shared.stalled.send_replace(true);
    }

    /// Ends a stall.
    pub fn resume(&self) {
        self.shared.stalled.send_replace(false);
    }

    /// Stalls from now on for `duration`, by the system's clock.
    pub fn stall_for(&self, duration: Duration) {
        self.stall();
        let shared = Arc::clone(&self.shared);
        self.background.spawn(async move {
            tokio::time::sleep(duration).await;
            shared.stalled.send_replace(false);
        });
    }

    /// Lets every connection pass its [`Step::Hold`], now and from now on.
    pub fn release(&self) {
        self.shared.released.send_replace(true);
    }
}

/// An origin to be set up.
pub struct OriginBuilder {
    address: IpAddr,
    port: u16,
    path: Option<PathBuf>,
    tls: Option<ServerConfig>,
    script: Box<dyn Fn(u64) -> Script + Send + Sync>,
}

impl OriginBuilder {
    /// Listens on `address` instead of 127.0.0.1.
    #[must_use]
    pub fn address(mut self, address: impl Into<IpAddr>) -> Self {
        self.address = address.into();
        self
    }

    /// Listens on `port` instead of a free one.
    #[must_use]
    pub fn port(mut self, port: u16) -> Self {
        self.port = port;
        self
    }

    /// Listens on a unix socket at `path` instead.
    #[must_use]
    pub fn unix(mut self, path: impl Into<PathBuf>) -> Self {
        self.path = Some(path.into());
        self
    }

    /// Speaks TLS.
    #[must_use]
    pub fn tls(mut self, config: ServerConfig) -> Self {
        self.tls = Some(config);
        self
    }

    /// Follows, on the n-th connection counted from 0, the script that `script` makes for n.
    #[must_use]
    pub fn script(mut self, script: impl Fn(u64) -> Script + Send + Sync + 'static) -> Self {
        self.script = Box::new(script);
        self
    }

    /// Binds and serves; connections are accepted when this returns.
    ///
    /// Panics if the address is not free.
    pub fn start(self) -> Origin {
        let is_tls = self.tls.is_some();
        let shared = Arc::new(OriginState::default());
        let service = Arc::new(Service {
            tls: self.tls.map(|config| TlsAcceptor::from(Arc::new(config))),
            script: self.script,
            shared: Arc::clone(&shared),
        });
        let (address, background) = if let Some(path) = &self.path {
            let listener = std::os::unix::net::UnixListener::bind(path)
                .expect("the path of the unix socket is free");
            listener.set_nonblocking(true).expect("a socket can be set");
            let background = Background::run("origin", async move {
                let listener = UnixListener::from_std(listener).expect("it is non-blocking");
                loop {
                    if let Ok((stream, _)) = listener.accept().await {
                        service.serve_stream(stream);
                    }
                }
            });
            (None, background)
        } else {
            let listener = std::net::TcpListener::bind((self.address, self.port))
                .expect("the address is free");
            listener.set_nonblocking(true).expect("a socket can be set");
            let address = listener
                .local_addr()
                .expect("a bound socket has an address");
            let background = Background::run("origin", async move {
                let listener = TcpListener::from_std(listener).expect("it is non-blocking");
                loop {
                    if let Ok((stream, _)) = listener.accept().await {
                        stream.set_nodelay(true).ok();
                        service.serve_stream(stream);
                    }
                }
            });
            (Some(address), background)
        };
        Origin {
            address,
            path: self.path,
            is_tls,
            shared,
            background,
        }
    }
}

impl std::fmt::Debug for OriginBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OriginBuilder")
            .field("address", &self.address)
            .field("port", &self.port)
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            std::fs::remove_file(path).ok();
        }
    }
}

/// State that the connections of an origin share.
#[derive(Debug, Default)]
pub(crate) struct OriginState {
    connections: AtomicU64,
    open: AtomicU64,
    failed_handshakes: AtomicU64,
    requests: AtomicU64,
    bytes_read: AtomicU64,
    heads: Mutex<Vec<String>>,
    stalled: watch::Sender<bool>,
    released: watch::Sender<bool>,
}

struct Service {
    tls: Option<TlsAcceptor>,
    script: Box<dyn Fn(u64) -> Script + Send + Sync>,
    shared: Arc<OriginState>,
}

impl Service {
    fn serve_stream<S: Io + 'static>(self: &Arc<Self>, stream: S) {
        let service = Arc::clone(self);
        tokio::spawn(async move {
            let shared = &service.shared;
            lateness::be_late().await;
            let number = shared.connections.fetch_add(1, Ordering::SeqCst);
            shared.open.fetch_add(1, Ordering::SeqCst);
            let script = (service.script)(number);
            match &service.tls {
                None => follow(script, stream, shared).await,
                Some(acceptor) => match acceptor.accept(stream).await {
                    Ok(stream) => follow(script, stream, shared).await,
                    Err(_) => {
                        shared.failed_handshakes.fetch_add(1, Ordering::SeqCst);
                    }
                },
            }
            shared.open.fetch_sub(1, Ordering::SeqCst);
        });
    }
}

/// Heads of requests that an origin keeps.
pub(crate) const HEADS_KEPT: usize = 256;

/// Keeps method and URI of a request, and the ID of an event if there is one, among the first.
pub(crate) fn keep_head<T>(heads: &Mutex<Vec<String>>, request: &http::Request<T>) {
    let mut heads = heads.lock().expect("no holder panics");
    if heads.len() < HEADS_KEPT {
        let id = request.headers().get("last-event-id");
        let id = id.and_then(|id| id.to_str().ok()).unwrap_or_default();
        let line = format!("{} {} {id}", request.method(), request.uri());
        heads.push(line.trim_end().to_owned());
    }
}

#[cfg(test)]
mod tests;
