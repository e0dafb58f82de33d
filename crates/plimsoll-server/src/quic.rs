//! A UDP socket of one worker on which QUIC is spoken.
//!
//! Connection IDs begin with the number of the worker, by which the kernel finds its socket
//! (`plimsoll_wire::steer_by_connection_id`). A panic within quinn ends the connections of the socket, not the worker:
//! the socket gets a new endpoint.

use std::cell::{Cell, RefCell};
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_wire::{NUMBERED_ID_BYTES, RetryKey, SOCKET_NUMBER_BYTES};
use quinn::crypto::rustls::QuicServerConfig;
use quinn::{
    ConnectionId, ConnectionIdGenerator, Endpoint, EndpointConfig, IdleTimeout, Incoming,
    ServerConfig, TokioRuntime, TransportConfig, VarInt,
};
use ring::rand::{SecureRandom, SystemRandom};
use tokio::sync::watch;
use tokio::task::spawn_local;
use tokio::time::{sleep, timeout};

use crate::action::LocalFuture;
use crate::counters::Cut;
use crate::limits::Limits;
use crate::message::connection::NOWHERE;
use crate::worker::drain::Closing;
use crate::worker::{ConnectionGuard, Worker};

/// Streams that a client may open besides requests: control, those of QPACK, and some that mean nothing (RFC 9114,
/// section 6.2.3).
const OTHER_STREAMS: u32 = 8;

/// The window of a connection, in bytes, and what is laid up to be sent on it.
pub(crate) const CONNECTION_WINDOW: u32 = 1 << 20;

/// `H3_NO_ERROR` (RFC 9114, section 8.1).
const NO_ERROR: VarInt = VarInt::from_u32(0x100);

/// Bytes of connection IDs.
const ID_BYTES: usize = NUMBERED_ID_BYTES;

/// Pause after a socket could not be used, so that this does not spin.
const PAUSE: Duration = Duration::from_millis(10);

/// TLS without what QUIC needs of it.
#[derive(Debug, thiserror::Error)]
#[error("TLS 1.3 with TLS13_AES_128_GCM_SHA256 is needed for HTTP/3")]
pub(crate) struct NoTls13;

/// Transport settings of QUIC with `limits`.
pub(crate) fn server_config(
    tls: &rustls::ServerConfig,
    limits: &Limits,
    retry_key: Option<&RetryKey>,
) -> Result<ServerConfig, NoTls13> {
    let mut tls = tls.clone();
    tls.alpn_protocols = vec![b"h3".to_vec()];
    // Requests sent before the handshake is over can be replayed (RFC 8470).
    tls.max_early_data_size = 0;
    let crypto = QuicServerConfig::try_from(tls).map_err(|_| NoTls13)?;
    let mut transport = TransportConfig::default();
    let idle = IdleTimeout::try_from(limits.idle_timeout).ok();
    transport
        .max_concurrent_bidi_streams(VarInt::from_u32(limits.http3.streams))
        .max_concurrent_uni_streams(VarInt::from_u32(OTHER_STREAMS))
        .stream_receive_window(VarInt::from_u32(limits.http3.stream_window))
        .receive_window(VarInt::from_u32(CONNECTION_WINDOW))
        .send_window(u64::from(CONNECTION_WINDOW))
        .max_idle_timeout(idle)
        // Responses and WebSockets may be silent for longer than that; the client is still there if it acknowledges.
        // Connections without a request are closed all the same.
        .keep_alive_interval(Some(limits.idle_timeout / 3))
        .datagram_receive_buffer_size(None);
    Ok(with_transport(crypto, transport, retry_key))
}

/// Settings of a server with that transport.
pub(crate) fn with_transport(
    crypto: QuicServerConfig,
    transport: TransportConfig,
    retry_key: Option<&RetryKey>,
) -> ServerConfig {
    let mut config = ServerConfig::with_crypto(Arc::new(crypto));
    config.transport_config(Arc::new(transport));
    if let Some(key) = retry_key {
        config.token_key(Arc::new(key.of_servers().clone()));
    }
    config
}

/// Serves a connection after its handshake, with the local address of the socket.
pub(crate) type Serve =
    Rc<dyn Fn(quinn::Connection, ConnectionGuard, SocketAddr) -> LocalFuture<()>>;

/// The parts of a listener that a reload replaces.
pub(crate) struct QuicListener {
    config: RefCell<ServerConfig>,
    endpoint: RefCell<Option<Endpoint>>,
    /// Handshakes that are under way.
    handshakes: Cell<u32>,
    /// That of its socket, by which connection IDs begin.
    number: usize,
}

impl QuicListener {
    pub(crate) fn new(config: ServerConfig, number: usize) -> Self {
        Self {
            number,
            config: RefCell::new(config),
            endpoint: RefCell::new(None),
            handshakes: Cell::new(0),
        }
    }

    /// New connections are served by `config`.
    pub(crate) fn replace(&self, config: ServerConfig) {
        if let Some(endpoint) = &*self.endpoint.borrow() {
            endpoint.set_server_config(Some(config.clone()));
        }
        self.config.replace(config);
    }

