//! QUIC that ends here and begins anew: each stream and datagram of a client goes to a connection to a server, and back.
//!
//! Each event of a stream is repeated on its counterpart: data and its end, resets and requests to stop with their
//! codes. A piece is read only once the last one was written, so a side that does not read stops the other one.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::future::poll_fn;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use plimsoll_model::Clock as _;
use plimsoll_server::{
    AcceptedQuic, AccessLog, DrainSignal, LocalFuture, LoggedConnection, QuicHandler, WorkerContext,
};
use plimsoll_wire::SystemClock;
use quinn::{
    ConnectionError, Endpoint, RecvStream, SendDatagramError, SendStream, VarInt, WriteError,
};
use tokio::task::JoinSet;

use super::attempts::Attempts;
use super::figures::{Dropped, End, ListenerFigures, WorkerFigures};
use super::servers::address_of;
use crate::upstream::{Server, ServerUse, Upstream, UpstreamPlan};

/// A listener that ends QUIC and begins it anew, as configured.
pub(crate) struct RelayedQuicPlan {
    pub(crate) upstream: Arc<UpstreamPlan>,
    /// Connection settings for servers, by the protocol that ALPN has chosen.
    pub(crate) clients: Vec<(Vec<u8>, quinn::ClientConfig)>,
    /// The name in the servers' certificates; that of the server's URL without.
    pub(crate) server_name: Option<String>,
    /// Streams that either side may reset within [`RESET_WINDOW`].
    pub(crate) resets: usize,
    pub(crate) connect_timeout: Duration,
    pub(crate) figures: Arc<ListenerFigures>,
    pub(crate) log: Option<AccessLog>,
}

/// In which resets are counted.
const RESET_WINDOW: Duration = Duration::from_secs(10);

/// Bytes of a stream that are moved at a time.
const PIECE: usize = 64 * 1024;

/// How long what one side has sent before it closed the connection may take to reach the other side.
const LINGER: Duration = Duration::from_secs(10);

/// Relays the connections of one worker.
pub(crate) struct RelayedQuicHandler {
    upstream: Rc<Upstream>,
    shared: Rc<Shared>,
}

/// State that outlives the configuration, for connections.
struct Shared {
    plan: Arc<RelayedQuicPlan>,
    figures: Arc<WorkerFigures>,
    sockets: Rc<Sockets>,
}

/// Sockets of this worker for connections to servers; one for each family of addresses, opened when needed.
#[derive(Default)]
struct Sockets {
    v4: RefCell<Option<Endpoint>>,
    v6: RefCell<Option<Endpoint>>,
}

impl RelayedQuicHandler {
    pub(crate) fn new(plan: &Arc<RelayedQuicPlan>, context: &WorkerContext) -> Self {
        let mut is_new = false;
        let sockets = context.state("quic sockets", || {
            is_new = true;
            Sockets::default()
        });
        if is_new {
            let closing = close_at_end(Rc::downgrade(&sockets), context.drain().clone());
            tokio::task::spawn_local(closing);
        }
        Self {
            upstream: Upstream::of_worker(&plan.upstream, context),
            shared: Rc::new(Shared {
                plan: Arc::clone(plan),
                figures: plan.figures.worker(),
                sockets,
            }),
        }
    }
}

/// Closes connections to servers when the worker ends.
async fn close_at_end(sockets: Weak<Sockets>, drain: DrainSignal) {
    let closing = drain.over().await;
    let Some(sockets) = sockets.upgrade() else {
        return;
    };
    for endpoint in [&sockets.v4, &sockets.v6] {
        let endpoint = endpoint.borrow().clone();
        if let Some(endpoint) = endpoint {
            endpoint.close(VarInt::from_u32(0), b"");
            endpoint.wait_idle().await;
        }
    }
    drop(closing);
}

impl Sockets {
    fn endpoint(&self, to: SocketAddr) -> std::io::Result<Endpoint> {
        let (known, any) = match to {
            SocketAddr::V4(_) => (&self.v4, SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0))),
            SocketAddr::V6(_) => (&self.v6, SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0))),
        };
        let mut known = known.borrow_mut();
        if let Some(endpoint) = &*known {
            return Ok(endpoint.clone());
        }
        let endpoint = Endpoint::client(any)?;
        Ok(known.insert(endpoint).clone())
    }
}

impl fmt::Debug for RelayedQuicHandler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RelayedQuicHandler").finish_non_exhaustive()
    }
}

