//! The seam for connections of QUIC that end here and carry something else than HTTP/3.

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_wire::RetryKey;
use quinn::crypto::rustls::QuicServerConfig;
use quinn::{IdleTimeout, ServerConfig, TransportConfig, VarInt};

use crate::action::LocalFuture;
use crate::message::connection::ConnectionInfo;
use crate::quic::{CONNECTION_WINDOW, NoTls13, Serve, with_transport};
use crate::worker::context::WorkerContext;
use crate::worker::drain::DrainSignal;

/// Makes a worker's handler of connections.
pub type MakeQuicHandler = dyn Fn(&WorkerContext) -> Rc<dyn QuicHandler> + Send + Sync;

/// A connection of QUIC behind its handshake.
#[derive(Debug)]
pub struct AcceptedQuic {
    /// Opens and accepts streams, and carries datagrams.
    pub quic: quinn::Connection,
    /// Both ends, and what the handshake agreed on.
    pub connection: ConnectionInfo,
    /// Signals when the engine drains.
    pub drain: DrainSignal,
}

/// Serves whole connections of QUIC; one per worker.
pub trait QuicHandler {
    /// Serves a connection until it ends.
    fn serve(&self, accepted: AcceptedQuic) -> LocalFuture<()>;
}

/// How QUIC is spoken with clients, besides the limits of the engine.
#[derive(Clone)]
pub struct QuicPlan {
    /// Makes the handler.
    pub handler: Arc<MakeQuicHandler>,
    /// Shows the certificate; its ALPN protocols are replaced.
    pub tls: Arc<rustls::ServerConfig>,
    /// Protocols that are spoken, the preferred one first.
    pub alpn: Vec<Vec<u8>>,
    /// Streams of each direction that a client may have open.
    pub streams: u32,
    /// Bytes of datagrams (RFC 9221) that wait to be read or sent.
    pub datagram_bytes: usize,
    /// Bytes of a stream that may wait to be read.
    pub stream_window: u32,
    /// How long nothing may pass.
    pub idle_timeout: Duration,
    /// The key that it shares with a gateway that sends clients Retry packets.
    pub retry_key: Option<RetryKey>,
}

impl fmt::Debug for QuicPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QuicPlan").finish_non_exhaustive()
    }
}

/// Transport settings of QUIC for another protocol than HTTP/3.
pub(crate) fn raw_config(plan: &QuicPlan) -> Result<ServerConfig, NoTls13> {
    let mut tls = (*plan.tls).clone();
    tls.alpn_protocols.clone_from(&plan.alpn);
    // What comes before the handshake is over can be replayed (RFC 9001, section 9.2).
    tls.max_early_data_size = 0;
    let crypto = QuicServerConfig::try_from(tls).map_err(|_| NoTls13)?;
    let mut transport = TransportConfig::default();
    transport
        .max_concurrent_bidi_streams(VarInt::from_u32(plan.streams))
        .max_concurrent_uni_streams(VarInt::from_u32(plan.streams))
        .stream_receive_window(VarInt::from_u32(plan.stream_window))
        .receive_window(VarInt::from_u32(CONNECTION_WINDOW))
        .send_window(u64::from(CONNECTION_WINDOW))
        .max_idle_timeout(IdleTimeout::try_from(plan.idle_timeout).ok())
        .datagram_receive_buffer_size(Some(plan.datagram_bytes))
        .datagram_send_buffer_size(plan.datagram_bytes);
    Ok(with_transport(crypto, transport, plan.retry_key.as_ref()))
}

/// Has connections served by the handler that a reload may replace.
pub(crate) fn serve_quic(handler: &Rc<RefCell<Rc<dyn QuicHandler>>>) -> Serve {
    let handler = Rc::clone(handler);
    Rc::new(move |quic, place, local| {
        let handler = Rc::clone(&handler.borrow());
        Box::pin(async move {
            let accepted = AcceptedQuic {
                connection: ConnectionInfo::of_quic(&quic, place.id(), local),
                drain: place.worker.drain.clone(),
                quic,
            };
            handler.serve(accepted).await;
            drop(place);
        })
    })
}
