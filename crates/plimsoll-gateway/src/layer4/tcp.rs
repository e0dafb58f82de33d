//! TCP connections: routed, connected to a server, and relayed.

use std::cell::RefCell;
use std::fmt;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use plimsoll_client::{Connection as ServerConnection, Stream as ServerStream};
use plimsoll_model::Clock as _;
use plimsoll_server::{
    Accepted, AccessLog, Addresses, FirstBytes, Inspection, LocalFuture, LoggedConnection,
    StreamHandler, Template, WorkerContext,
};
use plimsoll_wire::tls::{ClientHello, ClientHelloError};
use plimsoll_wire::{ProxiedEnds, ProxyProtocol, SystemClock};
use tokio::io::AsyncWriteExt as _;

use super::attempts::Attempts;
use super::figures::{End, ListenerFigures, WorkerFigures};
use super::relay::{Relay, RelayMemory, Side};
use super::routes::TcpRoutes;
use crate::upstream::{Server, ServerUse, Upstream, UpstreamPlan};

/// A listener that takes connections, as configured.
#[derive(Debug)]
pub(crate) struct TcpPlan {
    pub(crate) routes: TcpRoutes<Arc<UpstreamPlan>>,
    /// Each connection is sent this and closed, and none is forwarded.
    pub(crate) respond: Option<Template>,
    /// The clients that are let in, if not all are.
    pub(crate) addresses: Option<Addresses>,
    /// PROXY header that announces the client's addresses to servers.
    pub(crate) proxy_protocol: Option<ProxyProtocol>,
    /// How long nothing may pass.
    pub(crate) idle_timeout: Duration,
    pub(crate) figures: Arc<ListenerFigures>,
    pub(crate) log: Option<AccessLog>,
}

/// How long a client may take to close its side after the text.
const LINGER: Duration = Duration::from_secs(2);

/// Takes the connections of one worker.
pub(crate) struct TcpHandler {
    routes: TcpRoutes<Rc<Upstream>>,
    shared: Rc<Shared>,
}

/// State that outlives the configuration, for connections.
struct Shared {
    plan: Arc<TcpPlan>,
    figures: Arc<WorkerFigures>,
    memory: Rc<RefCell<RelayMemory>>,
}

impl fmt::Debug for TcpHandler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TcpHandler").finish_non_exhaustive()
    }
}

/// A fatal alert, `unrecognized_name` (RFC 6066, section 3; RFC 8446, section 6): the client reports what is wrong.
const UNRECOGNIZED_NAME: [u8; 7] = [21, 3, 3, 0, 2, 2, 112];

impl TcpHandler {
    pub(crate) fn new(plan: &Arc<TcpPlan>, context: &WorkerContext) -> Self {
        let routes = plan.routes.map(|to| Upstream::of_worker(to, context));
        Self {
            routes,
            shared: Rc::new(Shared {
                plan: Arc::clone(plan),
                figures: plan.figures.worker(),
                memory: context.state("layer4", RelayMemory::new),
            }),
        }
    }

    fn forward(&self, upstream: &Rc<Upstream>, server_name: Option<String>) -> Inspection {
        let connection = Connection::begin(&self.shared, server_name);
        let upstream = Rc::clone(upstream);
        Inspection::Decided(Box::new(move |accepted| -> LocalFuture<()> {
            Box::pin(connection.forward(upstream, accepted))
        }))
    }

    /// Sends a text and closes the connection.
    fn respond(&self) -> Inspection {
        let connection = Connection::begin(&self.shared, None);
        Inspection::Decided(Box::new(move |accepted| -> LocalFuture<()> {
            Box::pin(connection.respond(accepted))
        }))
    }

    /// Closes a connection for which there is no server.
    fn reject(&self, end: End, server_name: Option<String>) -> Inspection {
        let connection = Connection::begin(&self.shared, server_name);
        Inspection::Decided(Box::new(move |accepted| -> LocalFuture<()> {
            Box::pin(connection.reject(end, accepted))
        }))
    }
}

impl StreamHandler for TcpHandler {
    fn inspect(&self, first: FirstBytes<'_>) -> Inspection {
        let addresses = self.shared.plan.addresses.as_ref();
        if addresses.is_some_and(|it| !it.admits(first.connection.peer.ip())) {
            return self.reject(End::Denied, None);
        }
        if self.shared.plan.respond.is_some() {
            return self.respond();
        }
        let fallback = self.routes.fallback.as_ref();
        if self.routes.routes.is_empty()
            && let Some(fallback) = fallback
        {
            return self.forward(fallback, None);
        }
        if let Some(tls) = &first.connection.tls {
            // It was read for the handshake here.
            let hello = ClientHello {
                server_name: tls.server_name.as_deref().map(str::to_owned),
                alpn: tls.alpn.iter().map(|name| name.to_vec()).collect(),
                is_encrypted: false,
            };
            return match self.routes.of_client(&hello) {
                Some(upstream) => self.forward(upstream, hello.server_name),
                None => self.reject(End::NoRoute, hello.server_name),
            };
        }
        match ClientHello::parse(first.bytes) {
            Ok(Some(hello)) => match self.routes.of_client(&hello) {
                Some(upstream) => self.forward(upstream, hello.server_name),
                None => self.reject(End::NoRoute, hello.server_name),
            },
            // A client of a protocol in which the server speaks first says nothing.
            Ok(None) if first.is_final && first.bytes.is_empty() => match fallback {
                Some(fallback) => self.forward(fallback, None),
                None => self.reject(End::Malformed, None),
            },
            Ok(None) if first.is_final => self.reject(End::Malformed, None),
            Ok(None) => Inspection::NeedMore,
            Err(ClientHelloError::OtherProtocol) => match fallback {
                Some(fallback) => self.forward(fallback, None),
                None => self.reject(End::Malformed, None),
            },
            Err(ClientHelloError::Malformed | ClientHelloError::TooLong) => {
                self.reject(End::Malformed, None)
            }
        }
    }
}