impl fmt::Debug for RelayedQuicPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RelayedQuicPlan").finish_non_exhaustive()
    }
}

impl QuicHandler for RelayedQuicHandler {
    fn serve(&self, accepted: AcceptedQuic) -> LocalFuture<()> {
        let connection = Connection::begin(&self.shared, &accepted);
        Box::pin(connection.forward(Rc::clone(&self.upstream), accepted.quic))
    }
}

/// A connection from its handshake to its end, counted and logged when it is dropped.
struct Connection {
    shared: Rc<Shared>,
    begun: Instant,
    time: SystemTime,
    peer: SocketAddr,
    server_name: Option<String>,
    alpn: Option<Box<[u8]>>,
    attempts: Attempts,
    moved: Rc<Moved>,
    end: End,
}

/// Bytes of content: from the client, and to it.
#[derive(Default)]
struct Moved {
    received: Cell<u64>,
    sent: Cell<u64>,
}

/// Why no server was connected to.
const UNAVAILABLE: (u32, &[u8]) = (0, b"no server is available");

impl Connection {
    fn begin(shared: &Rc<Shared>, accepted: &AcceptedQuic) -> Self {
        shared.figures.count_opened();
        let tls = accepted.connection.tls.as_deref();
        Self {
            shared: Rc::clone(shared),
            begun: SystemClock.now(),
            time: SystemClock.wall(),
            peer: accepted.connection.peer,
            server_name: tls.and_then(|tls| tls.server_name.as_deref().map(str::to_owned)),
            alpn: tls.and_then(|tls| tls.alpn.clone()),
            attempts: Attempts::default(),
            moved: Rc::default(),
            end: End::Cut,
        }
    }

    async fn forward(mut self, upstream: Rc<Upstream>, client: quinn::Connection) {
        let connected = tokio::select! {
            connected = self.connect(&upstream) => connected,
            // Nothing was sent to a server yet.
            error = client.closed() => {
                self.end = end_of(&error, Side::Client);
                return;
            }
        };
        let Some((server, in_use)) = connected else {
            let (code, reason) = UNAVAILABLE;
            client.close(code.into(), reason);
            return;
        };
        let relay = Relay {
            client,
            server,
            shared: Rc::clone(&self.shared),
            moved: Rc::clone(&self.moved),
            resets: Rc::default(),
        };
        self.end = relay.run().await;
        drop(in_use);
    }

    async fn connect(&mut self, upstream: &Rc<Upstream>) -> Option<(quinn::Connection, ServerUse)> {
        let mut attempts = std::mem::take(&mut self.attempts);
        let limit = self.shared.plan.connect_timeout;
        let open = async |server: Rc<Server>| {
            let connected = tokio::time::timeout(limit, self.open(&server)).await;
            connected.ok().flatten()
        };
        let connected = attempts.connect(upstream, self.peer, open).await;
        self.attempts = attempts;
        self.end = self.attempts.end;
        connected
    }

