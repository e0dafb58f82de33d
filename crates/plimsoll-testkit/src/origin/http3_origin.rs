//! A server that speaks HTTP/3, by quinn and the `h3` crate, and breaks off where the test says.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use bytes::{Buf, Bytes};
use h3::error::{Code, StreamError};
use h3::server::RequestStream;
use h3_quinn::BidiStream;
use http::{Request, Response};
use quinn::crypto::rustls::QuicServerConfig;
use quinn::{Endpoint, EndpointConfig, ServerConfig, TransportConfig, VarInt};
use rustls::server::ServerSessionMemoryCache;
use tokio::sync::watch;

use crate::background::Background;
use crate::logic::{Logic, Question};
use crate::origin::keep_head;
use crate::origin::lateness::be_late;

/// The answer to one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Http3Answer {
    /// This status with this content; none in an answer to HEAD.
    Content(u16, Vec<u8>),
    /// The request's body.
    Echo,
    /// An interim response, then that of [`Http3Origin::hello`].
    Interim,
    /// No answer before [`Http3Origin::release`], then that of [`Http3Origin::hello`].
    Hold,
    /// The stream is reset with this code: 0x10b rejects the request, unseen.
    Reset(u64),
    /// So much content where this much is announced.
    Miscounted {
        /// Bytes that the head announces.
        announced: usize,
        /// Bytes that are sent.
        sent: usize,
    },
    /// 200 with this type and content, of no announced length.
    Stream {
        /// Its media type.
        content_type: &'static str,
        /// Its content.
        content: Vec<u8>,
        /// True if it ends then, or only after [`Http3Origin::release`].
        ends: bool,
    },
    /// GOAWAY: this request is the last of its connection.
    GoAway,
    /// The connection is closed with `H3_INTERNAL_ERROR`.
    Close,
    /// The reply of the logic.
    Reply(Logic),
}

impl Http3Answer {
    fn hello() -> Self {
        Self::Content(200, b"hello".to_vec())
    }
}

type Decide = Box<dyn Fn(u64, u64) -> Http3Answer + Send + Sync>;

/// A server of HTTP/3 on a UDP port of its own.
#[derive(Debug)]
pub struct Http3Origin {
    address: SocketAddr,
    shared: Arc<OriginState>,
    _background: Background,
}

impl Http3Origin {
    /// Answers every request with 200 and `hello`.
    ///
    /// - `tls`: whose certificate it shows.
    pub fn hello(tls: rustls::ServerConfig) -> Self {
        Self::builder(tls).start()
    }

    /// An origin to be set up: [`hello`](Self::hello) by default.
    pub fn builder(tls: rustls::ServerConfig) -> Http3OriginBuilder {
        Http3OriginBuilder {
            tls,
            alpn: b"h3".to_vec(),
            max_streams: None,
            forgets_sessions: false,
            decide: Box::new(|_, _| Http3Answer::hello()),
        }
    }

    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its URL with `path`, which begins with a slash.
    pub fn url(&self, path: &str) -> String {
        format!("https://{}{path}", self.address)
    }

    /// Requests that it looked at.
    pub fn requests(&self) -> u64 {
        self.shared.requests.load(Ordering::SeqCst)
    }

    /// Connections accepted.
    pub fn connections(&self) -> u64 {
        self.shared.connections.load(Ordering::SeqCst)
    }

    /// Connections that are open now.
    pub fn open_connections(&self) -> u64 {
        self.shared.open.load(Ordering::SeqCst)
    }

    /// Connections whose first request came before the handshake was over (0-RTT).
    pub fn early_requests(&self) -> u64 {
        self.shared.early.load(Ordering::SeqCst)
    }

    /// Requests under way at most, on any one connection.
    pub fn most_at_a_time(&self) -> u64 {
        self.shared.most_at_a_time.load(Ordering::SeqCst)
    }

    /// Bytes of request bodies.
    pub fn body_bytes(&self) -> u64 {
        self.shared.body_bytes.load(Ordering::SeqCst)
    }

    /// The largest UDP payload that was sent on any connection that is over.
    pub fn largest_payload(&self) -> u64 {
        self.shared.largest_payload.load(Ordering::SeqCst)
    }

    /// Method and URI of the first requests, and the ID of an event if there is one, at most 256.
    pub fn heads(&self) -> Vec<String> {
        self.shared.heads.lock().expect("no holder panics").clone()
    }

    /// Answers every [`Http3Answer::Hold`], now and from now on.
    pub fn release(&self) {
        self.shared.released.send_replace(true);
    }
}

