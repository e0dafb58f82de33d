//! Exchanges on one HTTP/3 connection, many at a time, with their phases.
//!
//! QUIC is quinn's and HTTP/3 the `h3` crate's (RFC 9000, RFC 9114); what is here times them, bounds
//! them and says what went wrong. Each connection has a UDP socket of its own, so that a server that
//! spreads its load by address sees as many clients as there are connections.

mod connect;

mod early_data;

mod failure;

mod peer;

mod request;

mod transport;

use std::cell::Cell;
use std::fmt;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use bytes::{Buf, Bytes};
use h3::client::{RequestStream, SendRequest};
use h3::error::Code;
use http::HeaderMap;
use plimsoll_model::{Clock, Failure, FailureKind, Phase, Retry, TlsSession};
use plimsoll_wire::h1::Limits;
use plimsoll_wire::tls;
use rustls::pki_types::CertificateDer;
use tokio::time::timeout_at;

pub(crate) use self::connect::{Closing, certificate_name, connect_failure, open, speak};
pub use self::connect::{Http3Connection, QuicConfig, QuicError, QuicOptions};
pub(crate) use self::early_data::{EarlyData, WithoutEarlyData};
pub use self::request::Http3Request;
pub(crate) use self::transport::Receiver;

use self::failure::stream_failure;
use self::peer::{OpeningWebSocket, Peer};
use self::transport::{Bidirectional, Opener};
use crate::timing::Timing;
use crate::{Completed, Incomplete, Opening};

/// A connection that speaks HTTP/3; clones share it.
///
/// It is closed when the last clone is gone.
#[derive(Clone)]
pub struct Http3 {
    sender: SendRequest<Opener, Bytes>,
    shared: Rc<ConnectionState>,
}

struct ConnectionState {
    quic: quinn::Connection,
    peer: Arc<Peer>,
    limits: Limits,
    /// Only where requests may have left before the handshake was over.
    early: Option<EarlyData>,
    /// Streams of requests under way, and the most at a time.
    streams: Cell<usize>,
    most_streams: Cell<usize>,
    /// Bytes of datagrams that were reported: sent, received.
    reported: Cell<(u64, u64)>,
    /// The peer accepts no more requests.
    is_leaving: Cell<bool>,
    /// An exchange was completed.
    has_carried: Cell<bool>,
}

/// Takes the parts of a response.
pub trait Http3Parts {
    /// The final head: its status and its fields.
    fn head(&mut self, status: u16, fields: &HeaderMap);

    /// State of the exchange after its `head`.
    fn opened(&mut self, _opening: &Opening) {}

    /// A piece of the content.
    fn content(&mut self, piece: &[u8]);

    /// Whether [`trailers`](Self::trailers) looks at anything.
    fn wants_trailers(&self) -> bool {
        false
    }

    /// The fields behind the content, if there are any.
    fn trailers(&mut self, _fields: &HeaderMap) {}
}

/// Sees nothing.
impl Http3Parts for () {
    fn head(&mut self, _status: u16, _fields: &HeaderMap) {}

    fn content(&mut self, _piece: &[u8]) {}
}

type Exchanging = RequestStream<Bidirectional, Bytes>;

impl Http3 {
    fn new(
        sender: SendRequest<Opener, Bytes>,
        quic: quinn::Connection,
        peer: Arc<Peer>,
        early: Option<EarlyData>,
        limits: Limits,
    ) -> Self {
        Self {
            sender,
            shared: Rc::new(ConnectionState {
                quic,
                peer,
                limits,
                early,
                streams: Cell::default(),
                most_streams: Cell::default(),
                reported: Cell::default(),
                is_leaving: Cell::default(),
                has_carried: Cell::default(),
            }),
        }
    }

    /// The other end.
    pub fn peer(&self) -> SocketAddr {
        self.shared.quic.remote_address()
    }

    /// Whether no exchange can be begun any more.
    pub fn is_retired(&self) -> bool {
        self.shared.is_leaving.get() || self.shared.quic.close_reason().is_some()
    }

    /// Exchanges that the server allows at a time, once its limit has made one wait: the most that were
    /// under way on the connection.
    pub fn stream_limit(&self) -> Option<usize> {
        let shared = &self.shared;
        let is_limited = shared.peer.has_limited_streams();
        is_limited.then(|| shared.most_streams.get())
    }

    /// Begins requests; for exchanges that are forwarded.
    pub(crate) fn sender(&self) -> SendRequest<Opener, Bytes> {
        self.sender.clone()
    }

    /// An exchange was completed.
    pub(crate) fn carried(&self) {
        self.shared.has_carried.set(true);
    }

    /// Waits for the server's SETTINGS, or the end of the connection.
    pub(crate) async fn settled(&self) {
        tokio::select! {
            () = self.shared.peer.settled() => {}
            _ = self.shared.quic.closed() => {}
        }
    }

    /// Whether the server has announced that it understands extended CONNECT (RFC 9220).
    pub(crate) fn allows_extended_connect(&self) -> bool {
        self.shared.peer.allows_extended_connect()
    }