    async fn open(&self, server: &Server) -> Option<quinn::Connection> {
        let plan = &self.shared.plan;
        let address = address_of(server)?;
        let chosen = self.alpn.as_deref().unwrap_or_default();
        let (_, config) = plan.clients.iter().find(|(alpn, _)| alpn == chosen)?;
        let name = match &plan.server_name {
            Some(name) => name.clone(),
            None => match server.destination().endpoint().host() {
                url::Host::Domain(name) => name.to_owned(),
                url::Host::Ipv4(address) => address.to_string(),
                url::Host::Ipv6(address) => address.to_string(),
            },
        };
        let endpoint = self.shared.sockets.endpoint(address).ok()?;
        let connecting = endpoint.connect_with(config.clone(), address, &name);
        connecting.ok()?.await.ok()
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.shared.figures.count_end(self.end);
        let Some(log) = &self.shared.plan.log else {
            return;
        };
        log.note_connection(&LoggedConnection {
            time: self.time,
            peer: self.peer,
            protocol: "quic",
            server_name: self.server_name.as_deref(),
            forwarded: self.attempts.forwarded(),
            attempts: self.attempts.count,
            connect: self.attempts.took,
            received: self.moved.received.get(),
            sent: self.moved.sent.get(),
            duration: SystemClock.now().saturating_duration_since(self.begun),
            end: self.end.name(),
        });
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Client,
    Server,
}

/// The logged end of a connection that `side` has ended.
fn end_of(error: &ConnectionError, side: Side) -> End {
    match (error, side) {
        (ConnectionError::TimedOut, _) => End::IdleTimeout,
        (ConnectionError::ApplicationClosed(_), Side::Client) => End::ClientClosed,
        (ConnectionError::ApplicationClosed(_), Side::Server) => End::ServerClosed,
        (_, Side::Client) => End::ClientReset,
        (_, Side::Server) => End::ServerReset,
    }
}

/// Both connections.
struct Relay {
    client: quinn::Connection,
    server: quinn::Connection,
    shared: Rc<Shared>,
    moved: Rc<Moved>,
    resets: Rc<Resets>,
}

/// Resets of streams within a window, by either side.
#[derive(Default)]
struct Resets {
    begun: Cell<Option<Instant>>,
    count: Cell<usize>,
}

impl Resets {
    fn count(&self, now: Instant) {
        let is_over = |begun: Instant| now.saturating_duration_since(begun) >= RESET_WINDOW;
        if self.begun.get().is_none_or(is_over) {
            self.begun.set(Some(now));
            self.count.set(0);
        }
        self.count.set(self.count.get() + 1);
    }
}

/// Events of a connection.
enum Event {
    Closed(Side, ConnectionError),
    /// A pair of streams has ended.
    Ended,
}

impl Relay {
    async fn run(self) -> End {
        let mut streams = JoinSet::new();
        let (side, error) = {
            let streams = RefCell::new(&mut streams);
            // Each waits on its own: a side that allows no more streams of one kind holds up nothing else.
            let opening = async {
                tokio::join!(
                    self.pair_both_ways(Side::Client, &streams),
                    self.pair_both_ways(Side::Server, &streams),
                    self.pair_one_way(Side::Client, &streams),
                    self.pair_one_way(Side::Server, &streams),
                    self.pass_datagrams(Side::Client),
                    self.pass_datagrams(Side::Server),
                );
                std::future::pending::<()>().await;
            };
            let mut opening = std::pin::pin!(opening);
            loop {
                let event = tokio::select! {
                    // A stream has to be known before its end is waited for.
                    biased;
                    () = &mut opening => continue,
                    error = self.client.closed() => Event::Closed(Side::Client, error),
                    error = self.server.closed() => Event::Closed(Side::Server, error),
                    () = next_ended(&streams) => Event::Ended,
                };
                match event {
                    Event::Closed(side, error) => break (side, error),
                    Event::Ended if self.resets.count.get() > self.shared.plan.resets => {
                        let reason = b"too many streams were reset";
                        self.client.close(0_u32.into(), reason);
                        self.server.close(0_u32.into(), reason);
                        return End::ResetFlood;
                    }
                    Event::Ended => {}
                }
            }
        };
        // Received data is passed on first: the side that closed has the acknowledgement of the gateway only.
        let rest = async { while streams.join_next().await.is_some() {} };
        tokio::time::timeout(LINGER, rest).await.ok();
        let other = match side {
            Side::Client => &self.server,
            Side::Server => &self.client,
        };
        match &error {
            ConnectionError::ApplicationClosed(close) => {
                other.close(close.error_code, &close.reason);
            }
            _ => other.close(0_u32.into(), b""),
        }
        end_of(&error, side)
    }

    /// The connection of `side`, and the other one.
    fn ends(&self, side: Side) -> (&quinn::Connection, &quinn::Connection) {
        match side {
            Side::Client => (&self.client, &self.server),
            Side::Server => (&self.server, &self.client),
        }
    }

    /// Opens a stream to the other side for each that `side` opens in both directions.
    async fn pair_both_ways(&self, side: Side, streams: &RefCell<&mut JoinSet<()>>) {
        let (from, to) = self.ends(side);
        while let Ok((send, receive)) = from.accept_bi().await {
            let Ok((other_send, other_receive)) = to.open_bi().await else {
                return;
            };
            let (there, back) = (self.half(side), self.half(side.other()));
            streams.borrow_mut().spawn_local(async move {
                tokio::join!(
                    there.relay(receive, other_send),
                    back.relay(other_receive, send)
                );
            });
        }
    }