/// An origin to be set up.
pub struct Http3OriginBuilder {
    tls: rustls::ServerConfig,
    alpn: Vec<u8>,
    max_streams: Option<u32>,
    forgets_sessions: bool,
    decide: Decide,
}

impl std::fmt::Debug for Http3OriginBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Http3OriginBuilder")
            .field("max_streams", &self.max_streams)
            .finish_non_exhaustive()
    }
}

impl Http3OriginBuilder {
    /// Allows so many streams at a time.
    #[must_use]
    pub fn max_streams(mut self, streams: u32) -> Self {
        self.max_streams = Some(streams);
        self
    }

    /// Offers sessions for early data, and has forgotten them by the next connection: rejects it.
    #[must_use]
    pub fn forgets_sessions(mut self) -> Self {
        self.forgets_sessions = true;
        self
    }

    /// Chooses another protocol by ALPN than `h3`.
    #[must_use]
    pub fn alpn(mut self, protocol: &[u8]) -> Self {
        self.alpn = protocol.to_vec();
        self
    }

    /// Does with the n-th request of the m-th connection, both from 0, what `decide(m, n)` says.
    #[must_use]
    pub fn answer(
        mut self,
        decide: impl Fn(u64, u64) -> Http3Answer + Send + Sync + 'static,
    ) -> Self {
        self.decide = Box::new(decide);
        self
    }

    /// Answers each request as `logic` says.
    #[must_use]
    pub fn logic(self, logic: Logic) -> Self {
        self.answer(move |_, _| Http3Answer::Reply(logic.clone()))
    }

