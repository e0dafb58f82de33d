//! From an endpoint to a connection that speaks HTTP/3.

use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::{Duration, Instant};

use plimsoll_model::{Failure, FailureKind, Phase, Phases};
use plimsoll_wire::h1::Limits;
use quinn::crypto::rustls::QuicClientConfig;
use quinn::{ClientConfig, Endpoint, EndpointConfig, TransportConfig, VarInt, ZeroRttAccepted};
use rustls::client::Resumption;
use rustls::pki_types::ServerName;
use rustls::quic::Version;
use tokio::sync::Notify;
use url::Host;

use super::Http3;
use super::early_data::EarlyData;
use super::failure::connection_failure;
use super::peer::Peer;
use super::transport::Transport;

/// Transport settings of QUIC.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QuicOptions {
    /// The UDP payload of packets in bytes, in both directions; absent begins with 1200 and finds
    /// out what the path carries (RFC 8899), up to 1452.
    pub udp_payload: Option<u16>,
    /// A request may leave with the first packet of a connection whose server is known (0-RTT). An
    /// attacker can replay such a request (RFC 8470).
    pub early_data: bool,
    /// Bytes of content that a server may send ahead of the reader of one response; absent is as many as no network
    /// needs.
    pub stream_window: Option<u32>,
}

/// Why QUIC cannot be set up as configured.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QuicError {
    /// A payload that no QUIC packet has.
    #[error("a UDP payload of {0} bytes cannot be had; QUIC takes from 1200 to 65527")]
    Payload(u16),
    /// TLS settings without which QUIC cannot begin.
    #[error(
        "QUIC needs TLS 1.3 and its suite TLS13_AES_128_GCM_SHA256, and one of them is excluded"
    )]
    Tls,
}

/// A connection that was opened.
#[derive(Debug)]
pub struct Http3Connection {
    /// Carries the exchanges.
    pub http: Http3,
    /// Until when its address is valid, by the TTL of name servers; forever if none was queried.
    pub valid_until: Option<Instant>,
    /// The phases that happened: dns, and connect, in which QUIC does the handshake of TLS too.
    pub phases: Phases,
}

/// The compiled form of [`QuicOptions`], which connections share.
#[derive(Debug, Clone)]
pub struct QuicConfig {
    tls: Arc<rustls::ClientConfig>,
    transport: Arc<TransportConfig>,
    endpoint: EndpointConfig,
    client: ClientConfig,
    early_data: bool,
}

/// Servers whose sessions are remembered.
const SESSIONS: usize = 256;

/// So long may a server be silent while something is under way: deadlines are the caller's.
const SILENCE: Duration = Duration::from_mins(5);

/// How often a packet is sent while nothing else is, so that the server does not take a connection on which a response
/// or a WebSocket is silent for a dead one. Longer than pools keep connections without exchanges.
const KEEP_ALIVE: Duration = Duration::from_secs(20);

/// Windows that are no limit on loopback or a fast network.
const STREAM_WINDOW: u32 = 8 << 20;
const CONNECTION_WINDOW: u32 = 64 << 20;

impl QuicOptions {
    /// The payloads that can be configured (RFC 9000, section 14.1).
    pub const PAYLOADS: RangeInclusive<u16> = 1200..=65527;

    /// Checks the options against `tls`, whose ALPN is to be `h3`.
    ///
    /// - `full_handshakes`: no session is resumed.
    pub fn compile(
        &self,
        tls: &rustls::ClientConfig,
        full_handshakes: bool,
    ) -> Result<QuicConfig, QuicError> {
        let mut tls = tls.clone();
        tls.enable_early_data = self.early_data;
        if full_handshakes {
            tls.resumption = Resumption::disabled();
        }
        let silence = SILENCE.try_into().expect("minutes fit");
        let mut transport = TransportConfig::default();
        transport
            .max_idle_timeout(Some(silence))
            .keep_alive_interval(Some(KEEP_ALIVE))
            .stream_receive_window(VarInt::from_u32(
                self.stream_window.unwrap_or(STREAM_WINDOW),
            ))
            .receive_window(VarInt::from_u32(CONNECTION_WINDOW));
        let mut endpoint = EndpointConfig::default();
        if let Some(bytes) = self.udp_payload {
            endpoint
                .max_udp_payload_size(bytes)
                .map_err(|_| QuicError::Payload(bytes))?;
            transport
                .initial_mtu(bytes)
                .min_mtu(bytes)
                .mtu_discovery_config(None);
        }
        let (tls, transport) = (Arc::new(tls), Arc::new(transport));
        Ok(QuicConfig {
            client: client_config(&tls, &transport)?,
            tls,
            transport,
            endpoint,
            early_data: self.early_data,
        })
    }
}

impl QuicConfig {
    /// Whether requests may leave before the handshake is over.
    pub(crate) fn early_data(&self) -> bool {
        self.early_data
    }

    /// The same with a memory for TLS sessions of its own, so that workers share nothing.
    pub(crate) fn of_worker(mut self, full_handshakes: bool) -> Self {
        if !full_handshakes {
            let mut tls = (*self.tls).clone();
            tls.resumption = Resumption::in_memory_sessions(SESSIONS);
            self.tls = Arc::new(tls);
            self.client = client_config(&self.tls, &self.transport)
                .expect("it could be made with another memory");
        }
        self
    }
}