/// A connection from its decision to its end, counted and logged when it is dropped.
struct Connection {
    shared: Rc<Shared>,
    begun: Instant,
    time: SystemTime,
    peer: Option<SocketAddr>,
    server_name: Option<String>,
    attempts: Attempts,
    moved: (u64, u64),
    end: End,
}

impl Connection {
    fn begin(shared: &Rc<Shared>, server_name: Option<String>) -> Self {
        shared.figures.count_opened();
        Self {
            shared: Rc::clone(shared),
            begun: SystemClock.now(),
            time: SystemClock.wall(),
            peer: None,
            server_name,
            attempts: Attempts::default(),
            moved: (0, 0),
            end: End::Cut,
        }
    }

    async fn reject(mut self, end: End, mut accepted: Accepted) {
        self.peer = Some(accepted.connection.peer);
        self.end = end;
        if end == End::NoRoute && !accepted.stream.is_tls() {
            // Whether the client still reads it concerns the client alone.
            accepted.stream.write_all(&UNRECOGNIZED_NAME).await.ok();
            accepted.stream.shutdown().await.ok();
        }
    }

    async fn respond(mut self, mut accepted: Accepted) {
        self.peer = Some(accepted.connection.peer);
        let mut text = Vec::new();
        if let Some(template) = &self.shared.plan.respond {
            template.fill_for_connection(&accepted.connection, &mut text);
        }
        let stream = &mut accepted.stream;
        self.end = match stream.write_all(&text).await {
            Ok(()) => {
                self.moved.1 = text.len() as u64;
                self.shared.figures.count_bytes(0, self.moved.1);
                End::ServerClosed
            }
            Err(_) => End::ClientReset,
        };
        // Unread bytes of the client would reset the connection, and the client might lose the text.
        if stream.shutdown().await.is_ok() {
            let mut nowhere = tokio::io::sink();
            let rest = tokio::io::copy(stream, &mut nowhere);
            tokio::time::timeout(LINGER, rest).await.ok();
        }
    }

    async fn forward(mut self, upstream: Rc<Upstream>, accepted: Accepted) {
        let connection = accepted.connection;
        self.peer = Some(connection.peer);
        let (client, first) = match accepted.stream.into_tcp() {
            Ok((stream, first)) => (Side::Tcp(stream), first),
            Err(stream) => (Side::Client(Box::new(stream)), Vec::new()),
        };
        let Some((server, in_use)) = self.connect(&upstream, connection.peer).await else {
            client.reset();
            return;
        };
        let mut opening = match self.shared.plan.proxy_protocol {
            None => Vec::new(),
            Some(version) => {
                let has_addresses = client_is_known(connection.peer);
                version.header(has_addresses.then_some(ProxiedEnds {
                    source: connection.peer,
                    destination: connection.local,
                }))
            }
        };
        self.shared.figures.count_bytes(first.len() as u64, 0);
        let ahead = first.len() as u64;
        opening.extend(first);
        let memory = Rc::clone(&self.shared.memory);
        let mut relay = Relay::new(client, server, opening, memory);
        let shared = Rc::clone(&self.shared);
        let end = relay.run(shared.plan.idle_timeout, &shared.figures).await;
        let (received, sent) = relay.moved();
        self.moved = (received + ahead, sent);
        drop(in_use);
        self.end = end.into();
    }

    async fn connect(
        &mut self,
        upstream: &Rc<Upstream>,
        peer: SocketAddr,
    ) -> Option<(Side, ServerUse)> {
        let open = async |server: Rc<Server>| match upstream.connect(&server).await {
            Ok(ServerConnection { stream, .. }) => Some(match stream {
                ServerStream::Tcp(stream) => {
                    stream.set_nodelay(true).ok();
                    Side::Tcp(stream)
                }
                stream @ (ServerStream::Unix(_) | ServerStream::Tls(_)) => {
                    Side::Server(Box::new(stream))
                }
            }),
            Err(_) => None,
        };
        let connected = self.attempts.connect(upstream, peer, open).await;
        self.end = self.attempts.end;
        connected
    }
}

/// Clients at a socket in the file system have no address.
fn client_is_known(peer: SocketAddr) -> bool {
    !peer.ip().is_unspecified()
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.shared.figures.count_end(self.end);
        let (Some(log), Some(peer)) = (&self.shared.plan.log, self.peer) else {
            return;
        };
        log.note_connection(&LoggedConnection {
            time: self.time,
            peer,
            protocol: "tcp",
            server_name: self.server_name.as_deref(),
            forwarded: self.attempts.forwarded(),
            attempts: self.attempts.count,
            connect: self.attempts.took,
            received: self.moved.0,
            sent: self.moved.1,
            duration: SystemClock.now().saturating_duration_since(self.begun),
            end: self.end.name(),
        });
    }
}