    async fn pair_one_way(&self, side: Side, streams: &RefCell<&mut JoinSet<()>>) {
        let (from, to) = self.ends(side);
        while let Ok(receive) = from.accept_uni().await {
            let Ok(other_send) = to.open_uni().await else {
                return;
            };
            let there = self.half(side);
            streams
                .borrow_mut()
                .spawn_local(there.relay(receive, other_send));
        }
    }

    /// Passes datagrams on, as far as there is room; they may be lost anyway.
    async fn pass_datagrams(&self, side: Side) {
        let (from, to) = self.ends(side);
        while let Ok(datagram) = from.read_datagram().await {
            let length = datagram.len();
            if to.datagram_send_buffer_space() < length {
                self.shared.figures.count_dropped(Dropped::DatagramQueue);
                continue;
            }
            match to.send_datagram(datagram) {
                Ok(()) => count(&self.moved, &self.shared.figures, side, length),
                Err(SendDatagramError::ConnectionLost(_)) => return,
                Err(_) => self.shared.figures.count_dropped(Dropped::DatagramSize),
            }
        }
    }

    fn half(&self, from: Side) -> Half {
        Half {
            from,
            moved: Rc::clone(&self.moved),
            figures: Arc::clone(&self.shared.figures),
            resets: Rc::clone(&self.resets),
        }
    }
}

impl Side {
    const fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}

/// Waits until one of the streams has ended, of those that there are or will be.
async fn next_ended(streams: &RefCell<&mut JoinSet<()>>) {
    poll_fn(
        |context| match streams.borrow_mut().poll_join_next(context) {
            Poll::Ready(Some(_)) => Poll::Ready(()),
            Poll::Ready(None) | Poll::Pending => Poll::Pending,
        },
    )
    .await;
}

fn count(moved: &Moved, figures: &WorkerFigures, from: Side, length: usize) {
    let length = length as u64;
    match from {
        Side::Client => {
            moved.received.set(moved.received.get() + length);
            figures.count_bytes(length, 0);
        }
        Side::Server => {
            moved.sent.set(moved.sent.get() + length);
            figures.count_bytes(0, length);
        }
    }
}

/// One direction of a stream.
struct Half {
    from: Side,
    moved: Rc<Moved>,
    figures: Arc<WorkerFigures>,
    resets: Rc<Resets>,
}

/// Result of reading and writing one piece.
enum Step {
    Read(Option<Bytes>),
    /// By the sender, with its code.
    Reset(VarInt),
    /// By the receiver, with its code.
    Stopped(VarInt),
    /// One of the connections has ended.
    Lost,
}

impl Half {
    /// Passes on what comes until either side is done with it.
    async fn relay(self, mut receive: RecvStream, mut send: SendStream) {
        let mut stopped = Box::pin(send.stopped());
        loop {
            let step = tokio::select! {
                biased;
                stopped = &mut stopped => match stopped {
                    Ok(Some(code)) => Step::Stopped(code),
                    Ok(None) | Err(_) => Step::Lost,
                },
                read = receive.read_chunk(PIECE, true) => match read {
                    Ok(chunk) => Step::Read(chunk.map(|chunk| chunk.bytes)),
                    Err(quinn::ReadError::Reset(code)) => Step::Reset(code),
                    Err(_) => Step::Lost,
                },
            };
            let step = match step {
                Step::Read(Some(bytes)) => {
                    count(&self.moved, &self.figures, self.from, bytes.len());
                    // A reset meanwhile is passed on behind it. Waiting for `received_reset` beside the write would notice it, but
                    // quinn 0.11 keeps the waker of a cancelled wait until the connection ends, and asserts that there is none.
                    match send.write_chunk(bytes).await {
                        Ok(()) => continue,
                        Err(WriteError::Stopped(code)) => Step::Stopped(code),
                        Err(_) => Step::Lost,
                    }
                }
                step => step,
            };
            match step {
                Step::Reset(code) => {
                    self.resets.count(SystemClock.now());
                    // It fails only where the other side takes nothing any more.
                    send.reset(code).ok();
                }
                Step::Stopped(code) => {
                    self.resets.count(SystemClock.now());
                    receive.stop(code).ok();
                }
                Step::Read(_) => {
                    if send.finish().is_ok() {
                        // Until all of it is acknowledged, so that it may be passed on before a connection is closed.
                        stopped.await.ok();
                    }
                }
                // Dropping a stream of a connection that goes on must not look like its end.
                Step::Lost => {
                    send.reset(VarInt::from_u32(0)).ok();
                }
            }
            return;
        }
    }
}