fn client_config(
    tls: &Arc<rustls::ClientConfig>,
    transport: &Arc<TransportConfig>,
) -> Result<ClientConfig, QuicError> {
    // quinn takes settings without TLS 1.3, and panics when the first connection is opened.
    let anybody = ServerName::from(IpAddr::from(Ipv4Addr::LOCALHOST));
    rustls::quic::ClientConnection::new(Arc::clone(tls), Version::V1, anybody, Vec::new())
        .map_err(|_| QuicError::Tls)?;
    let crypto = QuicClientConfig::try_from(Arc::clone(tls)).map_err(|_| QuicError::Tls)?;
    let mut client = ClientConfig::new(Arc::new(crypto));
    client.transport_config(Arc::clone(transport));
    Ok(client)
}

/// Opens a connection to `address`; call it within a runtime.
///
/// An error of QUIC comes as an `io::Error` around quinn's, which [`connect_failure`] reads.
///
/// - `name`: whose certificate must be shown.
/// - `source`: the local address, if it matters.
/// - `early`: whether requests may leave before the handshake is over; if they do, what comes with the
///   connection reports whether the server takes them.
pub(crate) async fn open(
    config: &QuicConfig,
    address: SocketAddr,
    name: &str,
    source: Option<IpAddr>,
    early: bool,
) -> io::Result<(quinn::Connection, Option<ZeroRttAccepted>)> {
    let source = source.unwrap_or(match address {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    });
    let socket = UdpSocket::bind((source, 0))?;
    let runtime = Arc::new(quinn::TokioRuntime);
    let endpoint = Endpoint::new(config.endpoint.clone(), None, socket, runtime)?;
    let connecting = endpoint
        .connect_with(config.client.clone(), address, name)
        .map_err(io::Error::other)?;
    if !early {
        return Ok((connecting.await?, None));
    }
    match connecting.into_0rtt() {
        Ok((connection, accepted)) => Ok((connection, Some(accepted))),
        Err(connecting) => Ok((connecting.await?, None)),
    }
}

/// The failure for an error of [`open`].
pub(crate) fn connect_failure(address: SocketAddr, error: &io::Error) -> Failure {
    let quic = error.get_ref().and_then(|inner| inner.downcast_ref());
    match quic {
        Some(quic) => connection_failure(Phase::Connect, quic),
        None => Failure::from_io(Phase::Connect, error).because(format!("{address}: {error}")),
    }
}

/// `H3_NO_ERROR` (RFC 9114, section 8.1).
pub(super) fn no_error() -> VarInt {
    VarInt::from_u32(0x100)
}

/// The name that the certificate of `host` must be for.
pub(crate) fn certificate_name(host: &Host<&str>) -> String {
    match host {
        Host::Domain(name) => (*name).to_owned(),
        Host::Ipv4(address) => address.to_string(),
        Host::Ipv6(address) => address.to_string(),
    }
}

/// The end of all HTTP/3 connections of a connector.
#[derive(Debug, Default)]
pub(crate) struct Closing {
    signal: Notify,
    /// Each connection holds one.
    open: Arc<()>,
    ended: Notify,
}

/// A connection that is open.
struct Open(Arc<Closing>, Option<Arc<()>>);

impl Closing {
    fn begin(self: &Arc<Self>) -> Open {
        Open(Arc::clone(self), Some(Arc::clone(&self.open)))
    }

    /// Closes them, and waits until they are.
    pub(crate) async fn close(&self) {
        self.signal.notify_waiters();
        while Arc::strong_count(&self.open) > 1 {
            self.ended.notified().await;
        }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.1 = None;
        self.0.ended.notify_one();
    }
}

/// How often it is looked whether the frame that closes a connection has left: another task sends it, as soon as it gets
/// its turn.
const LEFT_STEP: Duration = Duration::from_millis(1);
const MOST_STEPS: usize = 1000;

/// Waits until the frame that closes a connection has left.
async fn left(quic: &quinn::Connection) {
    for _ in 0..MOST_STEPS {
        if quic.stats().frame_tx.connection_close > 0 {
            return;
        }
        tokio::time::sleep(LEFT_STEP).await;
    }
}

/// Begins HTTP/3 on a connection.
///
/// - `early`: what becomes of requests that leave before the handshake is over.
/// - `closing`: signals that the connection is to be closed.
pub(crate) async fn speak(
    quic: quinn::Connection,
    early: Option<EarlyData>,
    limits: Limits,
    closing: Arc<Closing>,
) -> Result<Http3, Failure> {
    let mut builder = h3::client::builder();
    builder
        .max_field_section_size(limits.head_bytes as u64)
        .send_grease(false);
    let peer = Arc::<Peer>::default();
    let transport = Transport::new(quic.clone(), limits.head_bytes as u64, Arc::clone(&peer));
    let built = builder.build(transport).await;
    let (mut connection, sender) = built.map_err(|error| match quic.close_reason() {
        Some(reason) => connection_failure(Phase::Connect, &reason),
        None => Failure::new(Phase::Connect, FailureKind::Protocol).because(error.to_string()),
    })?;
    let closed = quic.clone();
    let open = closing.begin();
    tokio::spawn(async move {
        tokio::select! {
            // Reads the peer's SETTINGS and GOAWAY; ends with the connection.
            _ = poll_fn(|context| connection.poll_close(context)) => {}
            () = closing.signal.notified() => {
                closed.close(no_error(), b"");
                left(&closed).await;
            }
        }
        drop(open);
    });
    Ok(Http3::new(sender, quic, peer, early, limits))
}