    /// To be held while a request for a WebSocket is sent.
    pub(crate) fn opening_websocket(&self) -> OpeningWebSocket {
        OpeningWebSocket::new(&self.shared.peer)
    }

    /// The failure that an error of a stream means.
    pub(crate) fn failed(&self, phase: Phase, error: h3::error::StreamError) -> Failure {
        self.shared.failed(phase, error)
    }

    /// Whether an exchange was completed on it.
    pub fn has_carried(&self) -> bool {
        self.shared.has_carried.get()
    }

    /// The largest UDP payload that the path was found to carry, in bytes.
    pub fn udp_payload_bytes(&self) -> u16 {
        self.shared.quic.stats().path.current_mtu
    }

    /// The TLS session; QUIC does not show the cipher suite.
    ///
    /// Reads the peer's certificate, so it is not for every exchange.
    pub fn tls_session(&self) -> TlsSession {
        let chain = self.shared.quic.peer_identity();
        let chain = chain.and_then(|chain| chain.downcast::<Vec<CertificateDer<'_>>>().ok());
        let leaf = chain.as_deref().and_then(|chain| chain.first());
        TlsSession {
            version: "TLS 1.3".to_owned(),
            cipher: None,
            alpn: Some("h3".to_owned()),
            resumed: false,
            certificate: leaf.and_then(|leaf| tls::certificate(leaf)),
        }
    }

    /// Sends `request` and reads its response to the end; others may be under way.
    ///
    /// - `begun`: the present, read by the caller.
    /// - `deadline`: when to give up.
    ///
    /// The reported bytes are those of the connection's datagrams since the last report, so
    /// that over all exchanges of a connection each is counted once. A failure whose retry is safe
    /// means that the peer has not looked at the request.
    pub async fn exchange<K: Http3Parts>(
        &mut self,
        request: &Http3Request,
        begun: Instant,
        deadline: Instant,
        sink: &mut K,
        clock: &impl Clock,
    ) -> Result<Completed, Incomplete> {
        let mut progress = Timing::begin(begun);
        let mut stream = None;
        let exchanging = self.follow(request, &mut stream, &mut progress, sink, clock);
        let mut outcome = match timeout_at(deadline.into(), exchanging).await {
            Ok(outcome) => outcome,
            Err(_) => Err(Failure::new(progress.phase(), FailureKind::Timeout)),
        };
        if let Err(failure) = &outcome
            && failure.kind != FailureKind::Timeout
            && self.is_rejected().await
        {
            outcome = Err(Failure::new(progress.phase(), FailureKind::Closed)
                .because("the server did not take what left before the handshake (0-RTT)")
                .retry(Retry::Safe));
        }
        let done = clock.now();
        let (bytes_sent, bytes_received) = self.take_traffic();
        match outcome {
            Ok(status) => {
                self.shared.has_carried.set(true);
                Ok(Completed {
                    status,
                    phases: progress.completed(done),
                    bytes_sent,
                    bytes_received,
                    done,
                    surplus: false,
                    reusable: !self.is_retired(),
                })
            }
            Err(failure) => {
                if let Some(stream) = &mut stream {
                    // Dropping it stops the peer too; `stop_sending` panics while a read is pending.
                    stream.stop_stream(Code::H3_REQUEST_CANCELLED);
                }
                Err(Incomplete {
                    failure,
                    phases: progress.partial(),
                    bytes_sent,
                    bytes_received,
                    done,
                })
            }
        }
    }

    /// Whether the server took nothing of what was sent before the handshake was over; nothing can be
    /// done with the connection then.
    async fn is_rejected(&self) -> bool {
        let Some(early) = &self.shared.early else {
            return false;
        };
        let is_accepted = early.is_accepted().await;
        let reason = self.shared.quic.close_reason();
        let is_ours = matches!(reason, None | Some(quinn::ConnectionError::LocallyClosed));
        let is_rejected = !is_accepted && is_ours;
        if is_rejected {
            self.shared.is_leaving.set(true);
        }
        is_rejected
    }

    /// Says good-bye; it leaves when the tasks of this thread had a turn.
    pub fn close(&self) {
        self.shared.quic.close(connect::no_error(), b"");
    }

    async fn follow<K: Http3Parts>(
        &mut self,
        request: &Http3Request,
        stream: &mut Option<Exchanging>,
        progress: &mut Timing,
        sink: &mut K,
        clock: &impl Clock,
    ) -> Result<u16, Failure> {
        let failed = |shared: &ConnectionState, progress: &Timing, error| {
            shared.failed(progress.phase(), error)
        };
        let shared = &*self.shared;
        let opened = self.sender.send_request(request.head()).await;
        let stream = stream.insert(opened.map_err(|error| failed(shared, progress, error))?);
        let _under_way = UnderWay::enter(shared);
        let mut sent = Ok(());
        if let Some(body) = request.body() {
            sent = stream.send_data(body).await;
        }
        if sent.is_ok() {
            sent = stream.finish().await;
        }
        // A server may answer, and then take no more of the request (RFC 9114, section 4.1).
        match sent {
            Ok(()) | Err(h3::error::StreamError::RemoteTerminate { .. }) => {}
            Err(error) => return Err(failed(shared, progress, error)),
        }
        progress.sent_at = Some(clock.now());
        let mut interim = 0;
        let head = loop {
            let head = stream.recv_response().await;
            let head = head.map_err(|error| failed(shared, progress, error))?;
            if !head.status().is_informational() {
                break head;
            }
            interim += 1;
            if interim > shared.limits.interim {
                let limit = shared.limits.interim;
                return Err(Failure::new(Phase::Wait, FailureKind::Protocol)
                    .because(format!("more than {limit} interim responses")));
            }
        };
        let done = clock.now();
        progress.first_byte_at = Some(done);
        let status = head.status().as_u16();
        sink.head(status, head.headers());
        sink.opened(&Opening {
            status,
            phases: progress.completed(done),
            done,
        });
        let mut length = Length::announced(&head, request.is_head())?;
        loop {
            let piece = stream.recv_data().await;
            let piece = piece.map_err(|error| failed(shared, progress, error))?;
            let Some(mut piece) = piece else { break };
            while piece.has_remaining() {
                let chunk = piece.chunk();
                length.count_received(chunk.len(), shared.limits.body_bytes)?;
                sink.content(chunk);
                let taken = chunk.len();
                piece.advance(taken);
            }
        }
        length.end()?;
        if sink.wants_trailers() {
            let trailers = stream.recv_trailers().await;
            let trailers = trailers.map_err(|error| failed(shared, progress, error))?;
            if let Some(trailers) = trailers {
                sink.trailers(&trailers);
            }
        }
        Ok(status)
    }

    /// Bytes of datagrams, sent and received, since the last call.
    pub fn take_traffic(&self) -> (u64, u64) {
        let stats = self.shared.quic.stats();
        let total = (stats.udp_tx.bytes, stats.udp_rx.bytes);
        let reported = self.shared.reported.replace(total);
        (total.0 - reported.0, total.1 - reported.1)
    }
}

/// Counts a stream until it is dropped.
struct UnderWay<'a>(&'a ConnectionState);