    /// Binds and serves; connections are accepted when this returns.
    pub fn start(self) -> Http3Origin {
        let shared = Arc::new(OriginState::default());
        let mut tls = self.tls;
        tls.alpn_protocols = vec![self.alpn];
        // The only other value that QUIC allows (RFC 9001, section 4.6.1).
        tls.max_early_data_size = u32::MAX;
        let max_streams = self.max_streams;
        let settings = move |tls| {
            let crypto = QuicServerConfig::try_from(tls).expect("the settings have TLS 1.3");
            let mut config = ServerConfig::with_crypto(Arc::new(crypto));
            if let Some(streams) = max_streams {
                let mut transport = TransportConfig::default();
                transport.max_concurrent_bidi_streams(VarInt::from_u32(streams));
                config.transport_config(Arc::new(transport));
            }
            config
        };
        let config = settings(tls.clone());
        let forgets_sessions = self.forgets_sessions;
        let service = Arc::new(Service {
            decide: self.decide,
            shared: Arc::clone(&shared),
        });
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let address = socket.local_addr().expect("a bound socket has an address");
        let background = Background::run("http3 origin", async move {
            let runtime = Arc::new(quinn::TokioRuntime);
            let endpoint = Endpoint::new(EndpointConfig::default(), Some(config), socket, runtime)
                .expect("the socket can be used");
            while let Some(incoming) = endpoint.accept().await {
                let service = Arc::clone(&service);
                let mut tls = tls.clone();
                let connecting = if forgets_sessions {
                    tls.session_storage = ServerSessionMemoryCache::new(SESSIONS);
                    incoming.accept_with(Arc::new(settings(tls)))
                } else {
                    incoming.accept()
                };
                tokio::spawn(async move {
                    let Ok(connecting) = connecting else {
                        return;
                    };
                    // Requests that come early are taken: to this server a replay does no harm.
                    let Ok((connection, established)) = connecting.into_0rtt() else {
                        return;
                    };
                    service.shared.open.fetch_add(1, Ordering::SeqCst);
                    service.serve(connection.clone(), established).await;
                    connection.closed().await;
                    let payload = u64::from(connection.stats().path.current_mtu);
                    let largest = &service.shared.largest_payload;
                    largest.fetch_max(payload, Ordering::SeqCst);
                    service.shared.open.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        Http3Origin {
            address,
            shared,
            _background: background,
        }
    }
}

/// Of one connection, where they are forgotten with it.
const SESSIONS: usize = 8;

#[derive(Debug, Default)]
struct OriginState {
    connections: AtomicU64,
    open: AtomicU64,
    early: AtomicU64,
    requests: AtomicU64,
    most_at_a_time: AtomicU64,
    body_bytes: AtomicU64,
    largest_payload: AtomicU64,
    heads: Mutex<Vec<String>>,
    released: watch::Sender<bool>,
}

struct Service {
    decide: Decide,
    shared: Arc<OriginState>,
}

type Answering = RequestStream<BidiStream<Bytes>, Bytes>;

impl Service {
    /// Errors end the connection and are otherwise the client's business.
    async fn serve(self: &Arc<Self>, quic: quinn::Connection, established: quinn::ZeroRttAccepted) {
        be_late().await;
        let number = self.shared.connections.fetch_add(1, Ordering::SeqCst);
        let is_established = Arc::new(std::sync::atomic::AtomicBool::new(false));
        {
            let is_established = Arc::clone(&is_established);
            tokio::spawn(async move {
                established.await;
                is_established.store(true, Ordering::SeqCst);
            });
        }
        let transport = h3_quinn::Connection::new(quic.clone());
        let built = h3::server::builder().build(transport).await;
        let Ok(mut http) = built else {
            return;
        };
        let under_way = Arc::new(AtomicU64::new(0));
        for request in 0.. {
            let Ok(Some(resolver)) = http.accept().await else {
                return;
            };
            let Ok((head, stream)) = resolver.resolve_request().await else {
                return;
            };
            if request == 0 && !is_established.load(Ordering::SeqCst) {
                self.shared.early.fetch_add(1, Ordering::SeqCst);
            }
            be_late().await;
            keep_head(&self.shared.heads, &head);
            // A test that waits for the number finds the head.
            self.shared.requests.fetch_add(1, Ordering::SeqCst);
            let answer = (self.decide)(number, request);
            if answer == Http3Answer::Close {
                quic.close(internal_error(), b"");
                return;
            }
            if answer == Http3Answer::GoAway {
                http.shutdown(0).await.ok();
            }
            let now = under_way.fetch_add(1, Ordering::SeqCst) + 1;
            self.shared.most_at_a_time.fetch_max(now, Ordering::SeqCst);
            let (service, under_way) = (Arc::clone(self), Arc::clone(&under_way));
            tokio::spawn(async move {
                service.answer(answer, head, stream).await.ok();
                under_way.fetch_sub(1, Ordering::SeqCst);
            });
        }
    }

    async fn answer(
        &self,
        answer: Http3Answer,
        head: Request<()>,
        mut stream: Answering,
    ) -> Result<(), StreamError> {
        let is_head = head.method() == http::Method::HEAD;
        let answer = match answer {
            Http3Answer::Reset(code) => {
                stream.stop_sending(Code::from(code));
                stream.stop_stream(Code::from(code));
                return Ok(());
            }
            Http3Answer::Hold => {
                let mut released = self.shared.released.subscribe();
                released.wait_for(|now| *now).await.ok();
                Http3Answer::hello()
            }
            Http3Answer::Interim => {
                let interim = Response::builder().status(103).body(());
                let interim = interim.expect("a status that exists");
                stream.send_response(interim).await?;
                Http3Answer::hello()
            }
            Http3Answer::GoAway => Http3Answer::hello(),
            other => other,
        };
        let mut received = Vec::new();
        while let Some(mut piece) = stream.recv_data().await? {
            let piece = piece.copy_to_bytes(piece.remaining());
            self.shared
                .body_bytes
                .fetch_add(piece.len() as u64, Ordering::SeqCst);
            if answer == Http3Answer::Echo {
                received.extend_from_slice(&piece);
            }
        }
        if let Http3Answer::Stream {
            content_type,
            content,
            ends,
        } = answer
        {
            let response = Response::builder().header("content-type", content_type);
            let response = response.body(()).expect("a type that can be sent");
            stream.send_response(response).await?;
            stream.send_data(content.into()).await?;
            if !ends {
                let mut released = self.shared.released.subscribe();
                released.wait_for(|now| *now).await.ok();
            }
            return stream.finish().await;
        }
        let mut fields = vec![("x-answer".to_owned(), "yes".to_owned())];
        let (status, announced, content) = match answer {
            Http3Answer::Reply(logic) => {
                let reply = logic.reply(&Question::from_request(
                    head.method(),
                    head.uri(),
                    head.headers(),
                ));
                fields.extend(reply.fields);
                (reply.status, reply.content.len(), reply.content.clone())
            }
            Http3Answer::Content(status, content) => (status, content.len(), content),
            Http3Answer::Miscounted { announced, sent } => (200, announced, vec![b'x'; sent]),
            _ => (200, received.len(), received),
        };
        let mut response = Response::builder()
            .status(status)
            .header("content-length", announced);
        for (name, value) in fields {
            response = response.header(name, value);
        }
        let response = response.body(()).expect("a status that exists");
        stream.send_response(response).await?;
        if !is_head && !content.is_empty() {
            stream.send_data(content.into()).await?;
        }
        stream.finish().await
    }
}

/// `H3_INTERNAL_ERROR` (RFC 9114, section 8.1).
fn internal_error() -> VarInt {
    VarInt::from_u32(0x102)
}