    /// Takes connections until it is stopped; those that are open then go on.
    pub(crate) async fn run(
        self: Rc<Self>,
        socket: UdpSocket,
        worker: Rc<Worker>,
        serve: Serve,
        mut stopped: watch::Receiver<bool>,
    ) {
        let local = socket.local_addr().unwrap_or(NOWHERE);
        loop {
            let Ok(endpoint) = self.endpoint(&socket, self.number) else {
                worker.counters.cut(Cut::Shortage);
                sleep(PAUSE).await;
                continue;
            };
            self.endpoint.replace(Some(endpoint.clone()));
            let accepting = accept(
                Rc::clone(&self),
                endpoint.clone(),
                Rc::clone(&worker),
                Rc::clone(&serve),
                local,
            );
            let mut accepting = spawn_local(accepting);
            tokio::select! {
                _ = stopped.changed() => {
                    accepting.abort();
                    self.endpoint.replace(None);
                    spawn_local(refuse(endpoint, worker.drain.over()));
                    return;
                }
                closing = worker.drain.over() => return close(&endpoint, closing).await,
                // It ends only by a panic, its own or that of the endpoint.
                _ = &mut accepting => {
                    worker.counters.panicked();
                    sleep(PAUSE).await;
                }
            }
        }
    }

    fn endpoint(&self, socket: &UdpSocket, number: usize) -> io::Result<Endpoint> {
        let number = u16::try_from(number).map_err(io::Error::other)?;
        let mut config = EndpointConfig::default();
        config.cid_generator(move || Box::new(OfWorker { number }));
        let server = self.config.borrow().clone();
        let runtime = Arc::new(TokioRuntime);
        Endpoint::new(config, Some(server), socket.try_clone()?, runtime)
    }
}

/// Makes connection IDs that begin with the number of a worker.
#[derive(Debug)]
struct OfWorker {
    number: u16,
}

impl ConnectionIdGenerator for OfWorker {
    fn generate_cid(&mut self) -> ConnectionId {
        let mut id = [0; ID_BYTES];
        id[..SOCKET_NUMBER_BYTES].copy_from_slice(&self.number.to_be_bytes());
        SystemRandom::new()
            .fill(&mut id[SOCKET_NUMBER_BYTES..])
            .expect("the system gives random bytes, or TLS could not have begun");
        ConnectionId::new(&id)
    }

    fn cid_len(&self) -> usize {
        ID_BYTES
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}

async fn accept(
    listener: Rc<QuicListener>,
    endpoint: Endpoint,
    worker: Rc<Worker>,
    serve: Serve,
    local: SocketAddr,
) {
    while let Some(incoming) = endpoint.accept().await {
        let limits = worker.limits();
        let is_busy = listener.handshakes.get() >= limits.http3.unvalidated;
        if is_busy && !incoming.remote_address_validated() && incoming.may_retry() {
            // A real client repeats its address; a forged one costs nothing more.
            incoming.retry().ok();
            continue;
        }
        let peer = incoming.remote_address();
        let admitted = worker.admission.admit(
            peer.ip(),
            limits.connections,
            limits.connections_per_address,
        );
        match admitted {
            Ok(()) => {
                let place = ConnectionGuard::new(Rc::clone(&worker), peer.ip());
                let handshake = Handshake::begin(&listener);
                spawn_local(accept_connection(
                    incoming,
                    handshake,
                    Rc::clone(&serve),
                    place,
                    local,
                ));
            }
            Err(cut) => {
                worker.counters.cut(cut);
                incoming.refuse();
            }
        }
    }
}

/// Counts a handshake as long as it lasts.
struct Handshake(Rc<QuicListener>);

impl Handshake {
    fn begin(listener: &Rc<QuicListener>) -> Self {
        listener.handshakes.set(listener.handshakes.get() + 1);
        Self(Rc::clone(listener))
    }
}

impl Drop for Handshake {
    fn drop(&mut self) {
        self.0.handshakes.set(self.0.handshakes.get() - 1);
    }
}

async fn accept_connection(
    incoming: Incoming,
    handshake: Handshake,
    serve: Serve,
    place: ConnectionGuard,
    local: SocketAddr,
) {
    let limit = place.worker.limits().handshake_timeout;
    let handshaken = match timeout(limit, incoming).await {
        Err(_) | Ok(Err(quinn::ConnectionError::TimedOut)) => Err(Cut::HandshakeTimeout),
        Ok(Err(_)) => Err(Cut::Handshake),
        Ok(Ok(connection)) => Ok(connection),
    };
    drop(handshake);
    match handshaken {
        Ok(connection) => serve(connection, place, local).await,
        Err(cut) => place.worker.counters.cut(cut),
    }
}

/// Refuses new clients, as long as there are connections.
async fn refuse(endpoint: Endpoint, worker_is_over: impl Future<Output = Closing>) {
    let mut worker_is_over = std::pin::pin!(worker_is_over);
    loop {
        tokio::select! {
            () = endpoint.wait_idle() => return,
            closing = &mut worker_is_over => return close(&endpoint, closing).await,
            incoming = endpoint.accept() => match incoming {
                Some(incoming) => incoming.refuse(),
                None => return,
            },
        }
    }
}

/// Closes every connection, so that no client waits for its idle timeout; ends once they are told.
async fn close(endpoint: &Endpoint, closing: Closing) {
    endpoint.close(NO_ERROR, b"");
    endpoint.wait_idle().await;
    drop(closing);
}

/// The address of a socket that listens beside a port of TCP.
pub(crate) fn port_of(socket: &UdpSocket) -> io::Result<u16> {
    socket
        .local_addr()
        .map(|address: SocketAddr| address.port())
}