impl<'a> UnderWay<'a> {
    fn enter(shared: &'a ConnectionState) -> Self {
        let streams = shared.streams.get() + 1;
        shared.streams.set(streams);
        shared
            .most_streams
            .set(shared.most_streams.get().max(streams));
        Self(shared)
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.streams.set(self.0.streams.get() - 1);
    }
}

impl ConnectionState {
    fn failed(&self, phase: Phase, error: h3::error::StreamError) -> Failure {
        let failure = stream_failure(phase, error, self.quic.close_reason());
        if failure.kind == FailureKind::Closed {
            self.is_leaving.set(true);
        }
        failure
    }
}

impl fmt::Debug for Http3 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http3")
            .field("peer", &self.peer())
            .field("is_retired", &self.is_retired())
            .finish_non_exhaustive()
    }
}

/// Content against what was announced (RFC 9114, section 4.1.2).
#[derive(Debug)]
pub(crate) struct Length {
    announced: Option<u64>,
    seen: u64,
}

impl Length {
    /// None is announced.
    pub(crate) fn unknown() -> Self {
        Self {
            announced: None,
            seen: 0,
        }
    }

    pub(crate) fn announced(head: &http::Response<()>, is_head: bool) -> Result<Self, Failure> {
        let mut announced = None;
        for value in head.headers().get_all(http::header::CONTENT_LENGTH) {
            let length = value.to_str().ok().and_then(|text| text.parse().ok());
            let length: u64 = length.ok_or_else(|| malformed("invalid content-length"))?;
            if announced.is_some_and(|earlier| earlier != length) {
                return Err(malformed("conflicting content-length"));
            }
            announced = Some(length);
        }
        if is_head || matches!(head.status().as_u16(), 204 | 304) {
            announced = Some(0);
        }
        Ok(Self { announced, seen: 0 })
    }

    /// Bytes that are still to come, if they were announced.
    pub(crate) fn left(&self) -> Option<u64> {
        Some(self.announced?.saturating_sub(self.seen))
    }

    pub(crate) fn count_received(&mut self, bytes: usize, limit: u64) -> Result<(), Failure> {
        self.seen += bytes as u64;
        if self
            .announced
            .is_some_and(|announced| self.seen > announced)
        {
            return Err(malformed("more content than announced"));
        }
        if self.seen > limit {
            return Err(Failure::new(Phase::Receive, FailureKind::TooLarge)
                .because(format!("body exceeds {limit} bytes")));
        }
        Ok(())
    }

    pub(crate) fn end(&self) -> Result<(), Failure> {
        match self.announced {
            Some(announced) if self.seen < announced => {
                Err(malformed("less content than announced"))
            }
            _ => Ok(()),
        }
    }
}

fn malformed(cause: &str) -> Failure {
    Failure::new(Phase::Receive, FailureKind::Protocol).because(cause)
}
